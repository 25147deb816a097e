r"""TPower (D): sparse components one after the other, each by the truncated power method.

.. math:: x_{t+1} = \frac{T_k(A_j x_t)}{\|T_k(A_j x_t)\|}

for j = 1, …, m, where :math:`A_j` is what the deflation has left of A. T_k keeps the k entries of
largest size, so every component has k features of its own.

How several components come together, with generalized deflation too, is in
`kspan.solvers.elementsparse.components`. The parts of that one never decrease its quotient.

Cost: O(dk) a step for a covariance. Passes over the data: three a step, and two for a deflation.

Guarantee: the variance of each component, in what was left, never decreases from step to step.

Reference: Yuan, Zhang, Truncated Power Method for Sparse Eigenvalue Problems, JMLR 2013.

Differs from the paper in: it stops when the vector no longer moves, not when x'Ax gains less than
1e-6. A matrix with negative eigenvalues (Hotelling's deflation) is shifted by no multiple of the
identity; the best iterate is taken instead.
"""

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance.base import Covariance
from kspan.problem import ElementSparseProblem, RowSparseProblem
from kspan.progress import Callback, Monitor
from kspan.solution import LoadingsSolution
from kspan.solvers.elementsparse.components import Component, by_deflation
from kspan.solvers.rowsparse.tpower import leading_vector
from kspan.solvers.starts import Init


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

    def find(covariance: Covariance, start: FloatArray | None, monitor: Monitor) -> Component:
        run = leading_vector(
            RowSparseProblem(covariance, 1, problem.n_nonzero_coefs),
            init=init if start is None else start[:, None],
            rng=rng, gradual=gradual, max_iter=max_iter, monitor=monitor,
        )  # fmt: skip
        vector = run.best.loadings(problem.n_features)[:, 0]
        return Component(vector, run.history, run.n_iter, run.status)

    return by_deflation(
        problem, find, name="tpower", deflation=deflation, callback=callback,
        time_limit=time_limit,
    )  # fmt: skip
