"""What is computed on a block of rows, and how two such results become one.

Pure functions of arrays, dense or sparse, so that they run wherever the block is. Blocks are
worked on in pieces that stay in the cache.

**Means.** Rows are measured from an origin, one of them or the mean of some. It is no further from
the mean than √n standard deviations, so that nothing of the spread is lost, however large the
numbers are; and what is left of a column of equal numbers is exactly zero. A mean is then the
nearest double, and what that lacks (`rest`).

**Weights.** Rows may count more or less than once. Kernels take what a row counts, or its root,
right after the rows: where they run, both come in the same blocks (`RowSource.reduce`).
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index
from kspan.linalg.eigen import power_of_two
from kspan.linalg.machine import in_threads

# A block of this many bytes stays in the cache while it is read more than once.
CACHE_BLOCK_BYTES = 1 << 20

# Of the pieces in which a block is worked on, so that it is read from memory once.
CACHE_BYTES = 1 << 21
FEWEST_PIECE_ROWS = 64

# Up to so many columns, BLAS takes longer to pack a large matrix than to multiply it.
FEW_COLUMNS = 4


def block_slices(
    length: int, bytes_each: int, block_bytes: int = CACHE_BLOCK_BYTES, *, start: int = 0
) -> Iterator[slice]:
    """Cut ``range(length)`` into slices whose rows (or columns) fill about one block.

    With a start, as many numbers from there.
    """
    step = max(1, min(length, block_bytes // max(1, bytes_each)))
    for first in range(start, start + length, step):
        yield slice(first, min(first + step, start + length))


# What threads share is cut into so many parts, however many threads there are: the same answer.
SHARES = 8

# Less than this is not worth sharing.
SHARED_BYTES = 1 << 24


def shares(X: NDArray[np.floating]) -> list[slice]:
    """Cut the rows of dense data into what threads share; little data, and few rows, not at all."""
    rows = len(X)
    if X.nbytes < SHARED_BYTES or rows < SHARES * FEWEST_PIECE_ROWS:
        return [slice(0, rows)]
    edges = np.linspace(0, rows, SHARES + 1).astype(int).tolist()
    return [slice(*ends) for ends in pairwise(edges)]


def two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the double nearest to a + b, and what it lacks (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


# Stands for a sum of squares, none of which is a number that is not zero.
UNDERFLOWN = 1e-310


def squared(values: FloatArray) -> FloatArray:
    """Return squares that are zero only where the values are."""
    return np.where((values != 0) & (values * values == 0), UNDERFLOWN, values * values)


def sums_of_squares(near: FloatArray) -> FloatArray:
    """Return the sum of squares of every column, zero only if all of its numbers are."""
    squares: FloatArray = np.einsum("ij,ij->j", near, near)
    nothing = np.flatnonzero(squares == 0)
    if nothing.size:
        squares[nothing] = UNDERFLOWN * near[:, nothing].any(axis=0)
    return squares


@dataclass(frozen=True)
class Moments:
    """Of some rows, measured from an origin: how many (or their weight), means, squared deviations.

    A mean is the sum of `mean` and `rest`: a mean of numbers that are far from the origin is
    rounded, and what is left when it is taken out of them has a mean of its own.
    """

    count: float
    mean: FloatArray
    rest: FloatArray
    squares: FloatArray

    @classmethod
    def centring(cls, near: FloatArray, weights: FloatArray | None = None) -> "Moments":
        """Take the means out of rows, in place, and return what was found.

        Rows are then multiplied by the roots of their weights, if they have any.
        """
        if weights is not None:
            return cls._weighted(near, weights)
        mean = near.mean(axis=0)
        near -= mean
        rest = near.mean(axis=0)
        near -= rest
        return cls(len(near), mean, rest, sums_of_squares(near))

    @classmethod
    def _weighted(cls, near: FloatArray, weights: FloatArray) -> "Moments":
        total = float(weights.sum())
        shares = weights / (total or 1.0)  # of rows none of which counts, all are zero
        mean = shares @ near
        near -= mean
        rest = shares @ near
        near -= rest
        near *= np.sqrt(weights)[:, None]
        return cls(total, mean, rest, sums_of_squares(near))

    def apart(self, other: "Moments") -> FloatArray:
        """Return the row that stands for the distance of two means in a sum of squares.

        With δ the distance of the means of a and b rows, S = S_a + S_b + ab/(a+b) δδ' (Chan, Golub
        and LeVeque).
        """
        total = self.count + other.count or 1.0
        # One of them as a share: two small weights would underflow.
        return np.sqrt(self.count * (other.count / total)) * self._to(other)

    def merged(self, other: "Moments") -> "Moments":
        """Put two sets of rows together."""
        total = self.count + other.count
        mean, lost = two_sum(self.mean, self._to(other) * (other.count / (total or 1.0)))
        squares = self.squares + other.squares + squared(self.apart(other))
        return Moments(total, mean, self.rest + lost, squares)

    def _to(self, other: "Moments") -> FloatArray:
        return (other.mean - self.mean) + (other.rest - self.rest)

    def centre(self, origin: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means as the nearest doubles, and what those lack."""
        with np.errstate(all="ignore"):
            mean, lacking = two_sum(origin, self.mean)
            return two_sum(mean, lacking + self.rest)


