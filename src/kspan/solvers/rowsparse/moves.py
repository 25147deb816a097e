"""What `auto`, paths over k and proofs share: starts, and ways from one support to a better one."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.rounding import IMPROVEMENT
from kspan.linalg.selection import placed, top_k
from kspan.problem import Candidate, Choice, RowSparseProblem
from kspan.problem.problems import STACK_LIMIT
from kspan.progress import Monitor
from kspan.solvers.rowsparse.ipu import PROXY, proxy_diagonal
from kspan.solvers.rowsparse.row_scores import from_subspaces, run_rule
from kspan.solvers.rowsparse.swaps import improve_by_swaps
from kspan.solvers.starts import random_subspace

ProblemAt = Callable[[int], RowSparseProblem]

# Neighbours of a support that are tried exactly, all in one call; of large ones fewer.
N_NEIGHBOURS, N_LARGE_NEIGHBOURS = 32, 4

# Steps of IPU from a start, and rounds of swaps from a candidate.
IPU_STEPS, SWEEPS = 20, 50

# Swaps and IPU take turns this often at most, and as long as IPU gains more than this share.
N_TURNS, TURN_GAIN = 3, 1e-12

# Kinds of random starts, in turn.
ALL_KINDS = ("variance", "leading", "uniform")


# --- starts


def random_starts(
    problem: RowSparseProblem,
    count: int,
    rng: np.random.Generator,
    monitor: Monitor,
    kinds: Sequence[str] = ALL_KINDS,
) -> list[Candidate]:
    """Return the first feasible points from random subspaces; fewer when time is up.

    Parameters
    ----------
    problem : RowSparseProblem
    count : how many
    rng : numpy.random.Generator
    monitor : asked whether to stop
    kinds : of subspaces, in turn: m features drawn by "variance", a subspace of the "leading"
        2m + 2 eigenvectors, "uniform"
    """
    if not count:
        return []
    d, m = problem.n_features, problem.n_components
    variances = np.maximum(problem.covariance.diagonal(), 0.0)  # rounding may be below
    variances = np.where(problem.choice.allowed, variances, 0.0)
    total = variances.sum()
    chance = variances / total if total > 0 else np.full(d, 1 / d)
    n_likely = int(np.count_nonzero(chance))
    wide = np.zeros((d, 0))
    if "leading" in kinds:
        wide = problem.covariance.leading(min(d, 2 * m + 2)).vectors
    subspaces = []
    for i in range(count):
        kind = kinds[i % len(kinds)]
        if kind == "variance" and n_likely >= m:
            W = np.zeros((d, m))
            W[rng.choice(d, m, replace=False, p=chance), np.arange(m)] = 1.0
        elif kind == "leading":
            W = wide @ random_subspace(wide.shape[1], m, rng)
        else:
            W = random_subspace(d, m, rng)
        subspaces.append(W)
    return from_subspaces(problem, PROXY, subspaces, monitor)


def kicked(problem: RowSparseProblem, support: Index, rng: np.random.Generator) -> Index:
    """Exchange about a third of the features that are free to go for others that vary."""
    return problem.choice.exchange(support, rng, problem.covariance.diagonal() > 0)


# --- from one number of features to another


def grow(problem: RowSparseProblem, candidate: Candidate) -> Candidate:
    """Return the candidate with the best next features, as many as the problem asks for."""
    support, choice = candidate.support, problem.choice
    product = problem.covariance.matmat(candidate.weights, support)
    scores = proxy_diagonal(product, candidate.variances)
    if choice.size > support.size + 1 or choice.has_rules:
        return problem.refit(problem.changed(choice=choice.settled(support)).select(scores))
    scores[problem.covariance.diagonal() <= 0] = -0.5  # constant features last of all
    keys = np.where(choice.coming(support), scores, -1.0)
    n_trials = min(_n_neighbours(problem), int((keys > -1).sum()))
    trials = [np.sort(np.append(support, j)) for j in top_k(keys, n_trials)]
    return _best_of(problem.refit_all(trials))


def shrink(problem: RowSparseProblem, candidate: Candidate) -> Candidate:
    """Return the candidate without its worst features, so many that the problem's are left."""
    support, choice = candidate.support, problem.choice
    shares = (candidate.weights**2) @ candidate.variances
    scores = placed(shares, support, problem.n_features)
    if choice.has_rules:  # others may fill up what is left of groups that go together
        return problem.refit(problem.select(scores))
    if choice.size < support.size - 1:
        inside = problem.changed(choice=choice.within(support))
        return problem.refit(inside.select(scores))
    free = choice.leaving(support)
    worst = free[top_k(-shares[free], min(_n_neighbours(problem), free.size))]
    return _best_of(problem.refit_all([np.delete(support, place) for place in worst]))


