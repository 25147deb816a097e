"""Samples and features in one picture."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from kspan.arrays import FloatArray, Index, Mask
from kspan.figures.appearance import class_colours, component_names
from kspan.figures.figure import Figure, NothingToDraw, floats, texts
from kspan.records import FitRecord

# The longest arrow, as a share of how far the samples reach.
REACH = 0.8

MOST_ARROWS = 12

# So many classes differ by colour and mark.
MOST_CLASSES = 10
OTHERS = "others"


@dataclass(frozen=True)
class Arrows:
    """The features with the longest arrows, the longest first.

    Attributes
    ----------
    rows : (a,) rows of the loadings
    names : a names
    tips : (a, 2) where the arrows from the origin end, among the samples
    """

    rows: Index
    names: list[str]
    tips: FloatArray

    @property
    def to_right(self) -> Mask:
        """Which names stand on the right side."""
        return np.asarray(self.tips[:, 0] >= 0)

    def name_places(self, gap: float, margin: float) -> FloatArray:
        """Return where the names stand: in a column on each side, beyond all tips.

        Parameters
        ----------
        gap : the least distance between two names of a column
        margin : the distance of a column from the tips
        """
        ends = self.tips[:, 0].max(initial=0.0) + margin, self.tips[:, 0].min(initial=0.0) - margin
        places = np.column_stack([np.where(self.to_right, *ends), self.tips[:, 1]])
        for side in (self.to_right, ~self.to_right):
            places[side, 1] = spread(self.tips[side, 1], gap)
        return places


@dataclass(frozen=True)
class SampleClass:
    """Samples of one class.

    Attributes
    ----------
    name : the class, as text
    rows : its samples, as a mask
    colour : ``#rrggbb``
    """

    name: str
    rows: Mask
    colour: str


@dataclass(frozen=True, eq=False)
class BiplotFigure(Figure):
    """Samples as points, features as arrows.

    Parameters
    ----------
    scores : (n, m) coordinates of the samples
    loadings : (k, m) array
    feature_names : k names
    explained_variance_ratio : (m,) array or None
    y : (n,) classes or numbers, or None
    sample_names : n names, or None
    n_samples : of the data, of which the n may be a part; or None
    y_name : what y is called
    """

    needs: ClassVar[str] = "its samples"

    scores: FloatArray
    loadings: FloatArray
    feature_names: list[str]
    explained_variance_ratio: FloatArray | None = None
    y: Any = None
    sample_names: list[str] | None = None
    n_samples: int | None = None
    y_name: str = "y"

    def __post_init__(self) -> None:
        self._settle(
            scores=floats, loadings=floats, feature_names=texts, explained_variance_ratio=floats,
            y=lambda y: None if y is None else np.asarray(y),
        )  # fmt: skip
        if self.y is not None and self.y.shape != (len(self.scores),):
            raise ValueError(
                f"y must have one value for each of the {len(self.scores)} samples, got an array "
                f"of shape {self.y.shape}."
            )

    @classmethod
    def from_record(cls, record: FitRecord, *, y: ArrayLike | None = None) -> Self:
        """Return scores and loadings of a saved fit.

        y is of all samples, or of those kept; by default the labels of the record, if it has any.
        """
        if record.scores is None or not len(record.scores):
            raise NothingToDraw(
                "The record has no scores: a fit to a covariance has no samples. Use "
                "LoadingsDisplay, or BiplotDisplay(scores=..., ...) with scores of your own."
            )
        values, y_name = None if y is None else np.asarray(y), "y"
        if values is None and record.labels is not None:
            values, y_name = values_of(record.labels), record.label_name or "label"
        elif values is not None and len(values) == record.n_samples:
            values = values[record.samples]  # a record keeps some of many
        names = record.sample_names or [f"sample {i}" for i in record.samples]
        return cls(
            record.scores, record.loadings, record.selected_names,
            record.explained_variance / record.total_variance, values, names, record.n_samples,
            y_name,
        )  # fmt: skip

    def classes(self) -> list[SampleClass] | None:
        """Return the classes that y tells apart; None without y, or if it is of many numbers."""
        if self.y is None:
            return None
        values = np.unique(self.y)
        if values.size > MOST_CLASSES:
            if self.y.dtype.kind not in "iuf":
                raise ValueError(
                    f"y has {values.size} different values; colours and markers tell "
                    f"{MOST_CLASSES} classes apart. Merge some, or give numbers."
                )
            return None

        def same(y: Any, value: Any) -> Mask:
            return np.asarray(y != y if value != value else y == value)

        return [
            SampleClass(_class_name(value), same(self.y, value), colour)
            for value, colour in zip(values, class_colours(values.size), strict=True)
        ]

    def longest(self, count: int, components: tuple[int, int] = (0, 1)) -> Index:
        """Return the rows of `loadings` that are longest in two components."""
        lengths = np.linalg.norm(self.loadings[:, list(components)], axis=1)
        order = np.argsort(-lengths, kind="stable")
        return order[lengths[order] > 0][:count]

    def arrows(
        self, max_features: int = MOST_ARROWS, components: tuple[int, int] = (0, 1)
    ) -> Arrows:
        """Return the longest loadings in two components, to a scale of their own on each axis.

        On each axis, as variances and thus scores differ much.
        """
        m, pair = self.loadings.shape[1], list(components)
        if m < 2:
            raise ValueError("A biplot needs two components; LoadingsDisplay shows a single one.")
        if len(pair) != 2 or not all(0 <= j < m for j in pair):
            raise ValueError(f"components must be two of 0 to {m - 1}, got {components!r}.")
        rows = self.longest(max_features, components)
        tips = self.loadings[rows][:, pair]
        reach = np.abs(self.scores[:, pair]).max(axis=0, initial=0.0)
        longest = float(np.linalg.norm(tips, axis=1).max(initial=0.0)) or 1.0
        tips = tips * (REACH * np.where(reach > 0, reach, 1.0) / longest)
        return Arrows(rows, [self.feature_names[row] for row in rows], tips)

    def axis_title(self, j: int) -> str:
        """Say what the axis of a component shows."""
        name, ratio = component_names(j + 1)[j], self.explained_variance_ratio
        return f"score on {name}" + ("" if ratio is None else f" ({ratio[j]:.1%} of variance)")


def _class_name(value: Any) -> str:
    if value != value:
        return ""  # no label
    return f"{value:g}" if isinstance(value, float) else str(value)


def values_of(labels: Sequence[str]) -> Any:
    """Return labels as they are drawn: few classes as they are, many numbers as numbers.

    Of many classes the most frequent ones keep their names.

    Examples
    --------
    >>> values_of(["2", "10", "2"]), values_of(["b", "", "a"])
    (array([ 2, 10,  2]), array(['b', '', 'a'], dtype='<U1'))
    """
    numbers = _numbers(labels)
    if numbers is not None:
        whole = np.isfinite(numbers).all() and (numbers == numbers.round()).all()
        return numbers.astype(np.int64) if whole and np.abs(numbers).max() < 1e15 else numbers
    counts = Counter(labels)
    if len(counts) > MOST_CLASSES:
        kept = {name for name, _ in counts.most_common(MOST_CLASSES - 1)}
        labels = [name if name in kept else OTHERS for name in labels]
    return np.array(labels)


def _numbers(labels: Sequence[str]) -> FloatArray | None:
    """Return labels as numbers, with NaN where there is none; None if one is a word."""
    try:
        found = np.array([float(label or "nan") for label in labels])
    except ValueError:
        return None
    return found if np.isfinite(found).any() else None


def spread(places: FloatArray, gap: float) -> FloatArray:
    """Move labels apart: the nearest places that are in the same order and at least `gap` apart.

    Parameters
    ----------
    places : where they should be
    gap : the smallest distance between two of them

    Examples
    --------
    >>> spread(np.array([5.0, 1.0, 1.0]), 1.0)
    array([5. , 0.5, 1.5])
    """
    if places.size < 2:
        return places.astype(np.float64)
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(places.size)
    moved = np.empty(places.size)
    moved[order] = isotonic_regression(places[order] - steps).x + steps
    return moved
