"""The covariance of dense data."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index
from kspan.covariance.block_kernels import (
    FEW_COLUMNS,
    block_slices,
    column_moments,
    covariance_product,
    gram,
)
from kspan.covariance.data_covariance import DENSE_PIECE_BYTES, DataCovariance, InMemoryCovariance
from kspan.covariance.memory import Columns
from kspan.covariance.weights import Weights

# A product with one vector waits for memory, one of X with itself does not: it costs as much as
# this share of n or d products, whichever is smaller.
ORDER_A_PRODUCT = 32

# Fewer products than this are seldom enough for Lanczos.
FEWEST_PRODUCTS = 24

# Products with X subtract the means afterwards. Up to so many times as much as the features vary
# the means may be, by sums of squares: doubles lose two digits of sixteen, floats none of the five
# that are asked of them.
MOST_MEANS = {np.dtype(np.float64): 100.0, np.dtype(np.float32): 1.0}


class DenseDataCovariance(InMemoryCovariance):
    """Dense data, tall or wide, in either memory order, float32 or float64."""

    @classmethod
    def _summarised(
        cls, X: NDArray[np.floating], weights: Weights | None
    ) -> tuple[Columns, int]:  # fmt: skip
        if weights is None:
            return Columns.of(*column_moments(X)), 1
        return Columns.of(*column_moments(X, weights.values, first=weights.heaviest)), 1

    @classmethod
    def of(cls, data: DataCovariance, X: NDArray[np.floating]) -> Self:
        """Build from a covariance, and all of its rows as they were just read."""
        dense = cls(
            X, data.mean, data.scale, data.diagonal(), data.ddof, data.standardised,
            data.rest, data.weights,
        )  # fmt: skip
        dense.n_passes, dense.dtype, dense.missing = data.n_passes + 1, data.dtype, data.missing
        return dense

    def _takes_columns(self, support: Index) -> bool:
        """Whether they are few: to read the whole of dense data takes longer."""
        return 4 * support.size <= self.n_features

    def variance_along(self, W: FloatArray, support: Index) -> float:
        """See `Covariance.variance_along`: of the scores, so that no feature meets another."""
        if self._gram is not None:
            return super().variance_along(W, support)
        self.n_passes += 1
        scores = self._by_roots(self._standard(support) @ W)
        return float(np.einsum("ij,ij->", scores, scores)) / self.divisor

    def _product(self, W: FloatArray, support: Index | None) -> FloatArray:
        """Return ``A W``: two passes, or one for a few columns."""
        few = support is None and W.shape[1] <= FEW_COLUMNS
        if not few or not self.X.flags.c_contiguous:
            return super()._product(W, support)
        # Rows are multiplied by W and at once, while they are in the cache, by the result.
        self.n_passes += 1
        W, shift = self._for_raw_data(W, None)
        weights = None if self.weights is None else self.weights.values
        parts = covariance_product(self.X, weights, W=W, shift=shift, support=None)
        return self._centred(*parts)

    def prepare(self) -> None:
        """Form A of tall data, if it is cheap."""
        if not self.is_wide:
            self._form()

    @property
    def _lanczos_products(self) -> int:
        """As many as cost no more than the Gram matrix does, when that takes long."""
        products = min(self.n_samples, self.n_features) // ORDER_A_PRODUCT
        worth_it = self._gram_takes_long and products >= FEWEST_PRODUCTS
        return products if worth_it and self._mean_share <= MOST_MEANS[self.dtype] else 0

    @property
    def is_wide(self) -> bool:
        """Whether there are fewer samples than features."""
        return self.n_samples < self.n_features

    def sample_factor(self, support: Index | None = None) -> FloatArray | None:
        """Return the centred, scaled data over √(n - ddof), for wide data: a dense copy.

        Rows are multiplied by the roots of their weights.
        """
        if not self.is_wide:
            return None
        self.n_passes += 1
        support = np.arange(self.n_features) if support is None else support
        return self._by_roots(self._standard(support)) / np.sqrt(self.divisor)

    def _standard(self, support: Index) -> FloatArray:
        part = self.X[:, support].astype(np.float64, copy=False)
        return self._standardised(part, support)  # the gathered columns are a copy

    def _sample_products(self) -> FloatArray:
        if self._may_centre_later():
            # (X - 1μ')(X - 1μ')' from one product of X with itself
            products = self.X @ self.mean
            result = self.X @ self.X.T
            result -= products[:, None]
            result -= products
            result += self.mean @ self.mean
            return result
        result = np.zeros((self.n_samples, self.n_samples))
        for block in block_slices(self.n_features, 8 * self.n_samples, DENSE_PIECE_BYTES):
            centred = self.X[:, block] - self.mean[block]
            centred -= self.rest[block]
            centred /= self.scale[block]
            result += centred @ centred.T
        return result

    def _may_centre_later(self) -> bool:
        """Whether subtracting the mean from XX' costs at most two digits, and X is fit for BLAS.

        It saves a copy of X, block by block; what it costs is the ratio of Σμ² to the variance.
        """
        plain = self.dtype == np.float64 and not self._is_scaled
        return plain and self._mean_share <= MOST_MEANS[self.dtype]

    @property
    def _mean_share(self) -> float:
        """The sum of squares of the means in all rows, as a share of that of the deviations."""
        total = self.n_samples if self.weights is None else self.weights.total
        means = self.mean / self.scale
        return total * float(means @ means) / (self.divisor * self.trace())

    def _deviation_products(
        self, support: Index | None, mean: FloatArray, rest: FloatArray
    ) -> FloatArray:
        # Centred block by block: X'X - nμμ' would lose the digits that μ²/σ² takes.
        X = self.X if support is None else self.X[:, support]
        return gram(X, self._roots, mean=mean, rest=rest)
