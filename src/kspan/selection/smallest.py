"""Choosing k: the fewest features that keep a given share of the variance."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kspan.arrays import Index
from kspan.linalg.threads import one_blas_thread
from kspan.problem import RowSparseProblem
from kspan.progress import Monitor, Status
from kspan.selection.moves import grow, shrink
from kspan.selection.walk import MAX_ITER
from kspan.solution import Candidate, Solution
from kspan.solvers.rowsparse.candidates import (
    MOST,
    PER_FEATURE,
    by_candidates,
    candidate_count,
    size_of_all,
)
from kspan.solvers.rowsparse.go import low_rank_candidate
from kspan.solvers.rowsparse.ipu import IPU
from kspan.solvers.rowsparse.row_scores import run_rule

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


class QuickSolver:
    """Solves the same problem for one k after another, each from what the nearest k found.

    IPU from Go's solution and from that of the nearest k, with the best next features or without
    its worst. Its guess of k is nearly always that of "auto": two solves show that it is right.

    Of data whose reads are costly a set of candidate features is read, once; all k are solved on
    those.
    """

    def __init__(self) -> None:
        self._found: dict[int, Candidate] = {}
        self._candidates: tuple[Index, RowSparseProblem] | None = None

    def __call__(self, problem: RowSparseProblem) -> Solution:
        """Solve at the problem's k."""
        features, inside = self._inside(problem)
        monitor = Monitor("quick")
        best = low_rank_candidate(inside)
        try:
            with one_blas_thread():
                best = self._solve(inside, best, monitor)
        except KeyboardInterrupt:
            monitor.stopped = Status.INTERRUPTED
        self._found[problem.n_features_to_select] = best
        return Solution.from_candidate(
            replace(best, support=features[best.support]), n_features=problem.n_features,
            solver="quick", status=monitor.stopped or Status.COMPLETED,
            history=[best.objective], n_iter=1,
        )  # fmt: skip

    def _solve(self, problem: RowSparseProblem, first: Candidate, monitor: Monitor) -> Candidate:
        k = problem.n_features_to_select
        starts = [first]
        if self._found:
            nearest = min(self._found, key=lambda other: abs(other - k))
            if nearest != k:
                move = grow if nearest < k else shrink
                starts.append(move(problem, self._found[nearest]))
        return run_rule(problem, IPU, starts, max_iter=MAX_ITER, monitor=monitor).best

    def _inside(self, problem: RowSparseProblem) -> tuple[Index, RowSparseProblem]:
        """Return the features that are looked at, and the problem on those."""
        everything = np.arange(problem.n_features), problem
        k, n_allowed = problem.n_features_to_select, size_of_all(problem)
        if self._candidates is None:
            if not problem.covariance.reads_are_costly:
                return everything
            # As many candidates as there can be, as k will be larger than where the search begins.
            largest = replace(
                problem, n_features_to_select=min(max(k, MOST // PER_FEATURE), n_allowed)
            )
            if candidate_count(largest) == n_allowed:
                return everything
            self._candidates = self._read(largest)
        chosen, small = self._candidates
        if k > chosen.size:
            return everything
        return chosen, replace(small, n_features_to_select=k)

    def _read(self, problem: RowSparseProblem) -> tuple[Index, RowSparseProblem]:
        """Choose candidates, and bring their covariance into memory."""
        small: list[RowSparseProblem] = []

        def solve_small(restricted: RowSparseProblem) -> Solution:
            small.append(restricted)
            found = self._solve(restricted, low_rank_candidate(restricted), Monitor("quick"))
            d = restricted.n_features
            # On all candidates: what comes back then says which features they are.
            return Solution(
                np.arange(d), found.loadings(d), found.variances, d, "quick", Status.COMPLETED,
                np.array([found.objective]), 1,
            )  # fmt: skip

        rng = np.random.default_rng(0)
        chosen = by_candidates(problem, solve_small, rng=rng, monitor=Monitor("quick")).support
        return chosen, next(part for part in small if part.n_features == chosen.size)
