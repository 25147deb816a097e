r"""The best k features for telling all others, by trying what could be it.

K (n×n) is the covariance of the features, H the squares of their covariances with all features, and
noise is added to the diagonal of K. Feature a explains :math:`h_{aa}/(k_{aa} + noise_a)`, and what
it leaves is

.. math:: K' = K - ww', \quad H' = H - wq' - qw' + s\,ww', \qquad
          w = K_a/\sqrt{p},\; q = H_a/\sqrt{p},\; s = h_{aa}/p,\; p = k_{aa} + noise_a .

The last two features are tried in closed form:
:math:`(h_{ii}k_{jj} - 2h_{ij}k_{ij} + h_{jj}k_{ii}) / (k_{ii}k_{jj} - k_{ij}^2)` with the noise in
the diagonal. Features are left aside with which even the leading eigenvalues of what is left would
not reach the value that is asked for: r of them are at most :math:`r^{3/4}(\sum_i λ_i^4)^{1/4}`,
and that sum is :math:`\|H\|_F^2`, if H is of all features.
"""

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.machine import compiled

# What is left of a feature is nothing, below this share of its variance and noise.
NOTHING = 1e-13

# More than rounding takes from the norm of what is left, of features that are nearly copies.
MARGIN = 1e-6


@compiled
def add_feature(
    K: FloatArray, H: FloatArray, noise: FloatArray, a: int, K1: FloatArray, H1: FloatArray
) -> tuple[float, float]:  # pragma: no cover - compiled
    """Write what feature a leaves to K1 and H1; return what it explains, and ‖H1‖_F^(1/2)."""
    n = K.shape[0]
    pivot = K[a, a] + noise[a]
    root = 1.0 / np.sqrt(pivot)
    s = H[a, a] / pivot
    w, q = K[:, a] * root, H[:, a] * root
    total = 0.0
    for i in range(n):
        wi, qi = w[i], q[i]
        for j in range(n):
            K1[i, j] = K[i, j] - wi * w[j]
            h = H[i, j] - wi * q[j] - qi * w[j] + s * wi * w[j]
            H1[i, j] = h
            total += h * h
    return s, total**0.25 * (1 + MARGIN)


@compiled
def best_three(
    K: FloatArray, H: FloatArray, noise: FloatArray, order: Index, first: int, a: int,
    needed: float, leading: float, found: Index, counts: Index,
) -> float:  # fmt: skip  # pragma: no cover - compiled
    """Return the most that a and two of ``order[first:]`` explain, zero if less than needed.

    `found` gets the two; `leading` is no smaller than any eigenvalue of what is left.
    """
    n = order.shape[0] - first
    pivot = K[a, a] + noise[a]
    root = 1.0 / np.sqrt(pivot)
    s = H[a, a] / pivot
    left = needed - s
    kd, hd = np.empty(n), np.empty(n)
    w, q = np.empty(n), np.empty(n)
    names = np.empty(n, dtype=np.int64)
    count = 0
    for place in range(first, order.shape[0]):
        i = order[place]
        wi, qi = K[i, a] * root, H[i, a] * root
        ki = K[i, i] - wi * wi + noise[i]
        hi = H[i, i] - 2 * wi * qi + s * wi * wi
        if hi + leading * ki >= left * ki:
            kd[count], hd[count], w[count], q[count], names[count] = ki, hi, wi, qi, i
            count += 1
    counts[0] += count * (count - 1) // 2
    best = 0.0
    found[0], found[1] = order[first], order[first + 1]  # if none of them adds anything
    for x in range(count):
        i = names[x]
        kx, hx, wx, qx = kd[x], hd[x], w[x], q[x]
        for y in range(x + 1, count):
            j = names[y]
            kij = K[i, j] - wx * w[y]
            hij = H[i, j] - wx * q[y] - qx * w[y] + s * wx * w[y]
            top = hx * kd[y] - 2 * hij * kij + hd[y] * kx
            bottom = kx * kd[y] - kij * kij
            if top > best * bottom and bottom > NOTHING * kx * kd[y]:
                best = top / bottom
                found[0], found[1] = i, j
    return s + best


@compiled
def scan_after(
    K: FloatArray, H: FloatArray, noise: FloatArray, order: Index, first: int, size: int,
    needed: float, best: Index, counts: Index,
) -> float:  # fmt: skip  # pragma: no cover - compiled
    """Return the most that ``order[first]`` and ``size - 1`` of those after it explain.

    Supports that explain less than needed may be left aside; `best` gets those of the best one.

    Parameters
    ----------
    K, H, noise : of all features
    order, first : which features, in which order; where to begin
    size : 3 or more
    needed : what supports have to explain to count
    best : (size,) output
    counts : (1,) how many supports were tried
    """
    n, depth = K.shape[0], size - 3  # features that are added before the last three
    Ks, Hs = np.empty((depth + 1, n, n)), np.empty((depth + 1, n, n))
    Ks[0], Hs[0] = K, H
    places = np.zeros(size, dtype=np.int64)
    explained, leading = np.zeros(depth + 1), np.zeros(depth + 1)
    total = 0.0
    for i in range(n):
        for j in range(n):
            total += H[i, j] * H[i, j]
    leading[0] = total**0.25 * (1 + MARGIN)
    found = np.zeros(2, dtype=np.int64)
    value = 0.0
    level = 0
    places[0] = first
    while level >= 0:
        place = places[level]
        left = size - level  # features still to come, this one among them
        if place + left > order.shape[0] or (level == 0 and place > first):
            level -= 1
            if level >= 0:
                places[level] += 1
            continue
        a = order[place]
        K0, H0 = Ks[level], Hs[level]
        own = H0[a, a] / (K0[a, a] + noise[a])
        rest = needed - explained[level]
        if own + (left - 1) ** 0.75 * leading[level] < rest:
            places[level] += 1
            continue
        if left == 3:
            three = best_three(
                K0, H0, noise, order, place + 1, a, rest, leading[level], found, counts
            )
            if explained[level] + three > value:
                value = explained[level] + three
                for above in range(level + 1):
                    best[above] = order[places[above]]
                best[level + 1], best[level + 2] = found[0], found[1]
            places[level] += 1
            continue
        gained, size_of = add_feature(K0, H0, noise, a, Ks[level + 1], Hs[level + 1])
        explained[level + 1] = explained[level] + gained
        leading[level + 1] = size_of
        level += 1
        places[level] = place + 1
    return value
