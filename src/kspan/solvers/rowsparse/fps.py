r"""FPS: Fantope projection and selection, a convex relaxation with an l1 penalty.

.. math:: \max_H \langle A, H \rangle - \lambda \sum_{ij} |H_{ij}|
          \quad 0 \preceq H \preceq I,\; \mathrm{tr}\,H = m

The set is the Fantope, the convex hull of the projectors on m-dimensional subspaces. ADMM splits
H (in the Fantope) from a copy Z (soft-thresholded), so that Z has rows that are exactly zero:

    H = project(Z - U + A/τ);  Z = soft(H + U, λ/τ);  U = U + H - Z

with τ doubled or halved when one of the two residuals is ten times the other. For k features, λ
is bisected between 0 and the largest off-diagonal entry (where Z is diagonal) until Z has k
nonzero rows, each solve starting from the last one.

Cost: an eigensolve of order d in every step, some hundreds in all: for d up to a few thousand. A
is formed. Passes over the data: one.

Guarantee: the convex problem is solved to the stated tolerance. None for the row-sparse problem.

Reference: Vu, Cho, Lei, Rohe, Fantope Projection and Selection, NIPS 2013.

Differs from the paper in: the number of features is given and not λ; when no λ tried has exactly
k nonzero rows, the one with the fewest beyond k is cut to the k with the largest diagonal. The
rule with which the authors' program drops features beforehand is left out, as it can lose the
optimum.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance import DenseCovariance
from kspan.linalg.eigen import leading_dense, power_of_two
from kspan.linalg.projections import project_fantope, soft_threshold
from kspan.linalg.tracking import EigenTracker
from kspan.problem import Candidate, RowSparseProblem, Solution
from kspan.progress import Monitor, Status
from kspan.solvers.method import RowSparseMethod, checked, counted, require_not_negative
from kspan.solvers.rowsparse.go import low_rank_candidate

# Beyond this many features the eigensolves take minutes each.
FEATURE_LIMIT = 4000

# λ is bisected this often at most.
N_LAMBDAS = 20


@dataclass(frozen=True)
class FantopePoint:
    """Where the ADMM ended, and all that it takes to go on from there.

    Attributes
    ----------
    Z : (d, d) the solution, with entries that are exactly zero
    U : (d, d) scaled dual variable
    tau : penalty parameter of ADMM
    n_iter, converged : steps taken, and whether both residuals got below the tolerance
    """

    Z: FloatArray
    U: FloatArray
    tau: float
    n_iter: int = 0
    converged: bool = False

    @property
    def n_rows(self) -> int:
        """The number of features that are not zero."""
        return int(np.count_nonzero(np.diagonal(self.Z)))


@dataclass(frozen=True, eq=False)
class FPS(RowSparseMethod):
    """The relaxation for k rows, and its m leading eigenvectors there; one report for each λ.

    Parameters
    ----------
    penalty : float, optional
        λ. By default the one that gives k features; with a λ of your own, the k features with
        the largest rows are kept whatever their number was.
    refine : bool
        Take the leading eigenvectors of A on the chosen features, which explain the most
        variance there, instead of those of the relaxation's solution.
    max_iter : int
        ADMM steps for each λ.
    tol : float
        Both residuals must fall below ``tol * sqrt(m)``.
    """

    name = "fps"
    summary = "a convex relaxation with an l1 penalty: for up to 4000 features"
    guarantee = "solves the relaxation"
    reference = "Vu et al., NIPS 2013"

    penalty: float | None = checked(None, require_not_negative)
    refine: bool = False
    max_iter: int = counted(100, least=1)
    tol: float = 1e-3

    def run(
        self, problem: RowSparseProblem, monitor: Monitor, rng: np.random.Generator
    ) -> Solution:
        """Return what is found, or when stopped early the better of the last point and the start.

        The start is Go's point.
        """
        search = _Relaxation(problem, self, monitor)
        try:
            found = search.bisect() if self.penalty is None else search.solve(self.penalty)
        except KeyboardInterrupt:
            monitor.stopped, found = Status.INTERRUPTED, search.last
        best, status = found.candidate, found.status
        if monitor.stopped is not None:
            points = [found.candidate, search.start]
            best = max(points, key=lambda candidate: candidate.objective)
            status = monitor.stopped
            search.history.append(best.objective)
        return Solution.from_candidate(
            best, n_features=problem.n_features, solver=self.name, status=status,
            history=search.history or [best.objective], n_iter=search.n_iter,
        )  # fmt: skip


def convex_candidate(problem: RowSparseProblem, monitor: Monitor) -> Candidate:
    """Return the start that other methods call "convex": the relaxation cut to k rows.

    The monitor is asked in every step whether time is up; the best point so far is then returned,
    and Go's if there is none.
    """
    return _Relaxation(problem, FPS(), monitor.inner(quiet=True)).bisect().candidate


def fantope_path(
    A: FloatArray,
    m: int,
    penalties: Sequence[float] | int = 50,
    *,
    max_iter: int = 100,
    tol: float = 1e-3,
) -> list[tuple[float, FantopePoint]]:
    """Solve for a descending sequence of λ, each from the solution before it.

    Parameters
    ----------
    A : (d, d) covariance
    m : number of components
    penalties : sequence or int
        The λ, or how many, equally spaced from the largest off-diagonal entry down to the
        smallest of the columns' largest ones.
    max_iter, tol : see `fantope_admm`

    Examples
    --------
    >>> import numpy as np
    >>> A = np.diag([3.0, 2.0, 1.0]) + 0.5
    >>> [point.n_rows for _, point in fantope_path(A, 1, [0.6, 0.0])]
    [2, 3]
    """
    if isinstance(penalties, int):
        off_diagonal = largest_off_diagonal(A)
        grid = np.linspace(off_diagonal.max(), off_diagonal.min(), penalties)
    else:
        grid = np.sort(np.asarray(penalties, dtype=np.float64))[::-1]
    path: list[tuple[float, FantopePoint]] = []
    for penalty in grid.tolist():
        start = path[-1][1] if path else None
        point = fantope_admm(A, m, penalty, start=start, max_iter=max_iter, tol=tol)
        path.append((penalty, point))
    return path


def largest_off_diagonal(A: FloatArray) -> FloatArray:
    """Return the size of the largest entry of each column that is not on the diagonal."""
    sizes = np.abs(A)
    np.fill_diagonal(sizes, 0.0)
    largest: FloatArray = sizes.max(axis=0)
    return largest


def fantope_admm(
    A: FloatArray,
    m: int,
    penalty: float,
    *,
    start: FantopePoint | None = None,
    max_iter: int = 100,
    tol: float = 1e-3,
    out_of_time: Callable[[], bool] = lambda: False,
) -> FantopePoint:
    """Solve the relaxation for one λ.

    Parameters
    ----------
    A : (d, d) covariance
    m : number of components
    penalty : λ ≥ 0
    start : a point to go on from, of the same A
    max_iter : steps at most
    tol : both residuals must fall below ``tol * sqrt(m)``, the dual one relative to max|A|
    out_of_time : asked before every step and after its eigensolve whether to stop; what a step has
        not finished is dropped
    """
    size = float(np.abs(A).max(initial=0.0)) or 1.0
    S, weight = A / size, penalty / size  # in these units H, Z and A are all of size one
    d = A.shape[0]
    if start is None:
        start = FantopePoint(np.zeros((d, d)), np.zeros((d, d)), 1.0)
    Z, U, tau = start.Z, start.U, start.tau
    tracker = EigenTracker(largest=True, rank=m + 4, tracks=False)  # all digits, as in the paper
    limit = tol * np.sqrt(m)
    for n_iter in range(1, max_iter + 1):
        if out_of_time():
            return FantopePoint(Z, U, tau, n_iter - 1)
        H = project_fantope(Z - U + S / tau, m, tracker)
        if out_of_time():  # the rest takes seconds for thousands of features
            return FantopePoint(Z, U, tau, n_iter - 1)
        shifted, Z_old = H + U, Z
        Z = soft_threshold(shifted, weight / tau)
        U = shifted - Z
        primal = float(np.linalg.norm(H - Z))
        dual = tau * float(np.linalg.norm(Z - Z_old))
        if primal < limit and dual < limit:
            return FantopePoint(Z, U, tau, n_iter, True)
        if primal > 10 * dual:
            tau, U = 2 * tau, U / 2
        elif dual > 10 * primal:
            tau, U = tau / 2, U * 2
    return FantopePoint(Z, U, tau, max_iter)


@dataclass(frozen=True)
class _Cut:
    """A point of the relaxation, and what it is after cutting it to k rows."""

    point: FantopePoint
    candidate: Candidate

    @property
    def status(self) -> Status:
        return Status.CONVERGED if self.point.converged else Status.MAX_ITER


class _Relaxation:
    """The relaxation on the allowed features of a problem, for one λ after the other."""

    def __init__(self, problem: RowSparseProblem, options: FPS, monitor: Monitor):
        self.pool = problem.choice.features
        if self.pool.size > FEATURE_LIMIT:
            raise ValueError(
                f"The convex relaxation needs eigensolves of order {self.pool.size}; its limit "
                f"is {FEATURE_LIMIT} features. Use another solver, or another init."
            )
        self.options, self.monitor = options, monitor
        A = problem.covariance.submatrix(np.arange(problem.n_features))
        is_psd = problem.covariance.n_samples is not None  # what is computed from data is
        self.problem = problem.changed(covariance=DenseCovariance(A, is_psd=is_psd))
        self.unit = power_of_two(float(np.abs(A).max(initial=0.0)))
        self.A = A[np.ix_(self.pool, self.pool)] / self.unit
        d = self.pool.size
        self.point = FantopePoint(np.zeros((d, d)), np.zeros((d, d)), 1.0)
        self.history: list[float] = []
        self.n_iter = 0

    @cached_property
    def start(self) -> Candidate:
        """What there is before the first step."""
        return low_rank_candidate(self.problem)

    @property
    def last(self) -> _Cut:
        """Where it is now."""
        return _Cut(self.point, self.candidate(self.point) if self.n_iter else self.start)

    def solve(self, penalty: float) -> _Cut:
        """Solve for one λ, from where the last one ended."""
        self.point = fantope_admm(
            self.A, self.problem.n_components, penalty / self.unit, start=self.point,
            max_iter=self.options.max_iter, tol=self.options.tol,
            out_of_time=self.monitor.out_of_time,
        )  # fmt: skip
        self.n_iter += self.point.n_iter
        found = self.last
        self.history.append(found.candidate.objective)
        self.monitor.report(max(self.history))
        return found

    def bisect(self) -> _Cut:
        """Look for a λ with k nonzero rows; else return the point with the fewest beyond k."""
        k = self.problem.choice.size
        if self.monitor.out_of_time():
            return self.last
        low, high = 0.0, float(largest_off_diagonal(self.A).max(initial=0.0)) * self.unit
        best: _Cut | None = None
        for _ in range(N_LAMBDAS):
            middle = (low + high) / 2
            found = self.solve(middle)
            n_rows = found.point.n_rows
            if n_rows >= k:
                low = middle
                if best is None or n_rows <= best.point.n_rows:
                    best = found
            else:
                high = middle
            if n_rows == k or self.monitor.out_of_time() or high - low <= 1e-9 * self.unit:
                break
        return best or found

    def candidate(self, point: FantopePoint) -> Candidate:
        """Cut the m leading eigenvectors of Z to the k rows that are largest in Z.

        Largest by the diagonal: a row of Z that has no part in the m leading eigenvectors is still
        a row that the relaxation chose. Rows that are zero come last, by variance.
        """
        d = self.problem.n_features
        variances = self.problem.covariance.diagonal()
        V = np.zeros((d, self.problem.n_components))
        scores = 0.5 * variances / (variances.max() or 1.0)
        V[self.pool] = leading_dense(point.Z, self.problem.n_components).vectors
        chosen = np.maximum(np.diagonal(point.Z), 0.0)
        scores[self.pool] = np.where(chosen > 0, 1.0 + chosen, scores[self.pool])
        support = self.problem.select(scores)
        if self.options.refine:
            return self.problem.refit(support)
        return self.problem.on_span(support, V[support])
