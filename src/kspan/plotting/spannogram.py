"""`SpannogramDisplay`: all sparse components of two dimensions, in one picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from kspan.arrays import FloatArray, Index
from kspan.covariance import as_covariance
from kspan.plotting.common import (
    ACCENT,
    HATCH,
    INK,
    MIDDLE,
    MINUS,
    SMALL,
    at_most,
    bare,
    label,
    make_axes,
)
from kspan.plotting.spannogram_regions import Region, angle_range, directions, regions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

# Points of a curve on a quarter circle, curves that are drawn, names that are written.
QUARTER, MOST_CURVES, MOST_NAMES = 240, 200, 12

# Height of the strip of regions, as a share of the axes.
STRIP = 0.07


class SpannogramDisplay:
    """The spannogram of a covariance of rank 2: curves of the features over an angle.

    Every curve is a feature. At each angle φ the k largest ones are a candidate support, drawn
    thick; it changes only where curves cross. One of the candidates is optimal for the covariance
    cut to its two leading directions.

    Parameters
    ----------
    V : (n, 2) array
        With VV' the covariance, or its best approximation of rank 2, the leading direction first.
    k : int
        Number of features in a support.
    nonnegative : bool, default=False
        The k largest positive entries over the whole circle, instead of the k largest in size over
        a half.
    feature_names : n names, optional

    Attributes
    ----------
    regions : list of Region
        The candidate supports, with the angles that have them.
    best : Region
        The one with the largest variance, `best.value`, at `best.angle`.
    ax_, figure_ : axes and figure
    curves_, top_ : collections of lines, of the features and of the k largest
    strip_ : the bars of the regions
    best_ : the line at the best angle
    names_ : the text that lists its features, the largest first
    shown_ : rows of V that are drawn

    Examples
    --------
    >>> display = SpannogramDisplay(V=[[2.0, 0.0], [1.5, 0.5], [0.0, 1.0]], k=2)
    >>> display.best.support, round(display.best.value, 3)
    (array([0, 1]), 6.342)
    """

    ax_: "Axes"
    figure_: "Figure"
    curves_: "LineCollection"
    top_: "LineCollection"
    strip_: "BarContainer"
    best_: "Line2D"
    names_: "Text"
    shown_: Index

    def __init__(
        self,
        *,
        V: ArrayLike,
        k: int,
        nonnegative: bool = False,
        feature_names: Sequence[str] | None = None,
    ):
        self.V = np.asarray(V, dtype=np.float64)
        n = len(self.V)
        if self.V.ndim != 2 or self.V.shape[1] != 2:
            raise ValueError(f"V must have two columns, got shape {self.V.shape}.")
        if not 1 <= k <= n:
            raise ValueError(f"k={k} must be between 1 and the number of features, {n}.")
        if feature_names is not None and len(feature_names) != n:
            raise ValueError(f"There are {len(feature_names)} feature_names for {n} features.")
        self.k = int(k)
        self.nonnegative = nonnegative
        self.feature_names = list(map(str, range(n) if feature_names is None else feature_names))
        self.regions: list[Region] = regions(self.V, self.k, nonnegative=nonnegative)
        self.best = max(self.regions, key=lambda region: region.value)

    @classmethod
    def from_covariance(
        cls,
        covariance: Any,
        k: int,
        *,
        nonnegative: bool = False,
        feature_names: Sequence[str] | None = None,
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the spannogram of the two leading directions of a covariance.

        Parameters
        ----------
        covariance : a matrix, or what `kspan.as_covariance` returns
        k : number of features in a support
        nonnegative : whether loadings must not be negative
        feature_names : names of all features; by default the columns of a data frame, or places
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        if feature_names is None:
            columns = getattr(covariance, "columns", None)
            feature_names = None if columns is None or callable(columns) else list(columns)
        A = as_covariance(covariance, kind="covariance")
        pairs = A.leading(min(2, A.n_features))
        V = np.zeros((A.n_features, 2))
        V[:, : pairs.values.size] = pairs.vectors * np.sqrt(np.maximum(pairs.values, 0.0))
        # The same picture whatever the eigensolver: the largest entries are positive.
        V *= np.where(V[np.abs(V).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
        display = cls(V=V, k=k, nonnegative=nonnegative, feature_names=feature_names)
        return display.plot(ax, **kwargs)

    def curves(self, angles: FloatArray) -> FloatArray:
        """Return the entries of Vc, or their sizes, at every angle (in columns)."""
        entries = self.V @ directions(angles)
        return entries if self.nonnegative else np.abs(entries)

    def plot(self, ax: "Axes | None" = None, *, max_curves: int = MOST_CURVES) -> Self:
        """Draw.

        Parameters
        ----------
        ax : where to draw; a new figure by default
        max_curves : the most features with a curve; those in a candidate support come first
        """
        self.ax_, self.figure_ = ax, _ = make_axes(ax, (7.6, 4.8))
        from matplotlib.collections import LineCollection

        low, high = angle_range(self.nonnegative)
        n_points = (4 if self.nonnegative else 2) * QUARTER + 1
        # The ends of the regions are points too, so that no thick line ends beside its crossing.
        ends = [region.low for region in self.regions[1:]]
        angles = np.unique(np.concatenate([np.linspace(low, high, n_points), ends]))
        values = self.curves(angles)
        self.shown_ = self._shown(max_curves)
        self.curves_ = LineCollection(
            [np.column_stack([angles, values[i]]) for i in self.shown_], colors=MIDDLE,
            linewidths=0.8 if self.shown_.size <= 40 else 0.4,
            label=f"features{at_most(self.shown_.size, len(self.V), 'drawn')}",
        )  # fmt: skip
        thick = [
            np.column_stack([angles[part], values[i, part]])
            for region in self.regions
            for part in [(angles >= region.low) & (angles <= region.high)]
            for i in region.support
        ]
        what = "largest positive" if self.nonnegative else "largest"
        self.top_ = LineCollection(
            thick, colors=INK, linewidths=2.4 if self.k <= 10 else 1.4, capstyle="butt",
            label=f"the {self.k} {what}",
        )  # fmt: skip
        ax.add_collection(self.curves_, autolim=False)
        ax.add_collection(self.top_, autolim=False)
        top = float(values.max(initial=0.0)) or 1.0
        bottom = -top if self.nonnegative else 0.0
        height = top - bottom
        ax.set(xlim=(low, high), ylim=(bottom - 1.6 * STRIP * height, top + 0.05 * height))
        if self.nonnegative:
            ax.axhline(0, color="black", lw=0.8)
        self._draw_strip(ax, bottom - 1.6 * STRIP * height, STRIP * height)
        self.best_ = ax.axvline(
            self.best.angle, color=ACCENT, ls=(0, (6, 3)), lw=1.4,
            label=f"best angle, variance {self.best.value:.4g}",
        )  # fmt: skip
        self._name_best(ax)
        quarters = np.arange(-4, 5)
        quarters = quarters[
            (quarters * np.pi / 4 >= low - 1e-9) & (quarters * np.pi / 4 <= high + 1e-9)
        ]
        ax.set_xticks(quarters * np.pi / 4, [_quarter(int(q)) for q in quarters])
        entry = "entry of V c(φ)" if self.nonnegative else "size of the entry of V c(φ)"
        ax.set(
            xlabel="angle φ (radians); φ = 0 is the leading component of plain PCA",
            ylabel=f"{entry}\n(units of the features)",
        )
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=2, frameon=False)
        bare(ax)
        return self

    def _shown(self, max_curves: int) -> Index:
        used = np.unique(np.concatenate([region.support for region in self.regions]))
        inside = np.zeros(len(self.V), dtype=bool)
        inside[used] = True
        order = np.lexsort((-np.linalg.norm(self.V, axis=1), ~inside))
        return np.sort(order[:max_curves])

    def _draw_strip(self, ax: "Axes", bottom: float, height: float) -> None:
        """Draw the regions along the lower edge, alternately grey and white, the best hatched."""
        lows = np.array([region.low for region in self.regions])
        widths = np.array([region.high - region.low for region in self.regions])
        count = len({region.support.tobytes() for region in self.regions if region.support.size})
        self.strip_ = ax.bar(
            lows, height, widths, bottom, align="edge", linewidth=0,
            color=["0.72" if i % 2 else "0.9" for i in range(len(self.regions))],
            label=f"{count} candidate support{'s' if count > 1 else ''}",
        )  # fmt: skip
        for bar, region in zip(self.strip_, self.regions, strict=True):
            if np.array_equal(region.support, self.best.support):
                bar.set(facecolor="white", edgecolor=ACCENT, hatch=HATCH, linewidth=1)

    def _name_best(self, ax: "Axes") -> None:
        """Mark the best support on its curves, and list its features beside the axes."""
        support = self.best.support
        heights = self.curves(np.array([self.best.angle]))[support, 0]
        ax.plot(
            np.full(support.size, self.best.angle), heights, ls="none", marker="o", ms=4,
            color="black",
        )  # fmt: skip
        order = support[np.argsort(-heights, kind="stable")]
        names = [label(self.feature_names[i]) for i in order[:MOST_NAMES]]
        if support.size > MOST_NAMES:
            names.append(f"and {support.size - MOST_NAMES} more")
        # Beside, as the curves of a good support are close together where it is best.
        self.names_ = ax.text(
            1.02, 0.95, "\n".join(["best support:", *names]), transform=ax.transAxes, va="top",
            fontsize=SMALL + 1, linespacing=1.4,
        )  # fmt: skip


def _quarter(q: int) -> str:
    """Write q π/4."""
    names = {0: "0", 1: "π/4", 2: "π/2", 3: "3π/4", 4: "π"}
    return names[q] if q >= 0 else f"{MINUS}{names[-q]}"
