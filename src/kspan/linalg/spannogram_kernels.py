r"""The compiled loops of the spannogram: all vertices, circle by circle, and their supports.

A vertex is a direction c at which d of the m rows, or d - 1 of them and zero, have one value
:math:`t = w_i'c`. The directions at which d - 1 given rows are tied are a great circle. On it
every other row is above the tied value on one half turn and below on the other, so a sweep over
the sorted angles at which rows cross meets all vertices of the circle, and the set of the rows
above is all that has to be updated. Cost: :math:`O(m \log m)` for a circle, so
:math:`O(m^d \log m)` in total and not :math:`O(m^{d+1})`; memory O(m).

Rows of W, which have been moved a little so that no more than d are ever tied, decide what is above
what. Rows of V, the true ones, decide what a support is worth.
"""

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Mask
from kspan.linalg.cone_quadratic import leading_pair, narrow, search_cone
from kspan.linalg.machine import compiled

Integers = NDArray[np.int64]
Supports = NDArray[np.uint8]

# Keys of crossings are between 0 and 2; this is one for a row that never crosses.
NEVER = 4.0


@compiled
def sweep_circles(
    Wt: FloatArray, V: FloatArray, fixed: FloatArray, room: int, signed: bool, simple: bool,
    floor: float, circle: Integers, n_circles: int, found: Supports,
) -> tuple[int, int]:  # fmt: skip
    """Sweep circles and collect the supports next to their vertices that may beat `floor`.

    With T the rows above the tied value t > 0 of a vertex, the supports next to it are T and as
    many of the tied rows as there is room for. If zero is one of the tied rows, they are T and any
    tied rows up to that number. Where t < 0 there are none: c and -c are both looked at.

    Parameters
    ----------
    Wt : (d, m) rows that are compared, transposed; if signed (d, 2m), each followed by its negative
    V : (m, d) rows that count
    fixed : (d, d) sum of vv' over further rows that are in every support
    room : number of rows, at most, that a support takes from V
    signed : whether sizes are compared, and not values
    simple : whether to take one choice of the tied rows only
    floor : supports with λ₁(Σvv') up to this are passed over
    circle : (d - 1,) the first circle, as ascending rows of W; on return, the next one
    n_circles : how many to sweep, at most
    found : (capacity, m) receives the supports, as ones

    Returns
    -------
    n_done, n_found : circles swept and supports found
        When `found` is full, the last circle is not counted and its supports are not there.
    """
    d, n_rows = Wt.shape
    zero = n_rows  # stands for the row of zeros; sizes are never compared with it
    n_events = n_rows if signed else n_rows + 1
    u0, u1 = np.empty(n_events), np.empty(n_events)
    keys = np.empty(n_events)
    order, spare = np.empty(n_events, dtype=np.int64), np.empty(n_events, dtype=np.int64)
    above = np.empty(n_rows + 1, dtype=np.bool_)
    is_tied = np.zeros(n_rows + 1, dtype=np.bool_)
    tied = np.empty(d, dtype=np.int64)
    bases = np.empty((d, d, d))
    n_found = 0
    for n_done in range(n_circles):
        n_before = n_found
        if (not signed or _distinct(circle)) and _circle_basis(Wt, circle, bases):
            B = bases[d - 2]
            t0 = t1 = 0.0  # the tied value at c = B (x, y) is t0 x + t1 y
            for q in range(d):
                t0 += Wt[q, circle[0]] * B[q, 0]
                t1 += Wt[q, circle[0]] * B[q, 1]
            for i in range(n_events):
                u0[i], u1[i] = -t0, -t1
            for q in range(d):
                for i in range(n_rows):
                    u0[i] += Wt[q, i] * B[q, 0]
                    u1[i] += Wt[q, i] * B[q, 1]
            _crossings(u0, u1, keys, above)
            for j in range(d - 1):
                tied[j] = circle[j]
                is_tied[circle[j]] = True
                above[circle[j]] = False
                keys[circle[j]] = NEVER
            above[zero] = False
            count = 0
            for i in range(n_rows):
                count += above[i]
            _sort(keys, order, spare)
            for e in range(n_events):
                i = order[e]
                if keys[i] == NEVER:
                    break
                goes_down = above[i]
                if goes_down and i != zero:
                    count -= 1
                new = i > circle[d - 2] and not (signed and i // 2 == circle[d - 2] // 2)
                if new:
                    n_tied = d - 1 if i == zero else d
                    tied[d - 1] = i
                    is_tied[i] = True
                    t = t1 * u0[i] - t0 * u1[i] if goes_down else t0 * u1[i] - t1 * u0[i]
                    for side in range(2):  # c, then -c
                        most = room - (count if side == 0 else n_rows - n_tied - count)
                        if i == zero:
                            least, wanted = 0, most >= 0
                        else:
                            least, wanted = most, 1 <= most < d and (t > 0) == (side == 0)
                        if wanted and n_found >= 0:
                            n_found = _add_supports(
                                V, fixed, above, side == 0, is_tied, tied, n_tied,
                                least, most, simple, floor, found, n_found,
                            )  # fmt: skip
                    is_tied[i] = False
                    if n_found < 0:
                        break
                above[i] = not goes_down
                if not goes_down and i != zero:
                    count += 1
            for j in range(d - 1):
                is_tied[circle[j]] = False
            if n_found < 0:
                return n_done, n_before
        if not _next_circle(circle, n_rows):
            return n_done + 1, n_found
    return n_circles, n_found


@compiled
def _distinct(circle: Integers) -> bool:
    """Say whether no row meets its own negative; of a circle and its mirror image take one."""
    distinct = circle[0] % 2 == 0
    for j in range(1, circle.size):
        distinct = distinct and circle[j] // 2 != circle[j - 1] // 2
    return distinct


@compiled
def _next_circle(circle: Integers, n_rows: int) -> bool:
    """Go on to the next combination of rows in lexicographic order; False after the last."""
    size = circle.size
    for j in range(size - 1, -1, -1):
        if circle[j] < n_rows - size + j:
            circle[j] += 1
            for q in range(j + 1, size):
                circle[q] = circle[q - 1] + 1
            return True
    return False


@compiled
def _circle_basis(Wt: FloatArray, circle: Integers, bases: FloatArray) -> bool:
    """Find an orthonormal basis bases[d - 2][:, :2] of the c at which the rows are tied."""
    d = Wt.shape[0]
    difference = np.empty(d)
    for q in range(d):
        for j in range(d):
            bases[0, q, j] = 1.0 if q == j else 0.0
    for j in range(1, d - 1):
        for q in range(d):
            difference[q] = Wt[q, circle[0]] - Wt[q, circle[j]]
        if not narrow(bases[j - 1], d - j + 1, difference, 0.0, bases[j]):
            return False
    return True


@compiled
def _crossings(u0: FloatArray, u1: FloatArray, keys: FloatArray, above: Mask) -> None:
    """Find where each u'(cos φ, sin φ) changes its sign for 0 ≤ φ < π, and its sign before that.

    The keys grow with φ and need no trigonometry.
    """
    for i in range(keys.size):
        above[i] = u0[i] > 0 or (u0[i] == 0 and u1[i] < 0)
        x, y = (-u1[i], u0[i]) if above[i] else (u1[i], -u0[i])
        size = abs(x) + y
        if size == 0:
            keys[i] = NEVER
        else:
            keys[i] = y / size if x >= 0 else 1.0 - x / size


@compiled
def _sort(keys: FloatArray, order: Integers, spare: Integers) -> None:
    """Write to `order` the indices that sort the keys: merge sort, from short sorted runs."""
    n, run = keys.size, 8
    for start in range(0, n, run):
        for i in range(start, min(start + run, n)):
            j = i
            while j > start and keys[order[j - 1]] > keys[i]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = i
    while run < n:
        for start in range(0, n, 2 * run):
            middle, stop = min(start + run, n), min(start + 2 * run, n)
            for i in range(start, middle):
                spare[i] = order[i]
            left, right, out = start, middle, start
            while left < middle and right < stop:
                if keys[spare[left]] <= keys[order[right]]:
                    order[out] = spare[left]
                    left += 1
                else:
                    order[out] = order[right]
                    right += 1
                out += 1
            for i in range(left, middle):
                order[out] = spare[i]
                out += 1
        run *= 2


@compiled
def _add_supports(
    V: FloatArray, fixed: FloatArray, above: Mask, side: bool, is_tied: Mask, tied: Integers,
    n_tied: int, least: int, most: int, simple: bool, floor: float, found: Supports, n_found: int,
) -> int:  # fmt: skip
    """Add the supports next to one vertex; return their number, or -1 when there is no room."""
    n_rows, m, d = above.size - 1, V.shape[0], V.shape[1]
    step = n_rows // m  # 2 when every row comes with its negative
    Q, S, u = np.empty((d, d)), np.empty((d, d)), np.empty(d)
    _copy(fixed, Q)
    for i in range(n_rows):
        if above[i] == side and not is_tied[i]:
            _add_outer(Q, V, i // step)
    for choice in range(1 << n_tied):
        if simple and choice != (1 << most) - 1:
            continue
        size = 0
        for j in range(n_tied):
            size += (choice >> j) & 1
        if size < least or size > most:
            continue
        _copy(Q, S)
        for j in range(n_tied):
            if (choice >> j) & 1:
                _add_outer(S, V, tied[j] // step)
        trace = 0.0
        for q in range(d):
            trace += S[q, q]
        if trace <= floor or leading_pair(S, u) <= floor:
            continue
        if n_found == found.shape[0]:
            return -1
        for i in range(m):
            found[n_found, i] = 0
        for i in range(n_rows):
            if above[i] == side and not is_tied[i]:
                found[n_found, i // step] = 1
        for j in range(n_tied):
            if (choice >> j) & 1:
                found[n_found, tied[j] // step] = 1
        n_found += 1
    return n_found


@compiled
def _add_outer(Q: FloatArray, V: FloatArray, row: int) -> None:
    for i in range(Q.shape[0]):
        for j in range(Q.shape[0]):
            Q[i, j] += V[row, i] * V[row, j]


@compiled
def _copy(source: FloatArray, target: FloatArray) -> None:
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@compiled
def best_nonnegative(
    fixed: FloatArray, V: FloatArray, supports: Supports, floor: float, best: FloatArray
) -> tuple[float, int]:
    """Solve (P_d) on each support; return the largest value above `floor`, and which it is of.

    Parameters
    ----------
    fixed : (f, d) rows that are in every support
    V : (m, d) rows that a support is chosen from
    supports : (s, m) ones
    floor : returned, with -1, if no support does better
    best : (d,) receives the direction c
    """
    d, n_fixed = V.shape[1], fixed.shape[0]
    base, Q = np.zeros((d, d)), np.empty((d, d))
    R = np.empty((n_fixed + V.shape[0], d))
    _copy(fixed, R)
    for i in range(n_fixed):
        _add_outer(base, fixed, i)
    winner = -1
    for s in range(supports.shape[0]):
        size = n_fixed
        _copy(base, Q)
        for i in range(V.shape[0]):
            if supports[s, i]:
                for j in range(d):
                    R[size, j] = V[i, j]
                _add_outer(Q, V, i)
                size += 1
        value = search_cone(Q, R, size, floor, best)
        if value > floor:
            floor, winner = value, s
    return floor, winner
