"""The one loop and the one stopping rule of every iterative method."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kspan.problem import Candidate, require_count
from kspan.progress import Monitor, Status

# Moves every candidate of a batch or, when time is up, only the first of them.
Step = Callable[[Sequence[Candidate]], list[Candidate]]

# ‖UU' - VV'‖_F up to which two subspaces are the same.
SAME_SUBSPACE = 1e-6


@dataclass(frozen=True)
class Run:
    """Where the loop ended.

    Attributes
    ----------
    best : the best candidate ever seen
    last, best_of_each : one candidate for each start, in order
    history : the best value of the batch after each step; for one start, its own
    n_iter, status : number of steps, and how it ended
    """

    best: Candidate
    last: list[Candidate]
    best_of_each: list[Candidate]
    history: list[float]
    n_iter: int
    status: Status


def iterate(
    first: Sequence[Candidate],
    step: Step,
    *,
    max_iter: int,
    monitor: Monitor,
    monotone: bool = True,
) -> Run:
    """Apply `step` to a batch of candidates until no subspace changes.

    A candidate whose subspace repeats is finished and leaves the batch. In a monotone method,
    where the support decides what comes next, so does one that arrives at a support where
    another one already is: the two would go on together, and it ends where that one ends. What
    a method that is not monotone passes on its way is kept. The best candidates are safe from a
    keyboard interrupt.
    """
    require_count("max_iter", max_iter, 0)
    batch = _Batch(first, monotone)
    history = [batch.value]
    n_iter = 0
    status = Status.CONVERGED
    try:
        while batch.active:
            if monitor.report(max(history)):
                status = monitor.stopped or Status.STOPPED
                break
            if n_iter == max_iter:
                status = Status.MAX_ITER
                break
            n_iter += 1
            batch.move(step)
            history.append(batch.value)
        if status is Status.CONVERGED:
            monitor.report(max(history))
    except KeyboardInterrupt:
        status = monitor.stopped = Status.INTERRUPTED
    return batch.run(history, n_iter, status)


class _Batch:
    """The candidates on their way, one for each start."""

    def __init__(self, first: Sequence[Candidate], monotone: bool):
        self.monotone = monotone
        self.last = list(first)
        self.best_of_each = list(first)
        self.active = list(range(len(self.last)))
        self.follows = list(self.active)  # whom a candidate that left the batch ends with

    @property
    def value(self) -> float:
        """The best objective of all."""
        return max(candidate.objective for candidate in self.last)

    def move(self, step: Step) -> None:
        """Take a step with those that are still on their way."""
        moved = step([self.last[i] for i in self.active])
        taken = {c.support.tobytes(): i for i, c in enumerate(self.last)} if self.monotone else {}
        still: list[int] = []
        for i, candidate in zip(self.active, moved, strict=False):
            settled = same_subspace(candidate, self.last[i])
            self.last[i] = candidate
            if candidate.objective > self.best_of_each[i].objective:
                self.best_of_each[i] = candidate
            if settled:
                continue
            self.follows[i] = taken.get(candidate.support.tobytes(), i)
            if self.follows[i] != i:
                continue
            still.append(i)
            if self.monotone:
                taken[candidate.support.tobytes()] = i
        self.active = still + self.active[len(moved) :]

    def run(self, history: list[float], n_iter: int, status: Status) -> Run:
        """Return where all of them ended."""
        best = max(self.best_of_each, key=lambda candidate: candidate.objective)
        ends = [_end(self.follows, i) for i in range(len(self.last))]
        each = self.best_of_each
        if self.monotone:
            each = [each[end] for end in ends]
        return Run(best, [self.last[end] for end in ends], each, history, n_iter, status)


def same_subspace(one: Candidate, other: Candidate) -> bool:
    """Say whether two candidates span the same subspace, up to `SAME_SUBSPACE`."""
    if not np.array_equal(one.support, other.support):
        return False
    # The part of one outside the other: exact to rounding, where 2m - 2‖U'V‖² would cancel.
    outside = one.weights - other.weights @ (other.weights.T @ one.weights)
    return bool(np.sqrt(2.0) * np.linalg.norm(outside) <= SAME_SUBSPACE)


def _end(follows: Sequence[int], i: int) -> int:
    """Follow the links to the candidate that went on."""
    seen = {i}
    while follows[i] not in seen:
        i = follows[i]
        seen.add(i)
    return i
