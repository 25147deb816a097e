r"""Orthonormal matrices on a pattern of zeros: compiled, for thousands of small problems.

.. math:: \{V : V'V = I,\; V_{it} = 0 \text{ outside the mask}\}

Only the rows of a column's own features matter to it: a product with S is one with the blocks
:math:`S_{R_tR_t}`, and costs Σk_t², whatever the number of features. The directions m∘(VΛ) with a
symmetric Λ are the normals of the set; see `kspan.solvers.stiefel.pattern`, which is the same for
one large problem, with a penalty, and has the reasons.
"""

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.linalg.machine import compiled

# ‖V'V - I‖ at which Newton's method stops, in a trial and else, and up to which its result counts
# as orthonormal.
TRIAL_AIM, AIM, ORTHONORMAL = 1e-11, 1e-14, 1e-10

# Normals that are parallel up to this share are: entries that two columns alone share.
RIDGE = 1e-11

# Up to so many unknowns a system is solved here, without a call of the library.
SMALL_SYSTEM = 36

# Power steps after which a Rayleigh quotient is near enough to be the base of a bound.
POWER_STEPS = 6


@compiled
def own_rows(mask: Mask) -> tuple[Index, Index]:
    """Return the features of each column (r, most), padded, and how many they are."""
    n, r = mask.shape
    counts = np.zeros(r, dtype=np.int64)
    for t in range(r):
        for i in range(n):
            counts[t] += mask[i, t]
    rows = np.zeros((r, max(1, counts.max())), dtype=np.int64)
    for t in range(r):
        place = 0
        for i in range(n):
            if mask[i, t]:
                rows[t, place] = i
                place += 1
    return rows, counts


@compiled
def normal_step(V: FloatArray, rows: Index, counts: Index, wanted: FloatArray) -> FloatArray:
    """Return ``m ∘ (VΛ)`` with the symmetric Λ for which it changes V'V by `wanted`."""
    return _normal_step(V, rows, counts, wanted, _row_grams(V, rows, counts))


@compiled
def _row_grams(V: FloatArray, rows: Index, counts: Index) -> FloatArray:
    """Return the Gram matrices (r, r, r) of the rows of V that each column uses."""
    r, most = V.shape[1], rows.shape[1]
    grams, own = np.empty((r, r, r)), np.empty((r, most))
    for t in range(r):
        count = counts[t]
        whole = count - count % 4
        for place in range(count):
            i = rows[t, place]
            for a in range(r):
                own[a, place] = V[i, a]
        for a in range(r):
            for b in range(a, r):
                first, second, third, fourth = 0.0, 0.0, 0.0, 0.0  # four sums at a time
                for i in range(0, whole, 4):
                    first += own[a, i] * own[b, i]
                    second += own[a, i + 1] * own[b, i + 1]
                    third += own[a, i + 2] * own[b, i + 2]
                    fourth += own[a, i + 3] * own[b, i + 3]
                for i in range(whole, count):
                    first += own[a, i] * own[b, i]
                grams[t, a, b] = (first + second) + (third + fourth)
                grams[t, b, a] = grams[t, a, b]
    return grams


@compiled
def _normal_step(
    V: FloatArray, rows: Index, counts: Index, wanted: FloatArray, grams: FloatArray
) -> FloatArray:
    """Return the same from Gram matrices that are known already."""
    r = V.shape[1]
    size = r * (r + 1) // 2
    position = np.zeros((r, r), dtype=np.int64)
    place = 0
    for a in range(r):
        for b in range(a, r):
            position[a, b] = place
            position[b, a] = place
            place += 1
    system, right = np.zeros((size, size)), np.zeros(size)
    for a in range(r):
        for b in range(a, r):
            column = position[a, b]
            right[column] = wanted[a, b]
            for twice in range(1 if a == b else 2):
                x, y = (a, b) if twice == 0 else (b, a)
                for c in range(r):
                    # On the diagonal both halves fall on the same place.
                    system[position[c, y], column] += grams[y, c, x] * (2.0 if c == y else 1.0)
    largest = 0.0
    for place in range(size):
        largest = max(largest, system[place, place])
    for place in range(size):
        system[place, place] += RIDGE * largest + 1e-300
    if size <= SMALL_SYSTEM:
        _solve(system, right)
    else:
        right = np.linalg.solve(system, right)
    step = np.zeros_like(V)
    for t in range(r):
        for place in range(counts[t]):
            i = rows[t, place]
            total = 0.0
            for a in range(r):
                total += V[i, a] * right[position[a, t]]
            step[i, t] = total
    return step


