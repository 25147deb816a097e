"""The covariance of data that is read block by block, from disk or from elsewhere."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance.base import Covariance
from kspan.covariance.data import DataCovariance, row_edges
from kspan.covariance.dense import DenseCovariance
from kspan.covariance.dense_data import GRAM_LIMIT, DenseDataCovariance
from kspan.covariance.sources import Block, RowSource
from kspan.linalg.moments import block_slices

# Columns of the random matrix that is multiplied in the same pass as means and variances are made.
SKETCH_COLUMNS = 16

# Of the pieces in which a block is worked on, so that it is read from memory once.
CACHE_BYTES = 1 << 21

# Multiplications up to which A is formed without a second thought.
GRAM_WORK = 2e10


class ChunkedCovariance(DataCovariance):
    """Data that is read in blocks of rows; no more than a block of it is ever in memory.

    A product with A is one pass: each block is multiplied by W and at once by its own transpose.
    Means, variances and a first product with random columns (`sketch`) are one pass together.
    """

    X: RowSource

    @property
    def reads_are_costly(self) -> bool:
        """Whether forming A would cost more than a few passes."""
        n, d = self.X.shape
        return self._gram is None and n * d * d > GRAM_WORK

    @classmethod
    def measure(cls, X: RowSource, *, scale: bool | FloatArray, ddof: int) -> Self:
        """Build from the rows alone. One pass.

        Blocks are centred on their own means and merged by the update of Chan, Golub and LeVeque,
        the product with random columns too: with δ the distance between the means of two parts of
        a and b rows, S = S_a + S_b + ab/(a+b) δδ'.
        """
        d = X.shape[1]
        mean, squares = np.zeros(d), np.zeros(d)
        rng = np.random.default_rng(0)  # the same data, the same answer
        columns = rng.standard_normal((d, min(SKETCH_COLUMNS, d)))
        product = np.zeros_like(columns)
        seen = 0
        origin: FloatArray | None = None  # means are measured from here: large ones keep digits
        with np.errstate(all="ignore"):
            for block in _in_cache(X.blocks()):
                if origin is None:
                    origin = block.values.mean(axis=0, dtype=np.float64)
                centred = block.values - origin  # float64, whatever the data is
                part_mean = centred.mean(axis=0)
                if not np.isfinite(part_mean).all():
                    _refuse_not_finite(X, block)
                centred -= part_mean
                count = len(centred)
                shift, total = part_mean - mean, seen + count
                weight = seen * count / total
                squares += np.einsum("ij,ij->j", centred, centred) + shift * shift * weight
                product += centred.T @ (centred @ columns)
                product += np.outer(shift, (shift @ columns) * weight)
                mean += shift * (count / total)
                seen = total
        if origin is not None:
            mean += origin
        covariance = cls.from_moments(X, mean, squares, scale=scale, ddof=ddof)
        covariance.n_passes += 1
        # A scaled: D⁻¹ S D⁻¹ (DΩ) = D⁻¹ S Ω, so the columns are those of DΩ.
        divisors = covariance.scale[:, None]
        product /= divisors * (seen - ddof)
        covariance.sketch = columns * divisors, product
        return covariance

    def _blocks(self, columns: Index | None = None) -> Iterator[Block]:
        self.n_passes += 1
        yield from self.X.blocks(columns)

    def _small_blocks(self, columns: Index | None = None) -> Iterator[Block]:
        """Blocks that stay in the cache while they are used more than once."""
        return _in_cache(self._blocks(columns))

    def scores(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return the centred, scaled data times W (n × p). One pass."""
        W, shift = self._for_raw_data(W, support)
        out = np.empty((self.n_samples, W.shape[1]))
        for block in self._blocks(support):
            out[block.start : block.stop] = self._product(block.values, W) - shift
        return out

    def back(self, Z: FloatArray) -> FloatArray:
        """Return the centred, scaled data transposed times Z (d × p). One pass."""
        out = np.zeros((self.n_features, Z.shape[1]))
        for block in self._blocks():
            out += self._product(block.values.T, Z[block.start : block.stop])
        out -= np.outer(self.mean, Z.sum(axis=0))
        out /= self.scale[:, None]
        return out

    def matmat(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return ``A W``: one pass, or none once A is formed."""
        if self._gram is not None:
            return super().matmat(W, support)
        W, shift = self._for_raw_data(W, support)
        out, total = np.zeros((self.n_features, W.shape[1])), np.zeros(W.shape[1])
        for block in self._small_blocks():
            part = block.values if support is None else block.values[:, support]
            Z = self._product(part, W) - shift
            out += self._product(block.values.T, Z)
            total += Z.sum(axis=0)
        out -= np.outer(self.mean, total)
        out /= self.scale[:, None] * (self.n_samples - self.ddof)
        return out

    def _for_raw_data(self, W: FloatArray, support: Index | None) -> tuple[FloatArray, FloatArray]:
        """Return W over the scales, and what the means contribute to X times that."""
        rows: Any = slice(None) if support is None else support
        W = W / self.scale[rows, None]
        return W, self.mean[rows] @ W

    def submatrix(self, support: Index) -> FloatArray:
        """Return ``A[support, support]``. One pass."""
        if self._gram is not None:
            return self._gram[np.ix_(support, support)]
        gram = np.zeros((support.size, support.size))
        mean, scale = self.mean[support], self.scale[support]
        for block in self._blocks(support):
            centred = block.values - mean  # float64, whatever the data is
            gram += centred.T @ centred
        return gram / np.outer(scale, scale * (self.n_samples - self.ddof))

    def submatrices(self, supports: Index) -> FloatArray:
        """Return ``A[S, S]`` for every row S of `supports`. One pass."""
        union, places = np.unique(supports, return_inverse=True)
        places = places.reshape(supports.shape)
        whole = self.submatrix(union)
        return whole[places[:, :, None], places[:, None, :]]

    def restrict(self, support: Index) -> Covariance:  # type: ignore[override]
        """Return the covariance of the chosen features, as a matrix. One pass."""
        part = DenseCovariance(self.submatrix(support), self.dtype)
        part.n_samples = self.n_samples  # type: ignore[assignment]
        return part

    def row_blocks(self, size: int) -> Iterator[Any]:
        """Yield the covariance of one block of rows after another. One pass.

        The same blocks as of data in memory, put together from those that are read.
        """
        edges = row_edges(self.n_samples, size)[1:]
        waiting: list[np.ndarray] = []
        start = 0
        for block in self._blocks():
            waiting.append(block.values)
            while edges.size and edges[0] <= block.stop:
                whole = np.concatenate(waiting) if len(waiting) > 1 else waiting[0]
                count = int(edges[0]) - start
                yield self._part(whole[:count])
                waiting, start, edges = [whole[count:]], int(edges[0]), edges[1:]

    def _part(self, rows: np.ndarray) -> DenseDataCovariance:
        return DenseDataCovariance(rows, self.mean, self.scale, self._variances, ddof=0)

    def _small_gram(self, of_features: bool) -> FloatArray | None:
        if not of_features or self.n_features > GRAM_LIMIT:
            return None
        return self.submatrix(np.arange(self.n_features))

    def _gram_of_features(self, X: Any, mean: FloatArray, scale: FloatArray) -> FloatArray:
        raise NotImplementedError  # submatrix() does without


def _in_cache(blocks: Iterator[Block]) -> Iterator[Block]:
    """Cut blocks into pieces of about `CACHE_BYTES`."""
    for block in blocks:
        for rows in block_slices(len(block.values), block.values[:1].nbytes, CACHE_BYTES):
            yield Block(block.start + rows.start, block.start + rows.stop, block.values[rows])


def _refuse_not_finite(X: RowSource, block: Block) -> None:
    """Raise, naming the first bad column, its name, and the rows."""
    bad = ~np.isfinite(block.values)
    if not bad.any():
        raise ValueError("The data is too large: its means overflow. Divide it by a constant.")
    column = int(np.flatnonzero(bad.any(axis=0))[0])
    name = "" if X.feature_names is None else f" ({str(X.feature_names[column])!r})"
    raise ValueError(
        f"Input X contains NaN or infinity: {int(bad.sum())} in {X.label}, rows {block.start} to "
        f"{block.stop - 1}, the first in column {column}{name}. Fill in or drop them first."
    )
