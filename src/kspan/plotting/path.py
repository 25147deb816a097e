"""`PathDisplay`: how much k features explain, for every k."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from kspan.choosing_k import SparsityPath
from kspan.figures import PathFigure
from kspan.figures.choosing import UNCERTIFIED
from kspan.plotting import display
from kspan.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# More points than this are drawn without markers.
FEW_POINTS = 60


class PathDisplay(Display, PathFigure):
    """Explained variance against the number of features, with the band that holds the optimum.

    Use `from_path`, `from_record` or `from_estimator` rather than the class itself. The last one
    computes the path, with the parameters of the estimator.

    Parameters are those of `kspan.figures.PathFigure`.

    Attributes
    ----------
    ax_, figure_ : axes and figure
    line_ : the objective
    band_, ceiling_ : the band up to `upper` and its upper edge, or None
    uncertified_ : what is hatched of the band: stretches that no certificate bounds
    chosen_ : the mark at the chosen k, or None

    Examples
    --------
    >>> display = PathDisplay(k=[2, 3], objective=[1.5, 1.8], full=2.0, upper=[1.6, 1.8])
    >>> display.share
    array([0.75, 0.9 ])
    """

    figure_type = PathFigure

    @classmethod
    def from_path(
        cls, path: SparsityPath, *, chosen: int | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw what `kspan.sparsity_path` returned, with a k to mark; else as `from_record`."""
        return cls.from_figure(PathFigure.from_path(path, chosen=chosen), ax=ax, **kwargs)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        line_kw: Mapping[str, Any] | None = None,
        band_kw: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : where to draw; a new figure by default
        line_kw, band_kw : for matplotlib's `plot` and `fill_between`
        """
        ax = self._axes(ax, (6.4, 4.0))
        self._draw_band(ax, band_kw or {})
        marker = "o" if self.k.size <= FEW_POINTS else ""
        (self.line_,) = ax.plot(
            self.k, self.share,
            **{"label": "found", "color": display.FOUND, "lw": display.NORMAL, "marker": marker,
               "ms": 3.5, **(line_kw or {})},
        )  # fmt: skip
        ax.axhline(1.0, color="black", lw=display.THIN, ls=":", label="plain PCA, all features")
        self.chosen_ = self._mark(ax)
        m = self.n_components
        of = "" if m is None else f" with {m} component{'s' if m > 1 else ''}"
        top = max(array.max() for array in (self.share, self.ceiling) if array is not None)
        what = f"share of the variance that\nplain PCA explains{of}"
        if self.adds_up:
            what = f"{self.measured},\nas a share of plain PCA's{of}"
        ax.set(
            xlabel=f"number of {self.counted} k",
            ylabel=what,
            ylim=(0, max(1.06, 1.02 * float(top))),
        )
        self._scale(ax)
        display.percent_axis(ax.yaxis)
        ax.legend(loc="lower right", frameon=False)
        display.bare(ax)
        return self

    def _draw_band(self, ax: "Axes", band_kw: Mapping[str, Any]) -> None:
        """Draw the band, and its edge, seen where the band itself is thinner than a line."""
        self.band_, self.ceiling_, self.uncertified_ = None, None, []
        if self.band is None:
            return
        x, lower, upper = self.band
        look = {"color": display.BAND, "lw": 0, "label": "the best possible is in here", **band_kw}
        self.band_ = ax.fill_between(x, lower, upper, **look)
        self.uncertified_ = [
            ax.fill_between(*stretch, **display.UNPROVED, label=UNCERTIFIED if first else None)
            for stretch, first in zip(self.uncertified, [True, *[False] * x.size], strict=False)
        ]
        (self.ceiling_,) = ax.plot(
            x,
            upper,
            color=display.PROVED,
            lw=display.THIN,
            ls="--",
            label="proved limit",
        )

    def _mark(self, ax: "Axes") -> "Line2D | None":
        """Draw a line at the chosen k, and a mark on the path if that has it."""
        k, height = self.chosen, self.chosen_share
        if k is not None:
            ax.axvline(k, color=display.MIDDLE, lw=display.THIN, ls=":", zorder=0)
        if k is None or height is None:
            return None
        (mark,) = ax.plot(
            [k], [height], ls="none", marker="D", ms=9, mfc="white", mec=display.OTHER, mew=2,
            label=f"chosen: k = {k}, {height:.1%}", zorder=3,
        )  # fmt: skip
        return mark

    def _scale(self, ax: "Axes") -> None:
        """Write k as whole numbers; evenly, or by factors if it goes far."""
        from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, ScalarFormatter

        if not self.is_wide:
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            return
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.xaxis.set_minor_formatter(NullFormatter())
