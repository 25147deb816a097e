r"""The V-step: lower -½tr(V'SV) - ⟨V, N⟩ on the manifold.

That is the augmented Lagrangian in V, as :math:`\|V\|_F` is constant there; N = ρΥ - Ω. Two ways:

- polar: the quadratic part is concave, so its tangent lies above it, and the minimiser of the
  tangent, ``V ← polar(SV + N)``, never increases f. One product with S a step.
- conjugate gradients (Algorithm 3 of the paper): Fletcher and Reeves' rule, projection as
  transport, QR retraction, strong Wolfe conditions. One product a step too: S qf(V + tζ) is
  (SV + t Sζ)R⁻¹, so the line search needs none.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray
from kspan.linalg.stiefel import polar, qf, retraction_slope, to_tangent

Product = Callable[[FloatArray], FloatArray]

V_STEPS = ("polar", "cg")

# Strong Wolfe: enough decrease, and a slope this much flatter. The proof needs c1 < c2 < 1/2.
DECREASE, FLATTER = 1e-4, 0.4


def polar_steps(
    product: Product, V: FloatArray, SV: FloatArray, N: FloatArray, *, max_iter: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Take monotone polar steps, of one V or of a stack of them; returns V and SV."""
    for _ in range(max_iter):
        V = polar(SV + N)
        SV = product(V)
    return V, SV


@dataclass(frozen=True)
class _Point:
    """A point on the line of search."""

    t: float
    value: float
    slope: float
    V: FloatArray
    SV: FloatArray


def conjugate_gradient(
    product: Product,
    V: FloatArray,
    SV: FloatArray,
    N: FloatArray,
    *,
    max_iter: int = 30,
    tol: float = 1e-5,
) -> tuple[FloatArray, FloatArray]:
    """Take at most `max_iter` steps of Algorithm 3, until the gradient is below `tol`."""
    value = float(-0.5 * np.sum(V * SV) - np.sum(V * N))
    G = to_tangent(V, -(SV + N))
    squares, direction, length = float(np.sum(G * G)), -G, 1.0
    for _ in range(max_iter):
        if np.sqrt(squares) <= tol:
            break
        slope = float(np.sum(G * direction))
        if slope >= -1e-14 * squares:  # not a way down: start afresh
            direction, slope = -G, -squares
        start = _Point(0.0, value, slope, V, SV)
        found = _line_search(start, direction, product(direction), N, length)
        if found is None or found.value > value:
            break
        V, SV, value, length = found.V, found.SV, found.value, found.t
        turned = to_tangent(V, -(SV + N))
        new_squares = float(np.sum(turned * turned))
        direction = -turned + new_squares / squares * to_tangent(V, direction)
        G, squares = turned, new_squares
    return V, SV


def _line_search(
    start: _Point, direction: FloatArray, image: FloatArray, N: FloatArray, length: float
) -> _Point | None:
    """Bracket and zoom (Nocedal and Wright, section 3.5) for the strong Wolfe conditions."""

    def at(t: float) -> _Point:
        Q, R = qf(start.V + t * direction)
        SQ = np.asarray(np.linalg.solve(R.T, (start.SV + t * image).T).T, dtype=np.float64)
        value = float(-0.5 * np.sum(Q * SQ) - np.sum(Q * N))
        return _Point(t, value, retraction_slope(Q, R, direction, -(SQ + N)), Q, SQ)

    def too_high(point: _Point) -> bool:
        return point.value > start.value + DECREASE * point.t * start.slope

    def flat_enough(point: _Point) -> bool:
        return abs(point.slope) <= -FLATTER * start.slope

    def zoom(low: _Point, high: _Point) -> _Point:
        for _ in range(25):
            width = high.t - low.t
            bend = 2 * (high.value - low.value - low.slope * width)
            t = low.t - low.slope * width**2 / bend if bend > 0 else low.t + width / 2
            inner = sorted((low.t + 0.05 * width, high.t - 0.05 * width))
            if not inner[0] < t < inner[1]:
                t = low.t + width / 2
            point = at(t)
            if too_high(point) or point.value >= low.value:
                high = point
                continue
            if flat_enough(point):
                return point
            if point.slope * width >= 0:
                high = low
            low = point
        return low

    before, t = start, length
    for trial in range(12):
        point = at(t)
        if too_high(point) or (trial and point.value >= before.value):
            found = zoom(before, point)
            return found if found.t > 0 else None
        if flat_enough(point):
            return point
        if point.slope >= 0:
            return zoom(point, before)
        before, t = point, 2 * t
    return before
