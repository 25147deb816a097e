"""The covariance of data that is read block by block, from disk or from a cluster."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index
from kspan.covariance import block_kernels as kernels
from kspan.covariance.data_covariance import DataCovariance, row_edges
from kspan.covariance.dense_data import DenseDataCovariance
from kspan.covariance.memory import Columns
from kspan.covariance.weights import Weights
from kspan.io.rows import RowSource

# Columns of the random matrix that is multiplied in the same pass as means and variances are made.
SKETCH_COLUMNS = 16

# Rows whose mean the others are measured from: large means then cost no digits.
HEAD_ROWS = 64


def _random_columns(d: int) -> FloatArray:
    """Return the columns of the first product."""
    rng = np.random.default_rng(0)  # the same data, the same answer
    return rng.standard_normal((d, min(SKETCH_COLUMNS, d)))


class ChunkedCovariance(DataCovariance):
    """Data in blocks of rows; no more than a block of it is ever in memory.

    A product with A is one pass: each block is multiplied by W and at once by its own transpose.
    Means, variances and a first product with random columns (`sketch`) are one pass together. What
    is computed on a block, `block_kernels.py`, runs where the block is (`RowSource.reduce`).
    """

    X: RowSource

    @property
    def reads_are_costly(self) -> bool:
        """Whether forming A would cost more than a few passes."""
        return self._gram is None and self._takes_long_to_form

    @classmethod
    def _summarised(cls, X: RowSource, weights: Weights | None) -> tuple[Columns, int]:
        columns = _random_columns(X.shape[1])
        with np.errstate(all="ignore"):  # what is not finite shows in the means
            if weights is None:
                head = X.head(HEAD_ROWS).astype(np.float64)
                # From the first row, so that the mean of equal numbers is that number.
                origin = head[0] + (head - head[0]).mean(axis=0)
            else:
                origin = X.row(weights.heaviest).astype(np.float64)
        found: kernels.Sketched = X.reduce(
            partial(kernels.sketched_moments, origin=origin, columns=columns),
            partial(kernels.merge_sketched, columns=columns),
            rows=None if weights is None else weights.values,
        )
        return Columns.of(origin, found.moments, found.product), 1

    def _take(self, columns: Columns) -> None:
        # A scaled: D⁻¹ S D⁻¹ (DΩ) = D⁻¹ S Ω, so the columns are those of DΩ.
        divisors = self.scale[:, None]
        assert columns.product is not None
        image = columns.product / (divisors * self.divisor)
        self.sketch = _random_columns(self.n_features) * divisors, image

    def _times(self, W: FloatArray, support: Index | None) -> FloatArray:
        return self.X.stack(partial(kernels.product, W=W), columns=support)

    def _transposed_times(self, Z: FloatArray) -> FloatArray:
        # A copy: what comes from another process may be read-only.
        return np.array(self.X.reduce(kernels.transposed_product, kernels.add, rows=Z))

    def _product(self, W: FloatArray, support: Index | None) -> FloatArray:
        """Return ``A W``. One pass."""
        self.n_passes += 1
        W, shift = self._for_raw_data(W, support)
        kernel = partial(kernels.covariance_product, W=W, shift=shift, support=support)
        weights = None if self.weights is None else self.weights.values
        return self._centred(*self.X.reduce(kernel, kernels.add, rows=weights))

    def _deviation_products(
        self, support: Index | None, mean: FloatArray, rest: FloatArray
    ) -> FloatArray:
        kernel = partial(kernels.gram, mean=mean, rest=rest)
        # A copy: what comes from another process may be read-only.
        return np.array(self.X.reduce(kernel, kernels.add, columns=support, rows=self._roots))

    def _centred_product(self, w: FloatArray) -> FloatArray:
        parts = {"mean": self.mean, "rest": self.rest, "scale": self.scale}
        kernel = partial(kernels.centred_product, W=w, **parts)
        return np.array(self.X.reduce(kernel, kernels.add, rows=self._roots))

    def submatrices(self, supports: Index) -> FloatArray:
        """Return ``A[S, S]`` for every row S of `supports`. One pass."""
        union, places = np.unique(supports, return_inverse=True)
        places = places.reshape(supports.shape)
        whole = self.submatrix(union)
        return whole[places[:, :, None], places[:, None, :]]

    def densified(self) -> DenseDataCovariance:
        """Return the same with all rows in memory. One pass."""
        rows = np.concatenate([block.values for block in self.X.blocks()])
        return DenseDataCovariance.of(self, rows)

    def row_blocks(self, size: int) -> Iterator[DenseDataCovariance]:
        """Yield the covariance of one block of rows after another. One pass.

        The same blocks as of data in memory, put together from those that are read.
        """
        self.n_passes += 1
        edges = row_edges(self.n_samples, size)[1:]
        waiting: list[Any] = []
        start = 0
        for block in self.X.blocks():
            waiting.append(block.values)
            while edges.size and edges[0] <= block.stop:
                whole = np.concatenate(waiting) if len(waiting) > 1 else waiting[0]
                count = int(edges[0]) - start
                yield DenseDataCovariance(
                    whole[:count], self.mean, self.scale, self._variances, 0, False, self.rest,
                    None if self.weights is None else self.weights.part(start, start + count),
                )  # fmt: skip
                waiting, start, edges = [whole[count:]], int(edges[0]), edges[1:]

    def _row_digests(self) -> NDArray[np.uint8]:
        self.n_passes += 1
        return self.X.stack(kernels.row_digests)
