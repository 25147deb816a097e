r"""One component after the other by SADMM, each in what the deflation has left of A (StSPCA-D).

The problem of `sadmm` with one component, solved m times; features may come back in later
components, and the components need not be orthogonal.

Cost: that of m runs of `sadmm` with one column each. Passes over the data: two a step.

Guarantee: zeros exactly zero. None on orthogonality.

Reference: Tan et al., Learning Sparse PCA with Stabilized ADMM Method on Stiefel Manifold,
section 5, "StSPCA-D".

Differs from the paper in: what `sadmm` differs in; the deflation can be chosen.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance import UnitCovariance
from kspan.problem import StiefelProblem
from kspan.progress import Monitor
from kspan.solvers.one_by_one import Component, OneByOneMethod
from kspan.solvers.stiefel.sadmm import SplittingMethod, solve_jointly


@dataclass(frozen=True, eq=False)
class StiefelDeflation(OneByOneMethod, SplittingMethod):
    """One component after the other, each by the splitting loop.

    Parameters
    ----------
    init, gamma, rho, rho_max, beta, v_step, v_iter, max_iter, tol : see `SADMM`
    n_nonzero_coefs : int, optional
        Exactly so many features in each component, instead of the problem's α.
    deflation : str
        See `kspan.solvers.one_by_one`.
    stabilised : bool
        By SADMM, or by ADMM.
    """

    name = "deflation"
    summary = "SADMM for one component at a time: they need not be orthogonal"
    reference = "Tan et al., TKDE 2021"

    gamma: float = 0.3
    stabilised: bool = True

    def find(
        self, left: UnitCovariance, problem: StiefelProblem, start: FloatArray | None,
        monitor: Monitor, rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        """Run the loop for one component."""
        largest = StiefelProblem(left, 1, 0.0).largest_alpha  # less is left each time
        alpha = min(problem.alpha / left.unit, largest)
        single = StiefelProblem(left, 1, alpha, problem.penalty)
        solution = solve_jointly(
            single, self.settings, monitor, self.init if start is None else start[:, None], rng,
            self.n_nonzero_coefs, self.name,
        )  # fmt: skip
        # The loop's history is a penalised objective; a component's is of variances.
        return Component(
            solution.loadings[:, 0], [solution.objective], solution.n_iter, solution.status
        )
