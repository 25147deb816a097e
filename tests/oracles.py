"""Independent answers, written from the definitions and nothing else."""

from itertools import combinations

import numpy as np


def best_by_enumeration(A, m, k, include=(), exclude=()):
    """Return the largest sum of m eigenvalues over all supports, one eigensolve at a time."""
    best = -np.inf
    for support in combinations(range(A.shape[0]), k):
        if set(include) <= set(support) and not set(exclude) & set(support):
            value = np.linalg.eigvalsh(A[np.ix_(support, support)])[-m:].sum()
            best = max(best, value)
    return float(best)


def explained(A, support, m):
    """Return the sum of the m leading eigenvalues on a support."""
    return float(np.linalg.eigvalsh(A[np.ix_(support, support)])[-m:].sum())


def random_covariance(rng, d, rank=None):
    F = rng.standard_normal((d, rank or d))
    return F @ F.T
