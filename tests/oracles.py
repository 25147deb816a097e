"""Independent answers, written from the definitions and nothing else."""

from itertools import combinations

import numpy as np
from hypothesis import strategies as st
from scipy.linalg import null_space

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


# --- nonnegative

# A coefficient of an eigenvector that is further below zero than this is negative.
SIGN_TOL = 1e-9


def nonnegative_optimum(A, k, allowed=None):
    """Return max x'Ax over unit x ≥ 0 with at most k entries.

    At an optimum x with support J, x_J > 0 is a local maximum on the sphere, hence a leading
    eigenvector of A_JJ: try all supports whose leading eigenvector has one sign.
    """
    features = np.arange(len(A)) if allowed is None else np.flatnonzero(allowed)
    best = 0.0
    for size in range(1, min(k, features.size) + 1):
        supports = np.array(list(combinations(features, size)))
        values, vectors = np.linalg.eigh(A[supports[:, :, None], supports[:, None, :]])
        leading = vectors[:, :, -1]
        one_sign = (leading >= -SIGN_TOL).all(axis=1) | (leading <= SIGN_TOL).all(axis=1)
        best = max(best, values[one_sign, -1].max(initial=0.0))
    return float(best)


def covariance_of(A):
    return as_covariance(np.asarray(A, dtype=float), kind="covariance")


def assert_feasible(X, k):
    assert (X >= 0).all()
    assert (np.count_nonzero(X, axis=0) <= k).all()
    np.testing.assert_allclose(np.linalg.norm(X, axis=0), 1.0, rtol=1e-12)


def cone_maximum_by_enumeration(Q, R):
    """Return max c'Qc over unit c with Rc ≥ 0, or None: for all sets of rows that may be active,
    the leading eigenvector of Q in the space where these rows are zero."""
    d = len(Q)
    tol = 1e-9 * np.linalg.norm(R, axis=1)
    best = None
    for size in range(d):
        for active in combinations(range(len(R)), size):
            N = null_space(R[list(active)]) if active else np.eye(d)
            if N.shape[1] == 0:
                continue
            values, vectors = np.linalg.eigh(N.T @ Q @ N)
            for c in (N @ vectors[:, -1], -N @ vectors[:, -1]):
                if (R @ c >= -tol).all() and (best is None or values[-1] > best):
                    best = float(values[-1])
    return best


def draw_rows(rng, n, d, kind):
    """Draw n rows in d dimensions: generic, or with ties, zeros and signs of all kinds."""
    V = rng.standard_normal((n, d))
    if kind == "integers":
        V = rng.integers(-2, 3, (n, d)).astype(float)
    elif kind == "binary":
        V = rng.integers(0, 2, (n, d)).astype(float)
    elif kind == "negative":
        V = -np.abs(V)
    elif kind == "duplicates":
        V = V[rng.integers(0, n, n)]
    elif kind == "zeros":
        V[rng.random(n) < 0.4] = 0.0
    elif kind == "parallel":
        V = V[rng.integers(0, n, n)] * rng.choice([-2.0, -1.0, 0.5, 1.0], n)[:, None]
    elif kind == "nearly tied":
        V = V[rng.integers(0, n, n)] + 1e-9 * V
    return V


KINDS = (
    "generic", "integers", "binary", "negative", "duplicates", "zeros", "parallel", "nearly tied",
)  # fmt: skip


def spiked(rng, d, rank, noise):
    """Draw σI + C with C of a rank: some features have more of the signal than others."""
    F = rng.standard_normal((d, rank)) * rng.uniform(0.3, 1.5, (d, 1))
    return F @ F.T + noise * np.eye(d)
