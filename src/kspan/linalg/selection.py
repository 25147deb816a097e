"""Picking the largest entries of a vector."""

import numpy as np
from numpy.typing import NDArray


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
