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
penalty stage II has; ``second_alpha`` and ``n_nonzero_coefs`` set it.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from kspan.arrays import FloatArray
from kspan.linalg.selection import top_k
from kspan.problem import StiefelProblem, require_count
from kspan.progress import Callback, Monitor
from kspan.solution import LoadingsSolution
from kspan.solvers.stiefel.driver import prepare, solve_jointly
from kspan.solvers.stiefel.splitting import Settings


def two_stage(
    problem: StiefelProblem,
    *,
    n_features_to_select: int,
    n_nonzero_coefs: int | None = None,
    second_alpha: float = 0.0,
    init: str | FloatArray = "auto",
    rng: np.random.Generator,
    callback: Callback | None = None,
    time_limit: float | None = None,
    **settings: Any,
) -> LoadingsSolution:
    """Choose K features in stage I, fit on them in stage II.

    Parameters
    ----------
    problem : StiefelProblem
        Its α is that of stage I.
    n_features_to_select : int
        K, with m ≤ K ≤ d.
    n_nonzero_coefs : int, optional
        In stage II, exactly so many features in each component.
    second_alpha : float
        α of stage II.
    init, rng : see `kspan.solvers.stiefel.sadmm`
    callback, time_limit : see `kspan.progress`
    **settings
        Of the splitting loop, see `kspan.solvers.stiefel.splitting.Settings`.
    """
    d, r = problem.n_features, problem.n_components
    require_count("n_features_to_select", n_features_to_select, r)
    if n_features_to_select > d:
        raise ValueError(
            f"n_features_to_select={n_features_to_select} must be at most n_features={d}."
        )
    loop = Settings(**settings)
    monitor = Monitor("two-stage", callback, time_limit)
    first, begin = prepare(problem, loop, monitor, init, rng)
    state = first.run(begin)
    winner, _, _ = first.best_start(state)
    V = state.V[winner]
    deviations = np.sqrt(np.maximum(np.sum(V * first.product(V), axis=0), 0.0))
    chosen = top_k(np.abs(V) @ deviations, n_features_to_select)
    second = replace(problem, covariance=problem.covariance.restrict(chosen), alpha=second_alpha)
    if second_alpha == 0 and n_nonzero_coefs is None:
        inside = second.covariance.leading(r).vectors
    else:
        inside = solve_jointly(
            second, init="auto", rng=rng, n_nonzero_coefs=n_nonzero_coefs, settings=loop,
            callback=callback, time_limit=monitor.time_left(),
        ).loadings  # fmt: skip
    full = np.zeros((d, r))
    full[chosen] = inside
    return first.answer(full, monitor.stopped or state.status(winner))
