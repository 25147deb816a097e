r"""The relaxation of a node of teams: that of each team, and what binds them together.

.. math::
    \max \sum_q ⟨A, P_q⟩ \quad\text{over}\quad P_q \text{ of team } q \text{ as in }
    \texttt{cone_relaxation},\quad \sum_q P_q ⪯ Diag(w), \quad \sum_q z_q \le 1
    \text{ (disjoint)}, \quad \sum_{q,i} z_{qi} \le K \text{ (a total)}

P_q is the sum of the projectors of a team's c components and z_q says how many of them have a
feature: nothing is lost by that, as they are alike. If they may share features, Diag(w_q) - P_q
with w_q ≤ min(1, z_q) takes the place of Diag(z_q) - P_q: the sum is a projector on what any of
them has.

Between teams the same holds: ΣP_q ⪯ Diag(w), w ≤ min(1, Σz_q). One more block holds copies of all
P_q and of w, and is projected on the first by one eigensolve: what it cuts off is Y. Another holds
copies of w and of all z_q, for w ≤ Σz_q; what it cuts off is the part of Y that each team pays for
itself. If supports are disjoint, w is 1 and the other block is for Σz_q ≤ 1: what it cuts off are
prices. A single team needs neither.

Each step is one of Douglas and Rachford's for all teams at once, with Anderson acceleration of all
of them together. Cost: two eigensolves for each team and one for all.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index
from kspan.linalg.anderson import Anderson
from kspan.linalg.projections import fill_capped, fill_together, negative_part
from kspan.linalg.tracking import EigenTracker
from kspan.problem import Patterns
from kspan.proofs.check.bounds import Cones, largest_squares
from kspan.proofs.check.claims import Part
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.check.partly_known import PartlyKnown
from kspan.proofs.check.teams import TeamPart, Teams, TeamsWitness
from kspan.proofs.search.cone_relaxation import (
    KNOWN_SHARE,
    MEMORY,
    RELAXATION,
    RHO_EVERY,
    RHO_GROWTH,
    RHO_MAX,
    RHO_START,
    Aims,
    ConeRelaxation,
)

# Up to so many features there is time for all digits.
DOUBLE_LIMIT = 100

# Weights of the copies of z, and of the diagonals of the copies of P, beside those of P. With the
# latter and a weight of 2/Q for w the projection of Q copies is one eigensolve.
PRICE_WEIGHT, LINK_DIAGONAL = 1.0, 2.0


@dataclass(frozen=True)
class TeamSnapshot(Part):
    """A point to start from, of one team: consensus and what the state is away from it.

    Parameters
    ----------
    count : components of the team
    features : of the problem
    consensus, dual : (3t+1, t) arrays
    own : (t,) where features count once for the team: the part of B_ii that is for w ≤ z
    """

    count: int
    features: Index
    consensus: NDArray[Any]
    dual: NDArray[Any]
    own: NDArray[Any]

    def widened(self, features: Index) -> "TeamSnapshot":
        """Return it on more features, of which nothing is known yet."""
        places, t, n = np.searchsorted(features, self.features), self.features.size, features.size
        own = np.zeros(n if self.own.size else 0, self.own.dtype)
        if self.own.size:
            own[places] = self.own
        wide = []
        for M in (self.consensus, self.dual):
            blocks = np.zeros((3 * n + 1, n), M.dtype)
            for i in range(3):
                blocks[i * n : (i + 1) * n][np.ix_(places, places)] = M[i * t : (i + 1) * t]
            blocks[3 * n, places] = M[3 * t]
            wide.append(blocks)
        return TeamSnapshot(self.count, features, wide[0], wide[1], own)


@dataclass(frozen=True)
class TeamsSnapshot(Part):
    """Points of all teams, and what binds them.

    Parameters
    ----------
    features : that any team uses
    teams : their points
    Y, prices : what the two blocks between teams cut off, on these features, in units of ρ
    rho : ρ
    """

    features: Index
    teams: list[TeamSnapshot]
    Y: NDArray[Any]
    prices: NDArray[Any]
    rho: float

    def widened(self, features: Index) -> "TeamsSnapshot":
        """Return it on more features for all teams, of which nothing is known yet."""
        places = np.searchsorted(features, self.features)
        n = features.size
        Y, prices = np.zeros((n, n), self.Y.dtype), np.zeros(n, self.prices.dtype)
        Y[np.ix_(places, places)], prices[places] = self.Y, self.prices
        teams = [team.widened(features) for team in self.teams]
        return TeamsSnapshot(features, teams, Y, prices, self.rho)

    def divided(self, place: int, counts: tuple[int, ...]) -> "TeamsSnapshot":
        """Return it with one team taken apart into some with these counts.

        What bound its components to each other binds the parts now: B goes to Y.
        """
        team, Y, prices = self.teams[place], self.Y.copy(), self.prices.copy()
        t, dual = team.features.size, team.dual
        if team.own.size and len(counts) > 1:
            places = np.searchsorted(self.features, team.features)
            Y[np.ix_(places, places)] += dual[t : 2 * t]
            prices[places] += team.own
            dual = dual.copy()
            dual[t : 2 * t] = 0.0
        parts = [
            TeamSnapshot(
                count, team.features, team.consensus * (count / team.count), dual, team.own
            )
            for count in counts
        ]
        teams = [*self.teams[:place], *parts, *self.teams[place + 1 :]]
        return TeamsSnapshot(self.features, teams, Y, prices, self.rho)


class TeamRelaxation:
    """The iteration; any step carries a witness.

    Parameters
    ----------
    known : A on all features of the problem, or on those that are relaxed; entries of order one
    teams, patterns : what is relaxed; features that are not known are for no team
    start : where to begin
    near : (d, r) loadings that are known to be good, in the order of the teams
    """

    def __init__(
        self,
        known: KnownMatrix | PartlyKnown,
        teams: Teams,
        patterns: Patterns,
        *,
        start: TeamsSnapshot | None = None,
        near: FloatArray | None = None,
    ):
        self.teams, self.patterns, self.n_all = teams, patterns, known.n_features
        self.features = np.flatnonzero(np.any([team.choice.allowed for team in teams], axis=0))
        n = self.features.size
        place_of = np.full(self.n_all, -1)
        place_of[self.features] = np.arange(n)
        self.dtype: Any = np.float64 if n <= DOUBLE_LIMIT else np.float32
        self.is_linked = len(teams) > 1
        self.parts: list[ConeRelaxation] = []
        self.places: list[Index] = []
        for team in teams:
            E = team.choice.features
            cap = 1 if patterns.disjoint else team.count
            self.parts.append(
                ConeRelaxation(
                    known.on(E).A,
                    team.count,
                    team.choice.on(E),
                    copies=team.count,
                    cap=cap,
                    dtype=self.dtype,
                )
            )
            self.places.append(place_of[E])
        r = patterns.n_components
        self.unit = float(np.linalg.norm(known.on(self.features).A)) / np.sqrt(r)
        self.unit = self.unit or 1.0
        self.rho = RHO_START * self.unit
        count = len(teams) if self.is_linked else 0
        # Copies of all P, and of w; copies of all z, the last of which is w.
        self._link: NDArray[Any] = np.zeros((count, n, n), self.dtype)
        self._w: NDArray[Any] = np.ones(n if self.is_linked else 0, self.dtype)
        self._paid: NDArray[Any] = np.zeros((count + 1 if count else 0, n), self.dtype)
        if start is not None:
            self._states = self._from(start)
        else:
            self._states = self._first(near)
        self._set_rho(self.rho)
        self._over = EigenTracker(largest=False, rank=8)
        self._Y: NDArray[Any] = np.zeros((n, 0))
        self._prices: NDArray[Any] = np.zeros(n)
        size = sum(state.size for state in self._states)
        size += self._link.size + self._w.size + self._paid.size
        self._anderson = Anderson(MEMORY, size, self.dtype)
        self._last: list[NDArray[Any]] = []  # the consensus of the last step
        self.n_iter = 0
        self.n_eigensolves = 0

    @property
    def _weight_of_w(self) -> float:
        """Of the copy of w beside those of P."""
        return 2 / len(self.parts)

    def _set_rho(self, rho: float) -> None:
        self.rho = rho
        for part in self.parts:
            part.rho = rho

    def _first(self, near: FloatArray | None) -> list[NDArray[Any]]:
        """Return even points, or points halfway to good loadings."""
        states, first = [], 0
        for number, (team, part) in enumerate(zip(self.teams, self.parts, strict=True)):
            t, E = part.t, team.choice.features
            P = np.eye(t) * (team.count / t)
            z = np.full(t, min(team.count * team.choice.size / t, part.cap))
            if near is not None:
                U = near[E, first : first + team.count]
                P = (1 - KNOWN_SHARE) * P + KNOWN_SHARE * (U @ U.T)
                z = (1 - KNOWN_SHARE) * z + KNOWN_SHARE * (U != 0).sum(axis=1)
            first += team.count
            state = np.empty((3 * t + 1, t), dtype=self.dtype)
            state[:t], state[t : 2 * t], state[2 * t : 3 * t] = P, np.diag(z) - P, P
            state[3 * t] = z - np.diagonal(P)
            # B begins as a share of A, see `cone_relaxation`.
            B = ((1 - 0.5 / max(team.count, 2)) / self.rho) * part.A
            state[:t] -= B
            state[t : 2 * t] -= B
            states.append(state)
            self._copy(number, P, z)
        return states

    def _copy(self, number: int, P: NDArray[Any], z: NDArray[Any]) -> None:
        """Put P and z of a team into the blocks between teams; w follows from all z."""
        if self.is_linked:
            places = self.places[number]
            self._link[number][np.ix_(places, places)] = P
            self._paid[number][places] = z
            self._paid[-1] = np.clip(self._paid[:-1].sum(axis=0), 0.0, 1.0)
            self._w[:] = 1.0 if self.patterns.disjoint else self._paid[-1]

    def _from(self, start: TeamsSnapshot) -> list[NDArray[Any]]:
        """Return the points of a snapshot on the features that are left."""
        self.rho = start.rho
        states = []
        for number, (team, snapshot) in enumerate(zip(self.teams, start.teams, strict=True)):
            keep = np.searchsorted(snapshot.features, team.choice.features)
            consensus, dual = (_restricted(M, keep) for M in (snapshot.consensus, snapshot.dual))
            states.append((consensus - dual).astype(self.dtype))
            t = keep.size
            self._copy(number, consensus[:t], np.diagonal(consensus[:t]) + consensus[3 * t])
        if self.is_linked:
            inside = np.searchsorted(start.features, self.features)
            Y, prices = start.Y[np.ix_(inside, inside)], start.prices[inside] / PRICE_WEIGHT
            if self.patterns.disjoint:
                self._link += Y
                self._paid[:-1] += prices
            else:
                self._link += _with_weights(Y)
                self._w -= np.diagonal(Y) / self.dtype(self._weight_of_w)
                self._paid[:-1] -= prices
                self._paid[-1] += prices
        return states

    # --- a step

    def step(self) -> None:
        """One iteration for all teams."""
        blocks = [
            part.project_blocks(state) for part, state in zip(self.parts, self._states, strict=True)
        ]
        (link, w), paid = self._project_link(), self._project_paid()
        reflected = [2 * b - s for b, s in zip(blocks, self._states, strict=True)]
        consensus = self._agree(
            reflected, 2 * link - self._link, 2 * w - self._w, 2 * paid - self._paid
        )
        whole = [*self._states, self._link, self._w, self._paid]
        images = [
            state + self.dtype(RELAXATION) * (agreed - block)
            for state, agreed, block in zip(whole, consensus, [*blocks, link, w, paid], strict=True)
        ]
        moved = self._anderson.propose(_joined(whole), _joined(images))
        self.n_iter += 1
        self.n_eigensolves += 2 * len(self.parts) + self.is_linked
        states = _parted(moved, whole)
        if self.n_iter % RHO_EVERY == 0 and self.rho < RHO_MAX * self.unit:
            # The dual ρ(consensus - state) stays what it is.
            states = [c - (c - s) / RHO_GROWTH for c, s in zip(consensus, states, strict=True)]
            self._set_rho(self.rho * RHO_GROWTH)
            self._anderson.clear()
        self._last = consensus
        *self._states, self._link, self._w, self._paid = states

    def _project_link(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Project the copies of all P and of w on ΣP ⪯ Diag(w), or I; keep Y."""
        if not self.is_linked:
            return self._link, self._w
        over, count = -self._link.sum(axis=0), self.dtype(len(self.parts))
        places = np.diag_indices(len(over))
        over[places] += self._w
        cut = negative_part(0.5 * (over + over.T), self._over)
        Y = (cut @ cut.T) / count
        self._Y = np.sqrt(self.rho / len(self.parts)) * cut.astype(np.float64)
        if self.patterns.disjoint:  # w stays 1, and the diagonal moves as the rest does
            return self._link - Y, self._w
        return self._link - _with_weights(Y), self._w + Y[places] / self.dtype(self._weight_of_w)

    def _project_paid(self) -> NDArray[Any]:
        """Project the copies of all z, and of w, on w ≤ Σz, or Σz ≤ 1; keep the prices."""
        if not self.is_linked:
            return self._paid
        paid, disjoint = self._paid.copy(), self.patterns.disjoint
        z, count = paid[:-1], len(self.parts)
        if disjoint:
            over = np.maximum(z.sum(axis=0) - 1, 0.0) / self.dtype(count)
            z -= over
        else:
            over = np.maximum(paid[-1] - z.sum(axis=0), 0.0) / self.dtype(count + 1)
            z += over
            paid[-1] -= over
        self._prices = self.rho * PRICE_WEIGHT * over.astype(np.float64)
        return paid

    def _agree(
        self, reflected: list[NDArray[Any]], link: NDArray[Any], w: NDArray[Any],
        paid: NDArray[Any],
    ) -> list[NDArray[Any]]:  # fmt: skip
        """Return the consensus of all blocks: of every team, and of the copies of P, w and z."""
        aims, wanted = [], []
        for number, (part, state) in enumerate(zip(self.parts, reflected, strict=True)):
            places = self.places[number]
            other = link[number][np.ix_(places, places)] if self.is_linked else None
            weight = 1.0 if self.patterns.disjoint else LINK_DIAGONAL
            aims.append(part.aims(state, other, weight))
            wanted.append(paid[number][places] if self.is_linked else None)
        once = [self._counts_once(part) for part in self.parts]
        filled = iter(self._fill([i for i, apart in enumerate(once) if not apart], aims, wanted))
        consensus = []
        for part, aim, copy, counts_once in zip(self.parts, aims, wanted, once, strict=True):
            part.own = np.empty(0)
            if counts_once:
                total = float(part.copies * part.k)
                if not self.patterns.counts_each:
                    total = min(total, float(self.patterns.total))
                also = (0.0, aim.p) if copy is None else (PRICE_WEIGHT, copy)
                p, own_w, z, part.own = aim.apart.spend(total, part.cap, part.forced, also)
                consensus.append(part.agree(aim, z, apart=(p, own_w)))
            else:
                consensus.append(part.agree(aim, next(filled)))
        new_link, new_paid, new_w = np.zeros_like(link), np.zeros_like(paid), np.ones_like(w)
        if self.is_linked:
            for number, part in enumerate(self.parts):
                places = self.places[number]
                new_link[number][np.ix_(places, places)] = part.P
                new_paid[number][places] = part.z
            if not self.patterns.disjoint:
                weight = self._weight_of_w
                mean = (weight * w + PRICE_WEIGHT * paid[-1]) / (weight + PRICE_WEIGHT)
                new_w = np.clip(mean, 0.0, 1.0).astype(self.dtype)
            new_paid[-1] = new_w
        return [*consensus, new_link, new_w, new_paid]

    def _counts_once(self, part: ConeRelaxation) -> bool:
        """Whether several components may share a feature, and spend what is theirs alone."""
        return part.cap > 1 and (self.patterns.counts_each or not self.is_linked)

    def _fill(
        self, places: list[int], aims: list[Aims], wanted: list[NDArray[Any] | None]
    ) -> list[NDArray[Any]]:
        """Spend the features of some teams: so many in each component, or in all."""
        parts, targets = [self.parts[i] for i in places], []
        for i in places:
            z, aim, copy = aims[i].z, aims[i], wanted[i]
            if copy is not None:
                z = (aim.curvature * z + PRICE_WEIGHT * copy) / (aim.curvature + PRICE_WEIGHT)
            targets.append(z)
        if self.patterns.counts_each or not parts:
            none = np.empty(0)
            return [
                part.cap
                * fill_capped(z / part.cap, 1.0, part.copies * part.k / part.cap, part.forced, none)
                for part, z in zip(parts, targets, strict=True)
            ]
        caps = np.concatenate([np.full(part.t, float(part.cap)) for part in parts])
        fixed = np.concatenate([part.forced for part in parts])
        filled = fill_together(np.concatenate(targets), caps, fixed, float(self.patterns.total))
        return np.split(filled, np.cumsum([part.t for part in parts])[:-1])

    # --- what comes of it

    @property
    def P(self) -> list[FloatArray]:
        """The relaxed sums of projectors, of every team on its features."""
        return [part.P.astype(np.float64) for part in self.parts]

    @property
    def z(self) -> list[FloatArray]:
        """How many components of each team have a feature, on its features."""
        return [part.z.astype(np.float64) for part in self.parts]

    def witness(self) -> TeamsWitness:
        """Return Y, and B and the cones of every team, of the last step."""
        common = np.zeros((self.n_all, self._Y.shape[1]))
        common[self.features] = self._Y
        parts = []
        for team, part in zip(self.teams, self.parts, strict=True):
            factor, cones = part.witness()
            parts.append(TeamPart(team.choice.features, factor, _with_beta(cones, part.k - 1)))
        prices = np.zeros(self.n_all if self.is_linked else 0)
        if self.is_linked:
            prices[self.features] = self._prices
        return TeamsWitness(common, parts, prices)

    def snapshot(self) -> TeamsSnapshot | None:
        """The present point, to start another relaxation from; None before the first step."""
        if not self._last:
            return None
        teams = [
            TeamSnapshot(
                team.count, team.choice.features, agreed.copy(), agreed - state, part.own.copy()
            )
            for team, part, agreed, state in zip(
                self.teams, self.parts, self._last, self._states, strict=False
            )
        ]
        n = self.features.size
        Y, prices = np.zeros((n, n), self.dtype), np.zeros(n)
        if self.is_linked:
            Y = ((self._Y @ self._Y.T) / self.rho).astype(self.dtype)
            prices = self._prices / self.rho
        return TeamsSnapshot(self.features, teams, Y, prices, self.rho)


