r"""SADMM: sparse PCA on the Stiefel manifold by stabilised ADMM.

.. math:: \min_{V'V = I_r} -\tfrac12 \mathrm{tr}(V'AV) + α\,Ω(V), \qquad
          Ω(V) = \sum_{ij} |V_{ij}| \text{ or } \sum_i \|V_{i:}\|

V is split from a sparse copy Υ. The penalty ρ that pulls them together grows, while the parameter
γ of Υ's update stays, so that the threshold α/γ does not change from step to step (`splitting`
has the formulas). The zeros of Υ are then a pattern, on which V is made orthonormal and the
objective lowered further (`pattern`).

Cost: O(dr²) a step beside one product with A, that is one with X and one with X'; 40 to 300
steps. Passes over the data: two a step.

Guarantee: orthonormal to 1e-10, zeros exactly zero. Limit points of the loop are stationary
(Theorem 2); which one is found depends on the start.

Reference: Tan, Hu, Yan, Cao, Gong, Wu, Learning Sparse PCA with Stabilized ADMM Method on Stiefel
Manifold, Algorithms 2 and 3.

Differs from the paper in: A is divided by its largest eigenvalue, so that the defaults need no
tuning; the V-step is one polar step by default, not thirty of conjugate gradients, which
``v_step="cg"`` restores; three starts and two γ, tried on the features with the largest variances,
instead of one start; and the paper does not say how its loadings come to be both sparse and
orthonormal.
"""

import numpy as np

from kspan.arrays import FloatArray
from kspan.problem import StiefelProblem
from kspan.progress import Callback
from kspan.solution import LoadingsSolution
from kspan.solvers.stiefel.driver import solve_jointly
from kspan.solvers.stiefel.splitting import Settings


def sadmm(
    problem: StiefelProblem,
    *,
    init: str | FloatArray = "auto",
    rng: np.random.Generator,
    n_nonzero_coefs: int | None = None,
    gamma: float = 0.3,
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
    """Solve for all components together.

    Parameters
    ----------
    problem : StiefelProblem
    init : {"auto", "svd", "varimax", "coordinate", "random"} or (d, m) array
        Where to start; "auto" is the best result of the next three.
    rng : numpy.random.Generator
        Used by the random start only.
    n_nonzero_coefs : int, optional
        Exactly so many features in each component, instead of the problem's α.
    gamma, rho, rho_max, beta : float
        γ, the first and the largest ρ, in units of the largest eigenvalue of A, and by how much
        ρ grows in a step.
    v_step : {"polar", "cg"}
    v_iter : int, optional
        Steps of the V-step; by default 1 for "polar" and 30 for "cg".
    max_iter : int
    tol : float
        A start is finished when its objective changed by less than this share in ten steps and
        V and Υ agree to 50 times it.
    callback, time_limit : see `kspan.progress`
    """
    settings = Settings(True, gamma, rho, rho_max, beta, v_step, v_iter, max_iter, tol)
    return solve_jointly(
        problem, init=init, rng=rng, n_nonzero_coefs=n_nonzero_coefs, settings=settings,
        callback=callback, time_limit=time_limit,
    )  # fmt: skip
