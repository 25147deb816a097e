r"""Brute force: every support, in batches of small eigenproblems.

Cost: :math:`\binom{d}{k}` eigenproblems of order k. Passes over the data: one, for the
covariance of the allowed features.

Guarantee: optimal, by enumeration. Ties go to the support that comes first in order.
"""

from itertools import combinations, islice
from math import comb

import numpy as np

from kspan.problem import RowSparseProblem
from kspan.progress import Callback, Monitor, Status
from kspan.solution import Solution

BATCH = 4096


def brute_force(
    problem: RowSparseProblem,
    *,
    max_supports: int = 2_000_000,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> Solution:
    """Try every support.

    Parameters
    ----------
    problem : RowSparseProblem
    max_supports : int
        Refuse, with `ValueError`, when there are more than this.
    callback, time_limit : see `kspan.progress`
        Reports come batch by batch.
    """
    include = np.asarray(problem.include, dtype=np.intp)
    free = np.setdiff1d(np.flatnonzero(problem.allowed), include)
    n_free = problem.n_features_to_select - include.size
    n_supports = comb(free.size, n_free)
    if n_supports > max_supports:
        raise ValueError(
            f"Brute force would have to try {n_supports:,} supports; the limit is "
            f"max_supports={max_supports:,}. Use solver='auto', or raise the limit."
        )
    monitor = Monitor("brute-force", callback, time_limit)
    pool = np.sort(np.concatenate([free, include]))
    A = problem.covariance.submatrix(pool)
    fixed = np.searchsorted(pool, include)
    choices = combinations(np.searchsorted(pool, free).tolist(), n_free)
    m = problem.n_components
    best_value, best_support = -np.inf, np.empty(0, dtype=np.intp)
    history: list[float] = []
    status = Status.COMPLETED
    try:
        while batch := list(islice(choices, BATCH)):
            chosen = np.array(batch, dtype=np.intp).reshape(len(batch), n_free)
            forced = np.broadcast_to(fixed, (len(batch), fixed.size))
            supports = np.sort(np.hstack([chosen, forced]), axis=1)
            stack = A[supports[:, :, None], supports[:, None, :]]
            values = np.linalg.eigvalsh(stack)[:, -m:].sum(axis=1)
            winner = int(np.argmax(values))
            if values[winner] > best_value:
                best_value, best_support = float(values[winner]), pool[supports[winner]]
            history.append(best_value)
            if monitor.report(best_value):
                status = monitor.stopped or status
                break
    except KeyboardInterrupt:
        if not history:
            raise
        status = Status.INTERRUPTED
    return Solution.from_candidate(
        problem.refit(best_support), n_features=problem.n_features, solver="brute-force",
        status=status, history=history, n_iter=len(history),
    )  # fmt: skip