def column_moments(
    X: NDArray[np.floating], weights: FloatArray | None = None, *, first: int = 0
) -> tuple[FloatArray, Moments]:
    """Return an origin, the row `first`, and the moments of the columns from there, in float64.

    One pass over X, in pieces of rows that are merged. NaN and infinity in X show up in the result.
    """
    n, d = X.shape
    origin = X[first].astype(np.float64)
    with np.errstate(all="ignore"):
        if not (X.flags.f_contiguous and not X.flags.c_contiguous):
            return origin, _merged_rows(X, origin, weights)
        parts = [
            _merged_rows(X[:, columns], origin[columns], weights)
            for columns in block_slices(d, 8 * n)
        ]
    return origin, Moments(
        parts[0].count, *(np.concatenate([getattr(part, name) for part in parts])
                          for name in ("mean", "rest", "squares"))
    )  # fmt: skip


def _merged_rows(
    X: NDArray[np.floating], origin: FloatArray, weights: FloatArray | None
) -> Moments:
    def of_share(share: slice) -> Moments:
        with np.errstate(all="ignore"):  # which each thread has for itself
            blocks = block_slices(share.stop - share.start, 8 * X.shape[1], start=share.start)
            found = (
                Moments.centring(X[rows] - origin, _of(weights, rows))  # float64, whatever X is
                for rows in blocks
            )
            return reduce(Moments.merged, found)

    return reduce(Moments.merged, in_threads(of_share, shares(X)))


def _of(weights: FloatArray | None, rows: slice) -> FloatArray | None:
    return None if weights is None else weights[rows]


def _times_rows(values: FloatArray, factors: FloatArray | None) -> FloatArray:
    """Multiply rows by numbers of their own, in place; None for nothing."""
    if factors is not None:
        values *= factors[:, None]
    return values


# Of the pieces whose products are added up to a Gram matrix.
GRAM_BYTES = 4 * CACHE_BYTES


@dataclass(frozen=True)
class Sketched:
    """Moments of some rows, and ``SΩ`` with S their squared deviations and given columns Ω."""

    moments: Moments
    product: FloatArray


def merge_sketched(one: Sketched, other: Sketched, columns: FloatArray) -> Sketched:
    """Put two sets of rows together."""
    apart = one.moments.apart(other.moments)
    product = one.product + other.product + np.outer(apart, apart @ columns)
    return Sketched(one.moments.merged(other.moments), product)


def product(X: Any, W: FloatArray) -> FloatArray:
    """Return ``X W`` in float64, multiplied in the type of X.

    In float32 two large (or two tiny) numbers leave the range, so W is scaled first.
    """
    if X.dtype == np.float64:
        return np.asarray(_times(X, W))
    size = power_of_two(float(np.abs(W).max(initial=0.0)))
    out = np.asarray(_times(X, (W / size).astype(X.dtype)), dtype=np.float64)
    out *= size
    return out


