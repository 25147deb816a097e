"""The covariance of dense data."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index
from kspan.covariance import data, kernels
from kspan.covariance.data import WORK_BYTES, DataCovariance
from kspan.linalg.moments import block_slices, column_moments

# Up to this many samples or features, whichever is smaller, one product of X with itself is
# cheaper than the products that Lanczos needs on a spectrum without gaps.
GRAM_LIMIT = 2048


# Products with more columns have enough to do for every row that they read.
FUSED_COLUMNS = 4

# A product with one vector waits for memory, one of X with itself does not: it costs as much as
# this share of d products.
FEATURES_A_PRODUCT = 32

# Fewer products than this are seldom enough for Lanczos.
FEWEST_PRODUCTS = 24


class DenseDataCovariance(DataCovariance):
    """Dense data, tall or wide, in either memory order, float32 or float64."""

    @classmethod
    def measure(cls, X: NDArray[np.floating], *, scale: bool | FloatArray, ddof: int) -> Self:
        """Build from X alone. One pass."""
        covariance = cls.from_moments(X, *column_moments(X), scale=scale, ddof=ddof)
        covariance.n_passes += 1
        return covariance

    def scores(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return the centred, scaled data times W; with a support only its columns are read."""
        if support is None or 4 * support.size > self.n_features:
            return super().scores(W, support)
        self.n_passes += 1
        return self._centred(support) @ W

    def matmat(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return ``A W``: two passes, one for a few columns, none once A is formed."""
        few = support is None and W.shape[1] <= FUSED_COLUMNS
        if self._gram is not None or self.is_wide or not few or not self.X.flags.c_contiguous:
            return super().matmat(W, support)
        # Rows are multiplied by W and at once, while they are in the cache, by the result.
        self.n_passes += 1
        W = W / self.scale[:, None]
        out, total = kernels.covariance_product(self.X, W, self.mean @ W, None)
        out -= np.outer(self.mean, total)
        out /= self.scale[:, None] * (self.n_samples - self.ddof)
        return out

    def prepare(self) -> None:
        """Form A of tall data, up to `GRAM_LIMIT` features."""
        if self._gram is None and not self.is_wide:
            self._gram = self._small_gram(of_features=True)

    @property
    def _lanczos_products(self) -> int:
        """As many as cost no more than forming A does, when that takes a second or more."""
        n, d = self.X.shape
        products = d // FEATURES_A_PRODUCT
        return products if n * d * d > data.GRAM_WORK and products >= FEWEST_PRODUCTS else 0

    @property
    def is_wide(self) -> bool:
        """Whether there are fewer samples than features."""
        return self.n_samples < self.n_features

    def sample_factor(self) -> FloatArray | None:
        """Return the centred, scaled data over √(n - ddof), for wide data: a dense copy."""
        if not self.is_wide:
            return None
        self.n_passes += 1
        return self._centred(np.arange(self.n_features)) / np.sqrt(self.n_samples - self.ddof)

    def _centred(self, support: Index) -> FloatArray:
        part = self.X[:, support].astype(np.float64, copy=False)
        part -= self.mean[support]  # the gathered columns are a copy, so this is safe
        part /= self.scale[support]
        return part

    def _small_gram(self, of_features: bool) -> FloatArray | None:
        if min(self.n_samples, self.n_features) > GRAM_LIMIT:
            return None
        self.n_passes += 1
        if of_features:
            return self._gram_of_features(self.X, self.mean, self.scale)
        if self._may_centre_later():
            # (X - 1μ')(X - 1μ')' from one product of X with itself
            products = self.X @ self.mean
            gram = self.X @ self.X.T
            gram -= products[:, None]
            gram -= products
            gram += self.mean @ self.mean
            return gram / (self.n_samples - self.ddof)
        gram = np.zeros((self.n_samples, self.n_samples))
        for block in block_slices(self.n_features, 8 * self.n_samples, WORK_BYTES):
            centred = (self.X[:, block] - self.mean[block]) / self.scale[block]
            gram += centred @ centred.T
        return gram / (self.n_samples - self.ddof)

    def _may_centre_later(self) -> bool:
        """Whether subtracting the mean from XX' costs at most two digits, and X is fit for BLAS.

        It saves a copy of X, block by block; what it costs is the ratio of Σμ² to the variance.
        """
        plain = self.dtype == np.float64 and not self._is_scaled
        return plain and float(self.mean @ self.mean) <= 100 * self.trace()

    def _gram_of_features(
        self, X: NDArray[np.floating], mean: FloatArray, scale: FloatArray
    ) -> FloatArray:
        # Centred block by block: X'X - nμμ' would lose the digits that μ²/σ² takes.
        gram = np.zeros((mean.size, mean.size))
        for block in block_slices(self.n_samples, 8 * mean.size, WORK_BYTES):
            centred = X[block] - mean  # float64, whatever X is
            gram += centred.T @ centred
        return gram / np.outer(scale, scale * (self.n_samples - self.ddof))
