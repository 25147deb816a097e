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
    + Diag(α_q - β_q)\big) + \max \sum_q \sum_{t ∈ q} \sum_{i∈S_t} (B_q + Diag\,β_q)_{ii},

the maximum over all patterns of the node.

*Proof.* :math:`P = \sum_t P_t` is a projector on at most K features R, so ⟨Y, P⟩ ≤ tr Y_RR. Each
P_t is one on S_t: :math:`⟨B_q, P_t⟩ \le \sum_{S_t} (B_q)_{ii}`, and its row cones hold. Add and
subtract. What is left of A in team q meets :math:`\sum_{t∈q} P_t`, a projector of rank c_q on
:math:`E_q`. ∎

With one team Y is not needed; with several it says that they are orthogonal to each other.

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
    ky_fan_without,
    refuses_overflow,
    require_range,
    with_cones,
)
from kspan.proofs.check.claims import Part
from kspan.proofs.check.known import KnownMatrix


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
    """Y = common common' on all features, the parts of all teams, and prices of features."""

    common: FloatArray
    parts: list[TeamPart]
    prices: FloatArray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class TeamsBound:
    """A proved bound on the patterns of a node, and scores of the features in every team."""

    value: float
    scores: list[FloatArray]


@refuses_overflow
def teams_bound(
    known: KnownMatrix, teams: Teams, witness: TeamsWitness, patterns: Patterns
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
    value = everyone.best_sum(factor_scores(common))
    scores = []
    for team, part in zip(teams, witness.parts, strict=True):
        features = team.choice.features
        factor, cones = part.on(features, n)
        require_range(factor)
        if cones.signs.size:
            raise FloatingPointError("the witness has multipliers of signs")
        C, offset, error = with_cones(known.on(features).A, cones, team.choice.size - 1)
        ky_fan = ky_fan_without(C, np.hstack([factor, common[features]]), team.count)
        value += ky_fan + team.count * error
        score = np.zeros(n)
        score[features] = factor_scores(factor, offset)
        scores.append(score)
    if patterns.disjoint and prices.size:
        if prices.shape != (n,) or not (prices >= 0).all():
            raise FloatingPointError("the prices of the witness are not one for each feature")
        value += float(prices[usable].sum()) * (1 + (n + 8) * UNIT)
        paid = np.where(usable, prices, 0.0)
        scores = [score - paid + 2 * UNIT * (score + paid) for score in scores]
    value += best_pattern_sum(teams, scores, patterns)
    value += 16 * len(teams) * UNIT * abs(value)
    if not np.isfinite(value):
        raise FloatingPointError("the witness gives no finite bound")
    return TeamsBound(value, scores)


def best_pattern_sum(teams: Teams, scores: list[FloatArray], patterns: Patterns) -> float:
    """Return the largest sum of scores of a pattern, rounded upwards.

    Of disjoint supports, it is only within a team that a feature counts once.
    """
    if patterns.counts_each or patterns.disjoint:
        sums = [
            times * choice.best_sum(score)
            for (times, choice), score in zip(_separate(teams, patterns), scores, strict=True)
        ]
        return sum(sums) + 4 * len(sums) * UNIT * sum(map(abs, sums))
    fixed, pool, n_open = _pooled(teams, scores, patterns)
    best = pool[:n_open]
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
    teams: Teams, scores: list[FloatArray], patterns: Patterns
) -> tuple[FloatArray, FloatArray, int]:
    """Return scores that count anyway, those to choose from, falling, and how many of them."""
    fixed, pool, spent = [], [], 0
    for team, score in zip(teams, scores, strict=True):
        choice = team.choice
        spent += team.count * choice.include.size
        fixed.append(np.repeat(score[choice.forced], team.count))
        best = np.sort(np.maximum(score[choice.free], 0.0))[::-1][: choice.n_open]
        pool.append(np.repeat(best, team.count))
    falling = np.sort(np.concatenate(pool))[::-1]
    return np.concatenate(fixed), falling, max(patterns.total - spent, 0)


def team_cut_levels(
    bound: TeamsBound, teams: Teams, patterns: Patterns
) -> list[tuple[FloatArray, FloatArray]]:
    """Return, for every team, bounds on patterns with each feature in one of its components.

    And on those in which one of its components lacks it.
    """
    value, levels = bound.value, []
    pooled = not (patterns.counts_each or patterns.disjoint)
    threshold, after = 0.0, 0.0
    if pooled:
        _, pool, n_open = _pooled(teams, bound.scores, patterns)
        chosen, others = pool[:n_open], pool[n_open:]
        threshold = float(chosen[-1]) if chosen.size and chosen.size == n_open else 0.0
        after = float(others[0]) if others.size else 0.0
    separate = _separate(teams, patterns)
    for team, (_, choice), score in zip(teams, separate, bound.scores, strict=True):
        positive = np.maximum(score, 0.0)
        if pooled:
            # Who comes in takes the place of the last one that is chosen, in whatever component;
            # who leaves gives way to the best of the pool, or of its own team.
            own = np.sort(positive[choice.free])[::-1]
            next_own = float(own[choice.n_open]) if own.size > choice.n_open else 0.0
            put_in = np.maximum(threshold - positive, 0.0)
            left_out = np.maximum(positive - max(after, next_own, threshold), 0.0)
        else:
            put_in, left_out = choice.losses(positive)
        if patterns.disjoint and team.count > 1:
            left_out = np.zeros_like(left_out)  # where one has a feature, another lacks it
        top = value + 16 * UNIT * (abs(value) + 2 * float(positive.max(initial=0.0)))
        levels.append((np.minimum(top - put_in, value), np.minimum(top - left_out, value)))
    return levels
