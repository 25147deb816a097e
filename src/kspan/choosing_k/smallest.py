"""Choosing k: a small number that depends on no data, or the fewest that keep a given share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kspan.arrays import Index
from kspan.linalg.machine import one_blas_thread
from kspan.problem import Candidate, Choice, RowSparseProblem, Solution
from kspan.progress import Monitor, Status
from kspan.solvers.method import AnyMethod, RepresentMethod
from kspan.solvers.represent.forward import Forward
from kspan.solvers.rowsparse.auto import Auto
from kspan.solvers.rowsparse.candidates import (
    MOST,
    PER_FEATURE,
    Found,
    OnCandidates,
    on_candidates,
    wants_candidates,
)
from kspan.solvers.rowsparse.go import low_rank_candidate
from kspan.solvers.rowsparse.ipu import IPU, PROXY
from kspan.solvers.rowsparse.moves import IPU_STEPS, grow, shrink
from kspan.solvers.rowsparse.row_scores import run_rule
from kspan.solving import run_method

# Features for each component, where nobody says how many.
READABLE = 10

SolveAt = Callable[[Any], Solution]


def readable_size(choice: Choice, n_components: int) -> int:
    """Return ten features for each component, and no more than half of all that may be chosen.

    As many as can be read and measured, at the price of one fit.

    Examples
    --------
    >>> readable_size(Choice.of(1000, 2), 2), readable_size(Choice.of(13, 2), 2)
    (20, 6)

    Parameters
    ----------
    choice : with the fewest features that can be asked for
    n_components : m
    """
    most = max(choice.features.size // 2, choice.size)
    return min(max(READABLE * n_components, choice.size), most, choice.most_features)


def smallest_support(
    smallest: Any, *, target: float, guess_with: SolveAt, solve_with: SolveAt
) -> tuple[Any, Solution]:
    """Return the smallest k at which the solver reaches the target, and its solution.

    A quick method finds a first guess; the wanted one then moves away from it in growing steps
    until the answer is bracketed, and bisects. The optimum grows with k, so for an exact
    solver this k is the smallest there is; for a heuristic one it is the smallest on its way.
    If even all features fall short, their solution is returned. When a solve is stopped early (by
    time, callback or keyboard) the search ends there, with that solution.

    Parameters
    ----------
    smallest : the problem with the fewest features that can be asked for
    target : explained variance to reach
    guess_with, solve_with : quick and wanted method
    """
    solved: dict[int, Solution] = {}
    lower, upper = smallest.choice.size, smallest.choice.most_features

    def reaches(k: int) -> bool:
        if k not in solved:
            solved[k] = solve_with(smallest.at(k))
            if solved[k].status.stopped_early:
                raise _StoppedEarly
        return solved[k].objective >= target

    def quickly_reaches(k: int) -> bool:
        guess = guess_with(smallest.at(k))
        if guess.status.stopped_early:
            solved[k] = guess
            raise _StoppedEarly
        return guess.objective >= target

    try:
        guess = _bracket_and_bisect(quickly_reaches, lower, upper, start=lower)
        k = _bracket_and_bisect(reaches, lower, upper, start=guess)
        reaches(k)
    except _StoppedEarly:
        k = next(reversed(solved))
    return smallest.at(k), solved[k]


def guesser_for(method: AnyMethod, monitor: Monitor) -> SolveAt:
    """Return what guesses the k that a method needs, quickly.

    Warm starts nearly always guess the k that "auto" needs; for other methods IPU is closer.
    """
    if isinstance(method, Auto):
        return QuickSolver(monitor)
    if isinstance(method, RepresentMethod):
        return lambda problem: run_method(problem, Forward(), monitor, np.random.default_rng(0))
    rng = np.random.default_rng(0)  # IPU from Go's solution draws no random numbers
    return lambda problem: run_method(problem, IPU(), monitor, rng)


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


class QuickSolver:
    """Solves the same problem for one k after another, each from what the nearest k found.

    IPU from Go's solution and from that of the nearest k, with the best next features or without
    its worst. Its guess of k is nearly always that of "auto": two solves show that it is right.

    Of data whose reads are costly a set of candidate features is read, once; all k are solved on
    those.
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._found: dict[int, Candidate] = {}
        self._candidates: OnCandidates[Candidate] | None = None

    def __call__(self, problem: RowSparseProblem) -> Solution:
        """Solve at the problem's k."""
        features, inside = self._inside(problem)
        best = low_rank_candidate(inside)
        with self._monitor.interruptible(), one_blas_thread():
            best = self._solve(inside, best)
        self._found[problem.choice.size] = best
        return Solution.from_candidate(
            replace(best, support=features[best.support]), n_features=problem.n_features,
            solver="quick", status=self._monitor.stopped or Status.COMPLETED,
            history=[best.objective], n_iter=1,
        )  # fmt: skip

    def _solve(self, problem: RowSparseProblem, first: Candidate) -> Candidate:
        k = problem.choice.size
        starts = [first]
        if self._found:
            nearest = min(self._found, key=lambda other: abs(other - k))
            if nearest != k:
                move = grow if nearest < k else shrink
                starts.append(move(problem, self._found[nearest]))
        return run_rule(problem, PROXY, starts, max_iter=IPU_STEPS, monitor=self._monitor).best

    def _inside(self, problem: RowSparseProblem) -> tuple[Index, RowSparseProblem]:
        """Return the features that are looked at, and the problem on those."""
        k = problem.choice.size
        if self._candidates is None:
            # As many candidates as there can be, as k will be larger than where the search begins.
            n_allowed = problem.choice.features.size
            largest = problem.at(min(max(k, MOST // PER_FEATURE), n_allowed))
            if wants_candidates(largest):
                rng = np.random.default_rng(0)
                self._candidates = on_candidates(
                    largest, self._quickly, rng=rng, monitor=self._monitor
                )
        chosen = self._candidates
        if chosen is None or k > chosen.features.size:
            return np.arange(problem.n_features), problem
        return chosen.features, chosen.problem.at(k)

    def _quickly(self, small: RowSparseProblem) -> Found[Candidate]:
        found = self._solve(small, low_rank_candidate(small))
        return Found(found, found.loadings(small.n_features), found.objective)