@compiled
def _solve(system: FloatArray, right: FloatArray) -> None:
    """Put the solution of a small system into its right hand side; the system is used up."""
    size = len(right)
    for a in range(size):
        pivot = a
        for b in range(a + 1, size):
            if abs(system[b, a]) > abs(system[pivot, a]):
                pivot = b
        if pivot != a:
            for c in range(a, size):
                system[a, c], system[pivot, c] = system[pivot, c], system[a, c]
            right[a], right[pivot] = right[pivot], right[a]
        for b in range(a + 1, size):
            share = system[b, a] / system[a, a]
            for c in range(a + 1, size):
                system[b, c] -= share * system[a, c]
            right[b] -= share * right[a]
    for a in range(size - 1, -1, -1):
        for c in range(a + 1, size):
            right[a] -= system[a, c] * right[c]
        right[a] /= system[a, a]


@compiled
def _gram(V: FloatArray, W: FloatArray, rows: Index, counts: Index) -> FloatArray:
    """Return V'W for a W that is zero outside the rows of its columns."""
    r = V.shape[1]
    gram = np.zeros((r, r))
    for t in range(r):
        for place in range(counts[t]):
            i = rows[t, place]
            for a in range(r):
                gram[a, t] += V[i, a] * W[i, t]
    return gram


@compiled
def newton(V: FloatArray, rows: Index, counts: Index) -> tuple[FloatArray, bool]:
    """Return an orthonormal matrix near V on its pattern, and whether there is one."""
    V, found, _ = _newton(V, rows, counts, AIM)
    return V, found


@compiled
def _newton(
    V: FloatArray, rows: Index, counts: Index, aim: float
) -> tuple[FloatArray, bool, FloatArray]:
    """Return the same up to an aim, and the Gram matrices of the rows of each column."""
    r = V.shape[1]
    V = V.copy()
    grams = np.zeros((0, r, r))
    for t in range(r):
        length = np.sqrt(np.sum(V[:, t] ** 2))
        if not length > 0.0:
            return V, False, grams
        V[:, t] /= length
    missing = np.empty((r, r))
    error = np.inf
    for _ in range(30):
        grams = _row_grams(V, rows, counts)
        before, error = error, 0.0
        for t in range(r):
            for a in range(r):
                missing[a, t] = (1.0 if a == t else 0.0) - grams[t, a, t]
                error = max(error, abs(missing[a, t]))
        if error <= aim or (error <= ORTHONORMAL and error >= before / 2):
            return V, True, grams
        step = _normal_step(V, rows, counts, missing, grams)
        size = np.sqrt(np.sum(step * step))
        if not size < np.inf:
            return V, False, grams
        V += step * (min(1.0, 0.5 / size) if size > 0.0 else 0.0)
    return V, error <= ORTHONORMAL, _row_grams(V, rows, counts)


@compiled
def _fill(block: FloatArray, S: FloatArray, rows: Index, count: int) -> None:
    """Write the part of S on some rows into a block."""
    for a in range(count):
        for b in range(count):
            block[a, b] = S[rows[a], rows[b]]


