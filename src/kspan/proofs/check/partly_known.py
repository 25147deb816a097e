r"""A on some features, and of all others the lengths of their rows: for relaxations of a part.

A relaxation of all features takes O(d³) a step. Of most features it says the same: that they are
worth less than those that are chosen. For these there is a row cone in closed form (`bounds.py`),
so that only the others, *inside*, are relaxed.

Let i be outside, a an upper bound on a_ii, and

.. math:: R_i = \text{sum of the κ largest of } \{a_{ij}^2, j \text{ inside}\} ∪
          \{a_{ij}^2/4, j ≠ i \text{ outside}\} .

Take G with g_ij = 2a_ij for i outside and j inside, g_ij = a_ij for both outside, and g_ij = 0 for
i inside and j outside. Then A - sym(G) has no entry that joins a feature outside to another one,
and the κ largest :math:`g_{ij}^2/4` of row i add up to R_i. For any number μ choose β_i ≥ 0 with

.. math:: β_i (β_i + μ - a) \ge R_i, \qquad β_i + μ - a \ge 0, \qquad α_i = β_i + μ - a,

which makes a_ii + α_i - β_i at most μ. So all that is left of the features outside is a multiple of
the identity, μ, beside the matrix of those inside: it adds nothing to a Ky Fan sum none of whose
eigenvalues is below μ. What the features outside may add is β_i for each component that has them.
(R_i = 0 and β_i = a - μ leave α_i = 0: then there is no G in that row, and any β_i ≥ 0 will do.)

With μ at the size of half a component's variance, β_i is about R_i/μ: a feature with a small
variance, or with small covariances, is worth little whatever else is chosen.

**Rounding.** Entries are those of `row_sums.AbsoluteRows`: none is below the true one. Squares and
sums of κ of them are off by (κ+4)u; roots, sums and a division of positive numbers by less than
16u. Take as A the matrix in memory inside, and the true one elsewhere: it is off by no more than
`Uncertainty` says.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance.block_kernels import block_slices
from kspan.linalg.rounding import UNIT
from kspan.proofs.check.claims import Problem, need
from kspan.proofs.check.known import UNDERFLOW, KnownMatrix, Uncertainty
from kspan.proofs.check.row_sums import BLOCK_BYTES, AbsoluteRows


@dataclass(frozen=True, eq=False)
class PartlyKnown:
    """A on the features inside, and what is needed of the others; see above.

    Parameters
    ----------
    matrix : A on the features inside
    inside : features of the problem
    sizes : the numbers κ that there are, rising
    variances : (d,) upper bounds on a_ii
    squares : (len(sizes), d) R of the features outside, rounded upwards
    uncertainty : how well A is known, on all features
    """

    matrix: KnownMatrix
    inside: Index
    sizes: Index
    variances: FloatArray
    squares: FloatArray
    uncertainty: Uncertainty

    @classmethod
    def of(
        cls,
        problem: Problem,
        inside: Index,
        sizes: Index,
        scale: float | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> "PartlyKnown":
        """Take it from a problem all of whose features may be chosen.

        When `stop` says so, between two blocks of rows, it ends with `TimeoutError`.
        """
        need(bool(problem.choice.allowed.all()), "witness: is about problems with all features")
        matrix = KnownMatrix.of(problem, inside, scale)
        rows = AbsoluteRows.of(problem, matrix.scale)
        variances, squares = _row_squares(rows, inside, sizes, stop)
        uncertainty = Uncertainty.of(problem, matrix.scale)
        return cls(matrix, inside, sizes, variances, squares, uncertainty)

    @property
    def scale(self) -> float:
        """The units."""
        return self.matrix.scale

    @property
    def n_features(self) -> int:
        """The number of all features."""
        return self.variances.size

    def on(self, features: Index) -> KnownMatrix:
        """Return A on some of the features inside."""
        place_of = np.full(self.n_features, -1)
        place_of[self.inside] = np.arange(self.inside.size)
        places = place_of[features]
        if (places < 0).any():
            raise FloatingPointError("a feature is not among those that are relaxed")
        return self.matrix.on(places)

    def outside_scores(self, features: Index, n_others: int, level: float) -> FloatArray:
        """Return β of features outside, rounded upwards.

        Parameters
        ----------
        features : outside
        n_others : κ
        level : μ
        """
        row = int(np.searchsorted(self.sizes, n_others))
        if row == self.sizes.size:
            raise FloatingPointError("nothing is known of rows with so many features")
        lengths = np.sqrt(self.squares[row, features])
        room = level - self.variances[features]
        root = np.hypot(room, 2 * lengths)
        both = np.where(room > 0, room + root, 1.0)
        scores = np.where(room > 0, 2 * lengths * (lengths / both), 0.5 * (root - room))
        return scores * (1 + 32 * UNIT) + UNDERFLOW


def parted(known: KnownMatrix | PartlyKnown, features: Index) -> tuple[Index, Index]:
    """Return which of some features are inside, and which are not."""
    if isinstance(known, KnownMatrix):
        return features, features[:0]
    is_inside = np.isin(features, known.inside)
    return features[is_inside], features[~is_inside]


def _row_squares(
    rows: AbsoluteRows, inside: Index, sizes: Index, stop: Callable[[], bool] | None
) -> tuple[FloatArray, FloatArray]:
    """Return the variances, and R of the features outside for every κ, rounded upwards."""
    d = rows.problem.n_features
    most = min(int(sizes.max(initial=0)), d - 1)
    outside = np.ones(d, dtype=bool)
    outside[inside] = False
    variances, squares = np.empty(d), np.zeros((sizes.size, d))
    for block in block_slices(d, 8 * d, BLOCK_BYTES):
        if stop is not None and stop():
            raise TimeoutError
        entries, places = rows.block(block), np.arange(d)[block]
        own = np.arange(places.size), places
        variances[block] = entries[own]
        entries[own] = 0.0
        if not most:
            continue
        entries[:, outside] *= 0.5
        best = np.partition(entries, d - most, axis=1)[:, d - most :]
        best = np.sort(best, axis=1)[:, ::-1] ** 2
        sums = np.cumsum(best, axis=1) * (1 + (most + 16) * UNIT) + UNDERFLOW
        for number, size in enumerate(sizes):
            if size > 0:  # of one feature alone there is no row
                squares[number, block] = sums[:, min(int(size), most) - 1]
    squares[:, ~outside] = 0.0
    return variances * (1 + 8 * UNIT), squares
