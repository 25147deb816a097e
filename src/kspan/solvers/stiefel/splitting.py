r"""The loop of ADMM and of stabilised ADMM, on a batch of starts.

With :math:`S = A / λ_1(A)`, so that all parameters mean the same at any scale of the data:

.. math:: V \leftarrow \arg\min_{V'V = I} -\tfrac12 \mathrm{tr}(V'SV) + \langle Ω, V - Υ \rangle
          + \tfrac{ρ}{2} \|V - Υ\|^2, \quad
          Υ \leftarrow \mathrm{shrink}(V + Ω/t,\; α/t), \quad Ω \leftarrow Ω + t (V - Υ)

and :math:`ρ \leftarrow \min(βρ, ρ_{\max})`. ADMM has t = ρ, which grows, so that the threshold α/t
changes in every step; the stabilised form has t = γ, which stays.

What makes loadings sparse is a `Penalty`: the sum of all sizes (l1), or of all row lengths (l2,1).

The V-step lowers -½tr(V'SV) - ⟨V, N⟩ on the manifold: the augmented Lagrangian in V, as
:math:`\|V\|_F` is constant there; N = ρΥ - Ω. Two ways:

- polar: the quadratic part is concave, so its tangent lies above it, and the minimiser of the
  tangent, ``V ← polar(SV + N)``, never increases f. One product with S a step.
- conjugate gradients (Algorithm 3 of the paper): Fletcher and Reeves' rule, projection as
  transport, QR retraction, strong Wolfe conditions. One product a step too: S qf(V + tζ) is
  (SV + t Sζ)R⁻¹, so the line search needs none.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.linalg.projections import soft_threshold
from kspan.linalg.stiefel import polar, qf, retraction_slope, to_tangent
from kspan.problem import require_count
from kspan.progress import Monitor, Status

PENALTIES = ("l1", "l21")


@dataclass(frozen=True)
class Penalty:
    """Ω(V) with its proximal map; V may be a stack (s, d, r).

    Parameters
    ----------
    kind : {"l1", "l21"}
        Entries are zero one by one, or whole rows at a time.
    """

    kind: str

    def __post_init__(self) -> None:
        if self.kind not in PENALTIES:
            raise ValueError(f"penalty must be one of {list(PENALTIES)}, got {self.kind!r}.")

    def value(self, V: FloatArray) -> FloatArray:
        """Return Ω of each matrix of the stack."""
        if self.kind == "l1":
            return np.asarray(np.abs(V).sum(axis=(-2, -1)))
        return np.asarray(np.linalg.norm(V, axis=-1).sum(axis=-1))

    def shrink(self, Z: FloatArray, threshold: float) -> FloatArray:
        """Return the minimiser of ``threshold Ω(Y) + ½‖Y - Z‖²``."""
        if self.kind == "l1":
            return soft_threshold(Z, threshold)
        lengths = np.linalg.norm(Z, axis=-1, keepdims=True)
        share = np.divide(threshold, lengths, out=np.full_like(lengths, np.inf), where=lengths > 0)
        return np.asarray(Z * np.maximum(1.0 - share, 0.0))

    def subgradient(self, V: FloatArray) -> FloatArray:
        """Return the gradient where there is one, and zero at zeros."""
        if self.kind == "l1":
            return np.sign(V)
        lengths = np.linalg.norm(V, axis=-1, keepdims=True)
        return np.divide(V, lengths, out=np.zeros_like(V), where=lengths > 0)

    def pattern(self, Y: FloatArray) -> Mask:
        """Return where Y may differ from zero: single entries, or whole rows."""
        mask: Mask = Y != 0
        if self.kind == "l21":
            mask = np.broadcast_to(mask.any(axis=-1, keepdims=True), Y.shape).copy()
        return mask


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
    line = _Line(start, direction, image, N)
    before, t = start, length
    for trial in range(12):
        point = line.at(t)
        if line.too_high(point) or (trial and point.value >= before.value):
            found = line.zoom(before, point)
            return found if found.t > 0 else None
        if line.flat_enough(point):
            return point
        if point.slope >= 0:
            return line.zoom(point, before)
        before, t = point, 2 * t
    return before


@dataclass(frozen=True)
class _Line:
    """The curve qf(V + tζ) from a point, with `image` = Sζ."""

    start: _Point
    direction: FloatArray
    image: FloatArray
    N: FloatArray

    def at(self, t: float) -> _Point:
        start = self.start
        Q, R = qf(start.V + t * self.direction)
        SQ = np.asarray(np.linalg.solve(R.T, (start.SV + t * self.image).T).T, dtype=np.float64)
        value = float(-0.5 * np.sum(Q * SQ) - np.sum(Q * self.N))
        return _Point(t, value, retraction_slope(Q, R, self.direction, -(SQ + self.N)), Q, SQ)

    def too_high(self, point: _Point) -> bool:
        return point.value > self.start.value + DECREASE * point.t * self.start.slope

    def flat_enough(self, point: _Point) -> bool:
        return abs(point.slope) <= -FLATTER * self.start.slope

    def zoom(self, low: _Point, high: _Point) -> _Point:
        """Shrink an interval with a good point in it until one is found."""
        for _ in range(25):
            width = high.t - low.t
            bend = 2 * (high.value - low.value - low.slope * width)
            t = low.t - low.slope * width**2 / bend if bend > 0 else low.t + width / 2
            inner = sorted((low.t + 0.05 * width, high.t - 0.05 * width))
            if not inner[0] < t < inner[1]:
                t = low.t + width / 2
            point = self.at(t)
            if self.too_high(point) or point.value >= low.value:
                high = point
                continue
            if self.flat_enough(point):
                return point
            if point.slope * width >= 0:
                high = low
            low = point
        return low


# Steps between two looks at the objective.
LOOK_EVERY = 10


@dataclass(frozen=True, eq=False)
class LoopOptions:
    """Parameters that both forms of the loop have, in units of the largest eigenvalue.

    Attributes
    ----------
    rho, rho_max, beta : the first ρ, the largest ρ, and by how much it grows
    v_step : "polar", or "cg" for the paper's conjugate gradients
    v_iter : steps of that; by default 1 of the first kind, 30 of the second
    max_iter : outer steps
    tol : a start is finished when its objective changed by less than this share in the last ten
        steps and V and Υ agree to 50 times it
    """

    rho: float = 0.3
    rho_max: float = 10.0
    beta: float = 1.05
    v_step: str = "polar"
    v_iter: int | None = None
    max_iter: int = 300
    tol: float = 1e-4


@dataclass(frozen=True, eq=False)
class Settings(LoopOptions):
    """What the loop is run with: γ and which form of it, beside the options of both.

    Attributes
    ----------
    stabilised : t = γ and not t = ρ
    gamma : γ
    """

    stabilised: bool = True
    gamma: float = 0.3

    def __post_init__(self) -> None:
        for name in ("gamma", "rho", "rho_max", "tol"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ValueError(f"{name} must be positive, got {getattr(self, name)!r}.")
        if self.rho > self.rho_max:
            raise ValueError(f"rho={self.rho} must be at most rho_max={self.rho_max}.")
        if not (np.isfinite(self.beta) and self.beta >= 1):
            raise ValueError(f"beta must be at least 1, got {self.beta!r}.")
        if self.v_step not in V_STEPS:
            raise ValueError(f"v_step must be one of {list(V_STEPS)}, got {self.v_step!r}.")
        require_count("max_iter", self.max_iter, 1)
        if self.v_iter is not None:
            require_count("v_iter", self.v_iter, 1)


@dataclass
class Split:
    """Where the starts are.

    Attributes
    ----------
    V, Y, dual : (s, d, r), the orthonormal half, the sparse half, and Ω
    finished : (s,) which starts have come to rest
    history : the lowest objective of the V of all starts after each step
    n_iter, stopped : steps, and what stopped them early
    """

    V: FloatArray
    Y: FloatArray
    dual: FloatArray
    finished: Mask
    history: list[float] = field(default_factory=list)
    n_iter: int = 0
    stopped: Status | None = None

    @classmethod
    def at(cls, starts: FloatArray) -> "Split":
        """Begin at orthonormal matrices (s, d, r)."""
        finished = np.zeros(len(starts), dtype=bool)
        return cls(starts.copy(), starts.copy(), np.zeros_like(starts), finished)

    def lifted(self, start: int, features: Index, d: int) -> "Split":
        """Go on from one of the starts, with more features: zero where it had none."""
        V, Y, dual = np.zeros((3, 1, d, self.V.shape[2]))
        V[0, features], Y[0, features] = self.V[start], self.Y[start]
        dual[0, features] = self.dual[start]
        return Split(V, Y, dual, np.zeros(1, dtype=bool))

    def status(self, start: int) -> Status:
        """How a start ended."""
        if self.finished[start]:
            return Status.CONVERGED
        return self.stopped or Status.MAX_ITER


def split(
    product: Callable[[FloatArray], FloatArray],
    state: Split,
    alpha: float,
    penalty: Penalty,
    settings: Settings,
    monitor: Monitor,
) -> Split:
    """Run the loop on all starts at once: one product with S a step serves them all.

    Parameters
    ----------
    product : ``W (d, p) -> S W``
    state : where to begin; it is changed, and returned
    alpha : weight of the penalty, in the units of S
    penalty, settings, monitor : see there
    """
    s, d, r = state.V.shape

    def image(V: FloatArray) -> FloatArray:
        wide = V.transpose(1, 0, 2).reshape(d, -1)
        return product(wide).reshape(d, -1, r).transpose(1, 0, 2)

    rho = settings.rho
    active = np.arange(s)
    SV = image(state.V)
    values = np.full(s, np.inf)  # the objective when it was last looked at
    with monitor.interruptible():
        while active.size:
            V, Y, dual = state.V[active], state.Y[active], state.dual[active]
            N = rho * Y - dual
            V, SV = _v_step(image, product, V, SV, N, settings)
            t = settings.gamma if settings.stabilised else rho
            Z = V + dual / t
            Y = penalty.shrink(Z, alpha / t)
            state.V[active], state.Y[active], state.dual[active] = V, Y, t * (Z - Y)
            rho = min(settings.beta * rho, settings.rho_max)
            state.n_iter += 1
            variance, cost = 0.5 * np.sum(V * SV, axis=(1, 2)), alpha * penalty.value(V)
            state.history.append(float((cost - variance).min()))
            if monitor.report(2 * float(variance.max())):
                break
            if state.n_iter >= settings.max_iter:
                break
            if state.n_iter % LOOK_EVERY == 0:
                now = cost - variance
                apart = np.linalg.norm(V - Y, axis=(1, 2)) / np.sqrt(r)
                still = np.abs(now - values[active]) > settings.tol * (variance + cost)
                still |= apart > 50 * settings.tol
                values[active] = now
                state.finished[active[~still]] = True
                active, SV = active[still], SV[still]
    state.stopped = monitor.stopped
    return state


def _v_step(
    image: Callable[[FloatArray], FloatArray],
    product: Callable[[FloatArray], FloatArray],
    V: FloatArray,
    SV: FloatArray,
    N: FloatArray,
    settings: Settings,
) -> tuple[FloatArray, FloatArray]:
    """Lower the augmented Lagrangian in V for every start."""
    if settings.v_step == "polar":
        return polar_steps(image, V, SV, N, max_iter=settings.v_iter or 1)
    moved = [
        conjugate_gradient(product, *parts, max_iter=settings.v_iter or 30)
        for parts in zip(V, SV, N, strict=True)
    ]
    return np.stack([pair[0] for pair in moved]), np.stack([pair[1] for pair in moved])
