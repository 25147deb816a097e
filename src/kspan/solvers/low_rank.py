"""The best approximation of A of low rank, as a factor."""

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance.base import Covariance

# Eigenvalues up to this share of the first are rounding.
RANK_TOL = 1e-12


def low_rank_factor(covariance: Covariance, rank: int) -> FloatArray:
    """Return V with VV' the best approximation of A of that rank; zero rows for constant features.

    It has at least one column, and no more than A has directions. The largest entry of every
    column is positive, so that one c gives the same Vc whatever the eigensolver.
    """
    pairs = covariance.leading(min(rank, covariance.n_features))
    d = max(int(np.count_nonzero(pairs.values > RANK_TOL * max(float(pairs.values[0]), 0.0))), 1)
    V = pairs.vectors[:, :d] * np.sqrt(np.maximum(pairs.values[:d], 0.0))
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
