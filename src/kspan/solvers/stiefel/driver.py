"""From a problem and a start to an answer: what both splitting methods share."""

import numpy as np

from kspan.arrays import FloatArray
from kspan.problem import StiefelProblem
from kspan.progress import Callback, Monitor
from kspan.solution import LoadingsSolution
from kspan.solvers.stiefel.cardinality import with_cardinality
from kspan.solvers.stiefel.joint import Joint
from kspan.solvers.stiefel.splitting import Settings
from kspan.solvers.stiefel.starts import starting_points


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
    starts = starting_points(problem.covariance, problem.n_components, init, rng)
    if n_nonzero_coefs is not None:
        return with_cardinality(solver, starts, n_nonzero_coefs)
    state = solver.run(starts)
    V, _ = solver.best(state)
    return solver.answer(V, state.status)
