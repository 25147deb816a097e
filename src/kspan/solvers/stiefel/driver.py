"""From a problem and a start to an answer: what both splitting methods share."""

from dataclasses import replace

import numpy as np

from kspan.arrays import FloatArray
from kspan.linalg.selection import top_k
from kspan.problem import StiefelProblem
from kspan.progress import Callback, Monitor
from kspan.solution import LoadingsSolution
from kspan.solvers.stiefel.cardinality import with_cardinality
from kspan.solvers.stiefel.joint import Joint
from kspan.solvers.stiefel.splitting import Settings
from kspan.solvers.stiefel.starts import starting_points

# With more features than this, starts are compared on the ones with the largest variances only.
SCOUT_LIMIT = 2000


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
    solver = Joint(problem, settings, monitor)
    starts = choose_starts(solver, init, rng)
    if n_nonzero_coefs is not None:
        return with_cardinality(solver, starts, n_nonzero_coefs)
    return solver.answer(*solver.best(solver.run(starts)))


def choose_starts(solver: Joint, init: str | FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the starts (s, d, r) for a problem.

    With many features, "auto" tries its starts on those with the largest variances alone, and the
    best result there is the one start for all of them: a run on all features costs a pass over
    the data in every step.
    """
    problem = solver.problem
    d, r = problem.n_features, problem.n_components
    if not (isinstance(init, str) and init == "auto" and d > SCOUT_LIMIT):
        return starting_points(problem.covariance, r, init, rng)
    chosen = top_k(problem.covariance.diagonal(), SCOUT_LIMIT)
    part = StiefelProblem(problem.covariance.restrict(chosen), r, 0.0, problem.penalty)
    part = replace(part, alpha=min(problem.alpha, part.largest_alpha))
    scout = Joint(part, solver.settings, solver.monitor)
    state = scout.run(starting_points(part.covariance, r, "auto", rng))
    start = np.zeros((1, d, r))
    start[0, chosen] = state.V[scout.best_start(state)]
    return start
