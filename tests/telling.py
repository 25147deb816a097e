"""What features tell of all others, by regression written out, and random problems about it."""

from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from kspan import RepresentProblem, as_covariance
from tests.proofs.helpers import KINDS, random_psd


def told_by_regression(X, support, m, ridge=0.0):
    """Fit all centred columns on the chosen ones; the m largest squared singular values of the fit.

    A ridge is rows that are added: zero for all targets, and noise for the features. What the fit
    says of these rows counts too, as the noise is part of the scores.
    """
    X = X - X.mean(axis=0)
    n, Z = len(X), X[:, support]
    noise = np.diag(np.sqrt(ridge * np.sum(Z**2, axis=0)))
    rows, targets = np.vstack([Z, noise]), np.vstack([X, np.zeros((len(support), X.shape[1]))])
    if not ridge:
        rows, targets = Z, X
    fit = rows @ np.linalg.lstsq(rows, targets, rcond=None)[0]
    return float((np.linalg.svd(fit, compute_uv=False)[:m] ** 2).sum() / (n - 1))


def told(A, support, m, ridge):
    """The same from a covariance: the pencil by its pseudo-inverse, in units of the variances."""
    S = [i for i in support if A[i, i] > 0]
    if not S:
        return 0.0
    deviations = np.sqrt(np.diagonal(A)[S])
    C = A[S] / deviations[:, None]
    values, vectors = np.linalg.eigh(C[:, S] / deviations + ridge * np.eye(len(S)))
    kept = values > 1e-10
    F = (vectors[:, kept] / np.sqrt(values[kept])).T @ C
    return float((np.linalg.svd(F, compute_uv=False)[:m] ** 2).sum())


def best_told(A, m, k, ridge, include=(), exclude=()):
    """The most that k features tell."""
    return max(
        told(A, S, m, ridge)
        for S in combinations(range(len(A)), k)
        if set(include) <= set(S) and not set(exclude) & set(S)
    )


@st.composite
def telling_problems(draw, max_d=7, ridges=(1e-5, 1e-2, 1.0)):
    """A matrix and a problem with it, features forced and forbidden among it."""
    d = draw(st.integers(1, max_d))
    k = draw(st.integers(1, d))
    m = draw(st.integers(1, k) | st.just(k))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    A = random_psd(rng, d, draw(st.sampled_from(KINDS)))
    order = rng.permutation(d)
    include = order[: draw(st.integers(0, k))].tolist() if draw(st.booleans()) else []
    most = min(d - k, d - len(include))
    exclude = order[d - draw(st.integers(0, most)) :].tolist() if most else []
    covariance = as_covariance(A, kind="covariance")
    ridge = draw(st.sampled_from(ridges))
    return A, RepresentProblem(covariance, m, k, include, exclude, ridge=ridge)
