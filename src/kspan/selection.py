"""Choosing k: the fewest features that keep a given share of the variance."""

from collections.abc import Callable

from kspan.problem import RowSparseProblem
from kspan.progress import Status
from kspan.solution import Solution

STOPPED_EARLY = (Status.TIME_LIMIT, Status.INTERRUPTED, Status.STOPPED)

SolveAt = Callable[[RowSparseProblem], Solution]


def smallest_support(
    problem_at: Callable[[int], RowSparseProblem],
    *,
    lower: int,
    upper: int,
    target: float,
    guess_with: SolveAt,
    solve_with: SolveAt,
) -> tuple[RowSparseProblem, Solution]:
    """Return the smallest k in [lower, upper] at which the solver reaches the target.

    A quick method finds a first guess; the wanted one then moves away from it in growing steps
    until the answer is bracketed, and bisects. The optimum grows with k, so for an exact
    solver this k is the smallest there is; for a heuristic one it is the smallest on its way.
    If even `upper` falls short, its solution is returned. When a solve is stopped early (by
    time, callback or keyboard) the search ends there, with that solution.

    Parameters
    ----------
    problem_at : k -> problem
    lower, upper : range of k
    target : explained variance to reach
    guess_with, solve_with : quick and wanted method
    """
    solved: dict[int, Solution] = {}

    def reaches(k: int) -> bool:
        if k not in solved:
            solved[k] = solve_with(problem_at(k))
            if solved[k].status in STOPPED_EARLY:
                raise _StoppedEarly
        return solved[k].objective >= target

    def quickly_reaches(k: int) -> bool:
        guess = guess_with(problem_at(k))
        if guess.status is Status.INTERRUPTED:
            solved[k] = guess
            raise _StoppedEarly
        return guess.objective >= target

    try:
        guess = _bracket_and_bisect(quickly_reaches, lower, upper, start=lower)
        k = _bracket_and_bisect(reaches, lower, upper, start=guess)
        reaches(k)
    except _StoppedEarly:
        k = next(reversed(solved))
    return problem_at(k), solved[k]


class _StoppedEarly(Exception):
    """A solve was stopped; so is the search."""


def _bracket_and_bisect(reaches: Callable[[int], bool], lower: int, upper: int, start: int) -> int:
    """Return the first k from which `reaches` holds (monotone), or `upper`."""
    short, long = lower - 1, upper  # reaches fails at `short`, is taken to hold at `long`
    stride = 1
    if start >= upper or reaches(start):
        long = min(start, upper)
        while long - stride > short:
            if not reaches(long - stride):
                short = long - stride
                break
            long -= stride
            stride *= 2
    else:
        short = start
        while short + stride < long:
            if reaches(short + stride):
                long = short + stride
                break
            short += stride
            stride *= 2
    while long - short > 1:
        middle = (short + long) // 2
        if reaches(middle):
            long = middle
        else:
            short = middle
    return long
