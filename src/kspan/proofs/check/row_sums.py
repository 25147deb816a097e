r"""Row sums: a bound for few components, and what it settles, from rows of |A| in blocks.

For the projector P on the m leading eigenvectors of A_SS and any weights t > 0,
:math:`|P_{ij}| \le (P_{ii}t_j/t_i + P_{jj}t_i/t_j)/2`, so

.. math:: ⟨A, P⟩ \le \sum_{i∈S} P_{ii} r_i(S), \qquad r_i(S) = \sum_{j∈S} |a_{ij}| t_j / t_i ,

which is at most the sum of the m largest r_i, as 0 ≤ P_ii ≤ 1 and tr P = m. (For m = 1: the
feature with the largest loading, in units of t, leads, and its row bounds the eigenvalue.) r_i(S)
is at most r_i, the largest sum of a support with feature i, and with a feature j in S at most r_i
less what taking j in costs that row.

With t = 1 these are Gershgorin's discs. The best t is a Perron vector:
:math:`t_i ∝ \sum_j |a_{ij}|t_j` over the k largest terms of every row makes all r_i alike, and the
bound that of matrices whose rows choose their k entries each for itself. On correlations, where
traces say nothing, it is often within one percent for m = 1.

Beyond `MATRIX_LIMIT` features rows come from few samples in blocks, without a matrix of all
features: O(nd²) operations, O(d) memory a row.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance.block_kernels import block_slices
from kspan.linalg.rounding import UNIT
from kspan.proofs.check.claims import Problem, Witness, need
from kspan.proofs.check.known import KnownFactor, KnownMatrix, Uncertainty, data_scale

# Weights of an honest witness: products with them neither over- nor underflow.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-3, 1e3

BLOCK_BYTES = 1 << 23

# Features up to which A is formed for its rows.
MATRIX_LIMIT = 2500


@dataclass(frozen=True)
class RowWitness(Witness):
    """Weights t of the features that may be chosen; none: all ones."""

    label: ClassVar[str] = "row sums"

    weights: FloatArray = field(default_factory=lambda: np.empty(0))

    def evaluate(self, problem: Problem) -> float:
        """See `Witness.evaluate`."""
        return total_of(problem, row_sums(AbsoluteRows.of(problem), self.weights)[0])

    def levels(self, problem: Problem) -> FloatArray:
        """See `Witness.levels`."""
        need(problem.n_components == 1, "witness: row sums settle features for one component only")
        return row_levels(AbsoluteRows.of(problem), self.weights)


@dataclass(frozen=True)
class AbsoluteRows:
    """Rows of |A| on the allowed features, rounded upwards, in units of a scale.

    An entry of a pair that is in no support together counts for nothing: no projector on a support
    has an entry there.

    An entry may be off by the root of the errors of both features, and by the rounding of a product
    of samples: both are added.
    """

    problem: Problem
    known: KnownMatrix | KnownFactor

    @classmethod
    def of(cls, problem: Problem, scale: float | None = None) -> "AbsoluteRows":
        """Take them from a problem; `CertificateError` if it has too many features and samples."""
        features = problem.choice.features
        if features.size <= MATRIX_LIMIT:
            return cls(problem, KnownMatrix.of(problem, features, scale))
        return cls(problem, KnownFactor.of(problem, features, scale))

    def block(self, block: slice) -> FloatArray:
        """Return some of the rows; entries of pairs that no support has are zero."""
        rows, features = self._entries(block), self.problem.choice.features
        apart = self.problem.choice.apart(features[block], features)
        if apart is not None:
            rows[apart] = 0.0
        return rows

    def _entries(self, block: slice) -> FloatArray:
        roots = np.sqrt(self.known.uncertainty.errors)
        if isinstance(self.known, KnownMatrix):
            return np.abs(self.known.A[block]) + roots[block, None] * roots
        X = self.known.X
        rows = np.abs(X[:, block].T @ X) + roots[block, None] * roots
        lengths = np.sqrt(np.einsum("ij,ij->j", X, X)) * (1 + (len(X) + 8) * UNIT)
        rows += (len(X) + 8) * UNIT * (lengths[block, None] * lengths)
        return rows


def row_levels(
    rows: AbsoluteRows, weights: FloatArray, stop: Callable[[], bool] | None = None
) -> FloatArray:
    """Return, for all features, a bound on the supports that have it, for one component."""
    sums, levels = row_sums(rows, weights, settle=True, stop=stop)
    return np.minimum(levels + _unseen(rows.problem), total_of(rows.problem, sums))


def total_of(problem: Problem, sums: FloatArray) -> float:
    """Return the bound: the m largest row sums, and what nothing was seen of."""
    m = problem.n_components
    return float(np.sort(sums)[-m:].sum()) * (1 + m * UNIT) + _unseen(problem)


def _unseen(problem: Problem) -> float:
    """Return what may be added by what nothing was seen of, in the units of the problem."""
    scale = data_scale(problem)
    return Uncertainty.of(problem, scale).ky_fan(problem.n_components) * scale


def row_sums(
    absolute: AbsoluteRows,
    weights: FloatArray,
    *,
    settle: bool = False,
    stop: Callable[[], bool] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return r_i of the allowed features, rounded upwards, in the units of the problem.

    With `settle` also, for all features, the bound on supports that have it, for one component;
    minus infinity for those that may not be chosen.

    When `stop` says so, between two blocks, it ends with `TimeoutError`.
    """
    problem, choice = absolute.problem, absolute.problem.choice
    features, inside = choice.features, choice.on(choice.features)
    n, scale = features.size, absolute.known.scale
    t = _checked(weights, n)
    sums, best = np.empty(n), np.full(n, -np.inf)
    for block in block_slices(n, 8 * n, BLOCK_BYTES):
        if stop is not None and stop():
            raise TimeoutError
        rows = absolute.block(block)
        rows *= t
        rows /= t[block, None]
        sums[block], least = inside.sums_with(np.arange(n)[block], rows)
        if settle:
            missing = np.maximum(least[:, None] - rows, 0.0)
            missing[np.arange(len(rows)), np.arange(n)[block]] = 0.0  # its own row
            missing[:, inside.forced] = 0.0
            best = np.maximum(best, (sums[block, None] - missing).max(axis=0))
    # Four operations on an entry before it is added, and one after.
    sums *= scale * (1 + 16 * UNIT)
    levels = np.full(problem.n_features, -np.inf)
    levels[features] = best * scale * (1 + 32 * UNIT)
    return sums, levels


def _checked(weights: FloatArray, n: int) -> FloatArray:
    """Return the weights, one for each feature; refuse what is no honest witness."""
    if weights.size == 0:
        return np.ones(n)
    fits = weights.shape == (n,) and weights.dtype == np.float64
    need(fits, "witness: not one weight for each feature")
    fair = (weights >= SMALLEST_WEIGHT).all() and (weights <= LARGEST_WEIGHT).all()
    need(bool(fair), "witness: a weight is not a number of fair size")
    return weights
