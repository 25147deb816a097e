r"""`RuledChoice`: a choice of features that has to keep rules beside their number.

A support S with forced ⊆ S ⊆ allowed keeps the rules when

- it has at most k features, and not fewer than the components need,
- features of one *unit* are all in S, or none of them is; at most so many units are,
- of each *group* at most so many features are,
- their *costs* add up to at most a budget,
- no two of them are in *conflict*.

Without what is forced this is a family that is closed under leaving units out, and as more
features never explain less, k is "at most" here. Whatever is settled is followed up at once: the
other features of a unit, what the budget, a full group or a conflict leaves no room for, and how
many features there can be at all.

**Bounds.** `best_sum` is the largest sum of scores over a larger family, in which it is easy:
limits on nested sets (a clique of conflicts has at most one, a group its limit, all of them k), for
which the greedy choice is the best one, and any further limit :math:`\sum_i w_iz_i \le W` by a
multiplier:

.. math:: \max_{z} s'z \le λW + \max_{z} (s - λw)'z \qquad (λ \ge 0).

The best λ is looked for; every λ is valid. Where cliques and groups cross, the smaller of two sums
counts: one that knows all cliques, and one that knows groups and the cliques inside of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, islice
from math import comb, inf
from typing import Any

import numpy as np
from scipy import sparse

from kspan.arrays import FloatArray, Index, Mask
from kspan.linalg.rounding import UNIT
from kspan.problem.choice import BATCH, Choice, LinearLimits, as_count
from kspan.problem.unit_sums import LIGHT, EasySum, FreeUnits, clique_cover

# Sums of costs may be above the budget by this much of it: 0.1 + 0.2 is not above 0.3.
COST_SLACK = 1e-12
# Bounds let them be above by more, which covers the rounding of any sum.
BOUND_SLACK = 1e-10


def _nothing() -> Index:
    return np.empty(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class RuledChoice(Choice):
    """All supports that keep the rules; made by `of`.

    Parameters
    ----------
    size, forced, allowed, at_most : see `Choice`
        With all that follows from the rules; `at_most` is True.
    asked : int
        k as it was asked for; `size` is what the rules leave of it.
    least : int
        Fewer features are no support.
    given : (d,) mask
        The features that are allowed but for the rules.
    units : (d,) numbers
        Features with the same number are chosen together.
    most_units : int
    groups : (d,) numbers
        The group of each feature, -1 for none.
    caps : array
        How many features may come from each group.
    costs : (d,) array
    budget : float
    conflicts : (n, 2) array
        Pairs of features that do not go together.
    cliques : (d,) numbers
        Features with the same number are all in conflict with each other.
    possible : bool
        False when what is forced cannot keep the rules.

    Examples
    --------
    >>> import numpy as np
    >>> choice = RuledChoice.of(4, 3, costs=[1.0, 2.0, 3.0, 4.0], budget=5.0)
    >>> choice.select(np.array([0.1, 0.3, 0.6, 0.65]))
    array([1, 2])
    """

    asked: int = 0
    least: int = 1
    given: Mask = field(default_factory=lambda: np.empty(0, dtype=bool))
    units: Index = field(default_factory=_nothing)
    most_units: int = 0
    groups: Index = field(default_factory=_nothing)
    caps: Index = field(default_factory=_nothing)
    costs: FloatArray = field(default_factory=lambda: np.empty(0))
    budget: float = inf
    conflicts: Index = field(default_factory=lambda: np.empty((0, 2), dtype=np.intp))
    cliques: Index = field(default_factory=_nothing)
    possible: bool = True

    @classmethod
    def of(  # type: ignore[override]
        cls, n_features: int, size: int | None = None, include: Sequence[int] | Index = (),
        exclude: Sequence[int] | Index = (), *, least: int = 1,
        groups: Sequence[object] | None = None, together: bool = False,
        n_groups: int | None = None, max_per_group: int | Mapping[Any, int] | None = None,
        costs: Sequence[float] | FloatArray | None = None, budget: float | None = None,
        conflicts: Index | None = None,
    ) -> "RuledChoice":  # fmt: skip
        """Make one from lists of features; `ValueError` if nothing can be chosen, and why.

        Parameters
        ----------
        n_features : d
        size : k, the most features; None for as many as the other rules allow
        include, exclude : features that must, and must not, be chosen
        least : the fewest features that are a support
        groups : a label for each feature, None for those without a group
        together : choose whole groups
        n_groups : the most groups, when they are chosen whole
        max_per_group : the most features of every group, or of each by its label
        costs, budget : of each feature, and for all that are chosen
        conflicts : (n, 2) pairs of features that do not go together
        """
        d = n_features
        plain = Choice.of(d, d if size is None else size, include, exclude, at_most=True)
        labels, names = _numbered(groups, d)
        units, most_units = np.arange(d), d
        if together:
            units = np.where(labels >= 0, labels, labels.max(initial=-1) + 1 + np.arange(d))
            most_units = d if n_groups is None else as_count("n_groups", n_groups)
        caps = np.empty(0, dtype=np.intp)
        if max_per_group is not None:
            caps = _caps(max_per_group, labels, names)
        pairs = np.empty((0, 2), dtype=np.intp) if conflicts is None else conflicts
        prices = np.zeros(d) if costs is None else np.asarray(costs, dtype=np.float64)
        choice = cls(
            plain.size, plain.forced, plain.allowed, True, asked=plain.size, least=least,
            given=plain.allowed, units=units, most_units=most_units,
            groups=labels if caps.size else np.full(d, -1), caps=caps, costs=prices,
            budget=inf if budget is None else float(budget), conflicts=pairs,
            cliques=clique_cover(pairs, units),
        )  # fmt: skip
        closed = choice._closed()
        closed._require_possible(names)
        return closed

    # --- what follows from the rules

    def _closed(self) -> "RuledChoice":
        """Follow up what is forced and what is not allowed."""
        numbers, n_units = self.units, int(self.units.max(initial=-1)) + 1
        must, gone = np.zeros(n_units, dtype=bool), np.zeros(n_units, dtype=bool)
        must[numbers[self.forced]] = True
        gone[numbers[~self.given]] = True
        forced, allowed = must[numbers], ~gone[numbers]
        inside = allowed[self.conflicts].all(axis=1)
        first, second = self.conflicts[inside].T
        # A unit with a conflict in it can never be chosen.
        gone[numbers[first[numbers[first] == numbers[second]]]] = True
        allowed &= ~gone[numbers]
        possible = bool((allowed | ~forced).all()) and self._keeps(forced)
        sizes = np.bincount(numbers, minlength=n_units)
        prices = np.bincount(numbers, self.costs, minlength=n_units)
        room = self.asked - int(forced.sum())
        taken = int(np.count_nonzero(must))
        no_room = (sizes > room) | (prices > self._purse(forced)) | (taken >= self.most_units)
        for one, other in ((first, second), (second, first)):
            no_room[numbers[one[forced[other]]]] = True
        if self.caps.size:
            full = self._left_of_groups(forced) <= 0
            in_group = self.groups >= 0
            no_room[numbers[in_group & full[self.groups]]] = True
        allowed &= ~no_room[numbers] | forced
        closed = replace(self, forced=forced, allowed=allowed, size=self.asked, possible=possible)
        most = int(forced.sum()) + closed._most_open() if possible else self.asked
        enough = most >= self.least
        return replace(closed, size=min(self.asked, most), possible=possible and enough)

    def _purse(self, forced: Mask) -> float:
        """Return what is left of the budget."""
        return self.budget * (1 + COST_SLACK) - float(self.costs[forced].sum())

    def _left_of_groups(self, forced: Mask) -> Index:
        """Return how many more features may come from each group."""
        own = self.groups[forced & (self.groups >= 0)]
        return self.caps - np.bincount(own, minlength=self.caps.size)

    def _keeps(self, chosen: Mask) -> bool:
        """Say whether features keep every rule that more of them could break."""
        return self._broken_rule(chosen) is None

    def _broken_rule(self, chosen: Mask) -> str | None:
        """Say which rule features break that more of them would not mend."""
        if int(chosen.sum()) > self.asked:
            return "has a wrong size"
        if np.unique(self.units[chosen]).size > self.most_units:
            return "has too many groups"
        if self._purse(chosen) < 0:
            return "costs more than the budget"
        if self.caps.size and (self._left_of_groups(chosen) < 0).any():
            return "has too many features of a group"
        if chosen[self.conflicts].all(axis=1).any():
            return "has two features that are in conflict"
        return None

    def _most_open(self) -> int:
        """Return how many free features there can be at most, by each rule alone."""
        free = self.allowed & ~self.forced
        most = min(int(free.sum()), self.asked - int(self.forced.sum()))
        if not self._keeps(self.allowed):  # so not all of them
            most = min(most, int(free.sum()) - 1)
        if self.budget < inf:
            spent = np.cumsum(np.sort(self.costs[free]))
            purse = self._purse(self.forced) + BOUND_SLACK * self.budget
            most = min(most, int(np.searchsorted(spent, purse, side="right")))
        if self.caps.size:
            alone = int(np.count_nonzero(free & (self.groups < 0)))
            there = np.bincount(self.groups[free & (self.groups >= 0)], minlength=self.caps.size)
            most = min(
                most, alone + int(np.minimum(there, self._left_of_groups(self.forced)).sum())
            )
        units = self.units[free]
        if self.most_units < self.n_features:
            left = self.most_units - np.unique(self.units[self.forced]).size
            most = min(most, int(np.sort(np.bincount(units))[::-1][: max(left, 0)].sum()))
        if len(self.conflicts):
            # Of every clique the largest unit.
            _, first, sizes = np.unique(units, return_index=True, return_counts=True)
            largest = np.zeros(int(self.cliques.max(initial=0)) + 1, dtype=np.intp)
            np.maximum.at(largest, self.cliques[free][first], sizes)
            most = min(most, int(largest.sum()))
        return most

    def _require_possible(self, names: Sequence[object]) -> None:
        """Raise `ValueError` with the reason when there is no support at all."""
        forced, count = self.forced, int(self.forced.sum())
        if self.has_supports:
            return
        what = f"the {count} feature{'s' if count > 1 else ''} of include"
        whole = (
            f"{what} (with their groups)" if np.unique(self.units).size < self.n_features else what
        )
        if (forced & ~self.given).any():
            raise ValueError("include and exclude name features of one group, which go together.")
        if count > self.asked:
            raise ValueError(f"{whole} are more than the n_features_to_select={self.asked}.")
        if np.unique(self.units[forced]).size > self.most_units:
            raise ValueError(f"{what} are of more groups than n_groups={self.most_units}.")
        if self._purse(forced) < 0:
            cost = float(self.costs[forced].sum())
            raise ValueError(f"{whole} cost {cost:g}, more than the budget of {self.budget:g}.")
        if self.caps.size and (over := np.flatnonzero(self._left_of_groups(forced) < 0)).size:
            label, cap = names[int(over[0])], int(self.caps[over[0]])
            raise ValueError(f"include names more than {cap} features of group {label!r}.")
        clash = self.conflicts[forced[self.conflicts].all(axis=1)]
        if len(clash):
            raise ValueError(
                f"include needs features {clash[0][0]} and {clash[0][1]}, which are more "
                "correlated than max_correlation."
            )
        most = count + self._most_open() if self._keeps(forced) else 0
        raise ValueError(
            f"The rules leave no choice of {self.least} features or more, as many as there are "
            f"components: at most {min(most, self.least - 1)} can be chosen together."
        )

    # --- what it is

    @property
    def is_empty(self) -> bool:
        """Whether it is known that there is no support."""
        return not self.possible

    @property
    def has_supports(self) -> bool:
        """Whether there is a support: by trying and, if that fails, by integer programming."""
        if not self.possible:
            return False
        anything = np.ones(self.n_features)
        chosen = self._greedy(-self._free.sizes.astype(float), anything)
        return chosen.size >= self.least or self._exactly(anything) is not None

    @property
    def has_rules(self) -> bool:
        """Whether rules leave something to choose: not all that is free goes together."""
        return self.has_options

    @property
    def most_features(self) -> int:
        """See `Choice.most_features`."""
        return self.resized(self.n_features).size

    @property
    def largest_size(self) -> int:
        """See `Choice.largest_size`: with more features there may be others to choose from."""
        larger = self.resized(self.n_features)
        same = np.array_equal(larger.allowed, self.allowed)
        return larger.size if same else self.size

    def objection(self, support: Index) -> str | None:
        """Say why a support, features each named once, is not feasible; None if it is."""
        chosen = np.zeros(self.n_features, dtype=bool)
        chosen[support] = True
        if support.size < self.least:
            return "has a wrong size"
        if (self.forced & ~chosen).any():
            return "lacks a feature to include"
        if (chosen & ~self.given).any():
            return "has an excluded feature"
        whole = np.zeros(int(self.units.max(initial=-1)) + 1, dtype=bool)
        whole[self.units[chosen]] = True
        if not np.array_equal(whole[self.units], chosen):
            return "has a part of a group only"
        return self._broken_rule(chosen)

    def without_rules(self) -> Choice:
        """See `Choice.without_rules`."""
        return Choice(self.size, self.forced, self.allowed, True)

    def with_whole(self, scores: FloatArray) -> FloatArray:
        """See `Choice.with_whole`."""
        free = np.isfinite(scores)
        gains = np.where(free, np.maximum(scores, 0.0), 0.0)
        sums = np.bincount(self.units, gains)
        found: FloatArray = np.where(free & (scores >= 0), sums[self.units], scores)
        return found

    def whole(self, features: Index) -> Index:
        """See `Choice.whole`."""
        return np.flatnonzero(np.isin(self.units, self.units[features]))

    def apart(self, features: Index, others: Index) -> Mask | None:
        """See `Choice.apart`: in conflict, of a group of which one may be chosen, or too costly."""
        unit_of, near = self._near
        rows, columns = unit_of[features], unit_of[others]
        found: Mask = near[rows][:, columns].toarray() > 0
        if self.caps.size:
            single = (self.groups >= 0) & (self.caps[self.groups] <= 1)
            groups = np.where(single, self.groups, -1)
            own = groups[features][:, None]
            found |= (own == groups[others]) & (own >= 0)
        if self.budget < inf:
            both = self.costs[features][:, None] + self.costs[others]
            found |= both > self.budget * (1 + BOUND_SLACK)
        found &= rows[:, None] != columns
        return found if found.any() else None

    @cached_property
    def _near(self) -> tuple[Index, sparse.csr_array]:
        """The unit of every feature, and which units are in conflict: blocks of rows ask again."""
        names, unit_of = np.unique(self.units, return_inverse=True)
        pairs = unit_of[np.concatenate([self.conflicts, self.conflicts[:, ::-1]])]
        entries = np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])
        return unit_of, sparse.csr_array(entries, shape=(names.size, names.size))

    def linear_limits(self) -> LinearLimits:
        """See `Choice.linear_limits`: numbers, costs, groups, and cliques of conflicts."""
        return self._free.linear_limits()

    def at_least(self, least: int) -> "RuledChoice":
        """See `Choice.at_least`."""
        return self if least <= self.least else replace(self, least=least)._closed()

    # --- the best of it

    def select(self, scores: FloatArray) -> Index:
        """Return a support with a large sum of scores: greedy, by scores and by what they cost.

        Features with a negative score are chosen only when too few are left without them.
        """
        free = self._free
        totals = free.totals(np.maximum(scores[self.free], 0.0))
        found = self._greedy(totals, scores)
        for weights, _ in free.limits:
            worth = totals / (totals.max(initial=0.0) or 1.0) / np.maximum(weights, LIGHT)
            other = self._greedy(worth, scores)
            if other.size >= self.least and scores[other].sum() > scores[found].sum():
                found = other
        if found.size >= self.least:
            return found
        exact = self._exactly(scores)
        if exact is None:
            raise ValueError(f"The rules leave no choice of {self.least} features or more.")
        return exact

    def _greedy(self, keys: FloatArray, scores: FloatArray) -> Index:
        """Take the units with the largest keys, one after the other, if there is room.

        Those of which all features have a negative score come last, and only if they have to.
        """
        free = self._free
        n = free.n_units
        negative = free.totals((scores[self.free] >= 0).astype(float)) == 0
        key = np.where(negative, free.totals(scores[self.free]), keys)
        fits = np.ones(n, dtype=bool)
        chosen = list[int]()
        left, purse, units_left = free.n_left, free.purse, free.units_left
        group_left = free.group_left.copy()
        n_chosen = int(self.forced.sum())
        waiting = np.where(negative, -inf, key)
        for round_ in range(2):
            if round_ == 1:
                if n_chosen >= self.least:
                    break
                waiting = np.where(negative & fits, key, -inf)
            while units_left > 0:
                if free.is_uneven:
                    waiting[free.sizes > left] = -inf
                elif n and left < free.sizes[0]:
                    break
                if free.is_costly:
                    waiting[free.costs > purse] = -inf
                best = int(np.argmax(waiting)) if n else 0
                if not n or waiting[best] == -inf:
                    break
                chosen.append(best)
                left, purse, units_left = (
                    left - free.sizes[best],
                    purse - free.costs[best],
                    units_left - 1,
                )
                n_chosen += int(free.sizes[best])
                gone = [best]
                if len(self.conflicts):
                    gone = [best, *free.neighbours(best)]
                waiting[gone], fits[gone] = -inf, False
                if self.caps.size and (group := int(free.groups[best])) >= 0:
                    group_left[group] -= 1
                    if group_left[group] <= 0:
                        waiting[free.groups == group] = -inf
                        fits[free.groups == group] = False
        taken = np.zeros(n, dtype=bool)
        taken[chosen] = True
        return np.sort(np.append(self.include, self.free[taken[free.unit_of]])).astype(np.intp)

    def _exactly(self, scores: FloatArray) -> Index | None:
        """Return the support with the largest sum of scores, by integer programming."""
        from scipy.optimize import LinearConstraint, milp

        free, count = self._free, int(self.forced.sum())
        if free.n_units == 0:
            return self.include if self.possible and count >= self.least else None
        gains = np.bincount(free.unit_of, scores[self.free], minlength=free.n_units)
        rows: list[tuple[Any, float, float]] = [
            (free.sizes, self.least - count, free.n_left),
            (np.ones(free.n_units), 0, free.units_left),
        ]
        if free.is_costly:
            rows.append((free.costs, 0, max(free.purse, 0.0)))
        limits = [LinearConstraint(np.array([row]), low, high) for row, low, high in rows]
        if self.caps.size:
            inside = np.flatnonzero(free.groups >= 0)
            member = sparse.csr_array(
                (np.ones(inside.size), (free.groups[inside], inside)),
                shape=(self.caps.size, free.n_units),
            )
            limits.append(LinearConstraint(member, -inf, free.group_left))
        if len(free.pairs):
            place = np.repeat(np.arange(len(free.pairs)), 2)
            edge = sparse.csr_array(
                (np.ones(place.size), (place, free.pairs.ravel())),
                shape=(len(free.pairs), free.n_units),
            )
            limits.append(LinearConstraint(edge, -inf, 1))
        answer = milp(-gains, constraints=limits, integrality=np.ones(free.n_units), bounds=(0, 1))
        if answer.x is None:
            return None
        taken = answer.x > 0.5
        support = np.sort(np.append(self.include, self.free[taken[free.unit_of]])).astype(np.intp)
        return support if self.objection(support) is None else None

    def best_sums(self, scores: FloatArray) -> FloatArray:
        """See `Choice.best_sums`; of the supports that `select` finds."""
        return np.array([row[self.select(row)].sum() for row in scores])

    def best_sum(self, scores: FloatArray) -> float:
        """Return a bound on the largest sum of the scores of a support, rounded upwards."""
        fixed = scores[self.forced]
        best = min(dual.value for dual in self._duals(scores))
        rounding = (self.size + 8) * UNIT * (float(np.abs(fixed).sum()) + abs(best))
        return float(fixed.sum()) + best + rounding

    def losses(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what `best_sum` loses, at least, with each feature in and with each out."""
        duals, free = self._duals(scores), self._free
        best = min(dual.value for dual in duals)
        put_in, left_out = np.zeros(free.n_units), np.zeros(free.n_units)
        for dual in duals:
            for total, part in zip((put_in, left_out), dual.losses(), strict=True):
                np.maximum(total, part - (dual.value - best), out=total)
        answers = np.zeros((2, scores.size))
        answers[:, self.free] = np.stack([put_in, left_out])[:, free.unit_of]
        return answers[0], answers[1]

    def _duals(self, scores: FloatArray) -> list[EasySum]:
        """Return the easy problems whose optima bound this one."""
        free = self._free
        own = scores[self.free]
        sums, sizes = free.totals(own), free.totals(np.abs(own))
        return [EasySum.of(free, levels, sums, sizes) for levels in free.systems]

    @cached_property
    def _free(self) -> FreeUnits:
        """What is left to choose between, unit by unit."""
        free, forced = self.free, self.forced
        _, first, unit_of = np.unique(self.units[free], return_index=True, return_inverse=True)
        sizes = np.bincount(unit_of).astype(np.intp)
        n, pairs = sizes.size, self.conflicts
        place = np.full(self.n_features, -1)
        place[free] = unit_of
        pairs = place[pairs]
        pairs = pairs[(pairs >= 0).all(axis=1)]
        group_left = self._left_of_groups(forced) if self.caps.size else self.caps
        return FreeUnits(
            unit_of, sizes, np.bincount(unit_of, self.costs[free], minlength=n).astype(float),
            self.groups[free][first], self.cliques[free][first], pairs,
            n_left=self.size - int(forced.sum()),
            units_left=self.most_units - np.unique(self.units[forced]).size,
            purse=self._purse(forced), room=BOUND_SLACK * self.budget if self.budget < inf else 0.0,
            group_left=group_left,
        )  # fmt: skip

    # --- smaller and larger ones

    def on(self, features: Index) -> "RuledChoice":
        """Return the supports within some features, which are numbered anew in that order.

        Units of which a feature is missing cannot be chosen.
        """
        d, n = self.n_features, features.size
        place = np.full(d, -1)
        place[features] = np.arange(n)
        missing = np.zeros(int(self.units.max(initial=-1)) + 1, dtype=bool)
        missing[self.units[place < 0]] = True
        pairs = place[self.conflicts]
        pairs = pairs[(pairs >= 0).all(axis=1)]
        return replace(
            self, forced=self.forced[features], given=(self.given & ~missing[self.units])[features],
            allowed=self.allowed[features], units=self.units[features],
            groups=self.groups[features], costs=self.costs[features], conflicts=pairs,
            cliques=self.cliques[features],
        )._closed()  # fmt: skip

    def settled(
        self, fixed: Sequence[int] | Index = (), removed: Sequence[int] | Index = ()
    ) -> "RuledChoice":
        """Return the supports with all of some features and none of some others."""
        forced, given = self.forced.copy(), self.given.copy()
        forced[np.asarray(fixed, dtype=np.intp)] = True
        given[np.asarray(removed, dtype=np.intp)] = False
        return replace(self, forced=forced, given=given)._closed()

    def within(self, features: Index) -> "RuledChoice":
        """Return the supports within some features, under the same numbers."""
        given = np.zeros_like(self.given)
        given[features] = self.given[features]
        return replace(self, given=given)._closed()

    def resized(self, size: int) -> "RuledChoice":
        """Return the same rules for another number of features."""
        return replace(self, asked=size)._closed()

    def with_budget(self, budget: float) -> "RuledChoice":
        """Return the same rules with another budget."""
        return replace(self, budget=budget)._closed()

    # --- all of it, and its neighbours

    @property
    def n_supports(self) -> int:
        """How many supports there are at most; one, if all that is free goes together."""
        if self.is_empty:
            return 0
        if not self.has_options:
            return 1
        most = min(self._free.most, self._free.n_units)
        return sum(comb(self._free.n_units, count) for count in range(most + 1))

    def supports(self, batch: int = BATCH) -> Iterator[Index]:
        """Yield all supports, sorted rows of the same length at a time.

        If all that is free goes together, that one alone: it explains most.
        """
        if self.is_empty:
            return
        if not self.has_options:
            yield self.features[None]
            return
        free = self._free
        for count in range(min(free.most, free.n_units) + 1):
            every = combinations(range(free.n_units), count)
            while some := list(islice(every, batch)):
                chosen = np.zeros((len(some), free.n_units), dtype=bool)
                if count:
                    np.put_along_axis(chosen, np.array(some), True, axis=1)
                yield from self._as_supports(chosen[free.feasible(chosen)])

    def _as_supports(self, chosen: Mask) -> Iterator[Index]:
        """Yield the features of chosen units, by their number."""
        masks = np.zeros((len(chosen), self.n_features), dtype=bool)
        masks[:, self.free] = chosen[:, self._free.unit_of]
        masks[:, self.forced] = True
        sizes = masks.sum(axis=1)
        for size in np.unique(sizes[sizes >= max(self.least, 1)]):
            rows = masks[sizes == size]
            yield np.nonzero(rows)[1].reshape(len(rows), int(size))

    def exchange(self, support: Index, rng: np.random.Generator, usable: Mask) -> Index:
        """See `Choice.exchange`; units are exchanged, and what comes in has to fit."""
        names = np.unique(self.units[support[self.leaving(support)]])
        if not names.size:
            return support
        gone = np.isin(
            self.units, rng.choice(names, min(max(2, names.size // 3), names.size), replace=False)
        )
        keys = np.where(usable, rng.random(self.n_features), -1.0)
        keys[support] = 2.0
        keys[gone & ~self.forced] = -1.0
        return self.select(keys)


def _numbered(groups: Sequence[object] | None, d: int) -> tuple[Index, list[object]]:
    """Return the number of each feature's group, -1 for none, and the labels by number."""
    if groups is None:
        return np.full(d, -1), []
    if len(groups) != d:
        raise ValueError(f"groups has {len(groups)} labels for {d} features.")
    numbers: dict[object, int] = {}
    labels = [None if is_missing(label) else label for label in groups]
    found = [-1 if label is None else numbers.setdefault(label, len(numbers)) for label in labels]
    return np.array(found, dtype=np.intp), list(numbers)


def is_missing(label: object) -> bool:
    """Say whether a label stands for none: None, NaN, pandas' NA, or an empty text."""
    if label is None:
        return True
    same = label == label
    return not isinstance(same, bool | np.bool_) or not same or label == ""


def _caps(most: int | Mapping[Any, int], labels: Index, names: Sequence[object]) -> Index:
    """Return the limit of each group."""
    if not isinstance(most, Mapping):
        return np.full(max(len(names), 1), as_count("max_per_group", most))
    unknown = [label for label in most if label not in set(names)]
    if unknown:
        raise ValueError(f"max_per_group names {unknown[0]!r}, and no feature is of that group.")
    return np.array(
        [as_count("max_per_group", most.get(name, labels.size)) for name in names] or [0],
        dtype=np.intp,
    )
