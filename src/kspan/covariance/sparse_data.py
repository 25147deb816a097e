"""The covariance of sparse data."""

from typing import Any, Self

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance.block_kernels import block_slices, gram, sparse_column_moments
from kspan.covariance.data_covariance import DENSE_PIECE_BYTES, InMemoryCovariance
from kspan.covariance.dense_data import DenseDataCovariance
from kspan.linalg.eigen import LAPACK_LIMIT

# More multiplications than this and Lanczos is the cheaper way, even for few features.
SPARSE_GRAM_WORK = 1e8

# Beyond this many features, dense columns for many starts at once would fill the memory.
MANY_SPARSE_FEATURES = 100_000


class SparseDataCovariance(InMemoryCovariance):
    """Data in scipy's CSR or CSC format. The zeros stay unstored; the mean is subtracted later."""

    @property
    def reads_are_costly(self) -> bool:
        """Whether there are too many features for many dense columns."""
        return self.n_features > MANY_SPARSE_FEATURES

    @classmethod
    def measure(cls, X: Any, *, scale: bool | FloatArray, ddof: int) -> Self:
        """Build from X alone. Two passes over the stored entries."""
        covariance = cls.from_moments(X, *sparse_column_moments(X), scale=scale, ddof=ddof)
        covariance.n_passes += 2
        return covariance

    def densified(self) -> DenseDataCovariance:
        """Return the same with the zeros stored. One pass."""
        return DenseDataCovariance.of(self, self.X.toarray())

    def _is_cheap(self, size: int) -> bool:
        return size <= LAPACK_LIMIT and self.X.nnz * size <= SPARSE_GRAM_WORK

    def _deviation_products(self, support: Index | None, mean: FloatArray) -> FloatArray:
        n = self.n_samples
        X = self.X if support is None else self.X[:, support]
        X = X.astype(np.float64, copy=False)
        products: FloatArray = (X.T @ X).toarray()
        # Subtracting the mean afterwards costs the digits that μ²/σ² takes. A column with few
        # zeros and a large mean would lose too many: those few columns are made dense instead.
        squares = np.diagonal(products) - n * mean**2
        if np.any(n * mean**2 > 1e4 * squares):
            return gram(X, mean)
        products -= n * np.outer(mean, mean)
        return products

    def _sample_products(self) -> FloatArray:
        size = self.n_samples
        identity, products = np.eye(size), np.empty((size, size))
        for block in block_slices(size, 8 * self.n_features, DENSE_PIECE_BYTES):
            products[:, block] = self.scores(self.back(identity[:, block]))
        return (products + products.T) / 2
