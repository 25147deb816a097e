r"""Brute force: every support, in batches.

Most supports need no eigensolve. With :math:`t = \mathrm{tr}(A_{SS})` and
:math:`s = \|A_{SS}\|_F^2`, the sum of the m largest of k eigenvalues is at most t, and at most
:math:`mt/k + \sqrt{m(k-m)(s - t^2/k)/k}` (numbers with that sum and sum of squares cannot have
more in their m largest); a support whose bound is below the best value so far is passed over.

Cost: at most :math:`\binom{d}{k}` eigenproblems of order k. Passes over the data: those of Go,
which gives the first value to beat, and one for the covariance of the allowed features.

Guarantee: optimal, by enumeration.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray
from kspan.linalg.eigen import power_of_two
from kspan.problem import RowSparseProblem, Solution
from kspan.progress import Monitor, Status
from kspan.solvers.method import RowSparseMethod
from kspan.solvers.rowsparse.go import low_rank_candidate


@dataclass(frozen=True, eq=False)
class BruteForce(RowSparseMethod):
    """Try every support; reports come batch by batch.

    Parameters
    ----------
    max_supports : int
        Refuse, with `ValueError`, when there are more than this.
    """

    name = "brute-force"
    summary = "every support, one after the other: for 20 features or so"
    guarantee = "optimal"

    max_supports: int = 2_000_000

    def run(
        self, problem: RowSparseProblem, monitor: Monitor, rng: np.random.Generator
    ) -> Solution:
        """Enumerate, from Go's value upwards."""
        choice, m = problem.choice, problem.n_components
        if choice.n_supports > self.max_supports:
            raise ValueError(
                f"Brute force would have to try {choice.n_supports:,} supports; the limit is "
                f"max_supports={self.max_supports:,}. Use solver='auto', or raise the limit."
            )
        pool = choice.features
        A = problem.covariance.submatrix(pool)
        unit = power_of_two(float(np.abs(np.diagonal(A)).max()))  # squares stay in range
        A = A / unit
        first = low_rank_candidate(problem)
        best_value, best_support = first.objective / unit, first.support
        history: list[float] = []
        with monitor.interruptible():
            for supports in choice.supports():
                places = np.searchsorted(pool, supports)
                stack = A[places[:, :, None], places[:, None, :]]
                promising = np.flatnonzero(_upper_bounds(stack, m) > best_value)
                if promising.size:
                    values = np.linalg.eigvalsh(stack[promising])[:, -m:].sum(axis=1)
                    winner = int(np.argmax(values))
                    if values[winner] > best_value:
                        best_value = float(values[winner])
                        best_support = supports[promising[winner]]
                history.append(best_value * unit)
                if monitor.report(history[-1]):
                    break
        return Solution.from_candidate(
            problem.refit(best_support), n_features=problem.n_features, solver=self.name,
            status=monitor.stopped or Status.COMPLETED,
            history=history or [best_value * unit], n_iter=len(history),
        )  # fmt: skip


def _upper_bounds(stack: FloatArray, m: int) -> FloatArray:
    """Bound the sum of the m largest eigenvalues of each matrix, with room for rounding."""
    k = stack.shape[-1]
    trace = np.einsum("sii->s", stack)
    squares = np.einsum("sij,sij->s", stack, stack)
    spread = np.maximum(squares - trace * trace / k, 0.0)
    by_squares = m / k * trace + np.sqrt(m * (k - m) / k * spread)
    bounds: FloatArray = np.minimum(trace, by_squares) * (1 + 1e-10)
    return bounds
