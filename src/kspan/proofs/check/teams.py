r"""Bounds on orthonormal components with supports of their own, and the nodes of their search.

.. math:: OPT = \max \sum_t u_t'Au_t, \qquad U'U = I,\ \|u_t\|_0 \le k_t
          \quad (\text{or } \textstyle\sum_t \|u_t\|_0 \le K,\ \text{or disjoint supports})

**Teams.** Components of which a search knows the same are a team: c components, each with all of
some features, none of some others, and k at most. At the root all components with the same k are
one. A team is split on a feature by how many of its components have it, 0, 1, ..., c; which ones
does not matter, and symmetric copies of a pattern are never looked at.

**The bound.** Let :math:`P_t = u_tu_t'`, :math:`S_t` the features of component t and
:math:`E_q` those that team q may use. For any Y ⪰ 0, and any B_q ⪰ 0 and row cones (G_q, α_q, β_q,
see `bounds.py`, with κ = k_q - 1) on :math:`E_q`,

.. math::
    OPT \le [\text{K largest } Y_{ii}] + \sum_q KyFan_{c_q}\big((A - Y)_{E_q} - B_q - sym(G_q)
    + Diag(α_q - β_q)\big) + \max \sum_q \Big( \sum_{i ∈ \cup_{t∈q} S_t} (B_q)_{ii}
    + \sum_{t ∈ q} \sum_{i∈S_t} (β_q)_i \Big),

the maximum over all patterns of the node.

*Proof.* :math:`P = \sum_t P_t` is a projector on at most K features R, so ⟨Y, P⟩ ≤ tr Y_RR. The
sum of a team is one on all features that any of its components has:
:math:`⟨B_q, \sum_{t∈q} P_t⟩ \le \sum_{\cup S_t} (B_q)_{ii}`. Row cones hold for each P_t. Add and
subtract. What is left of A in team q meets :math:`\sum_{t∈q} P_t`, a projector of rank c_q on
:math:`E_q`. ∎

So a feature is worth more to the first component of a team that has it than to the next ones. What
a team may choose are *units*: a first one and c - 1 further ones of each feature, c·k in all.

With one team Y is not needed; with several it says that they are orthogonal to each other. A part
e of its diagonal, 0 ≤ e_i ≤ Y_ii, may be paid by every team that has the feature in place of once
by all of them: R is in the union of what the teams have.

**A part of the features.** Where A is a `PartlyKnown`, Y, B_q and the row cones are about the
features inside; those outside have row cones in closed form, with μ the smallest eigenvalue of the
Ky Fan sum of each team, see `partly_known.py`.

**Disjoint supports.** The maximum over patterns is an assignment, which prices p ≥ 0 bound:
:math:`\sum_i p_i` plus the maximum of the scores less p, without the rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.rounding import UNIT
from kspan.problem import Choice, Patterns
from kspan.proofs.check.bounds import (
    Cones,
    factor_scores,
    leading_without,
    positive_eigenvalue_sum,
    refuses_overflow,
    require_range,
    with_cones,
)
from kspan.proofs.check.claims import Part
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.check.partly_known import PartlyKnown, parted


@dataclass(frozen=True, eq=False)
class Team(Part):
    """So many components that are alike, and what each of them may choose."""

    count: int
    choice: Choice


Teams = tuple[Team, ...]


def first_teams(patterns: Patterns) -> Teams:
    """Return the teams of a problem about whose patterns nothing is known."""
    limits, counts = np.unique(patterns.limits, return_counts=True)
    d = patterns.n_features
    nothing, all_of_them = np.zeros(d, dtype=bool), np.ones(d, dtype=bool)
    return tuple(
        Team(int(count), Choice(int(limit), nothing, all_of_them, at_most=True))
        for limit, count in zip(limits[::-1], counts[::-1], strict=True)
    )


def split_team(teams: Teams, place: int, feature: int, n_with: int) -> Teams:
    """Return the teams when `n_with` components of one of them have a feature, the others not."""
    team = teams[place]
    with_it = Team(n_with, team.choice.settled(fixed=[feature]))
    without = Team(team.count - n_with, team.choice.settled(removed=[feature]))
    parts = tuple(part for part in (with_it, without) if part.count)
    return (*teams[:place], *parts, *teams[place + 1 :])


def settle_teams(teams: Teams, removed: Sequence[Index], fixed: Sequence[Index]) -> Teams:
    """Return the teams without some features, and with others in all components of a team."""
    return tuple(
        replace(team, choice=team.choice.settled(fixed=with_them, removed=without))
        for team, without, with_them in zip(teams, removed, fixed, strict=True)
    )


def tidy(teams: Teams, patterns: Patterns) -> Teams | None:
    """Draw the conclusions from what is settled; None when there is no pattern left.

    A component with as many features as it may have has no others. Disjoint supports: what one has
    is for nobody else. Orthonormal components need as many features as there are of them.
    """
    if patterns.disjoint:
        shared = _apart(teams)
        if shared is None:
            return None
        teams = shared
    full = []
    spent = sum(team.count * team.choice.include.size for team in teams)
    for team in teams:
        choice = team.choice
        n_forced = choice.include.size
        if n_forced > choice.size:
            return None
        if n_forced == choice.size:
            choice = choice.within(choice.include)
        if choice.features.size < team.count:
            return None
        full.append(replace(team, choice=choice))
    return None if spent > patterns.total else tuple(full)


def _apart(teams: Teams) -> Teams | None:
    """Take what one component has from all others; None if two have it."""
    owner = np.full(teams[0].choice.n_features, -1)
    for place, team in enumerate(teams):
        own = team.choice.include
        if own.size and (team.count > 1 or (owner[own] >= 0).any()):
            return None
        owner[own] = place
    return tuple(
        replace(
            team,
            choice=team.choice.settled(removed=np.flatnonzero((owner >= 0) & (owner != place))),
        )
        for place, team in enumerate(teams)
    )


@dataclass(frozen=True)
class TeamPart(Part):
    """B = factor factor' and cones of one team, on some features."""

    features: Index
    factor: FloatArray
    cones: Cones

    def on(self, features: Index, n_features: int) -> tuple[FloatArray, Cones]:
        """Return factor and cones on features that must be among its own."""
        row_of = np.full(n_features, -1)
        row_of[self.features] = np.arange(self.features.size)
        rows = row_of[features]
        if (rows < 0).any() or len(self.factor) != self.features.size or self.factor.ndim != 2:
            raise FloatingPointError("the witness of a team lacks a feature")
        return self.factor[rows], self.cones.on(rows)


