r"""Loadings that are orthonormal and zero where a pattern says so, both exactly.

The splitting methods end with two matrices: one orthonormal but not sparse, one sparse but not
orthonormal. The answer lies between them, in

.. math:: \{V : V'V = I,\; V_{ij} = 0 \text{ outside the pattern } m\}

To get there from a nearby U, Newton's method: the step :math:`m \circ (VΛ)` with a symmetric Λ is
the smallest one that makes :math:`V'V = I` to first order, and Λ solves a linear system of order
r(r+1)/2. Its directions are the normals of the set, so taking them out of a gradient gives the
gradient within the set; with that and the same Newton step as a retraction, the objective is
lowered by gradient steps of Barzilai and Borwein's length, each accepted only if it helps.

Two columns that share exactly one feature cannot be orthogonal unless one of the two entries is
zero: the smaller one leaves the pattern.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kspan.arrays import FloatArray, Mask
from kspan.linalg.stiefel import polar, symmetric
from kspan.progress import Deadline, Monitor
from kspan.solvers.stiefel.splitting import Penalty


def _kernels() -> Any:
    """Return the kernels, which are compiled when they are used for the first time."""
    from kspan.linalg import pattern_kernels

    return pattern_kernels


# ‖V'V - I‖ up to which V counts as orthonormal, and what the last Newton step aims at.
ORTHONORMAL, AIM = 1e-10, 1e-14

# Seconds for the way to the answer when time is up.
GRACE = 0.1
NO_LIMIT = Deadline()


def patience(monitor: Monitor) -> Deadline:
    """Return how long Newton's method may take: what is left, or a moment for the last answer."""
    return Deadline(max(monitor.deadline.left, GRACE))


def orthonormal_on(U: FloatArray, mask: Mask, deadline: Deadline = NO_LIMIT) -> FloatArray | None:
    """Return an orthonormal V near U that is zero outside the mask; None if Newton finds none."""
    V = np.where(mask, U, 0.0)
    lengths = np.linalg.norm(V, axis=0)
    if not lengths.all():
        return None
    if mask.all():
        return polar(V)
    V = V / lengths
    error = np.inf
    for _ in range(50):
        missing = np.eye(V.shape[1]) - V.T @ V
        before, error = error, float(np.abs(missing).max())
        if error <= AIM or (error <= ORTHONORMAL and error >= before / 2):
            break
        if deadline.passed:
            return None
        step = _normal(V, mask, missing)
        size = float(np.linalg.norm(step))
        V = V + step * min(1.0, 0.5 / size) if size > 0 else V
    return V if error <= ORTHONORMAL else None


def _normal(V: FloatArray, mask: Mask, wanted: FloatArray) -> FloatArray:
    """Return ``m ∘ (VΛ)`` with the symmetric Λ for which it changes V'V by `wanted`."""
    return _kernels().normal_step(V, *_kernels().own_rows(mask), wanted)


def drop_lone_overlaps(U: FloatArray, mask: Mask) -> Mask:
    """Take the smaller entry out wherever two columns share one feature only."""
    mask = mask.copy()
    r = mask.shape[1]
    changed = True
    while changed:
        changed = False
        for a in range(r):
            for b in range(a + 1, r):
                shared = np.flatnonzero(mask[:, a] & mask[:, b])
                if shared.size == 1:
                    i = int(shared[0])
                    # A column keeps at least one feature.
                    options = [j for j in (a, b) if mask[:, j].sum() > 1]
                    if options:
                        weaker = min(options, key=lambda j: abs(U[i, j]))
                        mask[i, weaker] = False
                        changed = True
    return mask


def descend(
    product: Callable[[FloatArray], FloatArray],
    V: FloatArray,
    mask: Mask,
    alpha: float,
    penalty: Penalty,
    *,
    max_iter: int = 100,
    tol: float = 1e-9,
    monitor: Monitor,
) -> tuple[FloatArray, float]:
    """Lower ``-½ tr(V'SV) + αΩ(V)`` within the pattern; returns V and its objective.

    Parameters
    ----------
    product : ``W -> S W`` on the features of the pattern
    V : (d, r) orthonormal, zero outside the mask
    mask : (d, r)
    alpha, penalty : of the objective
    max_iter : steps
    tol : stop when a step gains less than this share
    monitor : asked before every step whether to stop
    """
    f = _Objective(product, mask, alpha, penalty)
    SV = product(V)
    value, length = f.value(V, SV), 1.0
    if monitor.out_of_time():
        return V, value
    G = f.gradient(V, SV)
    for _ in range(max_iter):
        step = f.step_down(V, G, value, length, monitor)
        if step is None:
            break
        length, trial, image, lower = step
        turned = f.gradient(trial, image)
        moved, bent = trial - V, turned - G
        curvature = float(np.sum(moved * bent))
        gained = value - lower
        V, value, G = trial, lower, turned
        length = float(np.sum(moved * moved)) / curvature if curvature > 0 else 4 * length
        length = float(np.clip(length, 1e-3, 1e4))
        if gained <= tol * abs(value):
            break
    return V, value


@dataclass(frozen=True)
class _Objective:
    """``-½ tr(V'SV) + αΩ(V)`` within a pattern; see `descend`."""

    product: Callable[[FloatArray], FloatArray]
    mask: Mask
    alpha: float
    penalty: Penalty

    def value(self, V: FloatArray, SV: FloatArray) -> float:
        return float(-0.5 * np.sum(V * SV) + self.alpha * self.penalty.value(V))

    def gradient(self, V: FloatArray, SV: FloatArray) -> FloatArray:
        """Return the gradient within the set of orthonormal matrices on the pattern."""
        G = np.where(self.mask, self.alpha * self.penalty.subgradient(V) - SV, 0.0)
        inner = 2 * symmetric(V.T @ G)
        return G - _normal(V, self.mask, inner)

    def step_down(
        self, V: FloatArray, G: FloatArray, value: float, length: float, monitor: Monitor
    ) -> tuple[float, FloatArray, FloatArray, float] | None:
        """Return a step from V that helps enough, where it leads, S times that, and the value."""
        squares = float(np.sum(G * G))
        if squares <= 1e-16:
            return None
        for _ in range(30):
            if monitor.out_of_time():
                return None
            trial = orthonormal_on(V - length * G, self.mask)
            if trial is not None:
                image = self.product(trial)
                lower = self.value(trial, image)
                if lower <= value - 1e-4 * length * squares:
                    return length, trial, image, lower
            length *= 0.4
        return None
