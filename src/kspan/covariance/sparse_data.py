"""The covariance of sparse data."""

from typing import Any, Self

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance.data import WORK_BYTES, DataCovariance
from kspan.linalg.eigen import LAPACK_LIMIT
from kspan.linalg.moments import block_slices

# More multiplications than this and Lanczos is the cheaper way, even for few features.
SPARSE_GRAM_WORK = 1e8


# Beyond this many features, dense columns for many starts at once would fill the memory.
MANY_FEATURES = 100_000


class SparseDataCovariance(DataCovariance):
    """Data in scipy's CSR or CSC format. The zeros stay unstored; the mean is subtracted later."""

    @property
    def reads_are_costly(self) -> bool:
        """Whether there are too many features for many dense columns."""
        return self.n_features > MANY_FEATURES

    @classmethod
    def measure(cls, X: Any, *, scale: bool | FloatArray, ddof: int) -> Self:
        """Build from X alone. Two passes over the stored entries."""
        n, d = X.shape
        columns = X.indices if X.format == "csr" else np.repeat(np.arange(d), np.diff(X.indptr))
        with np.errstate(all="ignore"):
            data = X.data.astype(np.float64, copy=False)
            mean = np.bincount(columns, weights=data, minlength=d) / n
            stored = np.bincount(columns, minlength=d)
            deviation = data - mean[columns]
            deviation *= deviation
            around_mean = np.bincount(columns, weights=deviation, minlength=d)
            squares = around_mean + (n - stored) * mean * mean
        covariance = cls.from_moments(X, mean, squares, scale=scale, ddof=ddof)
        covariance.n_passes += 2
        return covariance

    def _gram_of_features(self, X: Any, mean: FloatArray, scale: FloatArray) -> FloatArray:
        n = self.n_samples
        X = X.astype(np.float64, copy=False)
        gram = (X.T @ X).toarray()
        # Subtracting the mean afterwards costs the digits that μ²/σ² takes. A column with few
        # zeros and a large mean would lose too many: those few columns are made dense instead.
        squares = np.diagonal(gram) - n * mean**2
        if np.any(n * mean**2 > 1e4 * squares):
            gram = np.zeros_like(gram)
            for block in block_slices(n, 8 * mean.size, WORK_BYTES):
                centred = X[block].toarray() - mean
                gram += centred.T @ centred
        else:
            gram -= n * np.outer(mean, mean)
        covariance: FloatArray = gram / np.outer(scale, scale * (n - self.ddof))
        return covariance

    def _small_gram(self, of_features: bool) -> FloatArray | None:
        size = self.n_features if of_features else self.n_samples
        if size > LAPACK_LIMIT or self.X.nnz * size > SPARSE_GRAM_WORK:
            return None
        self.n_passes += 1
        if of_features:
            return self._gram_of_features(self.X, self.mean, self.scale)
        identity = np.eye(size)
        divisor = self.n_samples - self.ddof
        gram = np.empty((size, size))
        for block in block_slices(size, 8 * self.n_features, WORK_BYTES):
            gram[:, block] = self.scores(self.back(identity[:, block])) / divisor
        return (gram + gram.T) / 2
