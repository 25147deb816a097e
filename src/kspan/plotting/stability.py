"""`StabilityDisplay`: how often a feature is chosen again on resampled rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kspan.arrays import Index
from kspan.plotting.common import (
    HATCH,
    INK,
    SMALL,
    THIN,
    at_most,
    bare,
    label,
    make_axes,
    percent_axis,
)
from kspan.records import FitRecord
from kspan.selection import Stability, selection_stability

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure


class StabilityDisplay:
    """Selection frequencies as sorted bars, those of the chosen features filled.

    Parameters
    ----------
    frequencies : (d,) array
        Share of the resamples in which each feature was chosen.
    feature_names : d names, optional
        Their places by default.
    chosen : (k,) array, optional
        Places of the features of the fit.
    nogueira : float, optional
        Agreement of the selections corrected for chance, for the title.
    n_resamples : int, optional
        For the label of the axis.

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

    ax_: "Axes"
    figure_: "Figure"
    bars_: "BarContainer"
    shown_: Index

    def __init__(
        self,
        *,
        frequencies: ArrayLike,
        feature_names: Sequence[str] | None = None,
        chosen: ArrayLike | None = None,
        nogueira: float | None = None,
        n_resamples: int | None = None,
    ):
        self.frequencies = np.asarray(frequencies, dtype=np.float64)
        d = self.frequencies.size
        self.feature_names = list(map(str, range(d) if feature_names is None else feature_names))
        self.chosen = None if chosen is None else np.asarray(chosen, dtype=np.intp)
        self.nogueira = nogueira
        self.n_resamples = n_resamples

    @classmethod
    def from_stability(
        cls,
        stability: Stability,
        *,
        chosen: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> Self:
        """Draw what `kspan.selection_stability` returned.

        Parameters
        ----------
        stability : Stability
        chosen : places of the features to mark, as a rule those of the fit to all rows
        feature_names : names of all features, if `stability` has none
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        known = stability.feature_names
        display = cls(
            frequencies=stability.frequencies,
            feature_names=feature_names if known is None else known,
            chosen=chosen,
            nogueira=stability.nogueira,
            n_resamples=stability.n_resamples,
        )
        return display.plot(ax, **kwargs)

    @classmethod
    def from_record(cls, record: FitRecord, *, ax: "Axes | None" = None, **kwargs: Any) -> Self:
        """Draw the stability in a record, with the features of its fit marked.

        Parameters
        ----------
        record : FitRecord with a stability
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        if record.stability is None:
            raise ValueError(
                "The record has no stability: make it with "
                "FitRecord.from_estimator(..., stability=kspan.selection_stability(X, ...))."
            )
        return cls.from_stability(
            record.stability, chosen=record.support, feature_names=record.feature_names, ax=ax,
            **kwargs,
        )  # fmt: skip

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        feature_names: Sequence[str] | None = None,
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> Self:
        """Measure the stability with the estimator's own parameters, and draw it.

        Parameters
        ----------
        estimator : fitted FeatureSparsePCA or FeatureSparseSelector
        X : the data of the fit
        feature_names : names of all features, if the data has none
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        check_is_fitted(estimator)
        asked = estimator.get_params()
        if "n_features_to_select" not in asked or "include" not in asked:
            raise ValueError(
                "Stability is about features that all components share; "
                f"{type(estimator).__name__} has others for each. Use FeatureSparsePCA."
            )
        if X is None:
            raise ValueError(
                "An estimator does not keep its stability: pass the data of the fit as X, or use "
                "from_stability with what kspan.selection_stability(X, ...) returns."
            )
        stability = selection_stability(
            X, estimator.n_components_, estimator.n_features_to_select_, include=asked["include"],
            exclude=asked["exclude"], scale=asked["scale"], covariance=asked["covariance"],
            random_state=asked["random_state"],
        )  # fmt: skip
        return cls.from_stability(
            stability, chosen=estimator.get_support(indices=True), feature_names=feature_names,
            ax=ax, **kwargs,
        )  # fmt: skip

    def order(self, max_features: int = 40) -> Index:
        """Return the features to show, most frequent first: those chosen at all, or in the fit."""
        inside = np.zeros(self.frequencies.size, dtype=bool)
        if self.chosen is not None:
            inside[self.chosen] = True
        # Of equally frequent ones those of the fit come first.
        order = np.lexsort((~inside, -self.frequencies))
        order = order[(self.frequencies[order] > 0) | inside[order]]
        return order[:max_features]

    def plot(self, ax: "Axes | None" = None, *, max_features: int = 40) -> Self:
        """Draw.

        Parameters
        ----------
        ax : where to draw; a new figure by default
        max_features : the most bars
        """
        if max_features < 1:
            raise ValueError(f"max_features must be at least 1, got {max_features}.")
        self.shown_ = shown = self.order(max_features)
        rows = shown.size
        self.ax_, self.figure_ = ax, _ = make_axes(ax, (6.0, max(2.4, 1.1 + 0.22 * rows)))
        self.bars_ = ax.barh(
            np.arange(rows), self.frequencies[shown], 0.75, color="white", edgecolor="black",
            lw=THIN,
        )  # fmt: skip
        self._mark_chosen(ax)
        ax.set_yticks(
            range(rows), [label(self.feature_names[place]) for place in shown],
            fontsize=SMALL if rows > 12 else None,
        )  # fmt: skip
        times = "" if self.n_resamples is None else f"{self.n_resamples} "
        ax.set(
            xlim=(0, 1.0),
            ylim=(rows - 0.4, -0.6),
            xlabel=f"share of {times}resamples that choose the feature",
            ylabel=f"feature{at_most(rows, self.frequencies.size, 'most frequent')}",
        )
        if self.nogueira is not None:
            ax.set_title(
                f"agreement {self.nogueira:.2f} (1: always the same, 0: chance)", fontsize="medium"
            )
        percent_axis(ax.xaxis)
        ax.tick_params(axis="y", length=0)
        bare(ax)
        return self

    def _mark_chosen(self, ax: "Axes") -> None:
        """Fill the bars of the features in the fit, hatch the others, and say which is which."""
        if self.chosen is None:
            return
        from matplotlib.patches import Patch

        for bar, place in zip(self.bars_, self.shown_, strict=True):
            if place in self.chosen:
                bar.set_facecolor(INK)
            else:
                bar.set_hatch(HATCH)
        ax.legend(
            handles=[
                Patch(facecolor=INK, edgecolor="black", label="chosen by the fit"),
                Patch(facecolor="white", edgecolor="black", hatch=HATCH, label="not chosen"),
            ],
            loc="lower right",
        )