@dataclass(frozen=True)
class TeamsWitness(Part):
    """Y = common common' on all features, the parts of all teams, and prices of features.

    Of disjoint supports the prices p, of others what each team pays of Y for itself; empty: none.
    """

    common: FloatArray
    parts: list[TeamPart]
    prices: FloatArray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class TeamsBound:
    """A proved bound on the patterns of a node, and scores of the features in every team.

    Parameters
    ----------
    value : the bound
    scores : what a feature is worth to every component of a team that has it
    once : and what it is worth beside that, once for the team; zeros when left out
    """

    value: float
    scores: list[FloatArray]
    once: list[FloatArray] = field(default_factory=list)

    def units(self, team: Team, place: int, choice: Choice) -> "Units":
        """Return what a team may choose from."""
        score = self.scores[place]
        return Units.of(
            score, self.once[place] if self.once else np.zeros_like(score), team, choice
        )


@dataclass(frozen=True)
class Units:
    """The free features of a team as units, none of them worth less than nothing.

    Parameters
    ----------
    first, further : (n,) what the first unit of a feature is worth, and every other
    falling : all units of the free features, the best first
    n_open : how many of them are chosen
    """

    first: FloatArray
    further: FloatArray
    falling: FloatArray
    n_open: int

    @classmethod
    def of(cls, score: FloatArray, once: FloatArray, team: Team, choice: Choice) -> "Units":
        """Make them; `choice` is of one component, or of all where they must not share."""
        times = team.count if choice is team.choice else 1
        further = np.maximum(score, 0.0)
        first = np.maximum(score + once, 0.0) * (1 + 2 * UNIT)
        units = [first[choice.free], *[further[choice.free]] * (times - 1)]
        falling = np.sort(np.concatenate(units))[::-1]
        return cls(first, further if times > 1 else first, falling, times * choice.n_open)

    @property
    def chosen(self) -> FloatArray:
        """The best units, as many as may be chosen."""
        return self.falling[: self.n_open]

    @property
    def threshold(self) -> float:
        """What the last one chosen is worth; nothing if there is room for more."""
        return float(self.falling[self.n_open - 1]) if 0 < self.n_open <= self.falling.size else 0.0

    @property
    def after(self) -> float:
        """What the best one that is not chosen is worth."""
        return float(self.falling[self.n_open]) if self.n_open < self.falling.size else 0.0