def _times(X: Any, W: NDArray[Any]) -> Any:
    """Return ``X W``, of large dense data with few columns one column at a time."""
    if scipy.sparse.issparse(X) or W.shape[1] > FEW_COLUMNS or X.nbytes < CACHE_BLOCK_BYTES:
        return X @ W
    if X.flags.c_contiguous:
        return np.concatenate(in_threads(lambda rows: _one_by_one(X[rows], W), shares(X)))
    if not X.flags.f_contiguous:
        return X @ W

    def of_share(columns: slice) -> NDArray[Any]:
        return _transposed_one_by_one(X.T[columns], W[columns])

    return reduce(np.add, in_threads(of_share, shares(X.T)))


def _one_by_one(X: NDArray[Any], W: NDArray[Any]) -> NDArray[Any]:
    """Return ``X W`` for data in C order, piece by piece."""
    out = np.empty((len(X), W.shape[1]), dtype=X.dtype)
    for rows, part in pieces(X):
        for column in range(W.shape[1]):
            out[rows, column] = part @ W[:, column]
    return out


def _transposed_one_by_one(X: NDArray[Any], Z: NDArray[Any]) -> NDArray[Any]:
    """Return ``X'Z`` for data in C order, piece by piece."""
    out = np.zeros((Z.shape[1], X.shape[1]), dtype=X.dtype)
    for rows, part in pieces(X):
        for column in range(Z.shape[1]):
            out[column] += Z[rows, column] @ part
    return out.T


def pieces(X: Any, rows: slice | None = None) -> Iterator[tuple[slice, Any]]:
    """Cut dense rows into pieces of about `CACHE_BYTES`; sparse ones are left as they are."""
    if scipy.sparse.issparse(X):
        yield slice(0, X.shape[0]), X
        return
    rows = slice(0, len(X)) if rows is None else rows
    # With a few rows at a time, the product X'Z would write all of itself for next to no work.
    size = max(CACHE_BYTES, FEWEST_PIECE_ROWS * X[:1].nbytes)
    for piece in block_slices(rows.stop - rows.start, X[:1].nbytes, size, start=rows.start):
        yield piece, X[piece]


def sketched_moments(
    X: Any, weights: FloatArray | None = None, *, origin: FloatArray, columns: FloatArray
) -> Sketched:
    """Return the moments of a block, and a product."""
    with np.errstate(all="ignore"):  # what is not finite shows in the result
        if scipy.sparse.issparse(X):
            return _sparse_sketched(X, origin, columns, weights)
        found: Sketched | None = None
        for rows, part in pieces(X):
            near = part - origin  # float64, whatever X is
            piece = Sketched(Moments.centring(near, _of(weights, rows)), near.T @ (near @ columns))
            found = piece if found is None else merge_sketched(found, piece, columns)
    assert found is not None
    return found


def _sparse_sketched(
    X: Any, origin: FloatArray, columns: FloatArray, weights: FloatArray | None
) -> Sketched:
    found = sparse_column_moments(X, origin, weights)
    mean, _ = found.centre(origin)
    scores = _times_rows(X @ columns - mean @ columns, weights)
    # The scores sum to zero, so subtracting the mean afterwards costs no digits.
    SΩ = np.asarray(X.T @ scores) - np.outer(mean, scores.sum(axis=0))
    return Sketched(found, SΩ)


def _places(X: Any) -> Index:
    """Return the columns of the stored entries of a CSR or CSC matrix."""
    if X.format == "csr":
        return np.asarray(X.indices)
    return np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))


def _row_places(X: Any) -> Index:
    """Return the rows of the stored entries of a CSR or CSC matrix."""
    if X.format == "csc":
        return np.asarray(X.indices)
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))


def times(values: FloatArray, factors: FloatArray | None) -> FloatArray:
    """Return numbers times others; None stands for ones."""
    return values if factors is None else values * factors


def _empty_weights(X: Any, weights: FloatArray, left: FloatArray) -> FloatArray:
    """Return the weight of the zeros of every column, given what is left of that of all rows.

    Where little is left, it may be rounding: there the rows that have no entry are looked up.
    """
    few = np.flatnonzero(left < 0.5 * weights.sum())
    if few.size:
        part = X[:, few].tocsc()
        for column, (first, last) in zip(few, pairwise(part.indptr), strict=True):
            left[column] = np.delete(weights, part.indices[first:last]).sum()
    return left


