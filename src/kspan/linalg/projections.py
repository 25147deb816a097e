"""Projections: on the Fantope, on the PSD cone, on row cones, on capped simplices."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspan.linalg.tracking import EigenTracker

# Any floating type: the iterations that use these run in float32.
Array = NDArray[Any]


def soft_threshold(Z: Array, threshold: Any) -> Array:
    """Return every entry moved towards zero by a threshold, and zero where it would cross."""
    moved: Array = np.sign(Z) * np.maximum(np.abs(Z) - threshold, 0.0)
    return moved


def fantope_shift(values: Array, m: float) -> float:
    """Return θ with ``Σ clip(values - θ, 0, 1) = m``, exactly; values ascend.

    The sum falls with θ and is linear between the knots ``values`` and ``values - 1``: a binary
    search over the sorted knots finds the piece, a division the point in it. For fewer than m
    values there is no such θ; the smallest knot is returned, where all of them are clipped to 1.
    """
    values = values.astype(np.float64, copy=False)
    knots = np.sort(np.concatenate([values - 1.0, values]))

    def total(theta: float) -> float:
        return float(np.clip(values - theta, 0, 1).sum())

    low, high = 0, knots.size - 1  # total(knots[low]) ≥ m ≥ total(knots[high]) = 0
    if total(knots[low]) <= m:
        return float(knots[low])
    while high - low > 1:
        middle = (low + high) // 2
        if total(knots[middle]) >= m:
            low = middle
        else:
            high = middle
    above, below = total(knots[low]), total(knots[high])
    share = (above - m) / (above - below) if above > below else 0.0
    return float(knots[low] + share * (knots[high] - knots[low]))


def project_fantope(M: Array, m: int, tracker: EigenTracker, out: Array | None = None) -> Array:
    """Project on {0 ⪯ P ⪯ I, tr P = m}; into an array if there is one.

    The eigenvalues g become clip(g - θ, 0, 1) with θ such that they sum to m. Only those above
    θ matter: as many as the tracker says are computed first, and more if that was too few.
    """
    n, count = M.shape[0], tracker.count
    P: Array = np.empty_like(M) if out is None else out
    if n <= m:
        P[:] = np.eye(n)
        return P
    while True:
        values, vectors = tracker.pairs(M, count)
        theta = fantope_shift(values, m)
        clipped = np.clip(values - theta, 0, 1)
        if values.size == n or values[0] < theta:
            kept = clipped > 0
            V = vectors[:, kept]
            tracker.rank = int(kept.sum())
            np.matmul(V * clipped[kept].astype(V.dtype), V.T, out=P)
            return P
        count *= 2


def negative_part(M: Array, tracker: EigenTracker) -> Array:
    """Return N with ``M + NN'`` the projection of M on the PSD cone."""
    n, count = M.shape[0], tracker.count
    while True:
        values, vectors = tracker.pairs(M, count)
        least = tracker.negligible(values)
        if values.size == n or values[-1] >= -least:
            negative = values < 0
            part: Array = vectors[:, negative] * np.sqrt(-values[negative])
            tracker.rank = int((values < -least).sum())
            return part
        count *= 2


def fill_capped(
    target: Array, curvature: float, k: float, fixed: NDArray[np.bool_], outside: Array
) -> Array:
    """Spend k units between features with a quadratic cost and features with a reward.

    Returns z that minimises ``curvature/2 ‖z - target‖² - Σ outside_i z_i`` over 0 ≤ z ≤ 1 with
    a total of k over both groups; `fixed` features of the first group have z = 1.
    """
    free = ~fixed
    wanted, need = target[free], k - int(fixed.sum())
    z = np.ones_like(target)
    if not outside.size:
        if need < wanted.size:
            z[free] = np.clip(wanted - fantope_shift(np.sort(wanted), need), 0, 1)
        return z
    rewards = np.sort(outside)[::-1]
    low = min(curvature * (wanted.min(initial=0.0) - 1.0), 0.0) - 1e-30
    high = max(curvature * wanted.max(initial=0.0), rewards[0] if rewards.size else 0.0)
    for _ in range(100):
        level = 0.5 * (low + high)
        spent = np.clip(wanted - level / curvature, 0, 1).sum()
        if spent + np.searchsorted(-rewards, -level, side="left") > need:
            low = level
        else:
            high = level
    z[free] = np.clip(wanted - high / curvature, 0, 1)
    return z


