"""`StabilityDisplay`: how often a feature is chosen again on resampled rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kspan.arrays import Index
from kspan.choosing_k import Stability
from kspan.figures import StabilityFigure
from kspan.figures.components import MOST_FEATURES
from kspan.plotting import display
from kspan.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class StabilityDisplay(Display, StabilityFigure):
    """Selection frequencies as sorted bars, those of the chosen features filled.

    `from_estimator` measures them, with the parameters of the estimator.

    Parameters are those of `kspan.figures.StabilityFigure`.

    Attributes
    ----------
    ax_, figure_ : axes and figure
    bars_ : the bars, from top to bottom
    shown_ : places of the features, from top to bottom

    Examples
    --------
    >>> StabilityDisplay(frequencies=[0.2, 1.0, 0.0, 0.8], chosen=[1, 3]).order()
    array([1, 3, 0])
    """

    figure_type = StabilityFigure

    @classmethod
    def from_stability(
        cls,
        stability: Stability,
        *,
        chosen: Index | None = None,
        feature_names: Sequence[str] | None = None,
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> Self:
        """Draw what `kspan.selection_stability` returned; else as `from_record`.

        `chosen` are the places of the features to mark, as a rule those of the fit to all rows;
        `feature_names` are needed if `stability` has none.
        """
        numbers = StabilityFigure.from_stability(
            stability, chosen=chosen, feature_names=feature_names
        )
        return cls.from_figure(numbers, ax=ax, **kwargs)

    def plot(self, ax: "Axes | None" = None, *, max_features: int = MOST_FEATURES) -> Self:
        """Draw.

        Parameters
        ----------
        ax : where to draw; a new figure by default
        max_features : the most bars
        """
        self.shown_ = shown = self.order(max_features)
        rows = shown.size
        ax = self._axes(ax, (6.0, max(2.4, 1.1 + 0.22 * rows)))
        self.bars_ = ax.barh(np.arange(rows), self.frequencies[shown], 0.75, color=display.FOUND)
        self._mark_chosen(ax)
        display.name_rows(ax, [self.feature_names[place] for place in shown])
        times = "" if self.n_resamples is None else f"{self.n_resamples} "
        ax.set(
            xlim=(0, 1.0),
            ylim=(rows - 0.4, -0.6),
            xlabel=f"share of {times}resamples that choose the feature",
            ylabel=f"feature{display.at_most(rows, self.frequencies.size, 'most frequent')}",
        )
        if self.nogueira is not None:
            ax.set_title(
                f"agreement {self.nogueira:.2f} (1: always the same, 0: chance)",
                fontsize="medium",
            )
        display.percent_axis(ax.xaxis)
        ax.tick_params(axis="y", length=0)
        display.bare(ax)
        return self

    def _mark_chosen(self, ax: "Axes") -> None:
        """Hatch the bars of features that are not in the fit, and say which is which."""
        if self.chosen is None:
            return
        from matplotlib.patches import Patch

        for bar, inside in zip(self.bars_, self.in_fit[self.shown_], strict=True):
            if not inside:
                bar.set(**display.HATCHED)
        ax.legend(
            handles=[
                Patch(color=display.FOUND, label="chosen by the fit"),
                Patch(label="not chosen", **display.HATCHED),
            ],
            loc="lower right",
        )