def keep_rising(problem_at: ProblemAt, best: dict[int, Candidate]) -> None:
    """Let no k explain less than the one before it: that support and more is a choice too.

    Where a computed objective falls, the support becomes the smaller one with more features, if
    that is better; what is left is rounding.
    """
    for before, k in pairwise(sorted(best)):
        if best[k].objective < best[before].objective:
            grown = grow(problem_at(k), best[before])
            if grown.objective > best[k].objective:
                best[k] = grown


def _n_neighbours(problem: RowSparseProblem) -> int:
    return N_NEIGHBOURS if problem.choice.size <= STACK_LIMIT else N_LARGE_NEIGHBOURS


def _best_of(candidates: Sequence[Candidate]) -> Candidate:
    return max(candidates, key=lambda candidate: candidate.objective)


# --- upwards


class Climber:
    """IPU and swaps on one problem; it keeps the best point, and counts.

    Parameters
    ----------
    problem : RowSparseProblem
    best : the best point so far
    monitor : told after every step, asked whether to stop
    max_iter, max_sweeps : steps of IPU from a start, and rounds of swaps from a candidate
    """

    def __init__(
        self, problem: RowSparseProblem, best: Candidate, monitor: Monitor, *,
        max_iter: int = IPU_STEPS, max_sweeps: int = SWEEPS,
    ):  # fmt: skip
        self.problem, self.best, self.monitor = problem, best, monitor
        self.max_iter, self.max_sweeps = max_iter, max_sweeps
        self.history: list[float] = []
        self.n_iter = 0
        self._polished: set[bytes] = set()
        self._ends: list[Candidate] = []

    def ascend(self, starts: Sequence[Candidate]) -> list[Candidate]:
        """Take IPU from all starts; return the distinct results, best first."""
        run = run_rule(
            self.problem, PROXY, starts, max_iter=self.max_iter, monitor=self.monitor
        )  # fmt: skip
        self.n_iter += run.n_iter
        self.history.extend(max(value, self.best.objective) for value in run.history)
        self.take(run.best)
        distinct = {c.support.tobytes(): c for c in run.last}
        return sorted(distinct.values(), key=lambda c: -c.objective)

    def swap(self, candidate: Candidate) -> tuple[Candidate, Candidate]:
        """Return where swaps lead, and where IPU leads from there."""
        swapped, _ = improve_by_swaps(
            self.problem, candidate, max_sweeps=self.max_sweeps, monitor=self.monitor
        )
        self.n_iter += 1
        moved = swapped if self.monitor.stopped else self.ascend([swapped])[0]
        self.take(swapped)
        self.take(moved)
        self.history.append(self.best.objective)
        return swapped, moved

    def polish(self, candidate: Candidate) -> None:
        """Take swaps, then IPU, then swaps again if IPU moved on; once from each support."""
        for _ in range(N_TURNS):
            if candidate.support.tobytes() in self._polished:
                return
            swapped, moved = self.swap(candidate)
            self._polished |= {candidate.support.tobytes(), swapped.support.tobytes()}
            gained = moved.objective > swapped.objective * (1 + TURN_GAIN)
            candidate = moved if gained else swapped
            if self.monitor.stopped or not gained:
                break
        self._ends.append(candidate)

    def best_ends(self, count: int) -> list[Candidate]:
        """Return where `polish` led, best first, of those with the same value only the first.

        Where features are copies of each other, many supports are as good as one.
        """
        best: list[Candidate] = []
        for end in sorted(self._ends, key=lambda end: -end.objective):
            if not best or end.objective < best[-1].objective * (1 - IMPROVEMENT):
                best.append(end)
        return best[:count]

    def take(self, candidate: Candidate) -> None:
        """Keep a point if it is the best."""
        if candidate.objective > self.best.objective:
            self.best = candidate


def polish(
    problem: RowSparseProblem, scores: FloatArray, choice: Choice, monitor: Monitor
) -> Index:
    """Turn a relaxed selection into a support: the k best scores, IPU, then pair swaps.

    Parameters
    ----------
    problem : RowSparseProblem
    scores : (d,) nonnegative
    choice : what is left of the problem's, when a search has cut it down
    monitor : asked whether to stop
    """
    inside, quiet = problem.changed(choice=choice), monitor.inner(quiet=True)
    start = inside.refit(inside.select(scores))
    run = run_rule(inside, PROXY, [start], max_iter=IPU_STEPS, monitor=quiet)
    better, _ = improve_by_swaps(inside, run.best, max_sweeps=10, monitor=quiet)
    return better.support
