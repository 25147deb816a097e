r"""The sample-space bound for wide data: an ascent that always carries a certificate.

For any Λ ⪰ 0, τ > 0, vectors p_i and numbers s_i ≥ 0 with
:math:`x_ix_i' ⪯ p_ip_i' + s_i(Λ + τI)`,

.. math:: OPT(k) \le KyFan_m\big(\textstyle\sum_i p_ip_i' + σΛ\big) + στ, \qquad
          σ = \text{sum of the k largest } s_i

(proof in `bounds.sample_bound`). At the solution all s_i ≤ 1, so σ = k. For m = 1 a full matrix Λ
is much better than a multiple of the identity: it says that every direction, not their
average, is served by k features. For m > 1 it gains nothing and is left out.

Saddle point. Write L = Λ + τI. For a density Y (0 ⪯ Y ⪯ I, tr Y = m) let
:math:`w_i = Y^{1/2}x_i`, :math:`D = Y^{1/2}LY^{1/2}`. The p_i of smallest p_i'Yp_i has
:math:`Y^{1/2}p_ip_i'Y^{1/2} = (w_iw_i' - D)_+ = μ_iv_iv_i'` where μ_i solves
:math:`w_i'(D + μ)^{-1}w_i = 1` and v_i ∝ (D + μ_i)^{-1}w_i; features with w_i'D^{-1}w_i ≤ 1 have
p_i = 0. The Lagrangian k⟨L, Y⟩ + Σμ_i (m = 1) is concave in Y and convex in L; both conditions
are fixed points,

    Y = Y^{1/2} G Y^{1/2} / θ  (eigenvalues capped at 1),   G = Σ p_ip_i' + kΛ
    D = D^{1/2} (Σ v_iv_i' / k) D^{1/2}

and iterating them (the second with a power below one, as it overshoots) converges in some
dozens of steps. Cost: O(dr²) a step for r samples; nothing larger than r×d is formed.
"""

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.certificates.bounds import sample_bound
from kspan.certificates.outcome import Outcome
from kspan.certificates.witness import SampleWitness
from kspan.progress import Monitor

POWER = 0.25  # damping of the metric's fixed point; less when the bound oscillates
MIX = 3e-3  # share of the identity in the density, falling
FLOOR = 1e-6  # τ as a share of the mean eigenvalue of the metric: keeps it well conditioned
HEAD_START = 8  # steps of the metric before the density moves
PATIENCE, MIN_GAIN = 20, 1e-5  # stop when this many steps gained less than this share


