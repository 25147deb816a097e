"""What a certificate is made of: arrays from which its bound can be computed again.

Feature numbers are those of the problem. Matrices are in units of ``scale``, a power of two:
dividing by it is exact, and 1e-150 and 1e150 are as good as 1.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index

Floats = NDArray[Any]  # of any floating type


@dataclass(frozen=True)
class TraceWitness:
    """The k largest variances: B = A. Needs nothing but the diagonal."""


@dataclass(frozen=True)
class RowWitness:
    """Row sums: Gershgorin's discs, for m components, with and without diagonal scaling."""


@dataclass(frozen=True)
class DualWitness:
    """``B = factor factor'`` on all allowed features, for `bounds.dual_bound`."""

    scale: float
    features: Index
    factor: FloatArray


@dataclass(frozen=True)
class Cones:
    """Multipliers of the row cones, G with its weights α and β, and N of P ≥ 0; empty: zero.

    N (`signs`) is for nonnegative problems only. See `kspan.certificates.bounds.split_bound`.
    β at least ‖g_i‖²/4α_i is enough; keeping the β of all features when some of them are gone
    makes the bound of a part no larger than that of the whole.
    Any floating type: in float32 they are another witness, as good and half the size.
    """

    rows: Floats = field(default_factory=lambda: np.empty((0, 0)))
    alpha: Floats = field(default_factory=lambda: np.empty(0))
    signs: Floats = field(default_factory=lambda: np.empty((0, 0)))
    beta: Floats = field(default_factory=lambda: np.empty(0))

    def on(self, places: Index) -> "Cones":
        """Return them on some of their features, as float64."""
        block = np.ix_(places, places)
        rows, signs = (M[block] if M.size else M for M in (self.rows, self.signs))
        alpha, beta = (v[places] if v.size else v for v in (self.alpha, self.beta))
        parts = (rows, alpha, signs, beta)
        if any(part.dtype.kind != "f" for part in parts):
            raise FloatingPointError("the cones of the witness are not floating numbers")
        return Cones(*(part.astype(np.float64) for part in parts))

    def compact(self) -> "Cones":
        """Return them in float32, with a β that covers the rounding."""
        positive = self.alpha > 0
        squares = np.einsum("ij,ij->i", self.rows, self.rows)
        beta = np.where(positive, squares / np.where(positive, 4 * self.alpha, 1.0), 0.0)
        parts = (self.rows, self.alpha, self.signs, beta * (1 + 1e-5))
        return Cones(*(part.astype(np.float32) for part in parts))


@dataclass(frozen=True)
class SplitWitness:
    """``B = factor factor'`` and cones on the features `inside`.

    See `kspan.certificates.bounds.split_bound`.
    """

    scale: float
    inside: Index
    factor: FloatArray
    cones: Cones


@dataclass(frozen=True)
class SampleWitness:
    """Vectors ``p_i`` of the `active` features, a factor of Λ, and τ.

    See `kspan.certificates.bounds.sample_bound`.
    """

    scale: float
    active: Index
    vectors: FloatArray
    common: FloatArray
    floor: float


@dataclass(frozen=True)
class NodeWitness:
    """``B = factor factor'`` on `features`; no factor means B = A.

    Good for every node whose allowed features are among `features`: take their rows.
    """

    features: Index
    factor: FloatArray | None
    strengthening: int = -1  # which shared strengthening it goes with, -1 for none
    cones: Cones | None = None


@dataclass(frozen=True)
class Strengthening:
    """H and β of `kspan.certificates.bounds.dual_bound` on `features`; zero elsewhere."""

    features: Index
    H: FloatArray
    beta: FloatArray


@dataclass(frozen=True)
class Reduction:
    """Features cut off (never chosen) and fixed (always chosen) by one witness.

    `level` bounds every support that was cut off: those with a removed feature and those
    without a fixed one.
    """

    witness: int
    removed: Index
    fixed: Index
    level: float


@dataclass
class Record:
    """One node of the search tree.

    kind: "branched" (children cover it), "bound" (its witness bounds it), "enumerated" (all its
    supports were tried), "void" (nonnegative: all features are forced, and no vector that uses all
    of them is optimal), "open" (not finished; its witness still bounds it).
    """

    parent: int
    feature: int  # the feature it was split off by, -1 at the root
    included: bool
    reductions: list[Reduction] = field(default_factory=list)
    kind: str = "open"
    witness: int = -1
    bound: float = math.inf
    children: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class TreeWitness:
    """A search tree: every support is cut off, or in a leaf, by a record that says why."""

    scale: float
    records: list[Record]
    witnesses: list[NodeWitness]
    strengthenings: list[Strengthening]


@dataclass(frozen=True)
class PathWitness:
    """A full-size B, with its diagonal and its Ky Fan sum: it bounds the optimum of every k."""

    scale: float
    features: Index
    factor: FloatArray
    scores: FloatArray
    ky_fan: float
    cones: Cones | None = None


@dataclass(frozen=True)
class NetWitness:
    """A net of directions in the span of the columns of V, drawn from a seed.

    See `kspan.certificates.net`. δ is the chance that one of the `n_random` random nets that were
    tried loses more than it promises.
    """

    scale: float
    V: FloatArray
    n_directions: int
    seed: int
    delta: float
    n_random: int


Witness = (
    TraceWitness | RowWitness | DualWitness | SplitWitness | SampleWitness | TreeWitness
    | NetWitness
)  # fmt: skip
TYPES = (
    TraceWitness, RowWitness, DualWitness, Cones, SplitWitness, SampleWitness, NodeWitness,
    Strengthening, Reduction, Record, TreeWitness, PathWitness, NetWitness,
)  # fmt: skip
