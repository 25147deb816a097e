r"""One component after the other by SADMM, each in what the deflation has left of A (StSPCA-D).

The problem of `sadmm` with one component, solved m times; features may come back in later
components, and the components need not be orthogonal.

Cost: that of m runs of `sadmm` with one column each. Passes over the data: two a step.

Guarantee: zeros exactly zero. None on orthogonality.

Reference: Tan et al., Learning Sparse PCA with Stabilized ADMM Method on Stiefel Manifold,
section 5, "StSPCA-D".

Differs from the paper in: what `sadmm` differs in; the deflation can be chosen. A number of
features in all, which the paper does not have, is shared equally; disjoint supports need the
deflation "remove".
"""

from dataclasses import dataclass, replace

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance import UnitCovariance
from kspan.problem import Patterns, StiefelProblem
from kspan.progress import Monitor
from kspan.solvers.one_by_one import Component, OneByOneMethod
from kspan.solvers.stiefel.sadmm import SplittingMethod, solve_jointly


@dataclass(frozen=True, eq=False)
class StiefelDeflation(OneByOneMethod, SplittingMethod):
    """One component after the other, each by the splitting loop.

    Parameters
    ----------
    init, gamma, rho, rho_max, beta, v_step, v_iter, max_iter, tol : see `SADMM`
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

    def component(self, problem: StiefelProblem, j: int) -> StiefelProblem:
        """Return the problem of one component."""
        if problem.patterns is None:
            return replace(problem, n_components=1)
        if problem.patterns.disjoint and self.deflation != "remove":
            raise ValueError("Disjoint supports need deflation='remove'.")
        size = even_limits(problem.patterns)[j]
        return StiefelProblem(
            problem.covariance, 1, patterns=Patterns.of(problem.n_features, 1, int(size))
        )

    def find(
        self, left: UnitCovariance, problem: StiefelProblem, start: FloatArray | None,
        monitor: Monitor, rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        """Run the loop for one component."""
        largest = StiefelProblem(left, 1).largest_alpha  # less is left each time
        alpha = min(problem.alpha / left.unit, largest)
        single = StiefelProblem(left, 1, alpha, problem.penalty, problem.patterns)
        init = self.init if start is None else start[:, None]
        solution = solve_jointly(single, self.settings, monitor, init, rng, self.name)
        # The loop's history is a penalised objective; a component's is of variances.
        return Component(
            solution.loadings[:, 0], [solution.objective], solution.n_iter, solution.status
        )


def even_limits(patterns: Patterns) -> Index:
    """Return limits of the components that add up to the total, as equal as they can be."""
    limits = np.ones_like(patterns.limits)
    while limits.sum() < patterns.total:
        room = np.flatnonzero(limits < patterns.limits)
        lowest = room[limits[room] == limits[room].min()]
        step = min(int(patterns.total - limits.sum()), lowest.size)
        limits[lowest[:step]] += 1
    return limits