def sparse_column_moments(X: Any, origin: FloatArray, weights: FloatArray | None = None) -> Moments:
    """Return the moments of the columns of a CSR or CSC matrix, from an origin."""
    n, d = X.shape
    places, total = _places(X), float(n)
    counts: FloatArray | None = None
    stored = np.bincount(places, minlength=d)
    empty: FloatArray = n - stored
    if weights is not None:
        counts, total = weights[_row_places(X)], float(weights.sum())
        empty = _empty_weights(X, weights, total - _column_sums(X, counts))
    with np.errstate(all="ignore"):  # what is not finite shows in the result
        near, zero = X.data.astype(np.float64), -origin
        if origin.any():
            near -= origin[places]
        means = []
        for _ in range(2):  # the mean, and what is left of it
            sums = _column_sums(X, times(near, counts)) + empty * zero
            means.append(sums / (total or 1.0))
            for some in block_slices(near.size, 16):  # no further arrays of that length
                near[some] -= means[-1][places[some]]
            zero = zero - means[-1]
        squares: FloatArray = empty * zero * zero
        squares = squares + _column_sums(X, times(near * near, counts))
        nothing = (squares == 0) & (stored > 0)
        if nothing.any():
            lost = nothing[places] & (times(near, counts) != 0)
            squares[places[lost]] = UNDERFLOWN
        return Moments(total, means[0], means[1], squares)


def _column_sums(X: Any, values: FloatArray) -> FloatArray:
    """Return the sums of every column, of numbers in the places of the stored entries."""
    held = type(X)((values, X.indices, X.indptr), shape=X.shape, copy=False)
    return np.asarray(held.T @ np.ones(X.shape[0]))


# Rows that are looked at for a column without zeros, before all entries are counted.
SEEN_ROWS = 32


def _may_be_full(X: Any) -> Index:
    """Return the columns that have entries in some rows, and so may have no zeros."""
    if X.format == "csc":
        return np.flatnonzero(np.diff(X.indptr) == X.shape[0])
    seen = X.indices[: X.indptr[1]]
    for row in np.unique(np.linspace(0, X.shape[0] - 1, SEEN_ROWS).astype(int)):
        seen = np.intersect1d(seen, X.indices[X.indptr[row] : X.indptr[row + 1]])
        if not seen.size:
            break
    return seen


def sparse_origin(X: Any, first: int = 0) -> FloatArray:
    """Return the entries of a row in the columns that have no zeros, and zero for all others."""
    n, d = X.shape
    origin = np.zeros(d)
    if not _may_be_full(X).size:
        return origin
    full = np.bincount(_places(X), minlength=d) == n
    if full.any():
        entries = X[[first]].tocoo()
        origin[entries.coords[1]] = entries.data
    return np.where(full, origin, 0.0)