def solve_sample_space(
    X: FloatArray,
    m: int,
    k: int,
    *,
    scale: float,
    support: Index,
    forced: Mask,
    allowed: Mask,
    lower: float,
    max_iter: int,
    target: float,
    monitor: Monitor,
    outcome: Outcome,
) -> None:
    """Lower the bound until `max_iter`, `target`, little gain, or until told to stop.

    `X` (r × d, ``A = X'X``), `lower`, `target` and the bound are in units of `scale`; `support`
    only gives the starting point.
    """
    free = allowed & ~forced
    n_free = k - int(forced.sum())
    r = X.shape[0]
    identity = np.eye(r)
    Z, fixed = X[:, free], X[:, forced]
    base = fixed @ fixed.T
    names, forced_names = np.flatnonzero(free), np.flatnonzero(forced)
    variance = np.einsum("ij,ij->j", Z, Z)
    if n_free <= 0 or not variance.any():
        return

    guess = X[:, support] @ X[:, support].T
    total = float(np.trace(guess))
    Y = m / r * identity if total == 0 else m * (0.3 / r * identity + 0.7 / total * guess)
    values, Q = np.linalg.eigh(Y)
    Y = (Q * _capped(np.maximum(values, 1e-12), m)) @ Q.T if r > m else identity
    kth = float(np.partition(variance, -min(n_free, variance.size))[-min(n_free, variance.size)])
    tau = kth / 3 or FLOOR
    metric = tau * identity  # Λ + τI
    power, last = POWER, np.inf
    uppers: list[float] = []
    shared = m > 1  # a multiple of the identity only

    for iteration in range(1, max_iter + 1):
        values, Q = np.linalg.eigh(Y)
        root = np.sqrt(np.maximum(values, 1e-14 * values[-1]))
        half, inverse_half = (Q * root) @ Q.T, (Q / root) @ Q.T
        D = half @ metric @ half
        shift, R = np.linalg.eigh(0.5 * (D + D.T))
        outcome.n_eigensolves += 2
        shift = np.maximum(shift, 1e-15 * shift[-1])
        turned = R.T @ half
        C = turned @ Z
        active = np.flatnonzero((C * C / shift[:, None]).sum(axis=0) > 1.0)
        C = C[:, active].T
        mu = _secular_roots(C * C, shift)
        V = C / (shift + mu[:, None])
        V /= np.sqrt(np.einsum("ij,ij->i", V, V))[:, None]
        vectors = (inverse_half @ R) @ (V * np.sqrt(mu)[:, None]).T

        if shared:
            factor, floor = np.zeros((r, 0)), tau
        else:
            floor = 0.5 * FLOOR * float(np.trace(metric)) / r
            factor = np.linalg.cholesky(metric - floor * identity)
        witness = SampleWitness(
            scale, np.concatenate([forced_names, names[active]]), np.hstack([fixed, vectors]),
            factor, floor,
        )  # fmt: skip
        try:
            upper = sample_bound(X, m, k, witness, forced, allowed)
        except FloatingPointError:
            break
        outcome.n_eigensolves += 1
        outcome.offer(upper, witness)
        uppers.append(outcome.upper)
        power = max(0.7 * power, 0.02) if upper > last else min(1.03 * power, POWER)
        last = upper
        known = max(outcome.upper, lower)
        if monitor.report(lower * scale, upper=known * scale, n_features_left=active.size):
            break
        waited = iteration > 2 * PATIENCE
        if waited and uppers[-PATIENCE - 1] - uppers[-1] < MIN_GAIN * uppers[-1]:
            break
        if outcome.upper <= target:
            break

        energy = (V.T * mu) @ V
        moved_base = turned @ base @ turned.T
        if shared:
            # dμ_i/dτ = -v_i'Yv_i, in the eigenbasis of D = τY
            count = float(((V * V) @ (shift / tau)).sum()) / n_free
            tau *= float(np.clip(count, 0.05, 20.0)) ** power
            metric = tau * identity
            G = energy + moved_base
        else:
            served, E = np.linalg.eigh(V.T @ V / n_free)
            growth = (E * np.clip(served, 0.05, 20.0) ** power) @ E.T
            root_shift = np.sqrt(shift)
            back = inverse_half @ R
            metric = back @ (root_shift[:, None] * growth * root_shift) @ back.T
            metric = 0.5 * (metric + metric.T)
            metric += FLOOR * float(np.trace(metric)) / r * identity
            G = energy + n_free * np.diag(shift) + moved_base
        if iteration > HEAD_START and r > m:
            values, Q = np.linalg.eigh(G)
            mix = max(MIX / (1 + 0.1 * iteration), 1e-6)
            capped = _capped(np.maximum(values, 1e-15 * values[-1]), m)
            Q = R @ Q
            Y = (Q * ((1 - mix) * capped + mix * m / r)) @ Q.T


def _secular_roots(squares: FloatArray, shift: FloatArray, max_iter: int = 60) -> FloatArray:
    """Return μ ≥ 0 with ``Σ_j squares_ij / (shift_j + μ_i) = 1`` for every row i.

    Newton on 1/h(μ) = 1: 1/h is concave and rising, so the iterates climb to the root.
    """
    mu = np.zeros(squares.shape[0])
    for _ in range(max_iter):
        inverse = 1.0 / (shift + mu[:, None])
        terms = squares * inverse
        h = terms.sum(axis=1)
        step = (h - 1.0) * h / np.einsum("ij,ij->i", terms, inverse)
        mu = np.maximum(mu + step, 0.0)
        if np.all(np.abs(step) <= 1e-12 * mu):
            break
    return mu


def _capped(values: FloatArray, m: int) -> FloatArray:
    """Return ``min(values / θ, 1)`` with θ such that the sum is m."""
    order = np.sort(values)[::-1]
    for n_capped in range(m):
        theta = float(order[n_capped:].sum()) / (m - n_capped)
        if order[n_capped] <= theta:
            return np.minimum(values / theta, 1.0)
    return (values >= order[m - 1]).astype(float)
