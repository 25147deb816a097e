r"""SADMM and ADMM: sparse PCA on the Stiefel manifold, by stabilised or plain splitting.

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

`ADMM` is the plain form (Algorithm 1), there to compare with: one parameter ρ serves both halves.
As it grows, the threshold α/ρ shrinks, so that the sparse half changes from step to step.
"""

from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np

from kspan.arrays import Index
from kspan.covariance import Covariance, DenseCovariance
from kspan.linalg.selection import top_k
from kspan.problem import LoadingsSolution, StiefelProblem
from kspan.progress import Monitor
from kspan.solvers.method import StiefelMethod, counted
from kspan.solvers.starts import Init
from kspan.solvers.stiefel.cardinality import with_cardinality
from kspan.solvers.stiefel.joint import Joint
from kspan.solvers.stiefel.splitting import LoopOptions, Settings, Split
from kspan.solvers.stiefel.stiefel_starts import PORTFOLIO, STIEFEL_STARTS, starting_points

# "auto" compares its starts on at most so many features, for so many steps, and with γ and ρ
# multiplied by each of these: on real data no single γ is best, and a third of it often helps.
SCOUT_FEATURES, SCOUT_STEPS, SCOUT_GAMMAS = 1000, 60, (1.0, 1 / 3)
SCOUT_GAIN = 1e-3


@dataclass(frozen=True, eq=False)
class _StartedMethod(StiefelMethod):
    """Where the loop starts, and what it is to find."""

    starts = STIEFEL_STARTS

    init: Init = "auto"
    n_nonzero_coefs: int | None = counted(None, least=1)


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
        """Solve for the problem's α, or with k features in each component."""
        return solve_jointly(
            problem, self.settings, monitor, self.init, rng, self.n_nonzero_coefs, self.name
        )


def solve_jointly(
    problem: StiefelProblem,
    settings: Settings,
    monitor: Monitor,
    init: Init,
    rng: np.random.Generator,
    n_nonzero_coefs: int | None,
    name: str,
) -> LoadingsSolution:
    """Find all components together: for the problem's α, or with k features in each."""
    if n_nonzero_coefs is not None:
        # α is what is looked for, so nothing can be scouted with it: all starts go along.
        starts = starting_points(problem.covariance, problem.n_components, init, rng)
        solver = Joint(problem, settings, monitor)
        return solver.answer(*with_cardinality(solver, Split.at(starts), n_nonzero_coefs), name)
    solver, begin = prepare(problem, settings, monitor, init, rng)
    return solver.answer(*solver.best(solver.run(begin)), name)


def prepare(
    problem: StiefelProblem,
    settings: Settings,
    monitor: Monitor,
    init: Init,
    rng: np.random.Generator,
) -> tuple[Joint, Split]:
    """Return the solver of a problem and where it begins.

    With "auto" that is one point: where the best of all starts and γ ended on the features with
    the largest variances. A run on all features costs a pass over the data in every step; these
    do not. Their best result, and single features, are rivals: with a large α the loop may end
    above them.
    """
    d, r = problem.n_features, problem.n_components
    if not (isinstance(init, str) and init == "auto"):
        starts = starting_points(problem.covariance, r, init, rng)
        return Joint(problem, settings, monitor), Split.at(starts)
    chosen, part = _scouted(problem)
    starts = starting_points(part.covariance, r, "auto", rng)
    best, begin = settings, Split.at(starts[:1]).lifted(0, chosen, d)
    lowest: float | None = None
    rivals = np.zeros((2, d, r))
    rivals[:, chosen] = starts[PORTFOLIO.index("coordinate")]
    own = (settings.gamma, settings.rho) != (Settings.gamma, Settings.rho)
    for factor in (1.0,) if own else SCOUT_GAMMAS:  # what the user sets stays
        trial = replace(settings, gamma=settings.gamma * factor, rho=settings.rho * factor)
        scout = Joint(part, replace(trial, max_iter=min(SCOUT_STEPS, trial.max_iter)), monitor)
        state = scout.run(Split.at(starts))
        i, point, value = scout.best_start(state)
        # A smaller γ takes more steps; a small gain is not worth them.
        if lowest is None or value < lowest - SCOUT_GAIN * abs(lowest):
            best, begin, lowest = trial, state.lifted(i, chosen, d), value
            rivals[1, chosen] = point
        if monitor.stopped:
            break
    solver = Joint(problem, best, monitor)
    solver.rivals = list(rivals)
    return solver, begin


def _scouted(problem: StiefelProblem) -> tuple[Index, StiefelProblem]:
    """Return the features with the largest variances, and the problem on those."""
    r = problem.n_components
    chosen = top_k(problem.covariance.diagonal(), max(SCOUT_FEATURES, r))
    covariance: Covariance = problem.covariance
    if (covariance.n_samples or 0) > chosen.size:
        covariance = DenseCovariance(covariance.submatrix(chosen))  # smaller than the data
    elif chosen.size < problem.n_features:
        covariance = covariance.restrict(chosen)
    part = StiefelProblem(covariance, r, 0.0, problem.penalty)
    return chosen, replace(part, alpha=min(problem.alpha, part.largest_alpha))


@dataclass(frozen=True, eq=False)
class SADMM(JointMethod):
    """All components together, by stabilised ADMM.

    Parameters
    ----------
    init : {"auto", "svd", "varimax", "coordinate", "random"} or (d, m) array
        Where to start; "auto" is the best result of the next three.
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
    init, n_nonzero_coefs, rho, rho_max, beta, v_step, v_iter, max_iter, tol : see `SADMM`
    """

    name = "admm"
    summary = "all components together by plain ADMM, to compare with"
    guarantee = "orthonormal to 1e-10"
    reference = "Tan et al., TKDE 2021"
    stabilised: ClassVar[bool] = False
