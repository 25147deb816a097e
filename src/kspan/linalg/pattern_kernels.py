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

# ‖V'V - I‖ at which Newton's method stops, and up to which its result counts as orthonormal.
AIM, ORTHONORMAL = 1e-14, 1e-10

# Normals that are parallel up to this share are: entries that two columns alone share.
RIDGE = 1e-11


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
    r = V.shape[1]
    grams = np.zeros((r, r, r))  # of the rows of each column
    for t in range(r):
        for place in range(counts[t]):
            i = rows[t, place]
            for a in range(r):
                if V[i, a] != 0.0:
                    for b in range(a, r):
                        grams[t, a, b] += V[i, a] * V[i, b]
        for a in range(r):
            for b in range(a):
                grams[t, a, b] = grams[t, b, a]
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
    solution = np.linalg.solve(system, right)
    step = np.zeros_like(V)
    for t in range(r):
        for place in range(counts[t]):
            i = rows[t, place]
            total = 0.0
            for a in range(r):
                total += V[i, a] * solution[position[a, t]]
            step[i, t] = total
    return step


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
    r = V.shape[1]
    V = V.copy()
    for t in range(r):
        length = np.sqrt(np.sum(V[:, t] ** 2))
        if not length > 0.0:
            return V, False
        V[:, t] /= length
    error = np.inf
    for _ in range(30):
        missing = np.eye(r) - _gram(V, V, rows, counts)
        before, error = error, np.abs(missing).max()
        if error <= AIM or (error <= ORTHONORMAL and error >= before / 2):
            return V, True
        step = normal_step(V, rows, counts, missing)
        size = np.sqrt(np.sum(step * step))
        if not size < np.inf:
            return V, False
        V = V + step * (min(1.0, 0.5 / size) if size > 0.0 else 0.0)
    return V, error <= ORTHONORMAL


@compiled
def _image(S: FloatArray, V: FloatArray, rows: Index, counts: Index) -> FloatArray:
    """Return SV on the pattern."""
    image = np.zeros_like(V)
    for t in range(V.shape[1]):
        for place in range(counts[t]):
            i = rows[t, place]
            total = 0.0
            for other in range(counts[t]):
                j = rows[t, other]
                total += S[i, j] * V[j, t]
            image[i, t] = total
    return image


@compiled
def _tangent(V: FloatArray, SV: FloatArray, rows: Index, counts: Index) -> FloatArray:
    """Return the gradient of -½tr(V'SV) within the set."""
    inner = _gram(V, SV, rows, counts)
    return normal_step(V, rows, counts, inner + inner.T) - SV


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
    n = len(V)
    used = np.flatnonzero(np.sum(mask, axis=1))  # the others cost nothing from here on
    S, V, mask = S[used][:, used], np.where(mask, V, 0.0)[used], mask[used]
    whole = np.zeros((n, V.shape[1]))
    rows, counts = own_rows(mask)
    V, found = newton(V, rows, counts)
    if not found:
        return whole, -np.inf
    SV = _image(S, V, rows, counts)
    value = np.sum(V * SV)
    G = _tangent(V, SV, rows, counts)
    length = 1.0
    for _ in range(max_iter):
        squares = np.sum(G * G)
        if squares <= 1e-18:
            break
        better, after, image, moved = value, V, SV, False
        for _halving in range(25):
            trial, found = newton(V - length * G, rows, counts)
            if found:
                image = _image(S, trial, rows, counts)
                after = trial
                better = np.sum(trial * image)
                if better >= value + 2e-4 * length * squares:
                    moved = True
                    break
            length *= 0.4
        if not moved:
            break
        turned = _tangent(after, image, rows, counts)
        step = after - V
        curvature = np.sum(step * (turned - G))
        gained = better - value
        long = np.sum(step * step)
        V, value, G = after, better, turned
        length = long / curvature if curvature > 0.0 else 4.0 * length
        length = min(max(length, 1e-3), 1e4)
        if gained <= tol * abs(value) or value + 30.0 * gained < target:
            break
    whole[used] = V
    return whole, value


@compiled
def leading_on_pattern(
    S: FloatArray, V: FloatArray, mask: Mask, changed: Mask
) -> tuple[FloatArray, float]:
    """Return the leading eigenvector on the rows of each changed column; supports are disjoint."""
    rows, counts = own_rows(mask)
    V = np.where(mask, V, 0.0)
    for t in range(V.shape[1]):
        if changed[t]:
            k = counts[t]
            block = np.zeros((k, k))
            for a in range(k):
                for b in range(k):
                    block[a, b] = S[rows[t, a], rows[t, b]]
            vectors = np.linalg.eigh(block)[1]
            for a in range(k):
                V[rows[t, a], t] = vectors[a, k - 1]
    return V, np.sum(V * _image(S, V, rows, counts))


@compiled
def lone_overlap(mask: Mask) -> bool:
    """Say whether two columns share exactly one feature: then one of its entries must be zero."""
    n, r = mask.shape
    for a in range(r):
        for b in range(a + 1, r):
            shared = 0
            for i in range(n):
                shared += mask[i, a] and mask[i, b]
            if shared == 1:
                return True
    return False


@compiled
def first_better(
    S: FloatArray, V: FloatArray, mask: Mask, value: float, moves: Index, disjoint: bool,
    least: float,
) -> tuple[int, FloatArray, Mask, float]:  # fmt: skip
    """Try moves in their order until one raises the value; returns its number, or -1, and the rest.

    Parameters
    ----------
    S, V, mask, value : the matrix, the loadings, their pattern, and tr(V'SV)
    moves : (p, 8): two entries (feature, column) to take out, two to put in; -1 for none
    disjoint : whether supports are disjoint
    least : gain that counts
    """
    r = V.shape[1]
    for number in range(len(moves)):
        move = moves[number]
        trial, pattern = V.copy(), mask.copy()
        changed = np.zeros(r, dtype=np.bool_)
        freed = np.zeros(r)
        for part in range(2):
            i, t = move[2 * part], move[2 * part + 1]
            if i >= 0:
                freed[t] = max(freed[t], abs(trial[i, t]))
                trial[i, t] = 0.0
                pattern[i, t] = False
                changed[t] = True
        for part in range(2, 4):
            j, t = move[2 * part], move[2 * part + 1]
            if j >= 0:
                pull = 0.0
                for i in range(len(V)):
                    if pattern[i, t]:
                        pull += S[j, i] * trial[i, t]
                size = max(freed[t], 0.2)
                pattern[j, t] = True
                trial[j, t] = size if pull >= 0.0 else -size
                changed[t] = True
        if disjoint:
            trial, reached = leading_on_pattern(S, trial, pattern, changed)
        elif lone_overlap(pattern):
            continue
        else:
            trial, reached = raise_on_pattern(S, trial, pattern, 60, 1e-7, value + least)
        if reached > value + least:
            return number, trial, pattern, reached
    return -1, V, mask, value
