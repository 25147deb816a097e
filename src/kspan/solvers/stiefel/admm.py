r"""ADMM: sparse PCA on the Stiefel manifold, the plain form that SADMM stabilises.

The problem is that of `sadmm`; one parameter ρ serves both halves. As it grows, the threshold α/ρ
shrinks, so that the sparse half changes from step to step (`splitting` has the formulas).

Cost, passes: as `sadmm`.

Guarantee: orthonormal to 1e-10, zeros exactly zero.

Reference: Tan et al., Learning Sparse PCA with Stabilized ADMM Method on Stiefel Manifold,
Algorithm 1. There to compare with.

Differs from the paper in: what `sadmm` differs in.
"""

import numpy as np

from kspan.arrays import FloatArray
from kspan.problem import StiefelProblem
from kspan.progress import Callback
from kspan.solution import LoadingsSolution
from kspan.solvers.stiefel.driver import solve_jointly
from kspan.solvers.stiefel.splitting import Settings


def admm(
    problem: StiefelProblem,
    *,
    init: str | FloatArray = "auto",
    rng: np.random.Generator,
    n_nonzero_coefs: int | None = None,
    rho: float = 0.3,
    rho_max: float = 10.0,
    beta: float = 1.05,
    v_step: str = "polar",
    v_iter: int | None = None,
    max_iter: int = 300,
    tol: float = 1e-4,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> LoadingsSolution:
    """Solve for all components together; the parameters are those of `sadmm`, without γ."""
    settings = Settings(
        stabilised=False, rho=rho, rho_max=rho_max, beta=beta, v_step=v_step, v_iter=v_iter,
        max_iter=max_iter, tol=tol,
    )  # fmt: skip
    return solve_jointly(
        problem, init=init, rng=rng, n_nonzero_coefs=n_nonzero_coefs, settings=settings,
        callback=callback, time_limit=time_limit,
    )  # fmt: skip
