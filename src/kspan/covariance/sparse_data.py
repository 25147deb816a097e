"""The covariance of sparse data."""

from typing import Any

import numpy as np
import scipy.sparse

from kspan.arrays import FloatArray, Index
from kspan.covariance.block_kernels import (
    GRAM_BYTES,
    block_slices,
    gram,
    sparse_column_moments,
    sparse_origin,
)
from kspan.covariance.data_covariance import DENSE_PIECE_BYTES, InMemoryCovariance
from kspan.covariance.dense_data import DenseDataCovariance
from kspan.covariance.memory import Columns
from kspan.covariance.weights import Weights
from kspan.linalg.eigen import LAPACK_LIMIT
from kspan.linalg.rounding import UNIT

# More multiplications than this and Lanczos is the cheaper way, even for few features.
SPARSE_GRAM_WORK = 1e8

# Columns whose squares are more than so many times their squared deviations are centred first.
MOST_CANCELLATION = 4.0

# Beyond this many features, dense columns for many starts at once would fill the memory.
MANY_SPARSE_FEATURES = 100_000


class SparseDataCovariance(InMemoryCovariance):
    """Data in scipy's CSR or CSC format. The zeros stay unstored; the mean is subtracted later."""

    @property
    def reads_are_costly(self) -> bool:
        """Whether there are too many features for many dense columns."""
        return self.n_features > MANY_SPARSE_FEATURES

    @classmethod
    def _summarised(cls, X: Any, weights: Weights | None) -> tuple[Columns, int]:
        origin = sparse_origin(X, 0 if weights is None else weights.heaviest)
        moments = sparse_column_moments(X, origin, None if weights is None else weights.values)
        return Columns.of(origin, moments), 2  # over the stored entries

    def densified(self) -> DenseDataCovariance:
        """Return the same with the zeros stored. One pass."""
        return DenseDataCovariance.of(self, self.X.toarray())

    def _is_cheap(self, size: int) -> bool:
        return size <= LAPACK_LIMIT and self.X.nnz * size <= SPARSE_GRAM_WORK

    def _cancellation(self, support: Index | None = None) -> FloatArray:
        """Return Σx² / Σ(x - μ)² of every column: one unless its mean is large."""
        rows: Any = slice(None) if support is None else support
        squares = self._variances[rows] * self.divisor
        means = self._total * (self.mean[rows] / self.scale[rows]) ** 2
        constant = np.where(means > 0, np.inf, 0.0)
        return 1.0 + np.divide(means, squares, where=squares > 0, out=constant)

    @property
    def _total(self) -> float:
        """How many rows there are, or their weight."""
        return self.n_samples if self.weights is None else self.weights.total

    def _deviation_products(
        self, support: Index | None, mean: FloatArray, rest: FloatArray
    ) -> FloatArray:
        X = self.X if support is None else self.X[:, support]
        X = X.astype(np.float64, copy=False)
        # Subtracting the mean afterwards costs the digits that μ²/σ² takes. A column with few
        # zeros and a large mean would lose too many: those are made dense, block by block.
        full = np.flatnonzero(self._cancellation(support) > MOST_CANCELLATION)
        if full.size == mean.size:
            return gram(X, self._roots, mean=mean, rest=rest)
        R = X if self._roots is None else scipy.sparse.diags_array(self._roots) @ X
        products: FloatArray = (R.T @ R).toarray()
        products -= self._total * np.outer(mean, mean)
        if full.size:
            products[:, full] = _with_centred(X.tocsr(), full, mean, rest, self._roots)
            products[full] = products[:, full].T
        return products

    def _centred_product(self, w: FloatArray) -> FloatArray:
        if (self._cancellation() > MOST_CANCELLATION).any():
            return super()._centred_product(w)  # some rows at a time, made dense
        X, w = self.X.astype(np.float64, copy=False), w / self.scale[:, None]
        Z = self._weighted(X @ w - self.mean @ w)
        return (X.T @ Z - np.outer(self.mean, Z.sum(axis=0))) / self.scale[:, None]

    def _standard(self, support: Index) -> FloatArray:
        part = self.X[:, support].toarray().astype(np.float64, copy=False)
        return self._standardised(part, support)

    def sample_gram(self) -> tuple[FloatArray, float]:
        r"""See `Covariance.sample_gram`. Without a dense copy of the data; one pass.

        With rows b_i = x_i/s and c = μ/s it is :math:`(b_i - c)'(b_j - c)`. A sum of p products is
        off by (p + 8)u times that of their sizes, so that the Frobenius norm is off by as much
        times :math:`\sum_i (\|b_i\| + \|c\|)^2`. A mean that is off adds to A, and so is harmless
        in upper bounds.
        """
        self.n_passes += 1
        self.n_grams += 1
        B = (self.X.astype(np.float64) @ scipy.sparse.diags_array(1.0 / self.scale)).tocsr()
        c = self.mean / self.scale
        roots = np.full(self.n_samples, 1 / np.sqrt(self.divisor))
        if self._roots is not None:
            roots = roots * self._roots
        along, own = B @ c, float(c @ c)
        G = np.empty((self.n_samples, self.n_samples))
        for block in block_slices(self.n_samples, 16 * self.n_samples, DENSE_PIECE_BYTES):
            part = (B[block] @ B.T).toarray()
            part -= along
            part += (own - along[block])[:, None]
            part *= roots[block, None] * roots
            G[block] = part
        lengths = np.sqrt(np.asarray(B.multiply(B).sum(axis=1)).ravel()) + np.sqrt(own)
        longest = int(np.diff(B.indptr).max(initial=0)) + self.n_features
        error = (longest + 16) * UNIT * float(np.sum((roots * lengths) ** 2))
        return G, error

    def _sample_products(self) -> FloatArray:
        size = self.n_samples
        identity, products = np.eye(size), np.empty((size, size))
        for block in block_slices(size, 8 * self.n_features, DENSE_PIECE_BYTES):
            products[:, block] = self.scores(self.back(identity[:, block]))
        return (products + products.T) / 2


def _with_centred(
    X: Any, full: Index, mean: FloatArray, rest: FloatArray, roots: FloatArray | None
) -> FloatArray:
    """Return the products of all centred columns of CSR data with some of them, made dense."""
    products, totals = np.zeros((X.shape[1], full.size)), np.zeros(full.size)
    for rows in block_slices(X.shape[0], 8 * full.size, GRAM_BYTES):
        centred = X[rows][:, full].toarray() - mean[full]
        centred -= rest[full]
        factors: Any = 1.0 if roots is None else roots[rows, None]
        centred *= factors
        part = X[rows].T @ (factors * centred)
        part[full] = centred.T @ centred
        products += part
        totals += (factors * centred).sum(axis=0)
    # 1'(X - 1μ') is rounding; of the columns that are dense nothing is left to take out.
    others = np.setdiff1d(np.arange(X.shape[1]), full)
    products[others] -= np.outer(mean[others], totals)
    return products
