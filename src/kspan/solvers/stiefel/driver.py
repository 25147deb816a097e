"""From a problem and a start to an answer: what both splitting methods share."""

from dataclasses import replace

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance.dense import DenseCovariance
from kspan.linalg.selection import top_k
from kspan.problem import StiefelProblem
from kspan.progress import Callback, Monitor
from kspan.solution import LoadingsSolution
from kspan.solvers.stiefel.cardinality import with_cardinality
from kspan.solvers.stiefel.joint import Joint
from kspan.solvers.stiefel.splitting import Settings, Split
from kspan.solvers.stiefel.starts import PORTFOLIO, starting_points

# "auto" compares its starts on at most so many features, for so many steps, and with γ and ρ
# multiplied by each of these: on real data no single γ is best, and a third of it often helps.
SCOUT_FEATURES, SCOUT_STEPS, SCOUT_GAMMAS = 1000, 60, (1.0, 1 / 3)
SCOUT_GAIN = 1e-3


def solve_jointly(
    problem: StiefelProblem,
    *,
    init: str | FloatArray,
    rng: np.random.Generator,
    n_nonzero_coefs: int | None,
    settings: Settings,
    callback: Callback | None,
    time_limit: float | None,
) -> LoadingsSolution:
    """Find all components together: for the problem's α, or with k features in each."""
    name = "sadmm" if settings.stabilised else "admm"
    monitor = Monitor(name, callback, time_limit)
    return solve_monitored(problem, settings, monitor, init, rng, n_nonzero_coefs)


def solve_monitored(
    problem: StiefelProblem,
    settings: Settings,
    monitor: Monitor,
    init: str | FloatArray,
    rng: np.random.Generator,
    n_nonzero_coefs: int | None,
) -> LoadingsSolution:
    """Solve under a monitor that is there already."""
    if n_nonzero_coefs is not None:
        # α is what is looked for, so nothing can be scouted with it: all starts go along.
        starts = starting_points(problem.covariance, problem.n_components, init, rng)
        solver = Joint(problem, settings, monitor)
        return with_cardinality(solver, Split.at(starts), n_nonzero_coefs)
    solver, begin = prepare(problem, settings, monitor, init, rng)
    return solver.answer(*solver.best(solver.run(begin)))


def prepare(
    problem: StiefelProblem,
    settings: Settings,
    monitor: Monitor,
    init: str | FloatArray,
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
    chosen = top_k(problem.covariance.diagonal(), max(SCOUT_FEATURES, r))
    covariance = problem.covariance
    if (covariance.n_samples or 0) > chosen.size:
        covariance = DenseCovariance(covariance.submatrix(chosen))  # smaller than the data
    elif chosen.size < d:
        covariance = covariance.restrict(chosen)
    part = StiefelProblem(covariance, r, 0.0, problem.penalty)
    part = replace(part, alpha=min(problem.alpha, part.largest_alpha))
    starts = starting_points(covariance, r, "auto", rng)
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
