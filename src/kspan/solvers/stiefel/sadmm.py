r"""SADMM and ADMM: sparse PCA on the Stiefel manifold, by stabilised or plain splitting.

.. math:: \min_{V'V = I_r} -\tfrac12 \mathrm{tr}(V'AV) + α\,Ω(V), \qquad
          Ω(V) = \sum_{ij} |V_{ij}| \text{ or } \sum_i \|V_{i:}\|

V is split from a sparse copy Υ. The penalty ρ that pulls them together grows, while the parameter
γ of Υ's update stays, so that the threshold α/γ does not change from step to step (`splitting`
has the formulas). The zeros of Υ are then a pattern, on which V is made orthonormal (`pattern`).

Cost: O(dr²) a step beside one product with A, that is one with X and one with X'; 40 to 300
steps. Passes over the data: two a step.

Guarantee: orthonormal to 1e-10, zeros exactly zero. Limit points of the loop are stationary
(Theorem 2); which one is found depends on the start.

Reference: Tan, Hu, Yan, Cao, Gong, Wu, Learning Sparse PCA with Stabilized ADMM Method on Stiefel
Manifold, Algorithms 2 and 3.

Differs from the paper in: A is divided by its largest eigenvalue, so that the defaults need no
tuning; the V-step is one polar step by default, not thirty of conjugate gradients, which
``v_step="cg"`` restores. The paper does not say how its loadings come to be both sparse and
orthonormal: here the zeros of Υ are the pattern, and Newton's method takes V to the orthonormal
matrices on it. Nor does it say how it equalises counts: see `cardinality`. Several starts and γ, a
descent on the pattern and a search among patterns are in `auto`.

`ADMM` is the plain form (Algorithm 1), there to compare with: one parameter ρ serves both halves.
As it grows, the threshold α/ρ shrinks, so that the sparse half changes from step to step.
"""

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from kspan.problem import LoadingsSolution, StiefelProblem
from kspan.progress import Monitor
from kspan.solvers.method import StiefelMethod
from kspan.solvers.starts import Init
from kspan.solvers.stiefel.cardinality import with_counts
from kspan.solvers.stiefel.joint import Joint
from kspan.solvers.stiefel.splitting import LoopOptions, Settings, Split
from kspan.solvers.stiefel.stiefel_starts import STIEFEL_STARTS, starting_points


@dataclass(frozen=True, eq=False)
class _StartedMethod(StiefelMethod):
    """Where the loop starts."""

    starts: ClassVar[tuple[str, ...]] = STIEFEL_STARTS

    init: Init = "svd"


@dataclass(frozen=True, eq=False)
class SplittingMethod(LoopOptions, _StartedMethod):
    """A method that runs the splitting loop: its options, without γ."""

    @property
    def settings(self) -> Settings:
        """The parameters of the loop."""
        names = [setting.name for setting in fields(Settings) if hasattr(self, setting.name)]
        return Settings(**{name: getattr(self, name) for name in names})

    def check_options(self) -> None:
        """The parameters of the loop are in range."""
        _ = self.settings


class JointMethod(SplittingMethod):
    """All components together."""

    def run(
        self, problem: StiefelProblem, monitor: Monitor, rng: np.random.Generator
    ) -> LoadingsSolution:
        """Solve for the problem's α, or with its counts."""
        return solve_jointly(problem, self.settings, monitor, self.init, rng, self.name)


def solve_jointly(
    problem: StiefelProblem,
    settings: Settings,
    monitor: Monitor,
    init: Init,
    rng: np.random.Generator,
    name: str,
) -> LoadingsSolution:
    """Find all components together from one start: for the problem's α, or with its counts."""
    begin = Split.at(starting_points(problem.covariance, problem.n_components, init, rng))
    solver = Joint(problem, settings, monitor)
    if problem.patterns is not None:
        return solver.answer(*with_counts(solver, begin, problem.patterns), name)
    state = solver.run(begin)
    winner, V, _ = solver.best_start(state)
    return solver.answer(V, state.status(winner), name)


@dataclass(frozen=True, eq=False)
class SADMM(JointMethod):
    """All components together, by stabilised ADMM.

    Parameters
    ----------
    init : {"svd", "varimax", "coordinate", "random"} or (d, m) array
        Where to start; see `stiefel_starts.starting_points`.
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
    """

    name = "sadmm"
    summary = "all components together: stabilised ADMM on V'V = I with an l1 or l2,1 penalty"
    guarantee = "orthonormal to 1e-10; limit points are stationary"
    reference = "Tan et al., TKDE 2021"
    stabilised: ClassVar[bool] = True

    gamma: float = 0.3


@dataclass(frozen=True, eq=False)
class ADMM(JointMethod):
    """All components together, by plain ADMM.

    Parameters
    ----------
    init, rho, rho_max, beta, v_step, v_iter, max_iter, tol : see `SADMM`
    """

    name = "admm"
    summary = "all components together by plain ADMM, to compare with"
    guarantee = "orthonormal to 1e-10"
    reference = "Tan et al., TKDE 2021"
    stabilised: ClassVar[bool] = False