def fill_together(target: Array, caps: Array, fixed: NDArray[np.bool_], total: float) -> Array:
    """Return the z nearest to a target with 0 ≤ z ≤ caps, z = caps where fixed, and Σz = total.

    At the caps, or at the fixed ones alone, if the total is out of reach.
    """
    need = total - float(caps[fixed].sum())
    wanted, room = target[~fixed], caps[~fixed]
    z = caps.copy()
    if need >= room.sum():
        return z
    low, high = float((wanted - room).min()) - 1.0, float(wanted.max()) + 1.0
    for _ in range(60):
        level = 0.5 * (low + high)
        if np.clip(wanted - level, 0, room).sum() > need:
            low = level
        else:
            high = level
    z[~fixed] = np.clip(wanted - high, 0, room)
    return z


@dataclass(frozen=True)
class SharedAims:
    """What is wanted of the diagonals of P, of ``Diag(w) - P`` and of ``Diag(z) - P``.

    Each with its weight: ``weights[0] (p - p0)² + weights[1] (w - p - s0)² + weights[2] (z - p -
    y0)²``.
    """

    p: Array
    s: Array
    y: Array
    weights: tuple[float, float, float]

    def spend(
        self, total: float, cap: float, fixed: NDArray[np.bool_], also: tuple[float, Array]
    ) -> tuple[Array, Array, Array, Array]:
        r"""Return the nearest p, w and z with ``w ≤ min(1, z)``, ``0 ≤ z ≤ cap``, ``Σz = total``.

        And the multipliers of ``w ≤ z``. `fixed` features have z = cap; `also` is a weight and
        what else z is to be near to. For a price ν of z every feature is a problem of its own: its
        cost is convex in z, of one of three quadratics (w is not in the way; w = z; w = 1), and
        has a kink at 1. The price is found by halving an interval.
        """
        a, b, y, copy = (part.astype(np.float64) for part in (self.p, self.s, self.y, also[1]))
        wp, ws, wy = self.weights
        alone, both = wp * wy / (wp + wy), wp * (ws + wy) / (wp + ws + wy)
        capped = (wp + ws) * wy / (wp + ws + wy)
        middle = (ws * b + wy * y) / (ws + wy)  # of s and y when w = z
        fallen = (wp * a + ws * (1 - b)) / (wp + ws)  # p when w = 1

        def nearest(weight: float, aim: Array, price: float) -> Array:
            return (weight * aim + also[0] * copy - 0.5 * price) / (weight + also[0])

        def with_price(price: float) -> Array:
            free = np.clip(nearest(alone, y + a, price), 0.0, cap)
            equal = nearest(both, a + middle, price)
            above = nearest(capped, fallen + y, price)
            bound = np.where(equal <= 1.0, equal, np.maximum(above, 1.0))
            inactive = self._p(a, y, free) + b <= np.minimum(free, 1.0)
            z = np.where(inactive, free, np.clip(bound, 0.0, cap))
            return np.where(fixed, cap, z)

        reach = sum(float(np.abs(part).max(initial=0.0)) for part in (a, b, y, copy)) + cap + 1
        high = 2 * (alone + both + capped + also[0]) * reach
        low = -high
        z = with_price(low)
        if z.sum() > total:
            for _ in range(50):
                price = 0.5 * (low + high)
                if with_price(price).sum() > total:
                    low = price
                else:
                    high = price
            z = with_price(high)
        p = self._p(a, y, z)
        w = p + b
        most = np.minimum(z, 1.0)
        p = np.where(w > most, (wp * a + ws * (most - b) + wy * (z - y)) / (wp + ws + wy), p)
        w = np.minimum(w, most)
        # From the balance of z; what w presses on is shared with w ≤ 1.
        own = 0.5 * high + wy * (z - p - y) + also[0] * (z - copy)
        return p, w, z, np.clip(own, 0.0, ws * np.maximum(p + b - w, 0.0))

    def _p(self, a: Array, y: Array, z: Array) -> Array:
        """Return the best p where w is not in the way."""
        wp, _, wy = self.weights
        p: Array = (wp * a + wy * (z - y)) / (wp + wy)
        return p
