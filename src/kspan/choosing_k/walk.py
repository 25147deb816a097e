r"""Supports for many k at once: each k starts from what its neighbours found.

1. *Up.* From the smallest k to the largest. Starts: Go's solution, the support of the k before plus
   the best next features, and a few random ones. IPU on all of them at once, then pair swaps on
   the best distinct results.
2. *Down.* From the largest k to the smallest. Start: the support of the k after it without its
   worst features, then IPU and swaps again.
3. *Kicks.* Some features of each support are exchanged at random, then IPU and swaps.
4. Up and down again while that helps, three rounds at most. No start is tried twice.

All of it sees the same covariance, so its leading eigenpairs are computed once.

Cost: a few IPU runs and swap searches for each k: on digits (every k up to 64) a seventh of "auto"
at each k.

Guarantee: at every k at least IPU from the low-rank start; the objective never falls as k grows.
Not from a paper. Other methods than "auto" are run at each k by itself.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kspan.linalg.rounding import IMPROVEMENT
from kspan.problem import Candidate, RowSparseProblem
from kspan.progress import Monitor
from kspan.solvers.method import AnyMethod
from kspan.solvers.rowsparse.auto import Auto
from kspan.solvers.rowsparse.candidates import Found, on_candidates, wants_candidates
from kspan.solvers.rowsparse.go import low_rank_candidate
from kspan.solvers.rowsparse.moves import (
    Climber,
    ProblemAt,
    grow,
    keep_rising,
    kicked,
    random_starts,
    shrink,
)
from kspan.solving import run_method

# Random starts, results of IPU that go on to the swaps, and kicks: (work, fewest, most), where
# there are about work / k of each. With few features they cost next to nothing, and are needed:
# small supports of different k have little in common.
RANDOM, POLISHED, KICKS = (480, 4, 96), (60, 2, 12), (80, 2, 16)

# With more features than this each costs more, and neighbours have more in common.
MANY, RANDOM_OF_MANY = 300, (200, 4, 48)

MAX_ROUNDS = 3


class Walk:
    """The best support known for each k, and the steps that improve them.

    Parameters
    ----------
    problem_at : k -> problem, all with the same covariance
    ks : the numbers of features, ascending
    rng : numpy.random.Generator
    monitor : told about every k, says when to stop
    """

    def __init__(
        self, problem_at: ProblemAt, ks: Sequence[int], *, rng: np.random.Generator,
        monitor: Monitor,
    ):  # fmt: skip
        self.problem_at, self.ks = problem_at, list(ks)
        self.rng, self.monitor = rng, monitor
        # Inner loops know about the time, but report nothing: their steps are not about one k.
        self.quiet = monitor.inner(quiet=True)
        self.best: dict[int, Candidate] = {}
        self._tried: set[tuple[int, bytes]] = set()

    def run(self) -> None:
        """Walk until nothing improves, or the monitor says stop."""
        self.up(first=True)
        for _ in range(MAX_ROUNDS):
            improved = self.down()
            improved |= self.kick()
            if not (improved and self.up()):
                break
        # Told to stop in between: what is known at k still holds with more features.
        keep_rising(self.problem_at, self.best)

    # --- passes over all k; each says whether anything improved

    def up(self, first: bool = False) -> bool:
        """Each k starts from the one before it, the first time from more."""
        improved = False
        for before, k in zip([None, *self.ks], self.ks, strict=False):
            if first and not self.best:
                self.best[k] = low_rank_candidate(self.problem_at(k))  # at least one k is done
            if self._stops() or not (first or k in self.best):
                break
            problem = self.problem_at(k)
            starts = [grow(problem, self.best[before])] if before is not None else []
            if first:
                starts += [low_rank_candidate(problem), *self._random(problem)]
            improved |= self._improve(k, starts)
            if first and self._report(k):
                break
        return improved

    def down(self) -> bool:
        """Each k starts from the one after it."""
        improved = False
        for after, k in zip(self.ks[:0:-1], self.ks[-2::-1], strict=True):
            if self._stops():
                break
            if after in self.best:
                improved |= self._improve(k, [shrink(self.problem_at(k), self.best[after])])
        return improved

    def kick(self) -> bool:
        """Each k starts from its own support with some features exchanged at random."""
        improved = False
        for k in self.ks:
            if self._stops() or k not in self.best:
                break
            problem = self.problem_at(k)
            support, count = self.best[k].support, _count(KICKS, problem)
            others = [kicked(problem, support, self.rng) for _ in range(count)]
            improved |= self._improve(k, problem.refit_all(others))
            if self._report(k):
                break
        return improved

    def offer(self, k: int, candidate: Candidate) -> bool:
        """Keep the candidate if it is better. Returns whether it is by more than rounding."""
        known = self.best.get(k)
        if known is None or candidate.objective > known.objective:
            self.best[k] = candidate
            return known is None or candidate.objective > known.objective * (1 + IMPROVEMENT)
        return False

    # --- one k

    def _improve(self, k: int, starts: list[Candidate]) -> bool:
        """IPU from every start not tried yet, swaps on the best few."""
        problem = self.problem_at(k)
        new = {start.support.tobytes(): start for start in starts}
        new = {key: start for key, start in new.items() if (k, key) not in self._tried}
        self._tried.update((k, key) for key in new)
        if not new:
            return False
        starts = list(new.values())
        climber = Climber(problem, self.best.get(k, starts[0]), self.quiet)
        try:
            for end in climber.ascend(starts)[: _count(POLISHED, problem)]:
                if self._stops():
                    break
                if (k, b"swapped" + end.support.tobytes()) in self._tried:
                    continue
                swapped, _ = climber.swap(end)
                for support in (end.support, swapped.support):
                    self._tried.add((k, b"swapped" + support.tobytes()))
        finally:  # what is there when an interrupt comes counts
            improved = self.offer(k, climber.best)
        return improved

    def _random(self, problem: RowSparseProblem) -> list[Candidate]:
        """Half of them uniformly random, half unit vectors drawn by variance."""
        if not problem.choice.has_options:
            return []
        many = problem.choice.features.size > MANY
        count = _count(RANDOM_OF_MANY if many else RANDOM, problem)
        return random_starts(problem, count, self.rng, self.quiet, kinds=("variance", "uniform"))

    def _report(self, k: int) -> bool:
        self.monitor.solver = f"path k={k}"
        return self.monitor.report(self.best[k].objective)

    def _stops(self) -> bool:
        if self.quiet.stopped is not None and self.monitor.stopped is None:
            self.monitor.stopped = self.quiet.stopped
        return self.monitor.out_of_time()


def _count(budget: tuple[int, int, int], problem: RowSparseProblem) -> int:
    work, fewest, most = budget
    return min(max(work // problem.choice.size, fewest), most)


def choose_supports(
    problem_at: ProblemAt, ks: list[int], method: AnyMethod, rng: np.random.Generator,
    monitor: Monitor,
) -> dict[int, Candidate]:  # fmt: skip
    """Return the best point for each k, or for some of them if the monitor says stop."""
    found: dict[int, Candidate] = {}
    with monitor.interruptible():
        if not isinstance(method, Auto):
            _solve_each(problem_at, ks, method, rng, monitor, found)
        elif wants_candidates(problem_at(ks[-1])):
            _walk_on_candidates(problem_at, ks, rng, monitor, found)
        else:
            walk = Walk(problem_at, ks, rng=rng, monitor=monitor)
            found = walk.best  # what is there when an interrupt comes counts
            walk.run()
    if not found:
        found[ks[0]] = low_rank_candidate(problem_at(ks[0]))
    return found


def _solve_each(
    problem_at: ProblemAt, ks: list[int], method: AnyMethod, rng: np.random.Generator,
    monitor: Monitor, found: dict[int, Candidate],
) -> None:  # fmt: skip
    seed = int(rng.integers(2**31))
    for k in ks:
        problem = problem_at(k)
        quiet = monitor.inner(method.name, quiet=True)
        solution = run_method(problem, method, quiet, np.random.default_rng(seed))
        # Loadings of its own explain less than the best ones on the same features.
        found[k] = problem.refit(np.sort(solution.support))
        monitor.solver = f"path k={k}"
        if monitor.report(found[k].objective):
            return


def _walk_on_candidates(
    problem_at: ProblemAt, ks: list[int], rng: np.random.Generator, monitor: Monitor,
    found: dict[int, Candidate],
) -> None:  # fmt: skip
    """Walk on a few hundred candidate features, so that data on disk is read a few times only."""

    def walk_on(small: RowSparseProblem) -> Found[dict[int, Candidate]]:
        """The loadings of every k are scored on all features at once; what is missing gets in."""
        walk = Walk(small.at, ks, rng=rng, monitor=monitor)
        walk.run()
        points = list(walk.best.values())
        loadings = np.hstack([point.loadings(small.n_features) for point in points])
        return Found(walk.best, loadings, sum(point.objective for point in points))

    best = on_candidates(problem_at(ks[-1]), walk_on, rng=rng, monitor=monitor)
    for k, point in best.result.items():
        found[k] = replace(point, support=best.features[point.support])
