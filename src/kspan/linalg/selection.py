"""Picking the largest entries of a vector, and putting entries in their places."""

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index


def top_k(scores: NDArray[np.floating], k: int) -> NDArray[np.intp]:
    """Return the sorted indices of the k largest scores; ties go to smaller indices.

    Linear time: a partial sort finds the threshold, one scan fills up with ties. The same
    answer as a stable sort on ``-scores``.

    Examples
    --------
    >>> import numpy as np
    >>> top_k(np.array([1.0, 3.0, 1.0, 2.0]), 3)
    array([0, 1, 3])
    """
    if k <= 0:
        return np.empty(0, dtype=np.intp)
    if k >= scores.size:
        return np.arange(scores.size)
    threshold = np.partition(scores, scores.size - k)[scores.size - k]
    above = np.flatnonzero(scores > threshold)
    tied = np.flatnonzero(scores == threshold)[: k - above.size]
    return np.sort(np.concatenate([above, tied]))


def placed(values: NDArray[np.floating], places: Index, n: int) -> FloatArray:
    """Return n entries, or rows, that are zero but for some values at their places.

    Examples
    --------
    >>> import numpy as np
    >>> placed(np.array([1.0, 2.0]), np.array([3, 0]), 4)
    array([2., 0., 0., 1.])
    """
    whole = np.zeros((n, *values.shape[1:]))
    whole[places] = values
    return whole


def places_in(some: Index, sorted_all: Index) -> Index | None:
    """Return where some numbers stand in a sorted array; None when one of them does not.

    Examples
    --------
    >>> import numpy as np
    >>> places_in(np.array([7, 2]), np.array([2, 5, 7]))
    array([2, 0])
    >>> places_in(np.array([6]), np.array([2, 5, 7])) is None
    True
    """
    places = np.searchsorted(sorted_all, some)
    if (places == sorted_all.size).any() or not np.array_equal(sorted_all[places], some):
        return None
    return places


def largest_positive(scores: FloatArray, k: int) -> FloatArray:
    """Return the columns of scores with their k largest positive entries, and zeros elsewhere.

    Of all nonnegative vectors x of a given length with at most k entries, this one has the largest
    product with a column. Ties go to smaller indices. A column without a positive entry becomes
    zero.

    Examples
    --------
    >>> import numpy as np
    >>> largest_positive(np.array([[3.0], [-5.0], [1.0], [2.0]]), 2)[:, 0]
    array([3., 0., 0., 2.])
    """
    kept = np.maximum(scores, 0.0)
    d = len(kept)
    if k >= d:
        return kept
    threshold = np.partition(kept, d - k, axis=0)[d - k]
    above = kept > threshold
    tied = (kept == threshold) & (threshold > 0)
    room = k - above.sum(axis=0)
    if bool((tied.sum(axis=0) > room).any()):
        tied &= np.cumsum(tied, axis=0) <= room
    kept[~(above | tied)] = 0.0
    return kept
