r"""TPower (D): sparse components one after the other, each by the truncated power method.

.. math:: x_{t+1} = \frac{T_k(A_j x_t)}{\|T_k(A_j x_t)\|}

for j = 1, …, m, where :math:`A_j` is what the deflation has left of A. T_k keeps the k entries of
largest size, so every component has k features of its own.

With generalized deflation the quotient x'Ax / x'Bx has the projector B = I - QQ' below. Its
maximiser also maximises :math:`x'(A + \rho QQ')x` over unit vectors, when ρ is its value; so the
method is run on that matrix, which is positive semidefinite, and ρ raised until it stands still.
Both parts never decrease the quotient.

Cost: O(dk) a step for a covariance. Passes over the data: three a step, and two for a deflation.

Guarantee: the variance of each component, in what was left, never decreases from step to step.

Reference: Yuan, Zhang, Truncated Power Method for Sparse Eigenvalue Problems, JMLR 2013.

Differs from the paper in: it stops when the vector no longer moves, not when x'Ax gains less than
1e-6. A matrix with negative eigenvalues (Hotelling's deflation) is shifted by no multiple of the
identity; the best iterate is taken instead.
"""

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance.updated import UpdatedCovariance
from kspan.problem import ElementSparseProblem, RowSparseProblem
from kspan.progress import Callback, Monitor, Status
from kspan.solution import LoadingsSolution
from kspan.solvers.elementsparse.deflation import Deflation
from kspan.solvers.rowsparse.tpower import leading_vector
from kspan.solvers.starts import Init

# The quotient of the generalized deflation has settled when ρ grows by less than this share.
QUOTIENT_TOL = 1e-9
MAX_QUOTIENTS = 50


def tpower_deflated(
    problem: ElementSparseProblem,
    *,
    init: Init = "variance",
    rng: np.random.Generator,
    deflation: str = "projection",
    gradual: bool = False,
    max_iter: int = 200,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> LoadingsSolution:
    """Find m sparse components by the truncated power method and deflation.

    Parameters
    ----------
    problem : ElementSparseProblem
    init : {"variance", "low-rank", "convex", "random"} or (d, 1) array
        Where each component starts.
    rng : numpy.random.Generator
        Used by the random start only.
    deflation : {"projection", "schur", "hotelling", "orthogonalized", "generalized"}
    gradual : bool
        Come down to k features from 8k, 4k and 2k.
    max_iter : int
        Steps for each component.
    callback, time_limit : see `kspan.progress`
    """
    monitor = Monitor("tpower", callback, time_limit)
    left = Deflation(problem.covariance, deflation)
    d, m = problem.n_features, problem.n_components
    loadings = np.zeros((d, m))
    history: list[float] = []
    n_iter, statuses = 0, [Status.CONVERGED]
    for j in range(m):
        rho, start = 0.0, init
        for _ in range(MAX_QUOTIENTS):
            matrix = left.current
            if deflation == "generalized" and left.taken.shape[1]:
                matrix = UpdatedCovariance(matrix, left.taken, rho * np.eye(left.taken.shape[1]))
            run = leading_vector(
                RowSparseProblem(matrix, 1, problem.n_nonzero_coefs),
                init=start, rng=rng, gradual=gradual, max_iter=max_iter, monitor=monitor,
            )  # fmt: skip
            x = np.zeros((d, 1))
            x[run.best.support] = run.best.weights
            history.extend(run.history)
            n_iter += run.n_iter
            statuses.append(run.status)
            if deflation != "generalized":
                break
            before, rho, start = rho, _quotient(left, x), x
            if not left.taken.shape[1] or rho <= before * (1 + QUOTIENT_TOL) or monitor.stopped:
                break
        loadings[:, j] = x[:, 0]
        left.remove(x)
    return LoadingsSolution.from_loadings(
        loadings, loadings.T @ problem.covariance.matmat(loadings), solver="tpower",
        status=_worst(statuses), history=history, n_iter=n_iter,
    )  # fmt: skip


def _quotient(left: Deflation, x: FloatArray) -> float:
    """Return ``x'Ax / x'Bx`` of what is left."""
    below = 1.0 - float(np.sum((left.taken.T @ x) ** 2))
    above = float(np.sum(x * left.current.matmat(x)))
    return above / below if below > np.finfo(float).eps else 0.0


def _worst(statuses: list[Status]) -> Status:
    """Return the status of the component that ended worst: stopped before unsettled."""
    order = (Status.CONVERGED, Status.UNSETTLED, Status.TIME_LIMIT, Status.STOPPED,
             Status.INTERRUPTED)  # fmt: skip
    return max(statuses, key=order.index)