@compiled
def _image(
    blocks: FloatArray, place: Index, V: FloatArray, rows: Index, counts: Index
) -> FloatArray:
    """Return SV on the pattern; column t has the part of S at its place among the blocks."""
    image = np.zeros_like(V)
    total = np.empty(rows.shape[1])
    for t in range(V.shape[1]):
        count, block = counts[t], blocks[place[t]]
        total[:] = 0.0
        for b in range(count):  # row by row of a symmetric block: several sums at a time
            v = V[rows[t, b], t]
            for a in range(count):
                total[a] += block[b, a] * v
        for a in range(count):
            image[rows[t, a], t] = total[a]
    return image


@compiled
def _tangent(
    V: FloatArray, SV: FloatArray, rows: Index, counts: Index, grams: FloatArray
) -> FloatArray:
    """Return the gradient of -½tr(V'SV) within the set."""
    inner = _gram(V, SV, rows, counts)
    return _normal_step(V, rows, counts, inner + inner.T, grams) - SV


@compiled
def _raise(
    blocks: FloatArray, place: Index, V: FloatArray, rows: Index, counts: Index,
    max_iter: int, tol: float, target: float, aim: float,
) -> tuple[FloatArray, float]:  # fmt: skip
    """Raise tr(V'SV) as `raise_on_pattern` says; the rows of V are those that are used."""
    V, found, grams = _newton(V, rows, counts, aim)
    if not found:
        return V, -np.inf
    SV = _image(blocks, place, V, rows, counts)
    value = np.sum(V * SV)
    G = _tangent(V, SV, rows, counts, grams)
    length = 1.0
    for _ in range(max_iter):
        squares = np.sum(G * G)
        if squares <= 1e-18:
            break
        better, after, image, moved = value, V, SV, False
        for _halving in range(25):
            trial, found, grams = _newton(V - length * G, rows, counts, aim)
            if found:
                image = _image(blocks, place, trial, rows, counts)
                after = trial
                better = np.sum(trial * image)
                if better >= value + 2e-4 * length * squares:
                    moved = True
                    break
            length *= 0.4
        if not moved:
            break
        turned = _tangent(after, image, rows, counts, grams)
        step = after - V
        curvature = np.sum(step * (turned - G))
        gained = better - value
        long = np.sum(step * step)
        V, value, G = after, better, turned
        length = long / curvature if curvature > 0.0 else 4.0 * length
        length = min(max(length, 1e-3), 1e4)
        if gained <= tol * abs(value) or value + 30.0 * gained < target:
            break
    return V, value


@compiled
def raise_on_pattern(
    S: FloatArray, V: FloatArray, mask: Mask, max_iter: int, tol: float, target: float
) -> tuple[FloatArray, float]:
    """Raise tr(V'SV) on a pattern by gradient steps of Barzilai and Borwein's length.

    Returns V and its value, which is -inf if there is no orthonormal matrix near V.

    Parameters
    ----------
    S : (n, n), its largest eigenvalue about one
    V : (n, r), near an orthonormal matrix
    mask : (n, r)
    max_iter, tol : stop after so many steps, or when one gains less than this share
    target : stop when steps like the last one are too short to get there soon
    """
    r = V.shape[1]
    used = np.flatnonzero(np.sum(mask, axis=1))  # the others cost nothing from here on
    whole = np.zeros((len(V), r))
    part = mask[used]
    rows, counts = own_rows(part)
    most = rows.shape[1]
    blocks = np.empty((r, most, most))
    for t in range(r):
        _fill(blocks[t], S, used[rows[t]], counts[t])
    W, value = _raise(
        blocks, np.arange(r), np.where(part, V[used], 0.0), rows, counts, max_iter, tol, target,
        AIM,
    )  # fmt: skip
    if value > -np.inf:
        whole[used] = W
    return whole, value


