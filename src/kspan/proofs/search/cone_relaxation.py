r"""The relaxation with row cones, and with P ≥ 0 for nonnegative components, by ADMM.

.. math::
    \max\ \langle A, P\rangle + \sum_{i∈R} a_{ii} z_i \quad\text{over}\quad
    P ∈ \text{Fantope}_m,\ S = Diag(z_T) - P ⪰ 0,\ \|(P_{ij})_{j≠i}\|_{sp}^2 \le P_{ii} S_{ii},
    \ 0 \le z \le 1,\ \textstyle\sum z = k

on features T that are relaxed and features R that cost their variance each (R may be empty).
The row cones hold with equality for every projector on a support; they cost no eigensolve and
close most of the gap that P ⪯ Diag(z) leaves. For nonnegative components P = xx' has no negative
entry, and :math:`P_{ij} \ge 0` is one more constraint: it costs a comparison.

Steps (a consensus point and three blocks, each in closed form; Douglas-Rachford with
over-relaxation and Anderson acceleration):

    P ← Proj_Fantope(P' - U + A/ρ);  S ← Proj_PSD(S' - V);  (W, x, y) ← Proj_cones(...)
    average off the diagonal, cut at zero if nonnegative;  z ← top-k step over T and R

What the PSD projection cuts off is B/ρ, what the cones cut off gives G and α, and what is missing
in the balance of all of them is N: a witness of `bounds.split_bound` at any iteration. Two partial
eigensolves of order |T| an iteration, in float32; bounds are evaluated elsewhere, in float64.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index
from kspan.linalg.anderson import Anderson
from kspan.linalg.projections import SharedAims, fill_capped, negative_part, project_fantope
from kspan.linalg.tracking import EigenTracker
from kspan.problem import Choice
from kspan.proofs.check.bounds import Cones
from kspan.proofs.check.claims import Part

RELAXATION = 1.6
MEMORY = 10  # steps that Anderson acceleration remembers
RHO_EVERY = 25  # steps between two rises of ρ


# ρ in units of ‖A‖_F/√m: first, growth at a time, last; and the weight of the cones. Measured on
# correlations and covariances of genes, split and whole, and on CBCL faces.
RHO_START, RHO_GROWTH, RHO_MAX = 0.1, 1.15, 0.3
CONE_WEIGHT = 0.6

# Of the first point, the share that a known support has.
KNOWN_SHARE = 0.5


@dataclass(frozen=True)
class ConeSnapshot(Part):
    """A point to start from: the state of the iteration and ρ."""

    state: NDArray[Any]
    rho: float

    def restrict(self, keep: Index) -> "ConeSnapshot":
        """Return the point on some of the features."""
        t = self.state.shape[1]
        blocks = [self.state[i * t : (i + 1) * t][np.ix_(keep, keep)] for i in range(3)]
        return ConeSnapshot(np.vstack([*blocks, self.state[3 * t, keep]]), self.rho)


@dataclass(frozen=True, eq=False)
class Aims:
    """What the blocks want P and z to be; the diagonal of P and z belong together.

    There they minimise ``weight_p (p - aim)² + (z - p - aim)² + CONE_WEIGHT (z - p - aim)²``.

    Parameters
    ----------
    P : (t, t) array, right off the diagonal
    p, own, cone : (t,) the aims for the diagonals of P, of S, and of the cones
    weight_p : of the first
    """

    P: NDArray[Any]
    p: NDArray[Any]
    own: NDArray[Any]
    cone: NDArray[Any]
    weight_p: float
    weight_s: ClassVar[float] = 1 + CONE_WEIGHT

    @property
    def s(self) -> NDArray[Any]:
        """What S and the cones want together."""
        mean: NDArray[Any] = (self.own + CONE_WEIGHT * self.cone) / self.weight_s
        return mean

    @property
    def apart(self) -> SharedAims:
        """The same where S is ``Diag(w) - P``, and w is not z."""
        return SharedAims(self.p, self.own, self.cone, (self.weight_p, 1.0, CONE_WEIGHT))

    @property
    def z(self) -> NDArray[Any]:
        """Where z would be if nothing else was asked of it."""
        return self.p + self.s

    @property
    def curvature(self) -> float:
        """What it costs to move z elsewhere, in units of ρ."""
        return self.weight_p * self.weight_s / (self.weight_p + self.weight_s)

    @property
    def share_of_s(self) -> float:
        """How far p goes along with z."""
        return self.weight_s / (self.weight_p + self.weight_s)


class ConeRelaxation:
    """The iteration; any step carries a witness.

    Parameters
    ----------
    A : (t, t) array, the features T, entries of order one
    m : components
    choice : Choice on T; of its k features some may be spent on R
    rewards : variances of R
    nonnegative : whether P ≥ 0
    start : ConeSnapshot to go on from
    near : places of a good support, for the first point when there is no start
    copies : components with the same choice whose P are added up; z counts who has a feature
    cap : the most components that may have a feature, `copies` by default
    dtype : float32, or float64 where few features leave time for more digits
    """

    def __init__(
        self,
        A: FloatArray,
        m: int,
        choice: Choice,
        *,
        rewards: FloatArray | None = None,
        nonnegative: bool = False,
        start: ConeSnapshot | None = None,
        near: Index | None = None,
        copies: int = 1,
        cap: int | None = None,
        dtype: type[np.floating[Any]] = np.float32,
    ):
        t, k = len(A), choice.size
        self.copies, self.cap, self.dtype = copies, copies if cap is None else cap, dtype
        self.A, self.m, self.k, self.t = A, m, k, t
        self.forced, self.nonnegative = choice.forced, nonnegative
        self.rewards = np.empty(0) if rewards is None else rewards
        self.unit = float(np.linalg.norm(A)) / np.sqrt(m) or 1.0
        self.rho = RHO_START * self.unit
        self._small = A.astype(dtype)
        self._diagonal = np.diag_indices(t)
        if start is None:
            state = self._first_state(near)
        else:
            state, self.rho = start.state.copy(), start.rho
        self.z: NDArray[Any] = np.zeros(t, dtype=dtype)  # known after a step, as is P
        self.P: NDArray[Any] = state[:t]
        self._state = state
        # Made once: new arrays of this size cost more than what is done with them.
        self._block, self._reflected, self._agreed = (np.empty_like(state) for _ in range(3))
        self._outside = np.empty((t, t), dtype=dtype)
        self.own: FloatArray = np.empty(0)  # of a team, see `team_relaxation`
        self._leading = EigenTracker(largest=True, rank=4 * m + 8)
        self._negative = EigenTracker(largest=False, rank=40)
        self._anderson = Anderson(MEMORY, state.size, dtype)
        self.n_iter = self.n_eigensolves = 0

    def _first_state(self, near: Index | None) -> NDArray[Any]:
        """Return the consensus minus scaled duals: for P, S, the cones (x on the diagonal), and y.

        P and z are even, or halfway to those of a known support. B begins as a share of A: with
        B = A the bound is the sum of the largest variances, which says most when m is large.
        """
        t, m, k, diagonal = self.t, self.m, self.k, self._diagonal
        P, z = np.eye(t) * (m / t), np.full(t, float(min(self.copies * k / t, self.cap)))
        if near is not None:
            V = np.linalg.eigh(self.A[np.ix_(near, near)])[1][:, -m:]
            P *= 1 - KNOWN_SHARE
            P[np.ix_(near, near)] += KNOWN_SHARE * (V @ V.T)
            z *= 1 - KNOWN_SHARE
            z[near] += KNOWN_SHARE
        state = np.empty((3 * t + 1, t), dtype=self.dtype)
        state[:t], state[t : 2 * t], state[2 * t : 3 * t] = P, np.diag(z) - P, P
        state[3 * t] = z - P[diagonal]
        if not self.nonnegative:
            B = self.dtype((1 - 0.5 / m) / self.rho) * self._small
            state[:t] -= B
            state[t : 2 * t] -= B
        return state

    def step(self) -> None:
        """One iteration."""
        dtype, state = self.dtype, self._state
        block = self.project_blocks(state)
        reflected = np.multiply(block, 2, out=self._reflected)
        reflected -= state
        consensus = self._consensus(reflected)
        image = np.subtract(consensus, block, out=self._reflected)
        image *= dtype(RELAXATION)
        image += state
        state = self._anderson.propose(state, image)
        self.n_iter += 1
        if self.n_iter % RHO_EVERY == 0 and self.rho < RHO_MAX * self.unit:
            # The dual ρ(consensus - state) stays what it is.
            state = consensus - (consensus - state) / dtype(RHO_GROWTH)
            self.rho *= RHO_GROWTH
            self._anderson.clear()
        self._state = state

    def project_blocks(self, state: NDArray[Any]) -> NDArray[Any]:
        """Project P, S and the cones, each on its own set; keep the duals of this step.

        What is returned lasts until the next call.
        """
        from kspan.linalg.support_cones import project_rows  # compiled when it is used

        t, diagonal, block = self.t, self._diagonal, self._block
        shifted = np.divide(self._small, self.dtype(self.rho), out=self._outside)
        shifted += state[:t]
        project_fantope(shifted, self.m, self._leading, out=block[:t])
        if self.nonnegative:
            self._leader = state[:t] - block[:t]
        cut = negative_part(state[t : 2 * t], self._negative)
        self.n_eigensolves += 2
        np.matmul(cut, cut.T, out=block[t : 2 * t])
        block[t : 2 * t] += state[t : 2 * t]
        W0, W = self._outside, block[2 * t : 3 * t]
        W0[:] = state[2 * t : 3 * t]
        x0, x = W0[diagonal], np.empty_like(self.z)
        W0[diagonal] = 0.0
        project_rows(W0, x0, state[3 * t], max(self.k - 1, 1), W, x, block[3 * t])
        W[diagonal] = x
        # In units of ρ; what the cones cut off is the difference of `_outside` and the block.
        self._cut, self._alpha = cut, CONE_WEIGHT * (x - x0)
        self._rho_of_duals = self.rho
        return block

    def _consensus(self, reflected: NDArray[Any]) -> NDArray[Any]:
        """Project on the consensus."""
        aims = self.aims(reflected)
        filled = self.cap * fill_capped(
            aims.z / self.cap, self.rho * aims.curvature, self.copies * self.k / self.cap,
            self.forced, self.rewards,
        )  # fmt: skip
        return self.agree(aims, filled)

    def aims(
        self, reflected: NDArray[Any], link: NDArray[Any] | None = None, on_diagonal: float = 1.0
    ) -> "Aims":
        """Return what the blocks want the consensus to be.

        Parameters
        ----------
        reflected : (3t+1, t) the blocks
        link : (t, t) one more block that is to equal P
        on_diagonal : its weight there, beside 1 elsewhere
        """
        t, w, diagonal = self.t, CONE_WEIGHT, self._diagonal
        a, b, c = reflected[:t], reflected[t : 2 * t], reflected[2 * t : 3 * t]
        on_p, weight = a[diagonal] + w * c[diagonal], 1 + w
        P = np.add(c, c.T, out=self._agreed[:t])
        P *= self.dtype(w)
        P += a
        P -= b
        P /= self.dtype(2 + 2 * w)
        if link is not None:
            P *= self.dtype((2 + 2 * w) / (3 + 2 * w))
            P += link / self.dtype(3 + 2 * w)
            on_p, weight = on_p + on_diagonal * link[diagonal], weight + on_diagonal
        return Aims(P, on_p / weight, b[diagonal], reflected[3 * t].copy(), weight)

    def agree(
        self, aims: "Aims", z: NDArray[Any], *, apart: tuple[NDArray[Any], ...] = ()
    ) -> NDArray[Any]:
        """Return the consensus with a given z; it lasts until the next call.

        Off the diagonal P = p, S = -p, W = p; on it P = p, S = z - p. With several components that
        may share features, S = w - p there: what P is made of counts once, see `check/teams.py`.

        Parameters
        ----------
        aims : what the blocks want
        z : (t,) array
        apart : p and w, where w is not z
        """
        t, diagonal, P = self.t, self._diagonal, aims.P
        if self.nonnegative:
            np.maximum(P, 0.0, out=P)
        z = z.astype(self.dtype, copy=False)
        w = z
        if apart:
            P[diagonal], w = apart
        else:
            P[diagonal] = aims.p - aims.share_of_s * (aims.z - z)
        consensus = self._agreed  # of which P is a part
        consensus[2 * t : 3 * t] = P
        np.negative(P, out=consensus[t : 2 * t])
        consensus[t : 2 * t][diagonal] += w
        consensus[3 * t] = z - P[diagonal]
        self.z, self.P = z, P
        return consensus

    def witness(self) -> tuple[FloatArray, Cones]:
        """Return the factor of B, and G, α and N, of the last step."""
        rho = self._rho_of_duals
        factor = np.sqrt(rho) * self._cut.astype(np.float64)
        rows = self._outside.astype(np.float64)
        rows -= self._block[2 * self.t : 3 * self.t]
        rows *= 2 * CONE_WEIGHT * rho
        rows[self._diagonal] = 0.0
        alpha = rho * self._alpha.astype(np.float64)
        if not self.nonnegative:
            return factor, Cones(rows, alpha)
        # A + ρ(state - block) is what the Fantope's block saw; N makes up for what is above it.
        N = rho * self._leader.astype(np.float64) + factor @ factor.T + 0.5 * (rows + rows.T)
        N = np.maximum(0.5 * (N + N.T), 0.0)
        N[self._diagonal] = 0.0
        return factor, Cones(rows, alpha, N)

    def snapshot(self) -> ConeSnapshot:
        """The present point, to start another relaxation from."""
        return ConeSnapshot(self._state.copy(), self.rho)
