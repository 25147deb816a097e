"""`BiplotDisplay`: samples and features in one picture."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kspan.arrays import FloatArray
from kspan.figures import BiplotFigure
from kspan.figures.biplot import MOST_ARROWS, Arrows
from kspan.plotting import display
from kspan.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From the origin to a tip, from a tip to its name; and behind names, as they lie on points.
_ARROW = {"arrowstyle": "-|>", "color": "black", "lw": 1.2, "shrinkA": 0, "shrinkB": 0,
          "mutation_scale": 9}  # fmt: skip
_LEADER = {"arrowstyle": "-", "color": "black", "lw": 0.5, "shrinkA": 0, "shrinkB": 0}
_VEIL = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8}


class BiplotDisplay(Display, BiplotFigure):
    """Samples as points, features as arrows, along two components.

    Parameters are those of `kspan.figures.BiplotFigure`.

    Attributes
    ----------
    ax_, figure_ : axes and figure
    points_ : list of scatters, one for each class
    arrows_ : list of annotations, the arrows
    labels_ : list of annotations, their names
    shown_ : rows of `loadings` that have an arrow

    Other Parameters
    ----------------
    y : array, optional
        Of `from_record` and `from_estimator`: one value for each sample of the data, or for each
        score that the record keeps. By default the labels of the record.

    Examples
    --------
    >>> display = BiplotDisplay(
    ...     scores=[[1.0, 0.0], [-1.0, 0.5]], loadings=[[0.1, 0.0], [0.6, 0.8]],
    ...     feature_names=["a", "b"],
    ... )
    >>> display.longest(1)
    array([1])
    """

    figure_type = BiplotFigure
    asks = ("y",)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        components: tuple[int, int] = (0, 1),
        max_features: int = MOST_ARROWS,
        y_name: str | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : where to draw; a new figure by default
        components : which two, counted from 0
        max_features : the most arrows; the longest are shown
        y_name : what to call y; by default what the record calls its labels
        """
        pair = list(components)
        arrows = self.arrows(max_features, components)
        self.shown_ = arrows.rows
        ax = self._axes(ax, (6.8, 5.4))
        self._scatter(ax, self.scores[:, pair], display.label(y_name or self.y_name, 60))
        ax.update_datalim(arrows.tips)
        ax.autoscale_view()
        self.arrows_ = [ax.annotate("", tip, (0, 0), arrowprops=_ARROW) for tip in arrows.tips]
        ax.axhline(0, color=display.MIDDLE, lw=display.THIN, ls=":", zorder=0)
        ax.axvline(0, color=display.MIDDLE, lw=display.THIN, ls=":", zorder=0)
        self._label(ax, arrows)
        ax.set(xlabel=self.axis_title(pair[0]), ylabel=self.axis_title(pair[1]))
        some = display.at_most(arrows.rows.size, len(self.loadings), "features")
        ax.set_title(f"arrows: loadings, to a scale of their own{some}", fontsize="medium")
        display.bare(ax)
        return self

    def _scatter(self, ax: "Axes", scores: FloatArray, y_name: str) -> None:
        """Draw the points: plain, by class, or by value."""
        y = self.y
        size = float(np.clip(8000 / max(len(scores), 1), 12, 36))
        look: dict[str, Any] = {"s": size, "alpha": 0.75, "lw": 0.3, "edgecolors": "black"}
        if y is None:
            self.points_ = [ax.scatter(*scores.T, color=display.FOUND, **look)]
            return
        classes = self.classes()
        if classes is None:
            points = ax.scatter(scores[:, 0], scores[:, 1], c=y, cmap=display.SEQUENTIAL, **look)
            self.points_ = [points]
            ax.figure.colorbar(points, ax=ax, label=y_name)
            return
        # Lightness in steps, and a marker for each.
        self.points_ = [
            ax.scatter(*scores[each.rows].T, color=each.colour, marker=marker, **look)
            for each, marker in zip(classes, display.MARKERS, strict=False)
        ]
        names = [display.label(each.name) for each in classes]
        ax.legend(self.points_, names, title=y_name, framealpha=0.9)

    def _label(self, ax: "Axes", arrows: Arrows) -> None:
        """Write the names in a column on each side, beyond all tips and moved apart."""
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        wide, tall = display.points_of(ax)
        gap = 1.35 * display.SMALL * (high - low) / tall
        point = (right - left) / wide
        places = arrows.name_places(gap, 10 * point)
        self.labels_ = []
        for name, tip, (x, height), ahead in zip(
            arrows.names, arrows.tips, places, arrows.to_right, strict=True
        ):
            text = display.label(name)
            end = x + (1 if ahead else -1) * 0.62 * display.SMALL * len(text) * point
            left, right = min(left, end), max(right, end)
            low, high = min(low, height - gap), max(high, height + gap)
            self.labels_.append(
                ax.annotate(
                    text, tip, (x, height), textcoords="data", va="center", fontsize=display.SMALL,
                    ha="left" if ahead else "right", bbox=_VEIL, arrowprops=_LEADER,
                )
            )  # fmt: skip
        ax.set(xlim=(left, right), ylim=(low, high))  # with room for the names
