"""`ScreeDisplay`: what each component explains, beside plain PCA."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from kspan.arrays import FloatArray
from kspan.plotting.common import (
    HATCH,
    INK,
    SMALL,
    bare,
    component_names,
    make_axes,
    percent_axis,
    record_of,
)
from kspan.records import FitRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure

# With more components there is no room for a number above each bar.
MOST_NUMBERS = 6


class ScreeDisplay:
    """Explained variance of each sparse component, and of the component of plain PCA beside it.

    Parameters
    ----------
    explained_variance : (m,) array
        Of the sparse components.
    pca_variance : (m,) array
        Of those of plain PCA.
    total_variance : float
        Of all features: bars are shares of it.
    n_features_used, n_features : int, optional
        For the legend.

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

    ax_: "Axes"
    figure_: "Figure"
    bars_: "BarContainer"
    pca_bars_: "BarContainer"

    def __init__(
        self,
        *,
        explained_variance: ArrayLike,
        pca_variance: ArrayLike,
        total_variance: float,
        n_features_used: int | None = None,
        n_features: int | None = None,
    ):
        self.explained_variance = np.asarray(explained_variance, dtype=np.float64)
        self.pca_variance = np.asarray(pca_variance, dtype=np.float64)
        self.total_variance = total_variance
        self.n_features_used = n_features_used
        self.n_features = n_features

    @property
    def share(self) -> FloatArray:
        """Share of the total variance of each sparse component."""
        return self.explained_variance / self.total_variance

    @property
    def pca_share(self) -> FloatArray:
        """Share of the total variance of each component of plain PCA."""
        return self.pca_variance / self.total_variance

    @classmethod
    def from_record(cls, record: FitRecord, *, ax: "Axes | None" = None, **kwargs: Any) -> Self:
        """Draw the variances of a saved fit.

        Parameters
        ----------
        record : FitRecord with `pca_variance`
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        if record.pca_variance is None:
            raise ValueError(
                "The record does not have what plain PCA explains, as the data was too large to "
                "be read once more. Set it with dataclasses.replace(record, pca_variance=...)."
            )
        display = cls(
            explained_variance=record.explained_variance,
            pca_variance=record.pca_variance,
            total_variance=record.total_variance,
            n_features_used=record.support.size,
            n_features=record.n_features,
        )
        return display.plot(ax, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, ax: "Axes | None" = None, **kwargs: Any
    ) -> Self:
        """Draw the variances of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator of kspan
        X : the data of the fit, for plain PCA
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        record = record_of(estimator, X, "what plain PCA explains")
        return cls.from_record(record, ax=ax, **kwargs)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : where to draw; a new figure by default
        """
        m = self.share.size
        self.ax_, self.figure_ = ax, _ = make_axes(ax, (max(4.0, 2.2 + 0.7 * m), 3.6))
        places = np.arange(m)
        used = "" if self.n_features_used is None else f" ({self.n_features_used} features)"
        every = "" if self.n_features is None else f" (all {self.n_features})"
        self.bars_ = ax.bar(places - 0.2, self.share, 0.4, color=INK, label=f"sparse{used}")
        self.pca_bars_ = ax.bar(
            places + 0.2, self.pca_share, 0.4, color="white", edgecolor="black", hatch=HATCH,
            lw=0.8, label=f"plain PCA{every}",
        )  # fmt: skip
        if m <= MOST_NUMBERS:
            for bars in (self.bars_, self.pca_bars_):
                ax.bar_label(bars, fmt="{:.1%}", fontsize=SMALL, padding=1)
        ax.set_xticks(places, component_names(m))
        ax.set(xlabel="component", ylabel="share of the total variance")
        ax.margins(y=0.08)
        ax.set_ylim(bottom=0)
        percent_axis(ax.yaxis)
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=2, frameon=False)
        bare(ax)
        return self
