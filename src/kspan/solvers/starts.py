"""Subspaces that iterative methods start from: random, of large variance, or the user's."""

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray
from kspan.linalg.selection import top_k
from kspan.problem import RowSparseProblem

# "low-rank", "convex", "variance", "random", or a (d, m) array. The first two are points that
# other methods find: Go, and the convex relaxation of FPS.
Init = str | NDArray[np.floating]
STARTS = ("low-rank", "convex", "variance", "random")


def random_subspace(n_features: int, n_components: int, rng: np.random.Generator) -> FloatArray:
    """Return an orthonormal basis of a uniformly random subspace (d × m)."""
    return np.linalg.qr(rng.standard_normal((n_features, n_components)))[0]


def variance_subspace(problem: RowSparseProblem) -> FloatArray:
    """Return the unit vectors of the m allowed features with the largest variances (d × m)."""
    d, m = problem.n_features, problem.n_components
    variances = np.where(problem.allowed, problem.covariance.diagonal(), -1.0)
    W = np.zeros((d, m))
    W[top_k(variances, m), np.arange(m)] = 1.0
    return W


def given_subspace(problem: RowSparseProblem, W: NDArray[np.floating]) -> FloatArray:
    """Return an orthonormal basis of the span of a user's start, after checking it."""
    W = np.asarray(W, dtype=np.float64)
    shape = (problem.n_features, problem.n_components)
    if W.shape != shape:
        raise ValueError(f"init must have shape (n_features, n_components)={shape}, got {W.shape}.")
    if not np.isfinite(W).all():
        raise ValueError("init contains NaN or infinity.")
    size = np.linalg.norm(W, 2)
    Q, R = np.linalg.qr(W)
    if size == 0 or np.abs(np.diagonal(R)).min() <= 1e-12 * size:
        raise ValueError("init must have linearly independent columns.")
    return Q