@refuses_overflow
def teams_bound(
    known: KnownMatrix | PartlyKnown, teams: Teams, witness: TeamsWitness, patterns: Patterns
) -> TeamsBound:
    """Evaluate the bound of the teams of a node, rounded upwards; see above.

    What A itself may be off by is not part of it. Raises `FloatingPointError` when the witness
    gives no finite bound.
    """
    n, common, prices = known.n_features, witness.common, witness.prices
    if len(witness.parts) != len(teams) or common.ndim != 2 or len(common) != n:
        raise FloatingPointError("the witness does not fit the teams")
    require_range(common, prices)
    usable = np.any([team.choice.allowed for team in teams], axis=0)
    n_used = min(patterns.size, sum(team.count * team.choice.size for team in teams))
    everyone = Choice(n_used, np.zeros(n, dtype=bool), usable, at_most=True)
    together = np.zeros(n)
    relaxed = parted(known, np.arange(n))[0]  # Y is zero on what is outside
    together[relaxed] = factor_scores(common[relaxed])
    own = np.zeros(n)  # the part of Y that each team pays for itself
    if prices.size and (prices.shape != (n,) or not (prices >= 0).all()):
        raise FloatingPointError("the prices of the witness are not one for each feature")
    if prices.size and not patterns.disjoint:
        own = np.minimum(prices, together)
    value = everyone.best_sum((together - own) * (1 + 2 * UNIT))
    scores, once = [], []
    for team, part in zip(teams, witness.parts, strict=True):
        features, outside = parted(known, team.choice.features)
        factor, cones = part.on(features, n)
        require_range(factor)
        if cones.signs.size:
            raise FloatingPointError("the witness has multipliers of signs")
        n_others = team.choice.size - 1
        C, offset, error = with_cones(known.on(features).A, cones, n_others)
        both = np.hstack([factor, common[features]])
        if outside.size and features.size < team.count:
            # With μ = 0 what is outside adds nothing to the positive eigenvalues.
            M, weight = C - both @ both.T, float(np.linalg.norm(C) + (both * both).sum())
            M = 0.5 * (M + M.T)
            weight += float(np.linalg.norm(M))
            ky_fan = positive_eigenvalue_sum(M, features.size, 8 * weight, both.shape[1])
            least = 0.0
        else:
            ky_fan, least = leading_without(C, both, team.count)
        value += ky_fan + team.count * error
        score, bonus = np.zeros((2, n))
        if patterns.disjoint or team.count == 1:
            score[features] = factor_scores(factor, offset) + own[features]
        else:
            score[features] = offset * (1 + 8 * UNIT)
            bonus[features] = factor_scores(factor) + own[features]
        if isinstance(known, PartlyKnown):
            score[outside] = known.outside_scores(outside, n_others, least)
        scores.append(score)
        once.append(bonus)
    if patterns.disjoint and prices.size:
        value += float(prices[usable].sum()) * (1 + (n + 8) * UNIT)
        paid = np.where(usable, prices, 0.0)
        scores = [score - paid + 2 * UNIT * (score + paid) for score in scores]
    value += best_pattern_sum(teams, TeamsBound(value, scores, once), patterns)
    value += 16 * len(teams) * UNIT * abs(value)
    if not np.isfinite(value):
        raise FloatingPointError("the witness gives no finite bound")
    return TeamsBound(value, scores, once)


