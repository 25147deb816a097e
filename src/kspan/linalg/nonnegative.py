r"""Nonnegative vectors: the top of a support, and a matrix that proves it.

On a support S without a limit on the number of features, a nonnegative x is a local maximum of
x'Ax only if it is the leading eigenvector of A on its own features.
"""

import numpy as np

from kspan.arrays import FloatArray

# An entry of an eigenvector may be this far below zero, and is then zero.
NEGATIVE_ROUNDING = 1e-10

# Entries that reach zero within this share of a step do so together.
SAME_STEP = 1e-13


def climb_support(A: FloatArray, x: FloatArray) -> tuple[FloatArray, float]:
    """Return a nonnegative unit vector from which x'Ax cannot be raised by its own features.

    If the leading eigenvector u on the features of x has one sign it is the best that they can
    do. If not, move from x towards u on the sphere until an entry becomes zero, leave that feature
    out, and look again: on the circle through both the value is a sinusoid with its top
    at u, so that it grows all the way.

    Parameters
    ----------
    A : (n, n) symmetric array
    x : (n,) nonnegative vector, not zero

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[2.0, 1.0, -1.0], [1.0, 2.0, -1.0], [-1.0, -1.0, 1.0]])
    >>> x, value = climb_support(A, np.ones(3))
    >>> x.round(3), round(value, 6)
    (array([0.707, 0.707, 0.   ]), 3.0)
    """
    x = x / np.linalg.norm(x)
    while True:
        S = np.flatnonzero(x > 0)
        u, xs = np.linalg.eigh(A[np.ix_(S, S)])[1][:, -1], x[S]
        if u @ xs < 0:
            u = -u
        if u.min() >= -NEGATIVE_ROUNDING or S.size == 1:
            u = np.maximum(u, 0.0)
            x[S] = u / np.linalg.norm(u)
            inside = np.flatnonzero(x)
            return x, float(x[inside] @ A[np.ix_(inside, inside)] @ x[inside])
        x[S] = towards(xs, u)


def towards(x: FloatArray, u: FloatArray) -> FloatArray:
    """Move from x > 0 to u on the sphere until the first entry is zero, and return that point."""
    falls = u < 0
    # x + t u is zero first where t is smallest; entries that are zero together go together.
    steps = np.where(falls, x / np.where(falls, -u, 1.0), np.inf)
    t = float(steps.min())
    y = np.where(steps <= t * (1 + SAME_STEP), 0.0, np.maximum(x + t * u, 0.0))
    return np.asarray(y / np.linalg.norm(y))


def best_on_support(A: FloatArray) -> tuple[FloatArray, float]:
    """Return the better of two climbs: from the positive and the negative part of the leader.

    The best nonnegative vector whenever the leading eigenvector has one sign; a local maximum
    otherwise.
    """
    u = np.linalg.eigh(A)[1][:, -1]
    starts = [part for part in (np.maximum(u, 0.0), np.maximum(-u, 0.0)) if part.any()]
    return max((climb_support(A, start) for start in starts), key=lambda found: found[1])


def complete_signs(A: FloatArray, x: FloatArray, N: FloatArray) -> FloatArray:
    r"""Change N ≥ 0 as little as needed for x to be an eigenvector of A + N.

    x is the leading eigenvector of A on its features S, with value λ. If N vanishes on S × S and
    :math:`(Nx)_i = -(Ax)_i` for every other feature i, then (A + N)x = λx. When λ is
    moreover the largest eigenvalue of A + N, then :math:`\max_{y \ge 0} y'Ay \le λ`: x is
    optimal, and proved so to the last digit, although N came from an iteration that had not
    converged. Each row N_iS is projected on its condition; where (Ax)_i is positive x is not
    optimal, and the row is zero.
    """
    S, rest = np.flatnonzero(x > 0), np.flatnonzero(x <= 0)
    xs, out = x[S], N.copy()
    out[np.ix_(S, S)] = 0.0
    rows = N[np.ix_(rest, S)]
    goal = np.maximum(-(A[np.ix_(rest, S)] @ xs), 0.0)
    # max(n + t x, 0)'x grows with t: bisect all rows at once.
    low = -(rows / xs).max(axis=1, initial=0.0) - 1.0
    high = goal / (xs @ xs) + 1.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        above = np.maximum(rows + middle[:, None] * xs, 0.0) @ xs > goal
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    rows = np.where(goal[:, None] > 0, np.maximum(rows + high[:, None] * xs, 0.0), 0.0)
    out[np.ix_(rest, S)], out[np.ix_(S, rest)] = rows, rows.T
    return out
