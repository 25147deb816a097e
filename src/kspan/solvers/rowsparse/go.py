r"""Go: the row-sparse problem solved through the best rank-m approximation of A.

.. math:: I = \text{top}_k\,\mathrm{diag}(A_m), \qquad W_I = \mathrm{eig}_m(\cdot_{II})

Steps: m leading eigenpairs of A; the k features with the largest
:math:`\sum_{l \le m} \lambda_l u_{il}^2`; m leading eigenvectors on those features. With a shift s
the weights are :math:`(\lambda_l + s)_+` in place of :math:`\lambda_l`: features are chosen by
:math:`(A + sI)_m`.

Cost: one call of ``leading(m)``, then O(dm + k³). Passes over the data: those of ``leading``
and one more. ``shift="auto"`` needs no more: it comes from the trace.

Guarantee: globally optimal when rank(A) ≤ m (Theorem 4.2). Otherwise within a factor 1 - ε of
the optimum, with ε from the decay of the spectrum (Theorem 5.1; `kspan.proofs.fspca_epsilon`).

With ``shift="auto"``, s = -σ and σ the mean of the eigenvalues beyond the m leading ones, also
globally optimal when :math:`A = σI + C`, C ⪰ 0 of rank m or less: the spiked model (Remark 4.4).
For any A and any σ ≥ 0,

.. math:: \mathrm{OPT} - \mathrm{tr}(W'AW) \le \sum_{i=m+1}^{2m} (\lambda_i - σ)_+
          + \sum_{i=d-m+1}^{d} (σ - \lambda_i)_+ + \sum_{i \le m} (σ - \lambda_i)_+ .

*Proof.* Let :math:`C = \sum_{i \le m} (\lambda_i - σ)_+ u_iu_i'` and R = A - σI - C. For every
feasible W, tr(W'AW) = mσ + tr(W'CW) + tr(W'RW). The second term is at most the sum t of the k
largest entries of diag(C), and the W of Go with ``refine=False`` attains it. The third is at most
the sum of the m largest eigenvalues of R, and at least that of the m smallest. The eigenvalues of R
are :math:`-(σ - \lambda_i)_+` for i ≤ m and :math:`\lambda_i - σ` for i > m; so the former is at
most the first sum above, and the latter at least minus the two others (which, for σ up to
:math:`\lambda_m`, as that of "auto" is, are one). ``refine=True`` explains no less. ∎

So OPT ≤ mσ + t + the sum of the m largest eigenvalues of R, and that bound needs no spectrum to be
believed: it is the one of `kspan.proofs.check.bounds` with B = C. The certificate of level "fast"
tries this σ among others, and so proves what Go finds in the spiked model.

Reference: Tian, Nie, Wang, Li, Learning Feature Sparse Principal Subspace, NeurIPS 2020,
Algorithm 1 applied to A_m.

Differs from the paper in: nothing with ``refine=False``. The default takes the eigenvectors of
``A_II`` and not of ``(A_m)_II``, as the authors' program does; it is never worse. The paper has the
shift -σ for a σ that is known.
"""

from dataclasses import dataclass

import numpy as np

from kspan.linalg.eigen import leading_dense
from kspan.problem import Candidate, RowSparseProblem, Solution
from kspan.progress import Monitor, Status
from kspan.solvers.method import RowSparseMethod, checked
from kspan.solvers.shifts import require_shift, shift_of, shifted


@dataclass(frozen=True, eq=False)
class Go(RowSparseMethod):
    """Algorithm 1 on the best rank-m approximation of A; there is nothing to stop.

    Parameters
    ----------
    refine : bool
        Take the eigenvectors of A on the chosen features (default) or of ``A_m``.
    shift : float or "auto"
        Choose features by A + shift·I: ε of the paper, or -σ to take off what noise adds to every
        eigenvalue; those that fall below zero count as zero, and if all do there is no shift.
        "auto" takes off the mean of the eigenvalues beyond the m leading ones. The objective is
        always that of A.
    """

    name = "go"
    summary = (
        "the largest rows of the m leading eigenvectors, weighted by the eigenvalues: costs "
        "what PCA does"
    )
    guarantee = (
        'optimal when A has rank m or less, with `shift="auto"` also when σI is added to that'
    )
    reference = "Tian et al., NeurIPS 2020"

    refine: bool = True
    shift: float | str = checked(0.0, require_shift)

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
    problem: RowSparseProblem, *, refine: bool = True, shift: float | str = 0.0
) -> Candidate:
    """Return the point that Go finds: also the low-rank start of the iterative methods."""
    m = problem.n_components
    pairs = problem.covariance.leading(m)
    # diag((A + sI)_m): A + sI has the same eigenvectors and eigenvalues λ + s.
    weights = shifted(pairs.values, shift_of(problem.covariance, m, shift))
    support = problem.select((pairs.vectors * np.sqrt(weights)) ** 2 @ np.ones(weights.size))
    if refine:
        return problem.refit(support)
    # (A_m)_II = F F' with F = U_I Λ^{1/2}: its eigenvectors span the columns of F.
    factor = pairs.vectors[support] * np.sqrt(weights)
    Q, _ = np.linalg.qr(factor)
    inside = leading_dense(Q.T @ problem.covariance.submatrix(support) @ Q, Q.shape[1])
    return Candidate(support, Q @ inside.vectors, np.maximum(inside.values, 0.0))
