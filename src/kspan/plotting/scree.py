"""`ScreeDisplay`: what each component explains, beside plain PCA."""

from typing import TYPE_CHECKING, Self

import numpy as np

from kspan.figures import ScreeFigure
from kspan.figures.appearance import component_names
from kspan.plotting import display
from kspan.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# With more components there is no room for a number above each bar.
MOST_NUMBERS = 6


class ScreeDisplay(Display, ScreeFigure):
    """Explained variance of each sparse component, and of the component of plain PCA beside it.

    Parameters are those of `kspan.figures.ScreeFigure`.

    Attributes
    ----------
    ax_, figure_ : axes and figure
    bars_, pca_bars_ : the bars of the sparse components, and of plain PCA

    Examples
    --------
    >>> display = ScreeDisplay(
    ...     explained_variance=[3.0, 1.0], pca_variance=[4.0, 2.0], total_variance=10.0
    ... )
    >>> display.share, display.pca_share
    (array([0.3, 0.1]), array([0.4, 0.2]))
    """

    figure_type = ScreeFigure

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : where to draw; a new figure by default
        """
        if self.pca_share is None:
            raise ValueError(
                "The record does not have what plain PCA explains, as the data was too large to "
                "be read once more. Set it with dataclasses.replace(record, pca_variance=...)."
            )
        m = self.share.size
        ax = self._axes(ax, (max(4.0, 2.2 + 0.7 * m), 3.6))
        places = np.arange(m)
        used = "" if self.n_features_used is None else f" ({self.n_features_used} features)"
        every = "" if self.n_features is None else f" (all {self.n_features})"
        self.bars_ = ax.bar(
            places - 0.2, self.share, 0.4, color=display.FOUND, label=f"sparse{used}"
        )
        self.pca_bars_ = ax.bar(
            places + 0.2, self.pca_share, 0.4, label=f"plain PCA{every}", **display.HATCHED
        )
        if m <= MOST_NUMBERS:
            for bars in (self.bars_, self.pca_bars_):
                ax.bar_label(bars, fmt="{:.1%}", fontsize=display.SMALL, padding=1)
        ax.set_xticks(places, component_names(m))
        ax.set(xlabel="component", ylabel="share of the total variance")
        ax.margins(y=0.08)
        ax.set_ylim(bottom=0)
        display.percent_axis(ax.yaxis)
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=2, frameon=False)
        display.bare(ax)
        return self
