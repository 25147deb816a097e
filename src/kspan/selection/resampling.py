"""The covariance of resampled rows, from how often each row was drawn."""

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance import Covariance
from kspan.covariance.data import WORK_BYTES, DataCovariance
from kspan.covariance.dense import DenseCovariance
from kspan.covariance.dense_data import GRAM_LIMIT, DenseDataCovariance
from kspan.covariance.sparse_data import SparseDataCovariance
from kspan.linalg.moments import block_slices

# Draws of rows that are all alike, in a row, before giving up.
MAX_DRAWS = 1000


def draw(
    data: DataCovariance, sample_share: float | None, scale: bool, rng: np.random.Generator
) -> Covariance:
    """Draw rows and return their covariance. Rows without any variance are drawn again.

    Parameters
    ----------
    data : the covariance of all rows
    sample_share : share of the rows, drawn without replacement; None for the bootstrap
    scale : divide every feature by its standard deviation among the drawn rows
    rng : numpy.random.Generator
    """
    n = data.n_samples
    for _ in range(MAX_DRAWS):
        if sample_share is None:
            counts = np.bincount(rng.integers(n, size=n), minlength=n)
        else:
            size = round(sample_share * n)
            if size < 2:
                raise ValueError(f"sample_share={sample_share} of {n} rows is fewer than 2 rows.")
            counts = np.bincount(rng.choice(n, size, replace=False), minlength=n)
        covariance = resampled(data, counts, scale)
        if covariance is not None:
            return covariance
    raise ValueError(f"{MAX_DRAWS} resamples without any variance: too few rows differ.")


def resampled(data: DataCovariance, counts: Index, scale: bool) -> Covariance | None:
    """Return the covariance with row i taken ``counts[i]`` times; None if nothing varies.

    Few features: A is summed up with the counts as weights, and no row is copied. Else the rows
    are taken as often as they were drawn; sparse ones stay sparse.
    """
    if isinstance(data, DenseDataCovariance) and data.n_features <= min(GRAM_LIMIT, data.n_samples):
        A = _weighted(data, counts, scale)
        return None if A is None else DenseCovariance(A, data.dtype)
    X = data.X[np.repeat(np.arange(data.n_samples), counts)]
    kind = SparseDataCovariance if isinstance(data, SparseDataCovariance) else DenseDataCovariance
    covariance = kind.measure(X, scale=scale, ddof=data.ddof)
    return covariance if covariance.trace() > 0 else None


def _weighted(data: DenseDataCovariance, counts: Index, scale: bool) -> FloatArray | None:
    """Return ``Σ c_i (x_i - μ)(x_i - μ)' / (n - ddof)``, μ the mean of the drawn rows."""
    n, d = int(counts.sum()), data.n_features
    gram, total = np.zeros((d, d)), np.zeros(d)
    for block in block_slices(data.n_samples, 8 * d, WORK_BYTES):
        # Measured from the mean of all rows, which is close to μ: large means cost no digits.
        centred = data.X[block] - data.mean  # float64, whatever X is
        weighted = centred * counts[block, None]
        gram += weighted.T @ centred
        total += weighted.sum(axis=0)
    squares = np.diagonal(gram).copy()
    gram -= np.outer(total, total / n)
    # What is left of a feature that the drawn rows have in common is rounding.
    variances = np.diagonal(gram)
    constant = variances <= n * np.finfo(float).eps * squares
    gram[constant] = 0.0
    gram[:, constant] = 0.0
    if constant.all():
        return None
    gram /= n - data.ddof
    if scale:
        divisors = np.where(constant, 1.0, np.sqrt(np.diagonal(gram)))
        gram /= np.outer(divisors, divisors)
    return (gram + gram.T) / 2
