r"""Go: the row-sparse problem solved through the best rank-m approximation of A.

.. math:: I = \text{top}_k\,\mathrm{diag}(A_m), \qquad W_I = \mathrm{eig}_m(\cdot_{II})

Steps: m leading eigenpairs of A; the k features with the largest
:math:`\sum_{l \le m} \lambda_l u_{il}^2`; m leading eigenvectors on those features.

Cost: one call of ``leading(m)``, then O(dm + k³). Passes over the data: those of ``leading``
and one more.

Guarantee: globally optimal when rank(A) ≤ m (Theorem 4.2). Otherwise within a factor 1 - ε of
the optimum, with ε from the decay of the spectrum (Theorem 5.1).

Reference: Tian, Nie, Wang, Li, Learning Feature Sparse Principal Subspace, NeurIPS 2020,
Algorithm 1 applied to A_m.

Differs from the paper in: nothing with ``refine=False``. The default takes the eigenvectors of
``A_II`` and not of ``(A_m)_II``, as the authors' program does; it is never worse.
"""

from dataclasses import dataclass

import numpy as np

from kspan.linalg.eigen import leading_dense
from kspan.problem import Candidate, RowSparseProblem, Solution
from kspan.progress import Monitor, Status
from kspan.solvers.method import RowSparseMethod, checked


def require_shift(name: str, shift: float) -> None:
    """Raise `ValueError` unless a shift can be added to the eigenvalues of A."""
    if not (np.isfinite(shift) and shift >= 0):
        raise ValueError(f"{name} must be a finite number, 0 or more, got {shift!r}.")


@dataclass(frozen=True, eq=False)
class Go(RowSparseMethod):
    """Algorithm 1 on the best rank-m approximation of A; there is nothing to stop.

    Parameters
    ----------
    refine : bool
        Take the eigenvectors of A on the chosen features (default) or of ``A_m``.
    shift : float
        ε of the paper: choose features by A + εI. The objective is always that of A.
    """

    name = "go"
    summary = (
        "the largest rows of the m leading eigenvectors, weighted by the eigenvalues: costs "
        "what PCA does"
    )
    guarantee = "optimal when A has rank m or less"
    reference = "Tian et al., NeurIPS 2020"

    refine: bool = True
    shift: float = checked(0.0, require_shift)

    @property
    def makes_many_products(self) -> bool:
        """A few eigenpairs are all it needs."""
        return False

    def run(
        self, problem: RowSparseProblem, monitor: Monitor, rng: np.random.Generator
    ) -> Solution:
        """Choose and fit, with one report at the end."""
        candidate = low_rank_candidate(problem, refine=self.refine, shift=self.shift)
        return one_step_solution(problem, candidate, self.name, monitor)


def one_step_solution(
    problem: RowSparseProblem, candidate: Candidate, name: str, monitor: Monitor
) -> Solution:
    """Report and dress up the point of a method that takes one step."""
    with monitor.interruptible():
        monitor.report(candidate.objective)
    interrupted = monitor.stopped is Status.INTERRUPTED
    status = Status.INTERRUPTED if interrupted else Status.COMPLETED
    return Solution.from_candidate(
        candidate, n_features=problem.n_features, solver=name, status=status,
        history=[candidate.objective], n_iter=1,
    )  # fmt: skip


def low_rank_candidate(
    problem: RowSparseProblem, *, refine: bool = True, shift: float = 0.0
) -> Candidate:
    """Return the point that Go finds: also the low-rank start of the iterative methods."""
    pairs = problem.covariance.leading(problem.n_components)
    # diag((A + εI)_m): A + εI has the same eigenvectors and eigenvalues λ + ε.
    weights = np.maximum(pairs.values, 0.0) + shift
    support = problem.select((pairs.vectors * np.sqrt(weights)) ** 2 @ np.ones(weights.size))
    if refine:
        return problem.refit(support)
    # (A_m)_II = F F' with F = U_I Λ^{1/2}: its eigenvectors span the columns of F.
    factor = pairs.vectors[support] * np.sqrt(weights)
    Q, _ = np.linalg.qr(factor)
    inside = leading_dense(Q.T @ problem.covariance.submatrix(support) @ Q, Q.shape[1])
    return Candidate(support, Q @ inside.vectors, np.maximum(inside.values, 0.0))
