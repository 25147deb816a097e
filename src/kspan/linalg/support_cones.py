r"""Projection of rows on the cones of vectors with few entries.

The vectors w with at most κ nonzeros and :math:`\|w\|^2 \le xy` are not a convex set. Its hull is
:math:`\|w\|_{sp}^2 \le xy`, where the κ-support norm (Argyriou, Foygel and Srebro, 2012) is

.. math::
    \|w\|_{sp}^2 = \min \Big\{ \sum_j w_j^2 / θ_j :\ 0 \le θ \le 1,\ \sum_j θ_j \le κ \Big\} ;

its dual norm is the length of the κ largest entries. With κ at least the number of entries it is
the Euclidean norm.

The projection of (w, x, y) in the metric ``2‖w‖² + x² + y²``: with s = (x+y)/√2, u = (x-y)/√2 the
cone is :math:`2\|w\|_{sp}^2 + u^2 \le s^2`, and for a multiplier μ > 0

    w_j ← w_j θ_j / (θ_j + μ),  θ_j = clip(|w_j|/τ - μ, 0, 1) with Σθ = κ,
    u ← u / (1 + μ),  s ← s / (1 - μ)

is on its boundary for exactly one μ, found by regula falsi: with μ = (1-ρ)/(1+ρ) what is missing
rises with ρ. Cost: a selection of the largest entries of each row, and some dozens of
passes over those.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray
from kspan.linalg.machine import compiled

Array = NDArray[Any]  # of any floating type


def project_support_cones(
    W: Array, x: Array, y: Array, n_nonzeros: int
) -> tuple[Array, Array, Array]:
    """Project every row on ``‖w‖_sp² ≤ xy, x, y ≥ 0`` in the metric ``2‖w‖² + x² + y²``.

    Parameters
    ----------
    W : (n, t) array
    x, y : (n,) arrays
    n_nonzeros : κ, one or more
    """
    nearest = np.empty_like(W), np.empty_like(x), np.empty_like(y)
    project_rows(W, x, y, n_nonzeros, *nearest)
    return nearest


@compiled
def project_rows(
    W: Array, x: Array, y: Array, n_nonzeros: int, new_W: Array, new_x: Array, new_y: Array
) -> None:
    """Project all rows, one after the other."""
    root = np.sqrt(2.0)
    sizes = np.empty(W.shape[1])
    for i in range(W.shape[0]):
        s, u = (x[i] + y[i]) / root, (x[i] - y[i]) / root
        count, squares = 0, 0.0
        for j in range(W.shape[1]):
            if W[i, j] != 0.0:
                sizes[count] = abs(W[i, j])
                squares += sizes[count] ** 2
                count += 1
        if np.sqrt(2 * squares + u * u) <= -s:  # in the polar cone whatever κ is
            new_W[i], new_x[i], new_y[i] = 0.0, 0.0, 0.0
            continue
        s, u, mu, tau = project_largest(sizes[:count], s, u, min(n_nonzeros, count))
        cut = tau * mu
        for j in range(W.shape[1]):
            if abs(W[i, j]) <= cut:  # most entries
                new_W[i, j] = 0.0
            else:
                theta = 1.0 if tau == 0.0 else min(abs(W[i, j]) / tau - mu, 1.0)
                new_W[i, j] = W[i, j] * theta / (theta + mu)
        new_x[i], new_y[i] = (s + u) / root, (s - u) / root


@compiled
def project_largest(
    sizes: FloatArray, s0: float, u0: float, n_nonzeros: int
) -> tuple[float, float, float, float]:
    """Return s, u, μ and τ of the projection, from a few of the largest entries if they do.

    Entries up to τμ are cut to zero. If all others are among the largest few, the rest need not be
    sorted: with them left out the point is outside the cone only if it is.
    """
    few = 4 * n_nonzeros + 32
    if 2 * few < sizes.size:
        largest_first(sizes, few)
        a = sizes[:few]
        s, u, mu, tau = project_sorted(a, s0, u0, n_nonzeros)
        if mu > 0.0 and a[-1] <= tau * mu:
            return s, u, mu, tau
    largest_first(sizes, sizes.size)
    return project_sorted(sizes, s0, u0, n_nonzeros)


@compiled
def largest_first(a: FloatArray, count: int) -> None:
    """Put the largest entries in the first places, falling; the others come in any order.

    Quicksort that leaves alone what need not be sorted. Those of numpy take seconds to compile.
    """
    lows, highs = np.empty(64, dtype=np.int64), np.empty(64, dtype=np.int64)
    lows[0], highs[0], depth = 0, a.size - 1, 1
    while depth > 0:
        depth -= 1
        low, high = lows[depth], highs[depth]
        while high - low > 12:
            middle = (low + high) // 2
            x, y, z = a[low], a[middle], a[high]
            pivot = max(min(x, y), min(max(x, y), z))
            i, j = low, high
            while i <= j:
                while a[i] > pivot:
                    i += 1
                while a[j] < pivot:
                    j -= 1
                if i <= j:
                    a[i], a[j] = a[j], a[i]
                    i += 1
                    j -= 1
            # The larger part waits, so that few ever do; what is beyond the wanted is dropped.
            if i < count and high - i > j - low:
                lows[depth], highs[depth] = i, high
                depth += 1
                high = j
            elif i < count:
                lows[depth], highs[depth] = low, j
                depth += 1
                low = i
            else:
                high = j
        for i in range(low + 1, high + 1):
            value, j = a[i], i - 1
            while j >= low and a[j] < value:
                a[j + 1] = a[j]
                j -= 1
            a[j + 1] = value


@compiled
def project_sorted(
    a: FloatArray, s0: float, u0: float, n_nonzeros: int
) -> tuple[float, float, float, float]:
    """Return s, u, μ and τ of the projection; `a` are positive sizes that fall."""
    largest = 0.0
    for j in range(n_nonzeros):
        largest += a[j] * a[j]
    if np.sqrt(2 * largest + u0 * u0) <= -s0:  # in the polar cone: the nearest point is zero
        return 0.0, 0.0, np.inf, np.inf
    sums = np.zeros(a.size + 1)
    for j in range(a.size):
        sums[j + 1] = sums[j] + a[j]
    tau = threshold(a, sums, n_nonzeros, 0.0, 0.0)
    length = cone_length(a, u0, tau, 0.0)
    if length <= s0:
        return s0, u0, 0.0, 0.0
    # Regula falsi, in which an end that stays counts half (Illinois), on what is missing at ρ: at
    # -1, where all is cut off, and at 1, where nothing is.
    low, high, below, above = -1.0, 1.0, -np.sqrt(2 * largest + u0 * u0) - s0, length - s0
    mu, side = 0.0, 0
    for _ in range(100):
        rho = (low * above - high * below) / (above - below)
        if not low < rho < high:
            rho = 0.5 * (low + high)
        mu = (1 - rho) / (1 + rho)
        tau = threshold(a, sums, n_nonzeros, mu, tau)
        length = cone_length(a, u0, tau, mu)
        missing = (1 - mu) * length - s0
        if missing > 0:
            high, above = rho, missing
            below *= 0.5 if side > 0 else 1.0
            side = 1
        else:
            low, below = rho, missing
            above *= 0.5 if side < 0 else 1.0
            side = -1
        if high - low <= 1e-8 or abs(missing) <= 1e-9 * length:
            break
    return length, u0 / (1 + mu), mu, tau


@compiled
def threshold(a: FloatArray, sums: FloatArray, n_nonzeros: int, mu: float, guess: float) -> float:
    """Return τ with ``Σ clip(a_j/τ - μ, 0, 1) = κ``; 0 when all may be one.

    The sum falls as τ grows. Given the entries that are at one, and those that are above zero, τ is
    a quotient: Newton's method tries those at a guess, and an interval is halved where it fails.
    """
    if a.size <= n_nonzeros:
        return 0.0
    low, high = 0.0, sums[-1] / n_nonzeros
    tau = guess
    for step in range(120):
        if step % 4 == 3 or not low < tau < high:
            tau = 0.5 * (low + high)
        full = count_above(a, tau * (1 + mu), 0)
        used = count_above(a, tau * mu, full)
        total = full + (sums[used] - sums[full]) / tau - mu * (used - full)
        if total > n_nonzeros:
            low = tau
        else:
            high = tau
        room = n_nonzeros - full + mu * (used - full)
        if used > full and room > 0:
            exact = (sums[used] - sums[full]) / room
            above = full == 0 or a[full - 1] >= exact * (1 + mu)
            below = a[full] <= exact * (1 + mu) and a[used - 1] >= exact * mu
            if above and below and (used == a.size or a[used] <= exact * mu):
                return exact
            tau = exact
        else:
            tau = 0.0  # the middle
    return 0.5 * (low + high)


@compiled
def count_above(a: FloatArray, level: float, first: int) -> int:
    """Return how many of the falling entries are above a level; the first ones are known to be."""
    low, high = first, a.size
    while low < high:
        middle = (low + high) // 2
        if a[middle] > level:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def cone_length(a: FloatArray, u0: float, tau: float, mu: float) -> float:
    """Return ``(2‖w‖_sp² + u²)^(1/2)`` of the point that belongs to μ and τ."""
    total = 0.0
    for j in range(a.size):
        theta = 1.0 if tau == 0.0 else min(a[j] / tau - mu, 1.0)
        if theta <= 0.0:
            break
        total += a[j] * a[j] * theta / (theta + mu) ** 2
    u = u0 / (1 + mu)
    return np.sqrt(2 * total + u * u)
