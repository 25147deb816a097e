"""The penalty that gives k features, for methods with a penalty instead of a number of features.

Such a method brings a callable that answers for a penalty; `bisect_penalty` looks for the one with
k features.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance import Covariance
from kspan.linalg.selection import top_k
from kspan.progress import Monitor, Status
from kspan.solvers.loadings import joint_variance, unit_columns


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
class KeptTrial:
    """Where the search for a penalty ended: the trial kept, and how it was found."""

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
) -> KeptTrial:
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
    return KeptTrial(best, history, n_iter, status)
