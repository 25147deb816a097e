r"""All sparse components of two dimensions in one picture: the rank-2 spannogram.

It is walked along the angle: which rows are the k largest, and where.

For V of n rows and two columns and :math:`c(φ) = (\cos φ, \sin φ)` the curves are the entries of
:math:`Vc(φ)`. The k largest (in size, or of the positive ones) stay the same up to the next
angle at which one of them meets a curve that is not among them, or zero.

1. At φ, find the rows T that are the largest.
2. For every pair of a row in T and one outside (or zero) the angle at which the second overtakes
   the first is known in closed form; the nearest one after φ ends the region.
3. Go on from there, until the half circle (signed: φ and φ + π have the same sizes) or the whole
   one (nonnegative) is done.

The best value on a region is that of the form :math:`\sum_{i \in T} (v_i'c)^2` of two variables, at
its leading eigenvector if that lies inside, else at an end.

Cost: :math:`O(kn)` for every region, after rows that are never near the k largest are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance import as_covariance
from kspan.figures.figure import Figure, every_name, floats

# Radians. Regions narrower than this are not seen.
STEP = 1e-9

# Angles at which rows are compared to see which are ever near the k largest.
GRID = 720

# Differences of rows up to this, relative to the longest, do not turn around.
SAME = 1e-13


@dataclass(frozen=True)
class Region:
    """Angles with the same largest rows.

    Attributes
    ----------
    low, high : the angles, in radians
    support : sorted rows
    value : the largest sum of their squares in the region
    angle : where that is
    """

    low: float
    high: float
    support: Index
    value: float
    angle: float


def directions(angles: FloatArray) -> FloatArray:
    """Return (cos φ, sin φ) in columns: at φ = 0 the first column of V."""
    return np.array([np.cos(angles), np.sin(angles)])


def angle_range(nonnegative: bool) -> tuple[float, float]:
    """Return where a spannogram begins and ends."""
    return (-np.pi, np.pi) if nonnegative else (-np.pi / 2, np.pi / 2)


def regions(V: FloatArray, k: int, *, nonnegative: bool = False) -> list[Region]:
    """Return the candidate supports of a spannogram, with the angles that have them.

    Parameters
    ----------
    V : (n, 2) array
    k : number of rows in a support, at most
    nonnegative : the largest positive entries, instead of the largest in size

    Examples
    --------
    >>> V = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    >>> [(region.support.tolist(), round(region.value, 3)) for region in regions(V, 1)]
    [([1], 1.0), ([0], 1.0), ([1], 1.0)]
    """
    V = np.asarray(V, dtype=np.float64)
    kept = _near_the_top(V, k, nonnegative)
    rows = V[kept] if nonnegative else np.vstack([V[kept], -V[kept]])
    origin = np.tile(kept, 1 if nonnegative else 2)
    longest = float(np.linalg.norm(V, axis=1).max(initial=0.0))
    low, high = angle_range(nonnegative)
    found: list[Region] = []
    start = low
    while start < high - STEP:
        inside = _largest(rows, k, start + STEP, SAME * longest)
        support = np.unique(origin[inside])
        end = min(_next_change(rows, inside, k, start + STEP, SAME * longest), high)
        if end > high - STEP:
            end = high
        if found and np.array_equal(found[-1].support, support):
            start_of = found.pop().low
        else:
            start_of = start
        found.append(_with_best(V, start_of, end, support))
        start = end
    return found


def _near_the_top(V: FloatArray, k: int, nonnegative: bool) -> Index:
    """Return the rows that may be among the k largest at some angle; the others never are."""
    low, high = angle_range(nonnegative)
    angles = np.linspace(low, high, GRID + 1)
    # Between two angles of the grid a curve moves by no more than this.
    slack = np.linalg.norm(V, axis=1).max(initial=0.0) * (high - low) / GRID
    values = V @ directions(angles)
    values = values if nonnegative else np.abs(values)
    smallest = np.partition(values, len(V) - k, axis=0)[len(V) - k]
    return np.flatnonzero((values + 2 * slack >= smallest).any(axis=1))


def _largest(rows: FloatArray, k: int, angle: float, tol: float) -> Index:
    """Return the k largest positive entries, or as many as there are."""
    values = (rows @ directions(np.array([angle])))[:, 0]
    order = np.argsort(-values, kind="stable")[:k]
    return order[values[order] > tol]


def _next_change(rows: FloatArray, inside: Index, k: int, angle: float, tol: float) -> float:
    """Return the next angle at which a row outside, or zero, overtakes one inside."""
    outside = np.delete(rows, inside, axis=0)
    zero = np.zeros((1, 2))
    if inside.size == k:
        ahead, behind = rows[inside], np.vstack([outside, zero])
    else:  # there is room: all that matters is who is positive
        ahead, behind = np.vstack([rows[inside], zero]), np.vstack([zero, outside])
    # The difference is R cos(φ - δ): positive now, it falls through zero at δ + π/2.
    differences = ahead[:, None, :] - behind[None, :, :]
    if inside.size < k:
        kept = np.zeros(differences.shape[:2], dtype=bool)
        kept[:-1, 0] = True  # a row of the support against zero
        kept[-1, 1:] = True  # zero against a row outside
        differences = differences[kept]
    differences = differences.reshape(-1, 2)
    differences = differences[np.linalg.norm(differences, axis=1) > tol]
    if not len(differences):
        return np.inf
    crossings = np.arctan2(differences[:, 1], differences[:, 0]) + np.pi / 2
    return float(angle + np.min((crossings - angle) % (2 * np.pi)))


def _with_best(V: FloatArray, low: float, high: float, support: Index) -> Region:
    """Return the region with its best angle."""
    gram = V[support].T @ V[support]
    vector = np.linalg.eigh(gram)[1][:, -1]
    peak = float(np.arctan2(vector[1], vector[0]))
    angles = [low, high, *(peak + turn * np.pi for turn in (-2, -1, 0, 1, 2))]
    angles = [angle for angle in angles if low <= angle <= high]
    c = directions(np.array(angles))
    values = np.einsum("ij,ik,kj->j", c, gram, c)
    best = int(values.argmax())
    return Region(low, high, support, float(values[best]), angles[best])


# Points of a curve on a quarter circle, curves that are drawn.
QUARTER, MOST_CURVES = 240, 200


@dataclass(frozen=True, eq=False)
class SpannogramFigure(Figure):
    """The spannogram of a covariance of rank 2: curves of the features over an angle.

    Parameters
    ----------
    V : (n, 2) array
        With VV' the covariance, the leading direction first.
    k : number of features in a support
    nonnegative : whether the largest positive entries count, not the largest in size
    feature_names : n names
    """

    V: FloatArray
    k: int
    nonnegative: bool = False
    feature_names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._settle(V=floats, k=int)
        if self.V.ndim != 2 or self.V.shape[1] != 2:
            raise ValueError(f"V must have two columns, got shape {self.V.shape}.")
        if not 1 <= self.k <= len(self.V):
            raise ValueError(
                f"k={self.k} must be between 1 and the number of features, {len(self.V)}."
            )
        self._settle(feature_names=lambda names: every_name(names, len(self.V)))

    @classmethod
    def from_covariance(
        cls,
        covariance: Any,
        k: int,
        *,
        nonnegative: bool = False,
        feature_names: Sequence[str] | None = None,
    ) -> Self:
        """Return the spannogram of the two leading directions of a covariance."""
        if feature_names is None:
            columns = getattr(covariance, "columns", None)
            feature_names = None if columns is None or callable(columns) else list(columns)
        A = as_covariance(covariance, kind="covariance")
        pairs = A.leading(min(2, A.n_features))
        V = np.zeros((A.n_features, 2))
        V[:, : pairs.values.size] = pairs.vectors * np.sqrt(np.maximum(pairs.values, 0.0))
        # The same picture whatever the eigensolver: the largest entries are positive.
        V *= np.where(V[np.abs(V).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
        return cls(V, k, nonnegative, list(feature_names or []))

    @cached_property
    def regions(self) -> list[Region]:
        """The candidate supports, with the angles that have them."""
        return regions(self.V, self.k, nonnegative=self.nonnegative)

    @cached_property
    def best(self) -> Region:
        """The candidate with the largest variance."""
        return max(self.regions, key=lambda region: region.value)

    def angles(self) -> FloatArray:
        """Return the angles to draw curves at.

        The ends of the regions are among them, so that no thick line ends beside its crossing.
        """
        n_points = (4 if self.nonnegative else 2) * QUARTER + 1
        ends = [region.low for region in self.regions[1:]]
        return np.unique(
            np.concatenate([np.linspace(*angle_range(self.nonnegative), n_points), ends])
        )

    def curves(self, angles: FloatArray) -> FloatArray:
        """Return the entries of Vc, or their sizes, at every angle (in columns)."""
        entries = self.V @ directions(angles)
        return entries if self.nonnegative else np.abs(entries)

    def largest_at_best(self) -> tuple[Index, FloatArray]:
        """Return the best support and its entries at the best angle, the largest first."""
        heights = self.curves(np.array([self.best.angle]))[self.best.support, 0]
        order = np.argsort(-heights, kind="stable")
        return self.best.support[order], heights[order]

    def shown(self, max_curves: int = MOST_CURVES) -> Index:
        """Return the rows of V to draw; those in a candidate support come before others."""
        used = np.unique(np.concatenate([region.support for region in self.regions]))
        inside = np.zeros(len(self.V), dtype=bool)
        inside[used] = True
        order = np.lexsort((-np.linalg.norm(self.V, axis=1), ~inside))
        return np.sort(order[:max_curves])
