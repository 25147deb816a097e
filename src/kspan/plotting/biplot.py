"""`BiplotDisplay`: samples and features in one picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from kspan.arrays import FloatArray, Index
from kspan.plotting.common import (
    INK,
    MARKERS,
    MIDDLE,
    SEQUENTIAL,
    SMALL,
    THIN,
    at_most,
    bare,
    label,
    make_axes,
    points_of,
    record_of,
    spread,
)
from kspan.records import FitRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

# The longest arrow, as a share of how far the samples reach.
REACH = 0.8


class BiplotDisplay:
    """Samples as points, features as arrows, along two components.

    Parameters
    ----------
    scores : (n, m) array
        Coordinates of the samples, m ≥ 2.
    loadings : (k, m) array
    feature_names : k names
    explained_variance_ratio : (m,) array, optional
        For the labels of the axes.
    y : (n,) array, optional
        Classes, or numbers: colour and, for up to ten different values, marker of the points.

    Attributes
    ----------
    ax_, figure_ : axes and figure
    points_ : list of scatters, one for each class
    arrows_ : list of annotations, the arrows
    labels_ : list of annotations, their names
    shown_ : rows of `loadings` that have an arrow

    Examples
    --------
    >>> display = BiplotDisplay(
    ...     scores=[[1.0, 0.0], [-1.0, 0.5]], loadings=[[0.1, 0.0], [0.6, 0.8]],
    ...     feature_names=["a", "b"],
    ... )
    >>> display.longest(1)
    array([1])
    """

    ax_: "Axes"
    figure_: "Figure"
    points_: "list[PathCollection]"
    arrows_: "list[Annotation]"
    labels_: "list[Annotation]"
    shown_: Index

    def __init__(
        self,
        *,
        scores: ArrayLike,
        loadings: ArrayLike,
        feature_names: Sequence[str],
        explained_variance_ratio: ArrayLike | None = None,
        y: ArrayLike | None = None,
    ):
        self.scores = np.asarray(scores, dtype=np.float64)
        self.loadings = np.asarray(loadings, dtype=np.float64)
        self.feature_names = list(feature_names)
        self.explained_variance_ratio = (
            None if explained_variance_ratio is None else np.asarray(explained_variance_ratio)
        )
        self.y = None if y is None else np.asarray(y)
        if self.y is not None and self.y.shape != (len(self.scores),):
            raise ValueError(
                f"y must have one value for each of the {len(self.scores)} samples, got an array "
                f"of shape {self.y.shape}."
            )

    @classmethod
    def from_record(
        cls,
        record: FitRecord,
        *,
        y: ArrayLike | None = None,
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the scores and loadings of a saved fit.

        Parameters
        ----------
        record : FitRecord with scores
        y : one value for each sample of the data, or for each score that the record keeps
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        if record.scores is None:
            raise ValueError(
                "The record has no scores: a fit to a covariance has no samples. Use "
                "LoadingsDisplay, or BiplotDisplay(scores=..., ...) with scores of your own."
            )
        values = None if y is None else np.asarray(y)
        if values is not None and len(values) == record.n_samples:
            values = values[record.samples]  # a record keeps some of many
        display = cls(
            scores=record.scores,
            loadings=record.loadings,
            feature_names=record.selected_names,
            explained_variance_ratio=record.explained_variance / record.total_variance,
            y=values,
        )
        return display.plot(ax, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        y: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the scores of the data of the fit, and the loadings.

        Parameters
        ----------
        estimator : fitted estimator of kspan
        X : the data of the fit
        y : one value for each sample
        feature_names : names of all features, if the data has none
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        record = record_of(estimator, X, "its samples", feature_names=feature_names)
        return cls.from_record(record, y=y, ax=ax, **kwargs)

    def longest(self, count: int, components: tuple[int, int] = (0, 1)) -> Index:
        """Return the rows of `loadings` that are longest in the two components."""
        lengths = np.linalg.norm(self.loadings[:, list(components)], axis=1)
        order = np.argsort(-lengths, kind="stable")
        return order[lengths[order] > 0][:count]

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        components: tuple[int, int] = (0, 1),
        max_features: int = 12,
        y_name: str = "y",
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : where to draw; a new figure by default
        components : which two, counted from 0
        max_features : the most arrows; the longest are shown
        y_name : what to call y
        """
        m = self.loadings.shape[1]
        if m < 2:
            raise ValueError("A biplot needs two components; LoadingsDisplay shows a single one.")
        if len(components) != 2 or not all(0 <= j < m for j in components):
            raise ValueError(f"components must be two of 0 to {m - 1}, got {components!r}.")
        self.ax_, self.figure_ = ax, _ = make_axes(ax, (6.8, 5.4))
        pair = list(components)
        self._scatter(ax, self.scores[:, pair], label(y_name, 60))
        self.shown_ = self.longest(max_features, components)
        tips = self.loadings[self.shown_][:, pair]
        # To a scale of their own on each axis, as variances and thus scores differ much.
        reach = np.abs(self.scores[:, pair]).max(axis=0, initial=0.0)
        longest = float(np.linalg.norm(tips, axis=1).max(initial=0.0)) or 1.0
        tips = tips * (REACH * np.where(reach > 0, reach, 1.0) / longest)
        ax.update_datalim(tips)
        ax.autoscale_view()
        self.arrows_ = [
            ax.annotate(
                "", tip, (0, 0),
                arrowprops={"arrowstyle": "-|>", "color": "black", "lw": 1.2, "shrinkA": 0,
                            "shrinkB": 0, "mutation_scale": 9},
            )
            for tip in tips
        ]  # fmt: skip
        ax.axhline(0, color=MIDDLE, lw=THIN, ls=":", zorder=0)
        ax.axvline(0, color=MIDDLE, lw=THIN, ls=":", zorder=0)
        self._label(ax, tips)
        ax.set(xlabel=self._axis_label(pair[0]), ylabel=self._axis_label(pair[1]))
        some = at_most(len(tips), len(self.loadings), "features")
        ax.set_title(f"arrows: loadings, to a scale of their own{some}", fontsize="medium")
        bare(ax)
        return self

    def _axis_label(self, j: int) -> str:
        ratio = self.explained_variance_ratio
        return f"score on PC{j + 1}" + ("" if ratio is None else f" ({ratio[j]:.1%} of variance)")

    def _scatter(self, ax: "Axes", scores: FloatArray, y_name: str) -> None:
        """Draw the points: plain, by class, or by value."""
        size = float(np.clip(8000 / max(len(scores), 1), 12, 36))
        style: dict[str, Any] = {"s": size, "alpha": 0.75, "lw": 0.3, "edgecolors": "black"}
        if self.y is None:
            self.points_ = [ax.scatter(*scores.T, color=INK, **style)]
            return
        classes = np.unique(self.y)
        if classes.size > len(MARKERS):
            if self.y.dtype.kind not in "iuf":
                raise ValueError(
                    f"y has {classes.size} different values; colours and markers tell "
                    f"{len(MARKERS)} classes apart. Merge some, or give numbers."
                )
            points = ax.scatter(scores[:, 0], scores[:, 1], c=self.y, cmap=SEQUENTIAL, **style)
            self.points_ = [points]
            ax.figure.colorbar(points, ax=ax, label=y_name)
            return
        from matplotlib import colormaps

        # Lightness in steps, and a marker for each.
        colours = colormaps[SEQUENTIAL](np.linspace(0.05, 0.85, max(classes.size, 2)))
        self.points_ = [
            ax.scatter(*scores[self.y == value].T, color=colours[i], marker=MARKERS[i], **style)
            for i, value in enumerate(classes)
        ]
        ax.legend(self.points_, [label(value) for value in classes], title=y_name, framealpha=0.9)

    def _label(self, ax: "Axes", tips: FloatArray) -> None:
        """Write the names beside the tips, moved apart where they would lie on each other."""
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        wide, tall = points_of(ax)
        gap = 1.35 * SMALL * (high - low) / tall
        point = (right - left) / wide
        to_right = tips[:, 0] >= 0
        heights = np.empty(len(tips))
        for side in (to_right, ~to_right):
            heights[side] = spread(tips[side, 1], gap)
        # In a column on each side, beyond all tips.
        columns = (
            tips[:, 0].min(initial=0.0) - 10 * point,
            tips[:, 0].max(initial=0.0) + 10 * point,
        )
        self.labels_ = []
        for tip, height, place, ahead in zip(tips, heights, self.shown_, to_right, strict=True):
            text = label(self.feature_names[place])
            x = columns[int(ahead)]
            end = x + (1 if ahead else -1) * 0.62 * SMALL * len(text) * point
            left, right = min(left, end), max(right, end)
            low, high = min(low, height - gap), max(high, height + gap)
            self.labels_.append(
                ax.annotate(
                    text, tip, (x, height), textcoords="data",
                    ha="left" if ahead else "right", va="center", fontsize=SMALL,
                    bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8},
                    arrowprops={"arrowstyle": "-", "color": "black", "lw": 0.5, "shrinkA": 0,
                                "shrinkB": 0},
                )
            )  # fmt: skip
        ax.set(xlim=(left, right), ylim=(low, high))  # with room for the names
