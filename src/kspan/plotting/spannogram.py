"""`SpannogramDisplay`: all sparse components of two dimensions, in one picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kspan.arrays import FloatArray
from kspan.figures import SpannogramFigure
from kspan.figures.appearance import MINUS
from kspan.figures.spannogram import MOST_CURVES, angle_range
from kspan.plotting import display
from kspan.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Names that are written.
MOST_NAMES = 12

# Height of the strip of regions, and how far it is below the curves, as shares of their height.
STRIP, BELOW = 0.07, 0.112


class SpannogramDisplay(Display, SpannogramFigure):
    """The spannogram of a covariance of rank 2: curves of the features over an angle.

    Every curve is a feature. At each angle φ the k largest ones are a candidate support, drawn
    thick; it changes only where curves cross. One of the candidates is optimal for the covariance
    cut to its two leading directions. It is drawn from a covariance, not from a fit.

    Parameters are those of `kspan.figures.SpannogramFigure`.

    Attributes
    ----------
    regions, best : the candidate supports with their angles, and the best of them
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

    figure_type = SpannogramFigure

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

        A matrix, or what `kspan.as_covariance` returns. `feature_names` are by default the columns
        of a data frame, or places; `ax` and `kwargs` are as in `plot`.
        """
        numbers = SpannogramFigure.from_covariance(
            covariance, k, nonnegative=nonnegative, feature_names=feature_names
        )
        return cls.from_figure(numbers, ax=ax, **kwargs)

    def plot(self, ax: "Axes | None" = None, *, max_curves: int = MOST_CURVES) -> Self:
        """Draw.

        Parameters
        ----------
        ax : where to draw; a new figure by default
        max_curves : the most features with a curve; those in a candidate support come first
        """
        ax = self._axes(ax, (7.6, 4.8))
        self.shown_ = self.shown(max_curves)
        top = self._draw_curves(ax)
        bottom = -top if self.nonnegative else 0.0
        height = top - bottom
        floor = bottom - BELOW * height
        ax.set(xlim=angle_range(self.nonnegative), ylim=(floor, top + 0.05 * height))
        if self.nonnegative:
            ax.axhline(0, color="black", lw=0.8)
        self._draw_strip(ax, floor, STRIP * height)
        self.best_ = ax.axvline(
            self.best.angle, color=display.OTHER, ls=(0, (6, 3)), lw=1.4,
            label=f"best angle, variance {self.best.value:.4g}",
        )  # fmt: skip
        self._name_best(ax)
        quarters = range(-4, 5) if self.nonnegative else range(-2, 3)
        ax.set_xticks([q * np.pi / 4 for q in quarters], [_quarter(q) for q in quarters])
        entry = "entry of V c(φ)" if self.nonnegative else "size of the entry of V c(φ)"
        ax.set(
            xlabel="angle φ (radians); φ = 0 is the leading component of plain PCA",
            ylabel=f"{entry}\n(units of the features)",
        )
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=2, frameon=False)
        display.bare(ax)
        return self

    def _draw_curves(self, ax: "Axes") -> float:
        """Draw a thin curve for each feature, the k largest thick; return how high they go."""
        from matplotlib.collections import LineCollection

        shown, angles = self.shown_, self.angles()
        values = self.curves(angles)
        self.curves_ = LineCollection(
            [np.column_stack([angles, values[i]]) for i in shown], colors=display.MIDDLE,
            linewidths=0.8 if shown.size <= 40 else 0.4,
            label=f"features{display.at_most(shown.size, len(self.V), 'drawn')}",
        )  # fmt: skip
        what = "largest positive" if self.nonnegative else "largest"
        self.top_ = LineCollection(
            self._largest(angles, values), colors=display.FOUND, capstyle="butt",
            linewidths=2.4 if self.k <= 10 else 1.4, label=f"the {self.k} {what}",
        )  # fmt: skip
        ax.add_collection(self.curves_, autolim=False)
        ax.add_collection(self.top_, autolim=False)
        return float(values.max(initial=0.0)) or 1.0

    def _largest(self, angles: FloatArray, values: FloatArray) -> list[FloatArray]:
        """Return the pieces of curves that are among the k largest."""
        return [
            np.column_stack([angles[part], values[i, part]])
            for region in self.regions
            for part in [(angles >= region.low) & (angles <= region.high)]
            for i in region.support
        ]

    def _draw_strip(self, ax: "Axes", bottom: float, height: float) -> None:
        """Draw the regions along the lower edge, alternately grey and white, the best hatched."""
        regions, best = self.regions, self.best
        lows = np.array([region.low for region in regions])
        widths = np.array([region.high - region.low for region in regions])
        count = len({region.support.tobytes() for region in regions if region.support.size})
        self.strip_ = ax.bar(
            lows, height, widths, bottom, align="edge", linewidth=0,
            color=["0.72" if i % 2 else "0.9" for i in range(len(regions))],
            label=f"{count} candidate support{'s' if count > 1 else ''}",
        )  # fmt: skip
        for bar, region in zip(self.strip_, regions, strict=True):
            if np.array_equal(region.support, best.support):
                bar.set(facecolor="white", edgecolor=display.OTHER, hatch="////", linewidth=1)

    def _name_best(self, ax: "Axes") -> None:
        """Mark the best support on its curves, and list its features beside the axes."""
        support, heights = self.largest_at_best()
        angles = np.full(support.size, self.best.angle)
        ax.plot(angles, heights, ls="none", marker="o", ms=4, color="black")
        names = [display.label(self.feature_names[i]) for i in support[:MOST_NAMES]]
        if support.size > MOST_NAMES:
            names.append(f"and {support.size - MOST_NAMES} more")
        # Beside, as the curves of a good support are close together where it is best.
        self.names_ = ax.text(
            1.02, 0.95, "\n".join(["best support:", *names]), transform=ax.transAxes, va="top",
            fontsize=display.SMALL + 1, linespacing=1.4,
        )  # fmt: skip


def _quarter(q: int) -> str:
    """Write q π/4."""
    names = {0: "0", 1: "π/4", 2: "π/2", 3: "3π/4", 4: "π"}
    return names[q] if q >= 0 else f"{MINUS}{names[-q]}"
