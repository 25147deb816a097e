"""The one loop and the one stopping rule of every iterative method."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kspan.progress import Monitor, Status
from kspan.solution import Candidate

Step = Callable[[Sequence[Candidate]], list[Candidate]]


@dataclass(frozen=True)
class Run:
    """Where the loop ended. `last` has one candidate for each start, in order."""

    best: Candidate
    last: list[Candidate]
    history: list[float]
    n_iter: int
    status: Status


def iterate(first: Sequence[Candidate], step: Step, *, max_iter: int, monitor: Monitor) -> Run:
    """Apply `step` to a batch of candidates until no support changes.

    A candidate whose support repeats is finished and leaves the batch; so is one that arrives
    where another one already is. The best candidate ever seen is returned, and kept safe from
    a keyboard interrupt. The history is that of the best value at each step: for one start,
    its own objective.
    """
    last = list(first)
    active = list(range(len(last)))
    best = max(last, key=lambda candidate: candidate.objective)
    history = [best.objective]
    n_iter = 0
    status = Status.CONVERGED
    try:
        while active:
            if monitor.report(history[-1]):
                status = monitor.stopped or Status.STOPPED
                break
            if n_iter == max_iter:
                status = Status.MAX_ITER
                break
            n_iter += 1
            moved = step([last[i] for i in active])
            taken = {candidate.support.tobytes() for candidate in last}
            still: list[int] = []
            for i, candidate in zip(active, moved, strict=True):
                same = np.array_equal(candidate.support, last[i].support)
                last[i] = candidate
                if not same and candidate.support.tobytes() not in taken:
                    still.append(i)
                    taken.add(candidate.support.tobytes())
            active = still
            history.append(max(candidate.objective for candidate in last))
            leader = max(last, key=lambda candidate: candidate.objective)
            if leader.objective > best.objective:
                best = leader
    except KeyboardInterrupt:
        status = monitor.stopped = Status.INTERRUPTED
    return Run(best, last, history, n_iter, status)