@compiled
def leading_on_pattern(
    S: FloatArray, V: FloatArray, mask: Mask, changed: Mask
) -> tuple[FloatArray, float]:
    """Return the leading eigenvector on the rows of each changed column; supports are disjoint."""
    rows, counts = own_rows(mask)
    V = np.where(mask, V, 0.0)
    r, most = rows.shape
    blocks = np.empty((r, most, most))
    for t in range(r):
        _fill(blocks[t], S, rows[t], counts[t])
        if changed[t]:
            k = counts[t]
            vectors = np.linalg.eigh(np.ascontiguousarray(blocks[t, :k, :k]))[1]
            for a in range(k):
                V[rows[t, a], t] = vectors[a, k - 1]
    return V, np.sum(V * _image(blocks, np.arange(r), V, rows, counts))


@compiled
def _is_below(block: FloatArray, count: int, bound: float) -> bool:
    """Say whether all eigenvalues are below a bound: bound times the identity has what is left.

    By the pivots of Cholesky's decomposition of the difference, which must all be positive.
    """
    left = np.empty((count, count))
    for a in range(count):
        for b in range(count):
            left[a, b] = -block[a, b]
        left[a, a] += bound
    for a in range(count):
        pivot = left[a, a]
        if not pivot > 1e-12 * bound:
            return False
        for b in range(a + 1, count):
            share = left[a, b] / pivot
            for c in range(b, count):
                left[b, c] -= share * left[a, c]
    return True


@compiled
def _quotient(block: FloatArray, rows: Index, count: int, start: FloatArray) -> float:
    """Return the Rayleigh quotient after some power steps from the entries of a column."""
    x, y = np.empty(count), np.empty(count)
    for a in range(count):
        x[a] = start[rows[a]]
    value = 0.0
    for _ in range(POWER_STEPS):
        length = np.sqrt(np.sum(x * x))
        if not length > 0.0:
            return 0.0
        x /= length
        y[:] = 0.0
        for b in range(count):
            v = x[b]
            for a in range(count):
                y[a] += block[b, a] * v
        value = np.sum(x * y)
        x, y = y, x
    return value


@compiled
def _cannot_reach(
    blocks: FloatArray, place: Index, trial: FloatArray, rows: Index, counts: Index,
    changed: Mask, needed: float,
) -> bool:  # fmt: skip
    """Say whether the largest eigenvalues of the changed columns add up to less than needed.

    False if that is not clear: bounds a little above each, of which the sum is what is needed, are
    put to the proof.
    """
    r = len(counts)
    near = np.zeros(r)
    number = 0
    for t in range(r):
        if changed[t]:
            near[t] = _quotient(blocks[place[t]], rows[t], counts[t], trial[:, t])
            number += 1
    slack = (needed - np.sum(near)) / max(number, 1)
    if not slack > 0.0:
        return False
    for t in range(r):
        if changed[t] and not _is_below(blocks[place[t]], counts[t], near[t] + slack):
            return False
    return True


@compiled
def lone_overlap(mask: Mask) -> bool:
    """Say whether two columns share exactly one feature: then one of its entries must be zero."""
    return bool((_shared(mask) == 1).any())


@compiled
def _shared(mask: Mask) -> Index:
    """Return how many features each two columns share (r, r); zero on the diagonal."""
    n, r = mask.shape
    shared = np.zeros((r, r), dtype=np.int64)
    for i in range(n):
        for a in range(r):
            if mask[i, a]:
                for b in range(r):
                    if a != b and mask[i, b]:
                        shared[a, b] += 1
    return shared


@compiled
def _flip(mask: Mask, shared: Index, i: int, t: int) -> None:
    """Put an entry into a pattern, or take it out, and count anew what columns share."""
    sign = -1 if mask[i, t] else 1
    mask[i, t] = not mask[i, t]
    for a in range(mask.shape[1]):
        if a != t and mask[i, a]:
            shared[a, t] += sign
            shared[t, a] += sign


