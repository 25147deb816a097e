r"""One component after the other by SADMM, each in what the deflation has left of A (StSPCA-D).

The problem of `sadmm` with one component, solved m times; features may come back in later
components, and the components need not be orthogonal.

Cost: that of m runs of `sadmm` with one column each. Passes over the data: two a step.

Guarantee: zeros exactly zero. None on orthogonality.

Reference: Tan et al., Learning Sparse PCA with Stabilized ADMM Method on Stiefel Manifold,
section 5, "StSPCA-D".

Differs from the paper in: what `sadmm` differs in; the deflation can be chosen.
"""

from typing import Any

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance.base import Covariance
from kspan.covariance.unit import UnitCovariance
from kspan.problem import ElementSparseProblem, StiefelProblem
from kspan.progress import Callback, Monitor
from kspan.solution import LoadingsSolution
from kspan.solvers.elementsparse.components import Component, by_deflation
from kspan.solvers.stiefel.driver import solve_monitored
from kspan.solvers.stiefel.splitting import Settings


def deflated(
    problem: StiefelProblem,
    *,
    n_nonzero_coefs: int | None = None,
    deflation: str = "projection",
    init: str = "auto",
    rng: np.random.Generator,
    callback: Callback | None = None,
    time_limit: float | None = None,
    **settings: Any,
) -> LoadingsSolution:
    """Find the components one by one.

    Parameters
    ----------
    problem : StiefelProblem
    n_nonzero_coefs : int, optional
        Exactly so many features in each component, instead of the problem's α.
    deflation : {"projection", "schur", "hotelling", "orthogonalized", "generalized"}
    init, rng : see `kspan.solvers.stiefel.sadmm`
    callback, time_limit : see `kspan.progress`
    **settings
        Of the splitting loop, see `kspan.solvers.stiefel.splitting.Settings`.
    """
    loop = Settings(**settings)
    alpha = problem.alpha / UnitCovariance(problem.covariance).unit

    def find(covariance: Covariance, start: FloatArray | None, monitor: Monitor) -> Component:
        at = min(alpha, StiefelProblem(covariance, 1, 0.0).largest_alpha)  # less is left each time
        single = StiefelProblem(covariance, 1, at, problem.penalty)
        where = init if start is None else start[:, None]
        solution = solve_monitored(single, loop, monitor, where, rng, n_nonzero_coefs)
        # The loop's history is a penalised objective; by_deflation wants variances.
        return Component(
            solution.loadings[:, 0], [solution.objective], solution.n_iter, solution.status
        )

    k = problem.n_features if n_nonzero_coefs is None else n_nonzero_coefs
    return by_deflation(
        ElementSparseProblem(problem.covariance, problem.n_components, k), find,
        name="sadmm-deflated", deflation=deflation, callback=callback, time_limit=time_limit,
    )  # fmt: skip
