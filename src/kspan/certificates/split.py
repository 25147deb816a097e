r"""The split bound: the relaxation on the features that matter, with row cones, by ADMM.

The features are split into T (relaxed) and R (each one costs its variance). On T,

.. math::
    \max\ \langle A, P\rangle + \sum_{i∈R} a_{ii} z_i \quad\text{over}\quad
    P ∈ \text{Fantope}_m,\ S = Diag(z_T) - P ⪰ 0,\ \textstyle\sum_{j≠i} P_{ij}^2 \le P_{ii} S_{ii},
    \ 0 \le z \le 1,\ \textstyle\sum z = k .

The row cones hold with equality for every projector on a support; they cost no eigensolve and
close most of the gap that P ⪯ Diag(z) leaves.

Steps (a consensus point and three blocks, each in closed form; Douglas-Rachford with
over-relaxation and Anderson acceleration):

    P ← Proj_Fantope(P' - U + A/ρ);  S ← Proj_PSD(S' - V);  (W, x, y) ← Proj_cones(...)
    average off the diagonal;  z ← top-k step over T and R

What the PSD projection cuts off is B/ρ, what the cones cut off gives G and α: a witness of
`bounds.split_bound` at any iteration. Two partial eigensolves of order |T| an iteration, in
float32; the bound is always evaluated in float64.

Never forms a matrix of all features: it needs A on T and the diagonal.
"""

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.certificates.bounds import split_bound
from kspan.certificates.outcome import Outcome
from kspan.certificates.witness import SplitWitness
from kspan.linalg.anderson import Anderson
from kspan.linalg.projections import (
    fill_capped,
    negative_part,
    project_fantope,
    project_row_cones,
)
from kspan.progress import Monitor

RELAXATION = 1.6
CONE_WEIGHT = 0.3  # of the cone block in the consensus
RHO_START, RHO_GROWTH, RHO_MAX = 0.3, 1.3, 1.5  # in units of ‖A‖_F/√m; raised every 25 steps
RHO_EVERY = 25
MEMORY = 10  # steps that Anderson acceleration remembers
CHECK_EVERY = 20  # iterations between two evaluations of the bound


def choose_inside(
    variances: FloatArray, size: int, support: Index, forced: Mask, allowed: Mask
) -> Index:
    """Return T: the chosen and the forced features, and those of largest variance."""
    keys = np.where(allowed, variances, -1.0)
    keys[support] = np.inf
    keys[forced] = np.inf
    size = min(max(size, int(np.isinf(keys).sum())), int(allowed.sum()))
    return np.sort(np.argsort(-keys, kind="stable")[:size])


def solve_split(
    A: FloatArray,
    variances: FloatArray,
    m: int,
    k: int,
    *,
    scale: float,
    inside: Index,
    forced: Mask,
    allowed: Mask,
    n_samples: int,
    lower: float,
    max_iter: int,
    target: float,
    monitor: Monitor,
    outcome: Outcome,
) -> None:
    """Lower the split bound until `max_iter`, until it reaches `target`, or until told to stop.

    `A` (on T) and `variances` (of all features) are in units of `scale`, and so are `lower`,
    `target` and the bound in the outcome.
    """
    t, dtype = inside.size, np.float32
    outside = allowed & ~forced
    outside[inside] = False
    n_forced_outside = int((forced & ~np.isin(np.arange(variances.size), inside)).sum())
    rewards = variances[outside]
    fixed = forced[inside]
    k_here = k - n_forced_outside
    w = CONE_WEIGHT
    small = A.astype(dtype)

    unit = float(np.linalg.norm(A)) / np.sqrt(m)
    rho, rho_last = RHO_START * unit, RHO_MAX * unit
    diagonal = np.diag_indices(t)
    P = np.eye(t, dtype=dtype) * (m / t)
    z = np.full(t, min(k_here / t, 1.0), dtype=dtype)
    # Consensus minus scaled dual: for P, for S, for the cones (x on the diagonal of W), for y.
    state = np.zeros((3 * t + 1, t), dtype=dtype)
    state[:t], state[t : 2 * t], state[2 * t : 3 * t] = P, np.diag(z) - P, P
    state[3 * t] = z - P[diagonal]
    rank_fantope, rank_negative = 4 * m + 8, 40
    accelerate = Anderson(MEMORY, state.size, dtype)

    for iteration in range(1, max_iter + 1):
        v_fantope, v_psd = state[:t], state[t : 2 * t]
        v_cone, v_y = state[2 * t : 3 * t], state[3 * t]
        block = np.empty_like(state)
        block[:t], rank_fantope = project_fantope(
            v_fantope + small / dtype(rho), m, rank_fantope + 4
        )
        N = negative_part(v_psd, rank_negative)
        rank_negative = N.shape[1] + 6
        outcome.n_eigensolves += 2
        block[t : 2 * t] = v_psd + N @ N.T
        W0, x0 = v_cone.copy(), v_cone[diagonal]
        W0[diagonal] = 0.0
        W, x, y = project_row_cones(W0, x0, v_y)
        block[2 * t : 3 * t] = W
        block[2 * t : 3 * t][diagonal] = x
        block[3 * t] = y

        if iteration % CHECK_EVERY == 0 or iteration == max_iter:
            witness = SplitWitness(
                scale,
                inside,
                np.sqrt(rho) * N.astype(np.float64),
                (2 * rho * w) * (W0 - W).astype(np.float64),
                (rho * w) * (x - x0).astype(np.float64),
            )
            try:
                value = split_bound(A, variances, m, k, witness, forced, allowed, n_samples)
            except FloatingPointError:
                break
            outcome.n_eigensolves += 1
            outcome.offer(value, witness)
            upper = max(outcome.upper, lower)
            if monitor.report(lower * scale, upper=upper * scale, n_features_left=t):
                break
            if outcome.upper <= target:
                break

        # Reflect, then project on the consensus: off the diagonal P = p, S = -p, W = p; on it
        # P = p, S = z - p.
        reflected = 2 * block - state
        a, b, c = reflected[:t], reflected[t : 2 * t], reflected[2 * t : 3 * t]
        P = (a - b + w * (c + c.T)) / (2 + 2 * w)
        on_p = (a[diagonal] + w * c[diagonal]) / (1 + w)
        on_s = (b[diagonal] + w * reflected[3 * t]) / (1 + w)
        z = fill_capped(on_p + on_s, rho * (1 + w) / 2, k_here, fixed, rewards).astype(dtype)
        P[diagonal] = on_p - 0.5 * (on_p + on_s - z)
        consensus = np.empty_like(state)
        consensus[:t], consensus[2 * t : 3 * t] = P, P
        consensus[t : 2 * t] = -P
        consensus[t : 2 * t][diagonal] += z
        consensus[3 * t] = z - P[diagonal]
        image = state + dtype(RELAXATION) * (consensus - block)
        state = accelerate.propose(state, image).astype(dtype, copy=False)
        if iteration % RHO_EVERY == 0 and rho < rho_last:
            # The dual ρ(consensus - state) stays what it is.
            state = consensus - (consensus - state) / dtype(RHO_GROWTH)
            rho *= RHO_GROWTH
            accelerate.clear()
    outcome.scores = np.zeros(variances.size)
    outcome.scores[inside] = z
