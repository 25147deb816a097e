r"""Few passes: solve on a few hundred candidate features, then look at all the others again.

For data that is read from disk a pass costs more than all arithmetic on what it brings. So:

1. A product AΩ with random columns (it comes with the means and variances), an orthonormal basis Q
   of it, and AQ. The Ritz pairs in Q give every feature two scores: the length of its row in the
   low-rank approximation (Go's score) and in AW (IPU's).
2. T: the features with the largest scores and variances, and those to include. A on T is one pass;
   the problem on T is then solved in memory.
3. One product AW with the solution W scores all features again. If the k best are all in T, no step
   of IPU leads out of it, and that is the answer. If not, T takes them in, for one more round.

Passes over the data: two for a basis (the first is that of the means), two for each round; six at
most.

Guarantee: none, but that the answer is a fixed point of IPU among all features when the last look
finds nothing new.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.selection import top_k
from kspan.problem import RowSparseProblem
from kspan.progress import Monitor
from kspan.solution import Solution

# Candidates: this many times k, between these limits.
PER_FEATURE, FEWEST, MOST = 6, 200, 1000

MAX_ROUNDS = 2

# More columns in the basis than components.
OVERSAMPLING = 8


def by_candidates(
    problem: RowSparseProblem,
    solve_small: Callable[[RowSparseProblem], Solution],
    *,
    rng: np.random.Generator,
    monitor: Monitor,
) -> Solution:
    """Solve on candidate features.

    Parameters
    ----------
    problem : RowSparseProblem
        With more features than candidates (`candidate_count`).
    solve_small : solves the problem on the candidates, whose covariance is in memory
    rng : numpy.random.Generator
    monitor : says when to stop
    """
    k, size = problem.n_features_to_select, candidate_count(problem)
    chosen = _first_candidates(problem, size, rng)
    history: list[float] = []
    n_iter = 0
    best: Solution | None = None
    for round_number in range(MAX_ROUNDS):
        small = _restricted(problem, chosen)
        found = solve_small(small)
        support = chosen[found.support]
        if best is None or found.objective >= best.objective:
            best = replace(found, support=support, n_features=problem.n_features)
        history += found.history.tolist()
        n_iter += found.n_iter
        if (
            monitor.out_of_time()
            or round_number == MAX_ROUNDS - 1
            or chosen.size == size_of_all(problem)
        ):
            break
        product = problem.covariance.matmat(found.weights, support)
        scores = np.linalg.norm(product, axis=1)
        wanted = problem.select(scores)
        missing = np.setdiff1d(wanted, chosen)
        if not missing.size:
            break
        # Those that step in, and as many of the next ones.
        scores[chosen] = -1.0
        scores[~problem.allowed] = -1.0
        more = top_k(scores, min(2 * k, int((scores > 0).sum())))
        chosen = np.union1d(chosen, more)
    assert best is not None
    return replace(best, history=np.maximum.accumulate(history), n_iter=n_iter)


def candidate_count(problem: RowSparseProblem) -> int:
    """Return how many candidates there are at first; all features, if there are no more."""
    k = problem.n_features_to_select
    return min(max(FEWEST, PER_FEATURE * k), max(MOST, 2 * k), size_of_all(problem))


def size_of_all(problem: RowSparseProblem) -> int:
    """Return how many features may be chosen."""
    return int(problem.allowed.sum())


def _first_candidates(problem: RowSparseProblem, size: int, rng: np.random.Generator) -> Index:
    """Return the features that score best by two looks at A, and by their variance."""
    covariance, m = problem.covariance, problem.n_components
    d, k = problem.n_features, problem.n_features_to_select
    width = min(m + OVERSAMPLING, d)
    sketch = covariance.sketch
    if sketch is None or sketch[1].shape[1] < width:
        product = covariance.matmat(rng.standard_normal((d, width)))
    else:
        product = sketch[1]
    basis = np.linalg.qr(product)[0]
    image = covariance.matmat(basis)
    inside = basis.T @ image
    values, turn = np.linalg.eigh((inside + inside.T) / 2)
    leading = image @ turn[:, ::-1][:, :m]  # A W for the Ritz vectors W
    # Beyond the rank a Ritz value is rounding, and so is the direction: it must not be blown up.
    ritz = np.maximum(values[::-1][:m], np.finfo(float).eps * values[-1])
    wanted: list[FloatArray] = [
        np.linalg.norm(leading / np.sqrt(ritz), axis=1),
        np.linalg.norm(leading, axis=1),
        covariance.diagonal(),
    ]
    shares = (size // 3, size - size // 3 - k, k)
    chosen = np.asarray(problem.include, dtype=np.intp)
    for scores, share in zip(wanted, shares, strict=True):
        keys = np.where(problem.allowed, scores, -1.0)
        keys[chosen] = -1.0
        chosen = np.union1d(chosen, top_k(keys, min(max(share, 0), int((keys >= 0).sum()))))
    return chosen.astype(np.intp)


def _restricted(problem: RowSparseProblem, chosen: Index) -> RowSparseProblem:
    """Return the problem on some features, all of which may be chosen."""
    include = np.searchsorted(chosen, np.asarray(problem.include, dtype=np.intp))
    return RowSparseProblem(
        problem.covariance.restrict(chosen), problem.n_components, problem.n_features_to_select,
        include,
    )  # fmt: skip
