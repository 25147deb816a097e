"""Independent answers, written from the definitions and nothing else."""

from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance


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


def draw_problem(data, seed, max_features):
    """Draw a small problem of any rank, with up to two features forced and two forbidden."""
    rng = np.random.default_rng(seed)
    d = data.draw(st.integers(2, max_features))
    k = data.draw(st.integers(1, d))
    m = data.draw(st.integers(1, k))
    include = data.draw(st.sets(st.integers(0, d - 1), max_size=min(2, k)))
    exclude = data.draw(st.sets(st.integers(0, d - 1), max_size=min(2, d - k))) - include
    A = random_covariance(rng, d, data.draw(st.integers(1, d)))
    problem = RowSparseProblem(
        as_covariance(A, kind="covariance"), m, k, sorted(include), sorted(exclude)
    )
    return A, problem
