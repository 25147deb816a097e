r"""Two stages: choose K features by their part in all components, then fit on those alone.

.. math:: s_j = \sum_{i=1}^r σ_i |v_{ij}|, \qquad σ_i = \|X v_i\|

Stage I solves the penalised problem by `sadmm` (or `admm`) and scores every feature by its
loadings, each component weighted by its standard deviation; the K best stay. Stage II solves the
problem on them: without a penalty by default, so that the components are the principal ones of
the K features.

Cost: that of stage I; stage II works on K features.

Guarantee: orthonormal components on exactly K features.

Reference: Tan et al., Learning Sparse PCA with Stabilized ADMM Method on Stiefel Manifold,
Algorithm 4.

Differs from the paper in: the scores are those of the orthonormal half of the splitting, which has
no zeros, so that there are K features to choose whatever α is. The paper does not say which
penalty stage II has; ``second_alpha``, or the counts of the problem, set it.
"""

from dataclasses import dataclass, replace

import numpy as np

from kspan.linalg.selection import placed, top_k
from kspan.problem import LoadingsSolution, StiefelProblem, default_nonzero_coefs, require_count
from kspan.progress import Monitor
from kspan.solvers.stiefel.joint import Joint
from kspan.solvers.stiefel.sadmm import SplittingMethod, solve_jointly
from kspan.solvers.stiefel.splitting import Split
from kspan.solvers.stiefel.stiefel_starts import starting_points

# α of stage I when the problem has counts instead of one, as a share of the largest useful one.
FIRST_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class TwoStage(SplittingMethod):
    """Choose K features in stage I, fit on them in stage II.

    The problem's α is that of stage I; its counts are for stage II.

    Parameters
    ----------
    init, gamma, rho, rho_max, beta, v_step, v_iter, max_iter, tol : see `SADMM`
    n_features_to_select : int, optional
        K, with m ≤ K ≤ d; by default a fifth of the features, but at least m.
    second_alpha : float
        α of stage II.
    first_share : float
        α of stage I under counts, as a share of the largest useful one.
    stabilised : bool
        By SADMM, or by ADMM.
    """

    name = "two-stage"
    summary = "K features by their weighted loadings in SADMM, then the components on them"
    guarantee = "orthonormal on exactly K features"
    reference = "Tan et al., TKDE 2021"

    n_features_to_select: int | None = None
    second_alpha: float = 0.0
    first_share: float = FIRST_SHARE
    gamma: float = 0.3
    stabilised: bool = True

    def run(
        self, problem: StiefelProblem, monitor: Monitor, rng: np.random.Generator
    ) -> LoadingsSolution:
        """Run both stages."""
        size = self._size(problem)
        patterns, r = problem.patterns, problem.n_components
        stage = problem
        if patterns is not None:
            free = replace(problem, patterns=None)
            stage = replace(free, alpha=self.first_share * free.largest_alpha)
        first = Joint(stage, self.settings, monitor)
        state = first.run(Split.at(starting_points(problem.covariance, r, self.init, rng)))
        V = state.V[0]
        deviations = np.sqrt(np.maximum(np.sum(V * first.product(V), axis=0), 0.0))
        chosen = top_k(np.abs(V) @ deviations, size)
        covariance = problem.covariance.restrict(chosen)
        if patterns is None and self.second_alpha == 0:
            inside = covariance.leading(r).vectors
        else:
            on_chosen = None if patterns is None else patterns.on(size)
            second = replace(
                problem, covariance=covariance, alpha=self.second_alpha, patterns=on_chosen
            )
            inside = solve_jointly(second, self.settings, monitor, "svd", rng, self.name).loadings
        full = placed(inside, chosen, len(V))
        answer = Joint(problem, self.settings, monitor)
        answer.history = first.history
        return answer.answer(full, monitor.stopped or state.status(0), self.name)

    def _size(self, problem: StiefelProblem) -> int:
        """Return K, after checking it."""
        d, r, size = problem.n_features, problem.n_components, self.n_features_to_select
        if size is None:
            return max(default_nonzero_coefs(d), r)
        require_count("n_features_to_select", size, r)
        if size > d:
            raise ValueError(f"n_features_to_select={size} must be at most n_features={d}.")
        return size