def covariance_product(
    X: Any, weights: FloatArray | None = None, *, W: FloatArray, shift: FloatArray,
    support: Index | None,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return ``X'Z`` and the column sums of ``Z = XW - shift``; W has the rows of a support.

    Rows of Z are multiplied by the weights.
    """

    def of_share(share: slice | None) -> tuple[FloatArray, FloatArray]:
        out, total = np.zeros((X.shape[1], W.shape[1])), np.zeros(W.shape[1])
        for rows, part in pieces(X, share):
            # What is cut out is a copy: in float64, as weights of features that are alike cancel.
            cut = part if support is None else part[:, support].astype(np.float64, copy=False)
            Z = product(cut, W) - shift
            Z = _times_rows(Z, _of(weights, rows))
            out += product(part.T, Z)
            total += Z.sum(axis=0)
        return out, total

    if scipy.sparse.issparse(X) or W.shape[1] > FEW_COLUMNS:
        return of_share(None)
    found: tuple[FloatArray, FloatArray] = reduce(add, in_threads(of_share, shares(X)))
    return found


def transposed_product(X: Any, Z: FloatArray) -> FloatArray:
    """Return ``X'Z``."""
    return product(X.T, Z)


def _centred(
    X: Any, roots: FloatArray | None, mean: FloatArray, rest: FloatArray
) -> Iterator[FloatArray]:
    """Yield rows without their means, times roots of weights, as dense arrays of moderate size."""
    sparse = scipy.sparse.issparse(X)
    for rows in block_slices(X.shape[0], 8 * mean.size, GRAM_BYTES):
        near = (X[rows].toarray() if sparse else X[rows]) - mean  # float64, whatever X is
        near -= rest
        yield _times_rows(near, _of(roots, rows))


def gram(
    X: Any, roots: FloatArray | None = None, *, mean: FloatArray, rest: FloatArray
) -> FloatArray:
    """Return the products of the centred columns with each other."""
    out = np.zeros((mean.size, mean.size))
    for near in _centred(X, roots, mean, rest):
        out += near.T @ near
    return out


def centred_product(
    X: Any, roots: FloatArray | None = None, *, W: FloatArray, mean: FloatArray, rest: FloatArray,
    scale: FloatArray,
) -> FloatArray:  # fmt: skip
    """Return ``C'CW`` for the centred and scaled columns C: no mean is taken out of a sum."""
    out = np.zeros((mean.size, W.shape[1]))
    for near in _centred(X, roots, mean, rest):
        near /= scale
        out += near.T @ (near @ W)
    return out


def add(one: Any, other: Any) -> Any:
    """Add two results: arrays, or tuples of arrays."""
    if isinstance(one, tuple):
        return tuple(a + b for a, b in zip(one, other, strict=True))
    return one + other


def present_sums(
    X: Any, weights: FloatArray | None = None, *, origin: FloatArray
) -> tuple[NDArray[Any], ...]:
    """Return what is known of the columns of data with holes.

    How many values are missing, infinite, and there (in rows that count); the weight of those that
    are there, and the weighted sum of what they are above an origin.
    """
    if scipy.sparse.issparse(X):
        return _sparse_present_sums(X, weights, origin)
    found: Any = None
    for rows, part in pieces(X):
        there = ~np.isnan(part)
        near = np.where(there, part - origin, 0.0)
        w = np.ones(len(part)) if weights is None else weights[rows]
        sums = (~there).sum(axis=0), np.isinf(part).sum(axis=0), there[w > 0].sum(axis=0)
        counted = *sums, w @ there, w @ near
        found = counted if found is None else add(found, counted)
    return tuple(found)


def _sparse_present_sums(
    X: Any, weights: FloatArray | None, origin: FloatArray
) -> tuple[NDArray[Any], ...]:
    n, d = X.shape
    w = np.ones(n) if weights is None else weights
    places, own = _places(X), w[_row_places(X)]
    gone, infinite = np.isnan(X.data), np.isinf(X.data)
    stored: FloatArray = np.bincount(places, own, minlength=d).astype(np.float64)
    empty = _empty_weights(X, w, float(w.sum()) - stored)
    own = np.where(gone, 0.0, own)
    near = np.where(gone, 0.0, X.data - origin[places])
    n_gone = np.bincount(places[gone], minlength=d)
    counts = w[_row_places(X)] > 0
    n_there = np.count_nonzero(w > 0) - np.bincount(places[gone & counts], minlength=d)
    return (
        n_gone, np.bincount(places[infinite], minlength=d), n_there,
        empty + np.bincount(places, own, minlength=d),
        np.bincount(places, own * near, minlength=d) - empty * origin,
    )  # fmt: skip


def pair_products(
    X: Any, roots: FloatArray | None = None, *, origin: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return N, S and P of data with holes, weighted; see `kspan.covariance.missing`."""
    start = 0
    N, S, P = np.zeros((3, origin.size, origin.size))
    for near in _centred(X, None, origin, np.zeros_like(origin)):
        part = _of(roots, slice(start, start + len(near)))
        start += len(near)
        gone = np.isnan(near)
        near[gone] = 0.0
        near = _times_rows(near, part)
        there = _times_rows((~gone).astype(np.float64), part)
        N += there.T @ there
        S += near.T @ there
        P += near.T @ near
    return N, S, P


def incomplete_row_digests(values: Any) -> NDArray[np.uint8]:
    """Return `row_digests` of rows with holes: there are many ways to write NaN."""
    if scipy.sparse.issparse(values):
        values = values.copy()
        values.data[np.isnan(values.data)] = np.nan
        return row_digests(values)
    return row_digests(np.where(np.isnan(values), np.nan, values))


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
