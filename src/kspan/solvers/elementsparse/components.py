"""What element-sparse methods share: one component after the other, and a penalty for k features.

A method brings a callable that finds one sparse vector for a covariance. `by_deflation` calls it
on what is left of A, takes the vector out, and goes on. Methods with a penalty instead of a number
of features bring a callable that answers for a penalty, and `bisect_penalty` looks for the one
with k features.

All of it works on A divided by a power of two, so that its largest variance is between one and
two: huge and tiny scales are then no concern of a method.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance.base import Covariance
from kspan.covariance.unit import UnitCovariance
from kspan.covariance.updated import UpdatedCovariance
from kspan.linalg.selection import top_k
from kspan.problem import ElementSparseProblem, RowSparseProblem
from kspan.progress import Callback, Monitor, Progress, Status
from kspan.solution import LoadingsSolution, adjusted_variances
from kspan.solvers.elementsparse.deflation import Deflation

# The quotient of the generalized deflation has settled when ρ grows by less than this share.
QUOTIENT_TOL = 1e-9
MAX_QUOTIENTS = 50

# Variances below this many units in the last place of the largest one are what rounding leaves.
NOTHING_LEFT = 64

# From worst to best.
SEVERITY = (
    Status.INTERRUPTED, Status.STOPPED, Status.TIME_LIMIT, Status.MAX_ITER, Status.COMPLETED,
    Status.CONVERGED,
)  # fmt: skip


@dataclass(frozen=True)
class Component:
    """One sparse vector, and how it was found.

    Attributes
    ----------
    vector : (d,) unit vector
    history : variance along the feasible vectors on the way, in what was left of A
    n_iter, status : number of steps, and how it ended
    """

    vector: FloatArray
    history: list[float]
    n_iter: int
    status: Status


# (what is left of A, a vector to start from or None, the monitor) -> the next component
Find = Callable[[Covariance, FloatArray | None, Monitor], Component]


def by_deflation(
    problem: ElementSparseProblem,
    find: Find,
    *,
    name: str,
    deflation: str,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> LoadingsSolution:
    """Find m components one after the other, each in what the ones before have left of A.

    With generalized deflation the next x maximises x'Ax / x'Bx, with the projector B = I - QQ'
    below. That x also maximises :math:`x'(A + ρQQ')x` over unit vectors, when ρ is its value; so
    the method is run on that matrix, which is positive semidefinite, and ρ raised until it
    stands still.

    Components that were not found, because nothing was left of A or the method had to stop, are
    single features: those of largest variance in what is left that no component uses.

    Parameters
    ----------
    problem : ElementSparseProblem
    find : callable
        ``find(covariance, start, monitor) -> Component``; `start` is a vector to start from, or
        None for the method's own start. It reports to the monitor and stops when that says so.
    name : of the method
    deflation : see `kspan.solvers.elementsparse.deflation`
    callback, time_limit : see `kspan.progress`
    """
    covariance = UnitCovariance(problem.covariance)
    monitor = unit_monitor(name, covariance.unit, callback, time_limit)
    left = Deflation(covariance, deflation)
    m = problem.n_components
    found: list[Component] = []
    try:
        while len(found) < m and not (monitor.stopped or _nothing(left.current, covariance)):
            found.append(_next_component(left, find, monitor))
            if len(found) < m:
                left.remove(found[-1].vector)
    except KeyboardInterrupt:
        monitor.stopped = Status.INTERRUPTED
    statuses = [component.status for component in found]
    if monitor.stopped and len(found) < m:
        statuses.append(monitor.stopped)
    loadings = np.zeros((problem.n_features, m))
    for j, component in enumerate(found):
        loadings[:, j] = component.vector
    return unit_solution(
        fill_empty(loadings, left.current.diagonal()), covariance, solver=name,
        status=worst(statuses or [Status.COMPLETED]),
        history=[value for component in found for value in component.history],
        n_iter=sum(component.n_iter for component in found),
    )  # fmt: skip


def _next_component(left: Deflation, find: Find, monitor: Monitor) -> Component:
    r = left.taken.shape[1]
    if left.kind != "generalized" or r == 0:
        return find(left.current, None, monitor)
    runs: list[Component] = []
    best, rho, start = 0, 0.0, None
    for i in range(MAX_QUOTIENTS):
        matrix = UpdatedCovariance(left.current, left.taken, rho * np.eye(r))
        runs.append(find(matrix, start, monitor))
        start = runs[-1].vector
        before, rho = rho, _quotient(left, start)
        # A tie goes to the first: x plus anything taken out has the same quotient.
        if rho <= before * (1 + QUOTIENT_TOL):
            break
        best = i
        if monitor.stopped:
            break
    return Component(
        runs[best].vector,
        [value for run in runs for value in run.history],
        sum(run.n_iter for run in runs),
        worst([runs[best].status, monitor.stopped or Status.CONVERGED]),
    )


def _quotient(left: Deflation, x: FloatArray) -> float:
    """Return ``x'Ax / x'Bx`` of what is left."""
    below = 1.0 - float(np.sum((left.taken.T @ x) ** 2))
    above = float(x @ left.current.matmat(x[:, None])[:, 0])
    return above / below if below > np.finfo(float).eps else 0.0


def _nothing(left: Covariance, before: Covariance) -> bool:
    """Say whether only rounding is left of a covariance."""
    limit = NOTHING_LEFT * float(np.finfo(before.dtype).eps) * before.diagonal().max()
    return bool(left.diagonal().max() <= limit)


def fill_empty(loadings: FloatArray, variances: FloatArray) -> FloatArray:
    """Return the loadings with a unit vector in every zero column.

    They are the features of largest variance that no column uses or, when all are used, of
    largest variance.
    """
    empty = np.flatnonzero(~loadings.any(axis=0))
    order = np.lexsort((-variances, loadings.any(axis=1)))
    filled = loadings.copy()
    filled[order[: empty.size], empty] = 1.0
    return filled


def worst(statuses: Sequence[Status]) -> Status:
    """Return the status of the part that ended worst: stopped before not settled."""
    return min(statuses, key=SEVERITY.index)


# --- the penalty that gives k features


@dataclass(frozen=True)
class Trial:
    """What a penalised method found at some penalties.

    Attributes
    ----------
    scores : (d, c) what was thresholded to make the loadings
    loadings : (d, c) with as many features in each column as the penalties left
    n_iter, converged : number of steps, and whether they came to rest
    """

    scores: FloatArray
    loadings: FloatArray
    n_iter: int
    converged: bool

    @property
    def n_features(self) -> Index:
        """The number of features in each column."""
        return np.count_nonzero(self.loadings, axis=0)

    def cut(self, k: int) -> FloatArray:
        """Return unit loadings with the k largest entries of each column, or zero."""
        kept = np.zeros_like(self.loadings)
        for j, column in enumerate(np.abs(self.loadings).T):
            rows = top_k(column, k)
            kept[rows, j] = self.loadings[rows, j]
        return unit_columns(kept)


@dataclass(frozen=True)
class Search:
    """Where the search for a penalty ended: the trial kept, and as in `Component`."""

    trial: Trial
    history: list[float]
    n_iter: int
    status: Status


def bisect_penalty(
    attempt: Callable[[FloatArray], Trial],
    covariance: Covariance,
    k: int,
    n_columns: int,
    *,
    at_least: bool,
    width: float,
    monitor: Monitor,
) -> Search:
    """Bisect the penalty of every column in [0, 1] for k features in each.

    The number of features need not fall when a penalty grows, so that k may be missed. What is
    kept is the trial nearest to k: with the fewest features short of it and then the fewest
    beyond (`at_least`), or the other way round.

    Parameters
    ----------
    attempt : callable, ``penalties (c,) -> Trial``
    covariance : Covariance
        Of which the variances in the history are.
    k, n_columns : number of features in each column, number of columns c
    at_least : bool
    width : of the intervals at which to give up
    monitor : told after every trial; a keyboard interrupt after the first one is kept there
    """
    low, high = np.zeros(n_columns), np.ones(n_columns)
    best: Trial | None = None
    nearest, value = (0, 0), 0.0
    history: list[float] = []
    n_iter = 0
    status = Status.CONVERGED
    try:
        while best is None or (nearest != (0, 0) and (high - low).max() > width):
            penalties = (low + high) / 2
            trial = attempt(penalties)
            n_iter += trial.n_iter
            counts = trial.n_features
            short = int(np.maximum(k - counts, 0).sum())
            beyond = int(np.maximum(counts - k, 0).sum())
            distance = (short, beyond) if at_least else (beyond, short)
            if best is None or distance < nearest:
                best, nearest = trial, distance
                value = joint_variance(covariance, trial.cut(k))
            history.append(value)
            if monitor.report(value):
                status = monitor.stopped or Status.STOPPED
                break
            low = np.where(counts >= k, penalties, low)
            high = np.where(counts >= k, high, penalties)
    except KeyboardInterrupt:
        if best is None:
            raise
        status = monitor.stopped = Status.INTERRUPTED
    if status is Status.CONVERGED and not best.converged:
        status = Status.MAX_ITER
    return Search(best, history, n_iter, status)


def refit_one(covariance: Covariance, support: Index) -> tuple[FloatArray, float]:
    """Return the leading eigenvector on a support, as a (d,) vector, and its variance."""
    best = RowSparseProblem(covariance, 1, support.size).refit(support)
    return best.loadings(covariance.n_features)[:, 0], best.objective


def unit_columns(Z: FloatArray) -> FloatArray:
    """Return the columns divided by their lengths; zero columns stay."""
    lengths = np.linalg.norm(Z, axis=0)
    return Z / np.where(lengths > 0, lengths, 1.0)


def joint_variance(covariance: Covariance, loadings: FloatArray) -> float:
    """Return the sum of the adjusted variances of sparse loadings."""
    used = np.flatnonzero(loadings.any(axis=1))
    if used.size == 0:
        return 0.0
    product = covariance.matmat(loadings[used], used)
    return float(adjusted_variances(loadings[used].T @ product[used]).sum())


# --- the scale


def unit_monitor(
    name: str, unit: float, callback: Callback | None, time_limit: float | None
) -> Monitor:
    """Return a monitor that is told of variances in units, and tells them in the user's scale."""
    if callback is None:
        return Monitor(name, None, time_limit)

    def tell(progress: Progress) -> bool | None:
        return callback(replace(progress, objective=progress.objective * unit))

    return Monitor(name, tell, time_limit)


def unit_solution(
    loadings: FloatArray, covariance: UnitCovariance, *, solver: str, status: Status,
    history: list[float], n_iter: int,
) -> LoadingsSolution:  # fmt: skip
    """Return the answer in the user's scale."""
    solution = LoadingsSolution.from_loadings(
        loadings, loadings.T @ covariance.matmat(loadings), solver=solver, status=status,
        history=history, n_iter=n_iter,
    )  # fmt: skip
    return replace(
        solution,
        explained_variance=solution.explained_variance * covariance.unit,
        history=solution.history * covariance.unit,
    )
