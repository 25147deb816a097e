r"""Which data it is, from its bytes, about as fast as they are read.

Words of 32 bits are multiplied by random numbers of 64 bits and added up, block by block, twice. Of
two different blocks, with words that differ by δ,

.. math:: \sum_i k_i δ_i \equiv 0 \pmod{2^{64}}, \qquad 0 < |δ_i| < 2^{32} \text{ for some } i

holds for one in 2^33 choices of the k at most, as δ has at most 31 factors of two. So two sums
agree for one in 2^66 (Lemire and Kaser, Strongly universal string hashing is fast, Comput. J. 57,
2014). The SHA-256 of the sums, and of what else decides how numbers are added (shape, type, order
in memory), stands for the data. The numbers k are always the same: who makes data for which
the sums agree fools himself.
"""

import hashlib
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kspan.covariance.block_kernels import block_slices
from kspan.io.rows import RowSource

# Words in a block: with their multipliers they stay in the cache.
WORDS = 1 << 16


@cache
def _multipliers() -> NDArray[np.uint64]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 2**64, (2, WORDS), dtype=np.uint64)


def _sums(words: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return two sums for every block of words."""
    blocks = list(block_slices(words.size, 1, WORDS))
    sums, buffer = np.empty((len(blocks), 2), np.uint64), np.empty(WORDS, np.uint64)
    for own, block in zip(sums, blocks, strict=True):
        part = words[block]
        wide = buffer[: part.size]
        np.copyto(wide, part)
        for lane, multipliers in enumerate(_multipliers()):
            own[lane] = np.einsum("i,i->", wide, multipliers[: part.size])
    return sums


def array_digest(values: NDArray[Any]) -> bytes:
    """Return 32 bytes that tell an array of 32-bit or 64-bit numbers from others."""
    flags = values.flags
    layout: Any = (flags.c_contiguous, flags.f_contiguous)
    if not any(layout):
        layout = values.strides
    sha = hashlib.sha256(repr((values.shape, values.dtype.str, layout)).encode())
    if flags.c_contiguous or flags.f_contiguous:
        parts = [values if flags.c_contiguous else values.T]
    else:  # a part of it at a time is copied
        bytes_each = values.itemsize * max(1, values[:1].size)
        parts = [values[rows] for rows in block_slices(len(values), bytes_each)]
    for part in parts:
        sha.update(_sums(np.ascontiguousarray(part).reshape(-1).view(np.uint32)).tobytes())
    return sha.digest()


def rows_digest(values: Any) -> NDArray[np.uint8]:
    """Return `array_digest` of a block of rows, or what stands for it of sparse ones, as a row."""
    if scipy.sparse.issparse(values):
        sha = hashlib.sha256(f"{values.format} {values.shape}".encode())
        for part in (values.indptr, values.indices, values.data):
            sha.update(array_digest(part))
        found = sha.digest()
    else:
        found = array_digest(values)
    return np.frombuffer(found, np.uint8).reshape(1, -1)


def data_digest(X: Any) -> bytes:
    """Return 32 bytes that tell data from other data, and from the same stored in another way.

    One pass. Numbers that are added in another order add up to other last digits.

    Parameters
    ----------
    X : array, CSR, CSC or `RowSource`
    """
    if not isinstance(X, RowSource):
        return rows_digest(X).tobytes()
    sha = hashlib.sha256(repr((X.shape, X.dtype.str, list(pairwise(X.edges())))).encode())
    sha.update(X.stack(rows_digest).tobytes())
    return sha.digest()
