"""Where the splitting methods start: points of the manifold."""

from collections.abc import Callable

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance import Covariance
from kspan.solvers.starts import Init, random_subspace

# What "auto" starts from.
PORTFOLIO = ("svd", "varimax", "coordinate")
STIEFEL_STARTS = (*PORTFOLIO, "random")


def starting_points(
    covariance: Covariance, r: int, init: Init, rng: np.random.Generator
) -> FloatArray:
    """Return the starts that a name stands for, or an array, as a stack (s, d, r).

    - "svd": the r leading eigenvectors of A, the paper's choice;
    - "varimax": the same subspace, rotated so that its axes are as sparse as they get;
    - "coordinate": r single features, each with the most variance that the ones before leave;
    - "random": a random orthonormal matrix;
    - "auto", which only the method of that name has: the first three.
    """
    if not isinstance(init, str):
        return np.linalg.qr(np.asarray(init, dtype=np.float64))[0][None]
    makers: dict[str, Callable[[], FloatArray]] = {
        "svd": lambda: covariance.leading(r).vectors,
        "varimax": lambda: varimax(covariance.leading(r).vectors),
        "coordinate": lambda: coordinates(covariance, r),
        "random": lambda: random_subspace(covariance.n_features, r, rng),
    }
    return np.stack([makers[name]() for name in (PORTFOLIO if init == "auto" else (init,))])


def varimax(V: FloatArray, max_iter: int = 100) -> FloatArray:
    """Rotate the columns within their span to the largest variance of squared entries (Kaiser)."""
    rotation, before = np.eye(V.shape[1]), 0.0
    for _ in range(max_iter):
        B = V @ rotation
        left, values, right = np.linalg.svd(V.T @ (B**3 - B * np.mean(B * B, axis=0)))
        rotation = left @ right
        if values.sum() <= before * (1 + 1e-8):
            break
        before = float(values.sum())
    return V @ rotation


def coordinates(covariance: Covariance, r: int) -> FloatArray:
    """Return unit vectors of r features, chosen as a pivoted Cholesky factorisation would."""
    d = covariance.n_features
    left = np.array(covariance.diagonal(), dtype=np.float64)
    factor = np.zeros((d, r))
    V = np.zeros((d, r))
    for j in range(r):
        i = int(np.argmax(left))
        V[i, j] = 1.0
        if left[i] > 0:
            column = covariance.columns(np.array([i]))[:, 0] - factor[:, :j] @ factor[i, :j]
            factor[:, j] = column / np.sqrt(left[i])
            left = np.maximum(left - factor[:, j] ** 2, 0.0)
        left[i] = -1.0
    return V
