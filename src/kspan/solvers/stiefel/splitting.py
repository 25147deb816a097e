r"""The loop of ADMM and of stabilised ADMM, on a batch of starts.

With :math:`S = A / λ_1(A)`, so that all parameters mean the same at any scale of the data:

.. math:: V \leftarrow \arg\min_{V'V = I} -\tfrac12 \mathrm{tr}(V'SV) + \langle Ω, V - Υ \rangle
          + \tfrac{ρ}{2} \|V - Υ\|^2, \quad
          Υ \leftarrow \mathrm{shrink}(V + Ω/t,\; α/t), \quad Ω \leftarrow Ω + t (V - Υ)

and :math:`ρ \leftarrow \min(βρ, ρ_{\max})`. ADMM has t = ρ, which grows, so that the threshold α/t
changes in every step; the stabilised form has t = γ, which stays.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.problem import require_count
from kspan.progress import Monitor, Status
from kspan.solvers.stiefel.penalty import Penalty
from kspan.solvers.stiefel.v_steps import V_STEPS, conjugate_gradient, polar_steps

# Steps between two looks at the objective.
CHECK_EVERY = 10


@dataclass(frozen=True)
class Settings:
    """Parameters of the loop, in units of the largest eigenvalue.

    Attributes
    ----------
    stabilised : t = γ and not t = ρ
    gamma, rho, rho_max, beta : γ, the first ρ, the largest ρ, and by how much it grows
    v_step : "polar", or "cg" for the paper's conjugate gradients
    v_iter : steps of that; by default 1 of the first kind, 30 of the second
    max_iter : outer steps
    tol : a start is finished when its objective changed by less than this share in the last ten
        steps and V and Υ agree to 50 times it
    """

    stabilised: bool = True
    gamma: float = 0.3
    rho: float = 0.3
    rho_max: float = 10.0
    beta: float = 1.05
    v_step: str = "polar"
    v_iter: int | None = None
    max_iter: int = 300
    tol: float = 1e-4

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
    try:
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
                state.stopped = monitor.stopped
                break
            if state.n_iter >= settings.max_iter:
                break
            if state.n_iter % CHECK_EVERY == 0:
                now = cost - variance
                apart = np.linalg.norm(V - Y, axis=(1, 2)) / np.sqrt(r)
                still = np.abs(now - values[active]) > settings.tol * (variance + cost)
                still |= apart > 50 * settings.tol
                values[active] = now
                state.finished[active[~still]] = True
                active, SV = active[still], SV[still]
    except KeyboardInterrupt:
        state.stopped = monitor.stopped = Status.INTERRUPTED
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
