"""What is computed on a block of rows, and how two such results become one.

Pure functions of arrays, dense or sparse, so that they run wherever the block is. Blocks are
worked on in pieces that stay in the cache.

**Means.** Rows are measured from an origin, one of them or the mean of some. It is no further from
the mean than √n standard deviations, so that nothing of the spread is lost, however large the
numbers are; and what is left of a column of equal numbers is exactly zero. A mean is then the
nearest double, and what that lacks (`rest`).
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

# A block of this many bytes stays in the cache while it is read more than once.
CACHE_BLOCK_BYTES = 1 << 20


def block_slices(
    length: int, bytes_each: int, block_bytes: int = CACHE_BLOCK_BYTES
) -> Iterator[slice]:
    """Cut ``range(length)`` into slices whose rows (or columns) fill about one block."""
    step = max(1, min(length, block_bytes // max(1, bytes_each)))
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the double nearest to a + b, and what it lacks (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


@dataclass(frozen=True)
class Columns:
    """Of the columns of some data: means, what the means lack, sums of squared deviations."""

    mean: FloatArray
    rest: FloatArray
    squares: FloatArray

    @classmethod
    def around(cls, origin: FloatArray, shift: FloatArray, squares: FloatArray) -> "Columns":
        """Build from means that are measured from an origin."""
        with np.errstate(all="ignore"):
            return cls(*two_sum(origin, shift), squares)


# Stands for a sum of squares, none of which is a number that is not zero.
UNDERFLOWN = 1e-310


def sums_of_squares(near: FloatArray) -> FloatArray:
    """Return the sum of squares of every column, zero only if all of its numbers are."""
    squares: FloatArray = np.einsum("ij,ij->j", near, near)
    nothing = np.flatnonzero(squares == 0)
    if nothing.size:
        squares[nothing] = UNDERFLOWN * near[:, nothing].any(axis=0)
    return squares


def column_moments(X: NDArray[np.floating]) -> Columns:
    """Return means and sums of squared deviations of the columns, in float64.

    One pass over X. Pieces of rows are centred on their own means and merged by the update of
    Chan, Golub and LeVeque. NaN and infinity in X show up in the result.
    """
    n, d = X.shape
    by_columns = X.flags.f_contiguous and not X.flags.c_contiguous
    mean, squares = np.zeros(d), np.zeros(d)
    origin = X[0].astype(np.float64)
    with np.errstate(all="ignore"):
        for columns in block_slices(d, 8 * n) if by_columns else [slice(0, d)]:
            seen = 0
            for rows in block_slices(n, 8 * (columns.stop - columns.start)):
                near = X[rows, columns] - origin[columns]  # float64, whatever X is
                count = near.shape[0]
                piece_mean = near.mean(axis=0)
                near -= piece_mean
                shift, total = piece_mean - mean[columns], seen + count
                squares[columns] += sums_of_squares(near)
                squares[columns] += shift * shift * (seen * count / total)
                mean[columns] += shift * (count / total)
                seen = total
    return Columns.around(origin, mean, squares)


# Of the pieces in which a block is worked on, so that it is read from memory once.
CACHE_BYTES = 1 << 21
FEWEST_PIECE_ROWS = 64

# Of the pieces whose products are added up to a Gram matrix.
GRAM_BYTES = 4 * CACHE_BYTES


@dataclass(frozen=True)
class Moments:
    """Of some rows, measured from an origin: how many, means, squared deviations, a product.

    The product is ``SΩ`` with S the matrix of squared deviations and given columns Ω.
    """

    count: int
    mean: FloatArray
    squares: FloatArray
    product: FloatArray


def merge_moments(one: Moments, other: Moments, columns: FloatArray) -> Moments:
    """Put two sets of rows together: the update of Chan, Golub and LeVeque.

    With δ the distance of the means of a and b rows, S = S_a + S_b + ab/(a+b) δδ'.
    """
    total = one.count + other.count
    shift, weight = other.mean - one.mean, one.count * other.count / total
    return Moments(
        total,
        one.mean + shift * (other.count / total),
        one.squares + other.squares + shift * shift * weight,
        one.product + other.product + np.outer(shift, (shift @ columns) * weight),
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
    size = max(CACHE_BYTES, FEWEST_PIECE_ROWS * X[:1].nbytes)
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
            mean = near.mean(axis=0)
            near -= mean
            piece = Moments(len(near), mean, sums_of_squares(near), near.T @ (near @ columns))
            found = piece if found is None else merge_moments(found, piece, columns)
    assert found is not None
    return found


def _sparse_moments(X: Any, origin: FloatArray, columns: FloatArray) -> Moments:
    shift, squares = sparse_column_moments(X, origin)
    scores = X @ columns - (origin + shift) @ columns
    # The scores sum to zero, so subtracting the mean afterwards costs no digits.
    SΩ = np.asarray(X.T @ scores) - np.outer(origin + shift, scores.sum(axis=0))
    return Moments(X.shape[0], shift, squares, SΩ)


def sparse_column_moments(X: Any, origin: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means from an origin, and sums of squared deviations, of a CSR or CSC matrix."""
    n, d = X.shape
    places = X.indices if X.format == "csr" else np.repeat(np.arange(d), np.diff(X.indptr))
    with np.errstate(all="ignore"):  # what is not finite shows in the result
        near = X.data.astype(np.float64) - origin[places]
        empty = n - np.bincount(places, minlength=d)
        shift = (np.bincount(places, weights=near, minlength=d) - empty * origin) / n
        near -= shift[places]
        around = np.bincount(places, weights=near * near, minlength=d)
        squares = around + empty * (origin + shift) ** 2
        lost = (squares == 0)[places] & (near != 0)
        squares[places[lost]] = UNDERFLOWN
        return shift, squares


def sparse_origin(X: Any) -> FloatArray:
    """Return an entry of every column that has no zeros, and zero for all others."""
    n, d = X.shape
    places = X.indices if X.format == "csr" else np.repeat(np.arange(d), np.diff(X.indptr))
    origin = np.zeros(d)
    origin[places] = X.data
    return np.where(np.bincount(places, minlength=d) == n, origin, 0.0)


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


def transposed_product(X: Any, Z: FloatArray) -> FloatArray:
    """Return ``X'Z``."""
    return product(X.T, Z)


def gram(X: Any, mean: FloatArray, rest: FloatArray) -> FloatArray:
    """Return the products of the centred columns with each other."""
    out = np.zeros((mean.size, mean.size))
    sparse = scipy.sparse.issparse(X)
    for rows in block_slices(X.shape[0], 8 * mean.size, GRAM_BYTES):
        centred = (X[rows].toarray() if sparse else X[rows]) - mean  # float64, whatever X is
        centred -= rest
        out += centred.T @ centred
    return out


def centred_product(
    X: Any, W: FloatArray, mean: FloatArray, rest: FloatArray, scale: FloatArray
) -> FloatArray:
    """Return ``C'CW`` for the centred and scaled columns C: no mean is taken out of a sum."""
    out, sparse = np.zeros((mean.size, W.shape[1])), scipy.sparse.issparse(X)
    for rows in block_slices(X.shape[0], 8 * mean.size, GRAM_BYTES):
        centred = (X[rows].toarray() if sparse else X[rows]) - mean  # float64, whatever X is
        centred -= rest
        centred /= scale
        out += centred.T @ (centred @ W)
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