@compiled
def first_better(
    S: FloatArray, V: FloatArray, mask: Mask, value: float, moves: Index, disjoint: bool,
    least: float,
) -> tuple[int, FloatArray, Mask, float]:  # fmt: skip
    """Try moves in their order until one raises the value; returns its number, or -1, and the rest.

    What all moves have in common is computed once: the part of S of each column, which a move
    changes in one column or two.

    Parameters
    ----------
    S, V, mask, value : the matrix, the loadings, their pattern, and tr(V'SV)
    moves : (p, 8): two entries (feature, column) to take out, two to put in; -1 for none
    disjoint : whether supports are disjoint
    least : gain that counts
    """
    n, r = V.shape
    own, sizes = own_rows(mask)
    most = own.shape[1] + 2
    blocks = np.empty((2 * r, most, most))  # of each column as it is, then of those that change
    for t in range(r):
        _fill(blocks[t], S, own[t], sizes[t])
    parts = np.zeros(r)  # what each column is worth
    image = _image(blocks, np.arange(r), V, own, sizes)
    for t in range(r):
        parts[t] = np.sum(V[:, t] * image[:, t])
    pattern, shared = mask.copy(), _shared(mask)
    trial, place = V.copy(), np.empty(r, dtype=np.int64)
    rows, counts = np.zeros((r, most), dtype=np.int64), np.zeros(r, dtype=np.int64)
    local, number_of = np.zeros((r, most), dtype=np.int64), np.empty(n, dtype=np.int64)
    changed, freed = np.zeros(r, dtype=np.bool_), np.zeros(r)
    for number in range(len(moves)):
        move = moves[number]
        changed[:] = False
        freed[:] = 0.0
        for part in range(4):
            i, t = move[2 * part], move[2 * part + 1]
            if i >= 0 and pattern[i, t] == (part < 2):
                _flip(pattern, shared, i, t)
                changed[t] = True
        if disjoint or not (shared == 1).any():
            for t in range(r):
                if changed[t]:
                    counts[t] = 0
                    for i in range(n):
                        if pattern[i, t]:
                            rows[t, counts[t]] = i
                            counts[t] += 1
                    place[t] = r + t
                    _fill(blocks[r + t], S, rows[t], counts[t])
                else:
                    rows[t, : sizes[t]] = own[t, : sizes[t]]
                    counts[t], place[t] = sizes[t], t
            for part in range(2):
                i, t = move[2 * part], move[2 * part + 1]
                if i >= 0:
                    freed[t] = max(freed[t], abs(trial[i, t]))
                    trial[i, t] = 0.0
            for part in range(2, 4):
                j, t = move[2 * part], move[2 * part + 1]
                if j >= 0:
                    pull = 0.0
                    for a in range(counts[t]):  # what is to come in still counts for nothing
                        pull += S[j, rows[t, a]] * trial[rows[t, a], t]
                    size = max(freed[t], 0.2)
                    trial[j, t] = size if pull >= 0.0 else -size
            needed = value + least
            if disjoint:
                for t in range(r):
                    needed -= 0.0 if changed[t] else parts[t]
                if not _cannot_reach(blocks, place, trial, rows, counts, changed, needed):
                    W, reached = leading_on_pattern(S, trial, pattern, changed)
                    if reached > value + least:
                        return number, W, pattern, reached
            else:
                used = np.flatnonzero(np.sum(pattern, axis=1))
                for a in range(used.size):
                    number_of[used[a]] = a
                for t in range(r):
                    for a in range(counts[t]):
                        local[t, a] = number_of[rows[t, a]]
                W, reached = _raise(
                    blocks, place, trial[used], local, counts, 60, 1e-7, needed, TRIAL_AIM
                )
                if reached > value + least:
                    whole = np.zeros((n, r))
                    whole[used] = W
                    return number, whole, pattern, reached
        for part in range(3, -1, -1):  # back to where all began
            i, t = move[2 * part], move[2 * part + 1]
            if i >= 0:
                trial[i, t] = V[i, t]
                if pattern[i, t] != mask[i, t]:
                    _flip(pattern, shared, i, t)
    return -1, V, mask, value
