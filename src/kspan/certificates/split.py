r"""The split bound: the relaxation on the features that matter, their variance for the others.

The features are split into T (relaxed, `cone_relaxation.py`) and R (each one costs its variance).
Never forms a matrix of all features: it needs A on T and the diagonal.
"""

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.certificates.bounds import split_bound
from kspan.certificates.cone_relaxation import ConeRelaxation
from kspan.certificates.outcome import Outcome
from kspan.certificates.witness import SplitWitness
from kspan.progress import Monitor

CHECK_EVERY = 20  # iterations between two evaluations of the bound


def choose_inside(
    variances: FloatArray, size: int, support: Index, forced: Mask, allowed: Mask
) -> Index:
    """Return T: the chosen and the forced features, and those of largest variance."""
    keys = np.where(allowed, variances, -1.0)
    keys[support] = np.inf
    keys[forced] = np.inf
    size = min(max(size, int(np.isinf(keys).sum())), int(allowed.sum()))
    return np.sort(np.argsort(-keys, kind="stable")[:size])


def solve_split(
    A: FloatArray,
    variances: FloatArray,
    m: int,
    k: int,
    *,
    scale: float,
    inside: Index,
    forced: Mask,
    allowed: Mask,
    n_samples: int,
    nonnegative: bool = False,
    lower: float,
    max_iter: int,
    target: float,
    monitor: Monitor,
    outcome: Outcome,
) -> None:
    """Lower the split bound until `max_iter`, until it reaches `target`, or until told to stop.

    `A` (on T) and `variances` (of all features) are in units of `scale`, and so are `lower`,
    `target` and the bound in the outcome.
    """
    outside = allowed & ~forced
    outside[inside] = False
    n_forced_outside = int((forced & ~np.isin(np.arange(variances.size), inside)).sum())
    relax = ConeRelaxation(
        A, m, k - n_forced_outside, forced=forced[inside], rewards=variances[outside],
        nonnegative=nonnegative,
    )  # fmt: skip
    for iteration in range(1, max_iter + 1):
        relax.step()
        if iteration % CHECK_EVERY and iteration < max_iter:
            continue
        witness = SplitWitness(scale, inside, *relax.witness())
        try:
            value = split_bound(A, variances, m, k, witness, forced, allowed, n_samples)
        except FloatingPointError:
            break
        outcome.n_eigensolves += 1
        outcome.offer(value, witness)
        upper = max(outcome.upper, lower)
        if monitor.report(lower * scale, upper=upper * scale, n_features_left=inside.size):
            break
        if outcome.upper <= target:
            break
    outcome.n_eigensolves += relax.n_eigensolves
    outcome.scores = np.zeros(variances.size)
    outcome.scores[inside] = relax.z
