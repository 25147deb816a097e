"""What a certificate is made of: arrays from which its bound can be computed again.

Feature numbers are those of the problem. Matrices are in units of ``scale``, a power of two:
dividing by it is exact, and 1e-150 and 1e150 are as good as 1.
"""

import math
from dataclasses import dataclass, field

from kspan.arrays import FloatArray, Index


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
class SplitWitness:
    """``B = factor factor'``, cone rows and their weights on the features `inside`.

    See `kspan.certificates.bounds.split_bound`.
    """

    scale: float
    inside: Index
    factor: FloatArray
    cone: FloatArray
    alpha: FloatArray


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
    supports were tried), "open" (not finished; its witness still bounds it).
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


Witness = TraceWitness | RowWitness | DualWitness | SplitWitness | SampleWitness | TreeWitness
TYPES = (
    TraceWitness, RowWitness, DualWitness, SplitWitness, SampleWitness, NodeWitness,
    Strengthening, Reduction, Record, TreeWitness, PathWitness,
)  # fmt: skip