def best_pattern_sum(teams: Teams, worth: TeamsBound, patterns: Patterns) -> float:
    """Return the largest sum of scores of a pattern, rounded upwards.

    Of disjoint supports, it is only within a team that a feature counts once.
    """
    fixed, pools, n_open = _pooled(teams, worth, patterns)
    best = np.sort(np.concatenate(pools))[::-1]
    best = best if n_open is None else best[:n_open]
    size = float(np.abs(fixed).sum() + best.sum())
    return float(fixed.sum() + best.sum()) + (fixed.size + best.size + 8) * UNIT * size


def _separate(teams: Teams, patterns: Patterns) -> list[tuple[int, Choice]]:
    """Return what is chosen in each team, and how often it counts.

    By one component for all of them, or by all together if they must not share.
    """
    if not patterns.disjoint:
        return [(team.count, team.choice) for team in teams]
    return [(1, replace(team.choice, size=team.count * team.choice.size)) for team in teams]


def _pooled(
    teams: Teams, worth: TeamsBound, patterns: Patterns
) -> tuple[FloatArray, list[FloatArray], int | None]:
    """Return scores that count anyway, the best units of every team, and how many count in all.

    None where each team has its own number.
    """
    fixed, pools, spent = [], [], 0
    for place, (team, (times, choice)) in enumerate(
        zip(teams, _separate(teams, patterns), strict=True)
    ):
        score = worth.scores[place]
        spent += team.count * team.choice.include.size
        fixed.append(np.repeat(score[choice.forced], times))
        if worth.once:
            fixed.append(worth.once[place][choice.forced])
        pools.append(worth.units(team, place, choice).chosen)
    is_separate = patterns.counts_each or patterns.disjoint
    n_open = None if is_separate else max(patterns.total - spent, 0)
    return np.concatenate(fixed), pools, n_open


def team_cut_levels(
    bound: TeamsBound, teams: Teams, patterns: Patterns
) -> list[tuple[FloatArray, FloatArray]]:
    """Return, for every team, bounds on patterns with each feature in one of its components.

    And on those in which one of its components lacks it. Who comes in takes the place of the last
    unit that is chosen, and who leaves gives way to the best that is not: of the team, or of all
    where a total is spent.
    """
    value, levels = bound.value, []
    _, pools, n_open = _pooled(teams, bound, patterns)
    threshold, after = 0.0, 0.0
    if n_open is not None:
        pool = np.sort(np.concatenate(pools))[::-1]
        threshold = float(pool[n_open - 1]) if 0 < n_open <= pool.size else 0.0
        after = float(pool[n_open]) if n_open < pool.size else 0.0
    for place, (team, (_, choice)) in enumerate(
        zip(teams, _separate(teams, patterns), strict=True)
    ):
        units = bound.units(team, place, choice)
        if n_open is None:
            put_in = np.maximum(units.threshold - units.first, 0.0)
            left_out = np.maximum(units.further - units.after, 0.0)
        else:
            put_in = np.maximum(threshold - units.first, 0.0)
            left_out = np.maximum(units.further - max(after, units.after, threshold), 0.0)
        if patterns.disjoint and team.count > 1:
            left_out = np.zeros_like(left_out)  # where one has a feature, another lacks it
        top = value + 16 * UNIT * (abs(value) + 2 * float(units.first.max(initial=0.0)))
        levels.append((np.minimum(top - put_in, value), np.minimum(top - left_out, value)))
    return levels
