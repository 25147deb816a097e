r"""Few passes: work on a few hundred candidate features, then look at all the others again.

For data that is read from disk a pass costs more than all arithmetic on what it brings. So:

1. A product AΩ with random columns (it comes with the means and variances), an orthonormal basis Q
   of it, and AQ. The Ritz pairs in Q give every feature two scores: the length of its row in the
   low-rank approximation (Go's score) and in AW (IPU's).
2. T: the features with the largest scores and variances, and those to include. A on T is one pass;
   the work on T is then done in memory.
3. One product AW with the loadings W that it found scores all features again. If the k best are all
   in T, no step of IPU leads out of it, and that is the answer. If not, T takes them in, for one
   more round.

Passes over the data: two for a basis (the first is that of the means), two for each round; six at
most.

Guarantee: none, but that the answer is a fixed point of IPU among all features when the last look
finds nothing new.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.selection import top_k
from kspan.problem import RowSparseProblem
from kspan.progress import Monitor

Result = TypeVar("Result")

# Candidates: this many times k, between these limits.
PER_FEATURE, FEWEST, MOST = 6, 200, 1000

# Rounds of work, each on more candidates.
N_LOOKS = 2

# More columns in the basis than components.
OVERSAMPLING = 8


@dataclass(frozen=True)
class Found(Generic[Result]):
    """What the work on some candidates gave.

    Attributes
    ----------
    result : anything, in the numbers of the candidates
    loadings : (d_small, c) columns with which all features are scored again
    value : the round with the largest one counts
    """

    result: Result
    loadings: FloatArray
    value: float


@dataclass(frozen=True)
class OnCandidates(Generic[Result]):
    """The best round.

    Attributes
    ----------
    features : the candidates, ascending
    problem : the problem on these alone, numbered anew
    result : of the work on it
    """

    features: Index
    problem: RowSparseProblem
    result: Result


def on_candidates(
    problem: RowSparseProblem,
    work: Callable[[RowSparseProblem], Found[Result]],
    *,
    rng: np.random.Generator,
    monitor: Monitor,
) -> OnCandidates[Result]:
    """Work on candidate features.

    Parameters
    ----------
    problem : RowSparseProblem
        For which `wants_candidates` holds.
    work : done on the problem on the candidates, whose covariance is in memory
    rng : numpy.random.Generator
    monitor : says when to stop
    """
    features = problem.choice.whole(_first_candidates(problem, candidate_count(problem), rng))
    best: OnCandidates[Result] | None = None
    value = -np.inf
    for look in range(1, N_LOOKS + 1):
        small = problem.inside(features)
        found = work(small)
        if best is None or found.value >= value:
            best, value = OnCandidates(features, small, found.result), found.value
        whole = features.size == problem.choice.features.size
        if look == N_LOOKS or whole or monitor.out_of_time():
            break
        used = np.flatnonzero(found.loadings.any(axis=1))
        product = problem.covariance.matmat(found.loadings[used], features[used])
        scores = np.linalg.norm(product, axis=1)
        if not np.setdiff1d(problem.select(scores), features).size:
            break
        # Those that step in, and as many of the next ones.
        scores[~problem.choice.coming(features)] = -1.0
        more = top_k(scores, min(2 * problem.choice.size, int((scores > 0).sum())))
        features = problem.choice.whole(np.union1d(features, more))
    assert best is not None
    return best


def wants_candidates(problem: RowSparseProblem) -> bool:
    """Say whether reads are costly and candidates would be fewer than all features."""
    few = candidate_count(problem) < problem.choice.features.size
    return few and problem.covariance.reads_are_costly


def candidate_count(problem: RowSparseProblem) -> int:
    """Return how many candidates there are at first; all features, if there are no more."""
    k = problem.choice.size
    return min(max(FEWEST, PER_FEATURE * k), max(MOST, 2 * k), problem.choice.features.size)


def _first_candidates(problem: RowSparseProblem, size: int, rng: np.random.Generator) -> Index:
    """Return the features that score best by two looks at A, and by their variance."""
    covariance, m = problem.covariance, problem.n_components
    d, k = problem.n_features, problem.choice.size
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
    chosen = problem.choice.include
    for scores, share in zip(wanted, shares, strict=True):
        keys = np.where(problem.choice.coming(chosen), scores, -1.0)
        chosen = np.union1d(chosen, top_k(keys, min(max(share, 0), int((keys >= 0).sum()))))
    if problem.choice.has_rules:  # so that there is a support among them
        chosen = np.union1d(chosen, problem.select(wanted[0]))
    return chosen.astype(np.intp)
