"""The matrices that certificates are computed on, from the covariance layer."""

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.certificates.bounds import unit_scale
from kspan.problem import NonnegativeProblem, RowSparseProblem

# Up to this many features A is formed and relaxed as a whole; an iteration costs O(d³).
DENSE_LIMIT = 1000


def dense_matrix(
    problem: RowSparseProblem | NonnegativeProblem, features: Index
) -> tuple[FloatArray, float]:
    """Return A on some features, exactly symmetric, divided by a power of two, and that power."""
    A = problem.covariance.submatrix(features)
    scale = unit_scale(float(np.abs(A).max(initial=0.0)))
    A = A / scale
    return 0.5 * (A + A.T), scale


def sample_matrix(problem: RowSparseProblem | NonnegativeProblem) -> FloatArray:
    """Return X (n × d) with ``A = X'X``, for wide data."""
    X = problem.covariance.sample_factor()
    if X is None:
        raise ValueError("the problem has no data with few samples behind it")
    return X
