r"""TPower (D): sparse components one after the other, each by the truncated power method.

.. math:: x_{t+1} = \frac{T_k(A_j x_t)}{\|T_k(A_j x_t)\|}

for j = 1, …, m, where :math:`A_j` is what the deflation has left of A. T_k keeps the k entries of
largest size, so every component has k features of its own.

How several components come together, with generalized deflation too, is in
`kspan.solvers.one_by_one`. The parts of that one never decrease its quotient.

Cost: O(dk) a step for a covariance. Passes over the data: three a step, and two for a deflation.

Guarantee: the variance of each component, in what was left, never decreases from step to step.

Reference: Yuan, Zhang, Truncated Power Method for Sparse Eigenvalue Problems, JMLR 2013.

Differs from the paper in: it stops when the vector no longer moves, not when x'Ax gains less than
1e-6. A matrix with negative eigenvalues (Hotelling's deflation) is shifted by no multiple of the
identity; the best iterate is taken instead.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance import UnitCovariance
from kspan.problem import ElementSparseProblem, RowSparseProblem
from kspan.progress import Monitor
from kspan.solvers.method import ElementSparseMethod, counted
from kspan.solvers.one_by_one import Component, OneByOneMethod
from kspan.solvers.rowsparse.tpower import leading_vector
from kspan.solvers.starts import STARTS, Init


@dataclass(frozen=True, eq=False)
class TPowerDeflated(OneByOneMethod, ElementSparseMethod):
    """Sparse components by the truncated power method and deflation.

    Parameters
    ----------
    deflation : str
        See `kspan.solvers.one_by_one`.
    init : {"variance", "low-rank", "convex", "random"} or (d, 1) array
        Where each component starts.
    gradual : bool
        Come down to k features from 8k, 4k and 2k.
    max_iter : int
        Steps for each component.
    """

    name = "tpower"
    summary = "power steps that keep the k largest entries, one component at a time"
    guarantee = "the variance of a component never falls"
    reference = "Yuan, Zhang, JMLR 2013"
    starts = STARTS

    init: Init = "variance"
    gradual: bool = False
    max_iter: int = counted(200, least=0)

    def find(
        self, left: UnitCovariance, problem: ElementSparseProblem, start: FloatArray | None,
        monitor: Monitor, rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        """Iterate to one sparse vector."""
        run = leading_vector(
            RowSparseProblem(left, 1, problem.n_nonzero_coefs),
            init=self.init if start is None else start[:, None],
            rng=rng, gradual=self.gradual, max_iter=self.max_iter, monitor=monitor,
        )  # fmt: skip
        vector = run.best.loadings(problem.n_features)[:, 0]
        return Component(vector, run.history, run.n_iter, run.status)