def _with_weights(Y: NDArray[Any]) -> NDArray[Any]:
    """Return by how much Y moves copies of P, whose diagonals have another weight."""
    moved = Y.copy()
    moved[np.diag_indices(len(Y))] /= LINK_DIAGONAL
    return moved


def _with_beta(cones: Cones, n_others: int) -> Cones:
    """Return cones with the β of all features: of some of them the bound is then no larger."""
    alpha = np.maximum(cones.alpha, 0.0)
    squares = largest_squares(cones.rows, n_others)
    beta = np.divide(squares, 4 * alpha, out=np.zeros_like(alpha), where=alpha > 0)
    return Cones(cones.rows, alpha, beta=beta * (1 + 1e-12))


def _restricted(M: NDArray[Any], keep: Index) -> NDArray[Any]:
    """Return the state of a team on some of its features."""
    t = M.shape[1]
    blocks = [M[i * t : (i + 1) * t][np.ix_(keep, keep)] for i in range(3)]
    return np.vstack([*blocks, M[3 * t, keep]])


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([part.ravel() for part in parts])


def _parted(whole: NDArray[Any], like: list[NDArray[Any]]) -> list[NDArray[Any]]:
    ends = np.cumsum([part.size for part in like])[:-1]
    return [
        piece.reshape(part.shape) for piece, part in zip(np.split(whole, ends), like, strict=True)
    ]
