"""Column means and variances of a dense array in one pass, without a copy of it."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

# A block of this many bytes stays in the cache while it is read more than once.
BLOCK_BYTES = 1 << 20


def block_slices(length: int, bytes_each: int, block_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
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
