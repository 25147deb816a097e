"""From the support at one k to a start at another: more features, fewer, or others."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from kspan.arrays import Index
from kspan.linalg.selection import top_k
from kspan.problem import STACK_LIMIT, RowSparseProblem
from kspan.solution import Candidate
from kspan.solvers.rowsparse.ipu import proxy_diagonal

ProblemAt = Callable[[int], RowSparseProblem]

# Neighbours of a support that are tried exactly, all in one call; of large ones fewer.
N_TRIALS, N_LARGE_TRIALS = 32, 4


def grow(problem: RowSparseProblem, candidate: Candidate) -> Candidate:
    """Return the candidate with the best next features, as many as the problem asks for."""
    support = candidate.support
    product = problem.covariance.matmat(candidate.weights, support)
    scores = proxy_diagonal(product, candidate.variances)
    if problem.n_features_to_select > support.size + 1:
        return problem.refit(replace(problem, include=support).select(scores))
    keys = scores.copy()
    keys[problem.covariance.diagonal() <= 0] = -0.5  # constant features last of all
    keys[~problem.allowed] = -1.0
    keys[support] = -1.0
    n_trials = min(_n_trials(problem), int((keys > -1).sum()))
    trials = [np.sort(np.append(support, j)) for j in top_k(keys, n_trials)]
    return _best_of(problem.refit_all(trials))


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


def shrink(problem: RowSparseProblem, candidate: Candidate) -> Candidate:
    """Return the candidate without its worst features, so many that the problem's are left."""
    support = candidate.support
    shares = (candidate.weights**2) @ candidate.variances
    scores = np.zeros(problem.n_features)
    scores[support] = shares
    if problem.n_features_to_select < support.size - 1:
        others = np.setdiff1d(np.arange(problem.n_features), support)
        return problem.refit(replace(problem, exclude=others).select(scores))
    free = np.flatnonzero(~np.isin(support, problem.include))
    worst = free[top_k(-shares[free], min(_n_trials(problem), free.size))]
    return _best_of(problem.refit_all([np.delete(support, place) for place in worst]))


def _n_trials(problem: RowSparseProblem) -> int:
    return N_TRIALS if problem.n_features_to_select <= STACK_LIMIT else N_LARGE_TRIALS


def _best_of(candidates: Sequence[Candidate]) -> Candidate:
    return max(candidates, key=lambda candidate: candidate.objective)


def kicked(problem: RowSparseProblem, support: Index, rng: np.random.Generator) -> Index:
    """Exchange about a third of the features that are free to go for random others."""
    free = np.setdiff1d(support, problem.include)
    outside = problem.allowed & (problem.covariance.diagonal() > 0)
    outside[support] = False
    pool = np.flatnonzero(outside)
    count = min(max(1, free.size // 3), pool.size, free.size)
    gone = rng.choice(free, count, replace=False) if count else free[:0]
    come = rng.choice(pool, count, replace=False) if count else pool[:0]
    return np.sort(np.append(np.setdiff1d(support, gone), come))
