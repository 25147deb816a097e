"""The covariance of data: centred and scaled implicitly, never formed when the data is wide."""

from abc import abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.linalg.blas
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index, Mask
from kspan.covariance.base import Covariance
from kspan.covariance.dense import DenseCovariance
from kspan.covariance.kernels import product, row_digests
from kspan.linalg.eigen import (
    RESIDUAL_TOL,
    EigenPairs,
    lanczos,
    leading_dense,
)

# Multiplications up to which A is formed without a second thought.
GRAM_WORK = 2e10

# Dense pieces made on the way are built in blocks of about this size.
WORK_BYTES = 1 << 24

# Products with float32 data are made in float32, so their residuals stop falling there.
FLOAT32_TOL = 1e-5


def row_edges(n_samples: int, size: int) -> Index:
    """Return where blocks of equal size, of at least `size` rows if possible, begin and end."""
    return np.linspace(0, n_samples, max(1, n_samples // size) + 1).astype(np.intp)


def constant_columns(n: int, mean: FloatArray, squares: FloatArray) -> Mask:
    """Say which columns of n rows are constant, from means and sums of squared deviations.

    A constant column has a variance of rounding size, not zero: the error of its mean.
    """
    eps = np.finfo(np.float64).eps
    found: Mask = squares <= n * (n * eps * np.abs(mean)) ** 2
    return found


class DataCovariance(Covariance):
    """``A = D⁻¹ (X - 1μ')'(X - 1μ') D⁻¹ / (n - ddof)`` behind products with X and X'.

    Parameters
    ----------
    X : (n, d) data, dense or sparse, never changed and never copied
    mean : (d,) column means μ
    scale : (d,) divisors D, all ones unless the data is standardised
    variances : (d,) diagonal of A
    ddof : 1 for sample variances
    """

    n_samples: int
    mean: FloatArray
    scale: FloatArray

    def __init__(
        self, X: Any, mean: FloatArray, scale: FloatArray,
        variances: FloatArray, ddof: int = 1,
    ):  # fmt: skip
        self.X = X
        self.mean, self.scale, self.ddof = mean, scale, ddof
        self.n_samples, self.n_features = X.shape
        self.dtype = np.dtype(X.dtype)
        self._variances = variances
        self._is_scaled = bool((scale != 1).any())
        self._gram: FloatArray | None = None  # A itself, once a tall matrix has needed it

    @classmethod
    def from_moments(
        cls, X: Any, mean: FloatArray, squares: FloatArray,
        *, scale: bool | FloatArray, ddof: int,
    ) -> Self:  # fmt: skip
        """Build from X, its column means and its column sums of squared deviations."""
        n = X.shape[0]
        constant = constant_columns(n, mean, squares)
        variances = np.where(constant, 0.0, squares / (n - ddof))
        if isinstance(scale, np.ndarray):
            return cls(X, mean, scale, variances / scale**2, ddof)
        divisors = np.ones_like(mean)
        if scale:
            divisors[~constant] = np.sqrt(variances[~constant])
            variances = np.where(constant, 0.0, variances / divisors**2)
        return cls(X, mean, divisors, variances, ddof)

    def _row_digests(self) -> NDArray[np.uint8]:
        return row_digests(self.X)

    @abstractmethod
    def _small_gram(self, of_features: bool) -> FloatArray | None:
        """Return A (``of_features``) or the n×n matrix of inner products, if it is cheap."""

    def _times(self, W: FloatArray) -> FloatArray:
        """Return ``X W`` for the raw data."""
        return product(self.X, W)

    def _transposed_times(self, Z: FloatArray) -> FloatArray:
        """Return ``X' Z`` for the raw data."""
        return product(self.X.T, Z)

    def diagonal(self) -> FloatArray:
        """Return the variances."""
        return self._variances

    def scores(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return the centred, scaled data times W (n × p). One pass."""
        self.n_passes += 1
        if support is not None:
            full = np.zeros((self.n_features, W.shape[1]))
            full[support] = W
            W = full
        if self._is_scaled:
            W = W / self.scale[:, None]
        return self._times(W) - self.mean @ W

    def back(self, Z: FloatArray) -> FloatArray:
        """Return the centred, scaled data transposed times Z (d × p). One pass."""
        self.n_passes += 1
        # In place: for many features, fresh memory costs more than the arithmetic.
        out = np.ascontiguousarray(self._transposed_times(Z))
        scipy.linalg.blas.dger(-1.0, Z.sum(axis=0), self.mean, a=out.T, overwrite_a=True)
        if self._is_scaled:
            out /= self.scale[:, None]
        return out

    def matmat(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return ``A W``: two passes, or none once A is formed."""
        if self._gram is not None:
            return self._gram @ W if support is None else self._gram[support].T @ W
        return self.back(self.scores(W, support) / (self.n_samples - self.ddof))

    def columns(self, support: Index) -> FloatArray:
        """Return ``A[:, support]``."""
        if self._gram is not None:
            return self._gram[support].T
        return self.matmat(np.eye(support.size), support)

    def submatrix(self, support: Index) -> FloatArray:
        """Return ``A[support, support]``."""
        if self._gram is not None:
            return self._gram[np.ix_(support, support)]
        self.n_passes += 1
        return self._gram_of_features(self.X[:, support], self.mean[support], self.scale[support])

    def submatrices(self, supports: Index) -> FloatArray:
        """Return ``A[S, S]`` for every row S of `supports`."""
        if self._gram is not None:
            return self._gram[supports[:, :, None], supports[:, None, :]]
        return super().submatrices(supports)

    def row_blocks(self, size: int) -> Iterator[Self]:
        """Yield the covariance of one block of rows after another. One pass."""
        self.n_passes += 1
        for start, stop in pairwise(row_edges(self.n_samples, size)):
            # ddof=0: the mean is that of all rows, not of these.
            yield type(self)(self.X[start:stop], self.mean, self.scale, self._variances, ddof=0)

    @abstractmethod
    def _gram_of_features(self, X: Any, mean: FloatArray, scale: FloatArray) -> FloatArray:
        """Return the covariance matrix of these columns in float64."""

    def restrict(self, support: Index) -> Covariance:
        """Return the covariance of the chosen features: from A if it is formed, else a copy.

        The copy is in float64.
        """
        if self._gram is not None:
            formed = DenseCovariance(self.submatrix(support))
            formed.n_samples, formed._is_psd = self.n_samples, True
            return formed
        self.n_passes += 1
        # float64, so that what is computed on a support is exact for float32 data too.
        return type(self)(
            self.X[:, support].astype(np.float64, copy=False),
            self.mean[support],
            self.scale[support],
            self._variances[support],
            self.ddof,
        )

    def _leading(self, m: int) -> EigenPairs:
        n, d = self.n_samples, self.n_features
        tall = d <= n
        if tall and self._gram is None and self._lanczos_products:
            pairs = lanczos(self.matmat, d, m, tol=self._tol(), max_products=self._lanczos_products)
            if pairs.residuals.max() <= self._tol() * pairs.values[0]:
                return pairs
        small = self._gram if self._gram is not None else self._small_gram(of_features=tall)
        if tall:
            if small is not None:
                self._gram = small
                return leading_dense(small, m)
            return lanczos(self.matmat, d, m, tol=self._tol())
        # Wide: the n×n side has the same nonzero eigenvalues; its vectors come back through X'.
        few = min(m, n)
        divisor = n - self.ddof
        pairs = (
            leading_dense(small, few)
            if small is not None
            else lanczos(lambda Z: self.scores(self.back(Z)) / divisor, n, few, tol=self._tol())
        )
        return self._lift(pairs, m)

    @property
    def _lanczos_products(self) -> int:
        """How many products Lanczos may make of tall data before A is formed after all."""
        return 0

    def _tol(self) -> float:
        return FLOAT32_TOL if self.dtype == np.float32 else RESIDUAL_TOL

    def _lift(self, pairs: EigenPairs, m: int) -> EigenPairs:
        """Turn eigenvectors of the sample side into m eigenvectors of A."""
        few = pairs.values.size
        lifted = np.zeros((self.n_features, m))
        lifted[:, :few] = self.back(pairs.vectors)
        # Beyond the rank the images are rounding noise; Householder QR completes the basis.
        vectors, R = np.linalg.qr(lifted)
        vectors = vectors * np.where(np.diagonal(R) < 0, -1.0, 1.0)
        values = np.zeros(m)
        values[:few] = pairs.values
        residuals = np.full(m, pairs.residuals.max())
        return EigenPairs(values, vectors, residuals)
