"""What is computed on a block of rows, and how two such results become one.

Pure functions of arrays, dense or sparse, so that they run wherever the block is. Blocks are
worked on in pieces that stay in the cache.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index
from kspan.linalg.eigen import power_of_two
from kspan.linalg.moments import block_slices

# Of the pieces in which a block is worked on, so that it is read from memory once.
CACHE_BYTES = 1 << 21
FEWEST_ROWS = 64


@dataclass(frozen=True)
class Moments:
    """Of some rows, measured from an origin: how many, means, squared deviations, a product.

    The product is ``SΩ`` with S the matrix of squared deviations and given columns Ω.
    """

    count: int
    mean: FloatArray
    squares: FloatArray
    product: FloatArray

    def merge(self, other: "Moments", columns: FloatArray) -> "Moments":
        """Put two sets of rows together: the update of Chan, Golub and LeVeque.

        With δ the distance of the means of a and b rows, S = S_a + S_b + ab/(a+b) δδ'.
        """
        total = self.count + other.count
        shift, weight = other.mean - self.mean, self.count * other.count / total
        return Moments(
            total,
            self.mean + shift * (other.count / total),
            self.squares + other.squares + shift * shift * weight,
            self.product + other.product + np.outer(shift, (shift @ columns) * weight),
        )


def product(X: Any, W: FloatArray) -> FloatArray:
    """Return ``X W`` in float64, multiplied in the type of X.

    In float32 two large (or two tiny) numbers leave the range, so W is scaled first.
    """
    if X.dtype == np.float64:
        return np.asarray(X @ W)
    size = power_of_two(float(np.abs(W).max(initial=0.0)))
    return np.asarray(X @ (W / size).astype(X.dtype), dtype=np.float64) * size


def pieces(X: Any) -> Iterator[tuple[slice, Any]]:
    """Cut dense rows into pieces of about `CACHE_BYTES`; sparse ones are left as they are."""
    if scipy.sparse.issparse(X):
        yield slice(0, X.shape[0]), X
        return
    # With a few rows at a time, the product X'Z would write all of itself for next to no work.
    size = max(CACHE_BYTES, FEWEST_ROWS * X[:1].nbytes)
    for rows in block_slices(len(X), X[:1].nbytes, size):
        yield rows, X[rows]


def moments(X: Any, origin: FloatArray, columns: FloatArray) -> Moments:
    """Return the moments of a block."""
    with np.errstate(all="ignore"):  # what is not finite shows in the result
        if scipy.sparse.issparse(X):
            return _sparse_moments(X, origin, columns)
        found: Moments | None = None
        for _, part in pieces(X):
            near = part - origin  # float64, whatever X is
            count, mean = len(near), near.mean(axis=0)
            # About the origin first: it is near the mean, so taking the rest off costs no digits.
            squares = np.einsum("ij,ij->j", near, near) - count * mean * mean
            SΩ = near.T @ (near @ columns) - np.outer(mean, count * (mean @ columns))
            piece = Moments(count, mean, np.maximum(squares, 0.0), SΩ)
            found = piece if found is None else found.merge(piece, columns)
    assert found is not None
    return found


def _sparse_moments(X: Any, origin: FloatArray, columns: FloatArray) -> Moments:
    n, d = X.shape
    X = X.tocsr().astype(np.float64, copy=False)
    mean = np.bincount(X.indices, weights=X.data, minlength=d) / n
    stored = np.bincount(X.indices, minlength=d)
    deviation = X.data - mean[X.indices]
    around = np.bincount(X.indices, weights=deviation * deviation, minlength=d)
    squares = around + (n - stored) * mean * mean
    scores = X @ columns - mean @ columns
    # The scores sum to zero, so subtracting the mean afterwards costs no digits.
    SΩ = np.asarray(X.T @ scores) - np.outer(mean, scores.sum(axis=0))
    return Moments(n, mean - origin, squares, SΩ)


def covariance_product(
    X: Any, W: FloatArray, shift: FloatArray, support: Index | None
) -> tuple[FloatArray, FloatArray]:
    """Return ``X'Z`` and the column sums of ``Z = XW - shift``; W has the rows of a support."""
    out, total = np.zeros((X.shape[1], W.shape[1])), np.zeros(W.shape[1])
    for _, part in pieces(X):
        Z = product(part if support is None else part[:, support], W) - shift
        out += product(part.T, Z)
        total += Z.sum(axis=0)
    return out, total


def scores(X: Any, W: FloatArray, shift: FloatArray) -> FloatArray:
    """Return ``XW - shift``."""
    return product(X, W) - shift


def transposed_product(X: Any, Z: FloatArray) -> FloatArray:
    """Return ``X'Z``."""
    return product(X.T, Z)


def gram(X: Any, mean: FloatArray) -> FloatArray:
    """Return the products of the centred columns with each other."""
    out = np.zeros((mean.size, mean.size))
    step = max(1, CACHE_BYTES // max(8 * mean.size, 1)) if scipy.sparse.issparse(X) else 0
    if step:  # few columns: dense, a few rows at a time
        for first in range(0, X.shape[0], step):
            centred = X[first : first + step].toarray() - mean
            out += centred.T @ centred
        return out
    for rows in block_slices(len(X), 8 * mean.size, 4 * CACHE_BYTES):
        centred = X[rows] - mean  # float64, whatever X is
        out += centred.T @ centred
    return out


def add(one: Any, other: Any) -> Any:
    """Add two results: arrays, or tuples of arrays."""
    if isinstance(one, tuple):
        return tuple(a + b for a, b in zip(one, other, strict=True))
    return one + other


def row_digests(values: Any) -> NDArray[np.uint8]:
    """Return the SHA-256 of every row, from the places and values of what is not zero in it.

    The same for a dense row and a sparse one, for float32 and float64: numbers are what counts.
    """
    if scipy.sparse.issparse(values):
        values = values.tocsr().copy()
        values.sum_duplicates()
        values.eliminate_zeros()
        edges = values.indptr
        rows = (
            (values.indices[first:last], values.data[first:last]) for first, last in pairwise(edges)
        )
    else:
        rows = ((places := np.flatnonzero(row), row[places]) for row in values)
    digests = [
        hashlib.sha256(
            places.astype("<i8", copy=False).tobytes() + numbers.astype("<f8").tobytes()
        ).digest()
        for places, numbers in rows
    ]
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, 32)
