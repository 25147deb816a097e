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

# A block of this many bytes stays in the cache while it is read more than once.
CACHE_BLOCK_BYTES = 1 << 20


def block_slices(
    length: int, bytes_each: int, block_bytes: int = CACHE_BLOCK_BYTES
) -> Iterator[slice]:
    """Cut ``range(length)`` into slices whose rows (or columns) fill about one block."""
    step = max(1, min(length, block_bytes // max(1, bytes_each)))
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def column_moments(
    X: NDArray[np.floating],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return means and sums of squared deviations of the columns, in float64.

    One pass over X. Blocks of rows are centred on their own means and merged by the update of
    Chan, Golub and LeVeque, so a mean that is large beside the spread costs no digits; blocks
    of columns (Fortran order) need no merging. NaN and infinity in X show up in the result.
    """
    n, d = X.shape
    mean = np.zeros(d)
    squares = np.zeros(d)
    with np.errstate(all="ignore"):
        if X.flags.f_contiguous and not X.flags.c_contiguous:
            for block in block_slices(d, 8 * n):
                centred = X[:, block].astype(np.float64)
                mean[block] = centred.mean(axis=0)
                centred -= mean[block]
                squares[block] = np.einsum("ij,ij->j", centred, centred)
            return mean, squares
        seen = 0
        for block in block_slices(n, 8 * d):
            centred = X[block].astype(np.float64)
            count = centred.shape[0]
            block_mean = centred.mean(axis=0)
            centred -= block_mean
            shift = block_mean - mean
            total = seen + count
            squares += np.einsum("ij,ij->j", centred, centred)
            squares += shift * shift * (seen * count / total)
            mean += shift * (count / total)
            seen = total
    return mean, squares


# Of the pieces in which a block is worked on, so that it is read from memory once.
CACHE_BYTES = 1 << 21
FEWEST_PIECE_ROWS = 64


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
            count, mean = len(near), near.mean(axis=0)
            # About the origin first: it is near the mean, so taking the rest off costs no digits.
            squares = np.einsum("ij,ij->j", near, near) - count * mean * mean
            SΩ = near.T @ (near @ columns) - np.outer(mean, count * (mean @ columns))
            piece = Moments(count, mean, np.maximum(squares, 0.0), SΩ)
            found = piece if found is None else merge_moments(found, piece, columns)
    assert found is not None
    return found


def _sparse_moments(X: Any, origin: FloatArray, columns: FloatArray) -> Moments:
    mean, squares = sparse_column_moments(X)
    scores = X @ columns - mean @ columns
    # The scores sum to zero, so subtracting the mean afterwards costs no digits.
    SΩ = np.asarray(X.T @ scores) - np.outer(mean, scores.sum(axis=0))
    return Moments(X.shape[0], mean - origin, squares, SΩ)


def sparse_column_moments(X: Any) -> tuple[FloatArray, FloatArray]:
    """Return means and sums of squared deviations of the columns of a CSR or CSC matrix."""
    n, d = X.shape
    places = X.indices if X.format == "csr" else np.repeat(np.arange(d), np.diff(X.indptr))
    with np.errstate(all="ignore"):  # what is not finite shows in the result
        numbers = X.data.astype(np.float64, copy=False)
        mean = np.bincount(places, weights=numbers, minlength=d) / n
        stored = np.bincount(places, minlength=d)
        deviation = numbers - mean[places]
        deviation *= deviation
        around = np.bincount(places, weights=deviation, minlength=d)
        return mean, around + (n - stored) * mean * mean


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


def gram(X: Any, mean: FloatArray) -> FloatArray:
    """Return the products of the centred columns with each other."""
    out = np.zeros((mean.size, mean.size))
    sparse = scipy.sparse.issparse(X)
    for rows in block_slices(X.shape[0], 8 * mean.size, 4 * CACHE_BYTES):
        centred = (X[rows].toarray() if sparse else X[rows]) - mean  # float64, whatever X is
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
