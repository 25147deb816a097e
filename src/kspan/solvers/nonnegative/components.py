r"""What nonnegative methods share: one component after the other, and the rank-one answer.

For a vector a the unit vector :math:`x \ge 0` with at most k features and the largest
:math:`(a'x)^2` is proportional to the k largest positive entries of a, or of -a, whichever are
longer. Every method comes down to it.
"""

import numpy as np

from kspan.arrays import FloatArray
from kspan.problem import NonnegativeProblem
from kspan.progress import Callback
from kspan.solution import LoadingsSolution
from kspan.solvers.elementsparse.components import Find, by_deflation

# What they leave of A is positive semidefinite, which the methods need.
NONNEGATIVE_DEFLATIONS = ("remove", "projection", "orthogonalized")


def one_by_one(
    problem: NonnegativeProblem,
    find: Find,
    *,
    name: str,
    deflation: str,
    callback: Callback | None,
    time_limit: float | None,
) -> LoadingsSolution:
    """Find m nonnegative components one after the other; see `by_deflation`."""
    if deflation not in NONNEGATIVE_DEFLATIONS:
        raise ValueError(
            f"deflation must be one of {list(NONNEGATIVE_DEFLATIONS)}, got {deflation!r}."
        )
    return by_deflation(
        problem, find, name=name, deflation=deflation, callback=callback, time_limit=time_limit
    )


def largest_positive(scores: FloatArray, k: int) -> FloatArray:
    """Return the columns of scores with their k largest positive entries, and zeros elsewhere.

    Ties go to smaller indices. A column without a positive entry becomes zero.

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
