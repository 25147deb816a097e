"""Auto: forward selection from several starts, swaps, random kicks.

1. starts: forward selection for the leading components (as they are, and with the same weight for
   each), and for everything; the features with the largest loadings, and with the largest
   variances; forward selection from a few random features;
2. swaps on each: of all pairs (one out, one in) the gain is known in closed form, exactly for m = k
   and from below for m < k (`exploring.py`). The best are tried, and each that helps is taken;
   under rules about which features go together, insertions (`kspan.solvers.insertions`);
3. kicks: a third of the best features are exchanged at random, then swaps.

When k features tell as much as m principal components of everything do, there is nothing left to
gain, and the search ends.

Cost: a few dozen products of (n×k) and (k×k) matrices for each start. Budgets are counts, so the
same seed gives the same answer. Passes over the data: see `pool.py`.

Guarantee: never worse than `forward`, the largest loadings and the largest variances (among the
candidates, where there are too many features).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.machine import one_blas_thread
from kspan.linalg.rounding import IMPROVEMENT
from kspan.linalg.selection import top_k
from kspan.problem import Candidate, Choice, RepresentProblem, Solution
from kspan.progress import Monitor, Status
from kspan.solvers.insertions import improve_by_insertions, insertion_keys
from kspan.solvers.method import RepresentMethod, counted
from kspan.solvers.represent.exploring import Exchanges, Target, exchanges, fitted
from kspan.solvers.represent.forward import first_target, grown
from kspan.solvers.represent.pool import Pool, pool_of

# Features that are paired with those that could go, at most.
MOST_IN = 1024

# Swaps that are tried exactly in a sweep; of large choices fewer.
TRIALS, FEW_TRIALS, LARGE = 16, 6, 64

# When this share of what m principal components explain is missing, nothing is left to gain; where
# a sweep costs next to nothing (few features, times those chosen) a smaller one.
NOTHING, NEXT_TO_NOTHING, QUICK = 1e-6, 1e-9, 20_000

# A sweep that gains less than this share, and of what is missing less than the other, is the last.
LITTLE, LITTLE_OF_MISSING = 1e-6, 1e-3


@dataclass(frozen=True, eq=False)
class RepresentAuto(RepresentMethod):
    """The best value that a budget of starts, swaps and kicks allows.

    Parameters
    ----------
    n_restarts : int, optional
        Random starts. By default 400 / k, between 2 and 10.
    n_kicks : int, optional
        Random exchanges of the best choice. By default four times as many.
    max_sweeps : int
        Rounds of swaps from each start.
    """

    name = "auto"
    summary = "forward selection from many starts, pair swaps, random kicks"
    guarantee = "never worse than `forward`, largest loadings and largest variances"
    reference = "this project"

    n_restarts: int | None = counted(None, least=0)
    n_kicks: int | None = counted(None, least=0)
    max_sweeps: int = counted(200, least=0)

    def run(
        self, problem: RepresentProblem, monitor: Monitor, rng: np.random.Generator
    ) -> Solution:
        """Search among all features, or among candidates."""
        pool = pool_of(problem)
        first = pool.choice.select(pool.variances)
        search = Search(problem, pool, fitted(pool, first, problem.n_components), monitor)
        with monitor.interruptible(), one_blas_thread():
            self._climb(search, rng)
        found = problem.refit(pool.features[search.best.support])
        monitor.report(found.objective)
        return Solution.from_candidate(
            found, n_features=problem.n_features, solver=self.name,
            status=monitor.stopped or Status.COMPLETED,
            history=[*search.history, found.objective], n_iter=search.n_iter,
        )  # fmt: skip

    def _climb(self, search: "Search", rng: np.random.Generator) -> None:
        """Climb from all starts, then kick the best."""
        problem, pool, monitor = search.problem, search.pool, search.monitor
        if not pool.choice.has_options:  # nothing to choose
            return
        few = int(np.clip(400 // problem.choice.size, 2, 10))
        n_restarts = few if self.n_restarts is None else self.n_restarts
        n_kicks = 4 * few if self.n_kicks is None else self.n_kicks
        target = first_target(problem, pool)
        starts: list[Callable[[], Index]] = [lambda: grown(pool, target, monitor)]
        if target.N is None:
            # Of m = k the leading components are a target too.
            pairs = problem.covariance.leading(problem.n_components)
            leading = Target(pairs.vectors[pool.features] * (pairs.values / problem.scale))
            starts.append(lambda: grown(pool, leading, monitor))
        else:
            leading = target
            starts.append(lambda: grown(pool, Target(None), monitor))
        assert leading.N is not None
        loadings = np.linalg.norm(leading.N, axis=1)
        starts += [
            lambda: grown(pool, even(problem, pool), monitor),
            lambda: pool.choice.select(loadings),
            lambda: search.best.support,  # the largest variances, at first
        ]
        ends = []
        for start in starts:
            if monitor.out_of_time():
                return
            ends.append(search.begin(start()))
        for end in sorted(ends, key=lambda end: -end.objective):
            search.climb(end, self.max_sweeps)
        for _ in range(n_restarts):
            if search.is_done:
                return
            some = random_few(pool.choice, loadings, rng)
            search.climb(search.begin(grown(pool, target, monitor, some)), self.max_sweeps)
        for _ in range(n_kicks):
            if search.is_done:
                return
            kick = kicked(pool, search.best.support, rng)
            search.climb(search.begin(kick), self.max_sweeps)


def even(problem: RepresentProblem, pool: Pool) -> Target:
    """Return the leading components as a target, each with the same weight.

    Where nearly all can be told, what is missing of the smaller ones counts as much.
    """
    pairs = problem.covariance.leading(problem.n_components)
    weights = np.sqrt(np.maximum(pairs.values, 0.0) / problem.scale)
    return Target(pairs.vectors[pool.features] * weights)


def random_few(choice: Choice, scores: FloatArray, rng: np.random.Generator) -> Index:
    """Return about a third of a choice: features drawn by their scores, as far as they fit."""
    free = choice.free
    count = max(min(choice.n_open, free.size) // 3, 1)
    weights = scores[free] + 1e-12 * max(float(scores.max()), 1e-300)
    chance = weights / weights.sum()
    drawn = rng.choice(free, min(count, free.size), replace=False, p=chance)
    if not choice.has_rules:
        return np.sort(drawn)
    kept: list[int] = []
    for place in drawn:
        if choice.allowed[place] and not choice.forced[place]:
            tried = choice.settled(fixed=[int(place)])
            if tried.has_supports:
                choice = tried
                kept.append(int(place))
    return np.array(kept, dtype=np.intp)


def kicked(pool: Pool, support: Index, rng: np.random.Generator) -> Index:
    """Exchange a few features at random, two to a quarter of them; under rules a third."""
    choice, varies = pool.choice, pool.variances > 0
    if choice.has_rules:
        return choice.exchange(support, rng, varies)
    free, others = support[choice.leaving(support)], np.flatnonzero(choice.coming(support) & varies)
    count = int(rng.integers(2, max(3, free.size // 4 + 1)))
    count = min(count, free.size, others.size)
    gone = rng.choice(free, count, replace=False)
    come = rng.choice(others, count, replace=False)
    return np.sort(np.append(np.setdiff1d(support, gone), come))


class Search:
    """Swaps on one pool; it keeps the best point, in the pool's numbers and units.

    Parameters
    ----------
    problem, pool : what is searched
    best : the best point so far
    monitor : told after every sweep, asked whether to stop
    """

    def __init__(self, problem: RepresentProblem, pool: Pool, best: Candidate, monitor: Monitor):
        self.problem, self.pool, self.best, self.monitor = problem, pool, best, monitor
        self.m = problem.n_components
        self.most = float(problem.covariance.leading(self.m).values.sum()) / problem.scale
        self.history: list[float] = []
        self.n_iter = 0
        self._ends: set[bytes] = set()

    @property
    def is_done(self) -> bool:
        """Whether time is up, or nothing is left to gain."""
        quick = self.pool.features.size * self.problem.choice.size <= QUICK
        nothing = NEXT_TO_NOTHING if quick else NOTHING
        enough = self.best.objective >= (1 - nothing) * self.most
        return enough or self.monitor.out_of_time()

    def begin(self, places: Index) -> Candidate:
        """Return the best point on a start."""
        point = fitted(self.pool, places, self.m)
        self._keep(point)
        return point

    def climb(self, point: Candidate, max_sweeps: int) -> None:
        """Swap until no swap helps, or one of the earlier ends is met."""
        if self.is_done:
            return
        if self.pool.choice.has_rules:
            point, _ = improve_by_insertions(
                self.pool.choice, point, self._fitted_all, self._keys, max_sweeps=max_sweeps,
                n_trials=TRIALS, monitor=self.monitor.inner(quiet=True),
            )  # fmt: skip
            self._keep(point)
            self.n_iter += 1
        else:
            for _ in range(max_sweeps):
                if point.support.tobytes() in self._ends or self.is_done:
                    break
                self.n_iter += 1
                better = self.sweep(point)
                if better is None:
                    break
                gained = better.objective - point.objective
                point = better
                self._keep(point)
                missing = max(self.most - point.objective, 0.0)
                if gained < min(LITTLE * point.objective, LITTLE_OF_MISSING * missing):
                    break
        self._ends.add(point.support.tobytes())
        self.history.append(self.best.objective * self.problem.scale)
        self.monitor.report(self.history[-1])

    def sweep(self, point: Candidate) -> Candidate | None:
        """Rank all swaps, try the best, take each that helps; None if none did."""
        found = self._exchanges(point)
        k = point.support.size
        leaving = np.zeros(k, dtype=bool)
        leaving[self.pool.choice.leaving(point.support)] = True
        swaps = np.where(leaving, found.swaps, -np.inf)
        support, current = point.support, point
        n_trials = TRIALS if k <= LARGE else FEW_TRIALS
        for into, out in _best_pairs(swaps, n_trials):
            if swaps[into, out] <= IMPROVEMENT * point.objective or self.monitor.out_of_time():
                break
            gone, come = support[out], found.ins[into]
            if gone not in current.support or come in current.support:
                continue
            trial = np.sort(np.append(current.support[current.support != gone], come))
            tried = fitted(self.pool, trial, self.m)
            if tried.objective > current.objective * (1 + IMPROVEMENT):
                current = tried
        return None if current is point else current

    def _exchanges(self, point: Candidate) -> Exchanges:
        coming = self.pool.choice.coming(point.support)
        target = Target.at(self.pool, point, self.m)
        return exchanges(self.pool, point.support, target, coming, MOST_IN)

    def _fitted_all(self, supports: Sequence[Index]) -> list[Candidate]:
        return [fitted(self.pool, support, self.m) for support in supports]

    def _keys(self, point: Candidate) -> FloatArray:
        """Return scores for insertions: what features would add, and what they are worth."""
        found = self._exchanges(point)
        return insertion_keys(found.gains, found.losses, point.support, self.pool.variances > 0)

    def _keep(self, point: Candidate) -> None:
        if point.objective > self.best.objective:
            self.best = point


def _best_pairs(swaps: FloatArray, count: int) -> list[tuple[int, int]]:
    """Return the pairs with the largest gains, at most two with the same feature coming in."""
    if not swaps.size:
        return []
    order = np.argsort(-swaps, axis=1, kind="stable")[:, :2]
    rows = np.repeat(np.arange(len(swaps)), order.shape[1])
    columns = order.ravel()
    best = top_k(swaps[rows, columns], count)
    best = best[np.argsort(-swaps[rows[best], columns[best]], kind="stable")]
    return [(int(rows[place]), int(columns[place])) for place in best]


def improved(
    problem: RepresentProblem, scores: FloatArray, choice: Choice, monitor: Monitor
) -> Index:
    """Turn a relaxed selection into a support: the best scores, then swaps.

    Parameters
    ----------
    problem : RepresentProblem
    scores : (d,) nonnegative
    choice : what is left of the problem's, when a search has cut it down
    monitor : asked whether to stop
    """
    inside = problem.changed(choice=choice)
    pool = pool_of(inside)
    places = pool.choice.select(np.maximum(scores[pool.features], 0.0))
    point = fitted(pool, places, problem.n_components)
    search = Search(inside, pool, point, monitor.inner(quiet=True))
    search.climb(point, max_sweeps=20)
    return pool.features[search.best.support]
