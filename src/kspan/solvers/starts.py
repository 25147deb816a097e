"""Where methods start: subspaces at random, of large variance or the user's; a low-rank factor."""

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray
from kspan.covariance import Covariance
from kspan.linalg.selection import top_k
from kspan.problem import RowSparseProblem
from kspan.solvers.shifts import RANK_TOL, shifted

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
    allowed = problem.choice.features
    W = np.zeros((d, m))
    W[allowed[top_k(problem.covariance.diagonal()[allowed], m)], np.arange(m)] = 1.0
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


def low_rank_factor(covariance: Covariance, rank: int, shift: float = 0.0) -> FloatArray:
    """Return V with VV' the best approximation of A of that rank; zero rows for constant features.

    It has at least one column, and no more than A has directions. The largest entry of every
    column is positive, so that one c gives the same Vc whatever the eigensolver. With a shift the
    eigenvalues of VV' are that much larger (see `kspan.solvers.shifts`).
    """
    pairs = covariance.leading(min(rank, covariance.n_features))
    values = shifted(pairs.values, shift)
    d = max(int(np.count_nonzero(values > RANK_TOL * max(float(pairs.values[0]), 0.0))), 1)
    V = pairs.vectors[:, :d] * np.sqrt(values[:d])
    V[covariance.diagonal() <= 0] = 0.0
    largest = V[np.abs(V).argmax(axis=0), np.arange(d)]
    factor: FloatArray = V * np.where(largest < 0, -1.0, 1.0)
    return factor


def beyond_rank(covariance: Covariance, rank: int) -> float:
    """Return the largest eigenvalue of what an approximation of that rank leaves, and its error."""
    if rank >= covariance.n_features:
        return 0.0
    pairs = covariance.leading(rank + 1)
    return max(float(pairs.values[rank]), 0.0) + float(pairs.residuals.sum())
