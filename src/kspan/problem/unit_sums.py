r"""Largest sums over units under limits: what `RuledChoice` bounds and settles features with.

A unit is a set of features that are chosen together; most often one feature. Limits on the number
of units in nested sets make a matroid: the greedy choice is best, and what has to come in displaces
the least of the smallest full set that it is in. A limit on weights (features, costs) is taken into
the scores by a multiplier.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.linalg.rounding import UNIT
from kspan.problem.choice import LinearLimits

# Halvings of the range of a multiplier, and rounds over all of them when there are several.
N_HALVINGS, N_ROUNDS = 45, 3

# Weights below this share of the largest are zero.
LIGHT = 1e-12

# Numbers of sets, one for each unit, and how many of each may be chosen.
Level = tuple[Index, Index]


@dataclass(frozen=True, eq=False)
class FreeUnits:
    """What is left to choose between.

    Parameters
    ----------
    unit_of : the unit of each free feature
    sizes, costs, groups, cliques : of each unit
    pairs : (n, 2) units in conflict
    n_left, units_left : features and units that may be chosen
    purse, room : what they may cost, and by how much bounds let them be above
    group_left : units that may be chosen of each group
    """

    unit_of: Index
    sizes: Index
    costs: FloatArray
    groups: Index
    cliques: Index
    pairs: Index
    n_left: int
    units_left: int
    purse: float
    room: float
    group_left: Index

    @property
    def n_units(self) -> int:
        """How many units there are."""
        return self.sizes.size

    def totals(self, values: FloatArray) -> FloatArray:
        """Return the sums over the features of each unit."""
        sums: FloatArray = np.bincount(self.unit_of, values, minlength=self.n_units).astype(float)
        return sums

    @cached_property
    def is_uneven(self) -> bool:
        """Whether units differ in size."""
        return self.n_units > 0 and int(self.sizes.min()) < int(self.sizes.max())

    @cached_property
    def is_costly(self) -> bool:
        """Whether not all units can be paid for."""
        return float(self.costs.sum()) > self.purse

    @cached_property
    def most(self) -> int:
        """How many units can be chosen at most, by their number and size."""
        smallest = int(self.sizes.min(initial=self.n_left or 1))
        return max(min(self.units_left, self.n_left // max(smallest, 1)), 0)

    @cached_property
    def limits(self) -> list[tuple[FloatArray, float]]:
        """Weights of the units, and how much the chosen ones may weigh.

        In units of the largest weight; what weighs next to nothing weighs nothing.
        """
        found = []
        if self.is_uneven and int(self.sizes.sum()) > self.n_left:
            found.append((self.sizes.astype(np.float64), float(self.n_left)))
        if self.is_costly:
            found.append((self.costs, max(self.purse, 0.0) + self.room))
        heaviest = [float(weights.max()) for weights, _ in found]
        return [
            (np.where(weights < LIGHT * unit, 0.0, weights / unit), limit / unit * (1 + 4 * UNIT))
            for (weights, limit), unit in zip(found, heaviest, strict=True)
        ]

    @cached_property
    def systems(self) -> list[list[Level]]:
        """Nested limits, the smaller sets first; each list is a relaxation of its own."""
        cliques = np.unique(self.cliques, return_inverse=True)[1]
        one_each: Level = (cliques, np.ones(cliques.max(initial=-1) + 1, dtype=np.intp))
        has_cliques = len(self.pairs) > 0
        if not self.group_left.size:
            return [[one_each] if has_cliques else []]
        # Units without a group are groups of their own.
        alone = self.group_left.size + np.arange(self.n_units)
        groups = np.where(self.groups >= 0, self.groups, alone)
        caps = np.append(self.group_left, np.ones(self.n_units, dtype=np.intp))
        if not has_cliques:
            return [[(groups, caps)]]
        cells = np.unique(np.stack([groups, cliques]), axis=1, return_inverse=True)[1].ravel()
        in_groups = (cells, np.ones(cells.max(initial=-1) + 1, dtype=np.intp))
        return [[one_each], [in_groups, (groups, caps)]]

    def linear_limits(self) -> LinearLimits:
        """Return all limits as rows; those that cannot bind are left out."""
        n = self.n_units
        rows = [(self.sizes.astype(np.float64), float(self.n_left))]
        if self.units_left < n and self.is_uneven:
            rows.append((np.ones(n), float(self.units_left)))
        if self.is_costly:
            rows.append((self.costs, max(self.purse, 0.0) + self.room))
        for group, left in enumerate(self.group_left.tolist()):
            member = self.groups == group
            if np.count_nonzero(member) > left:
                rows.append((member.astype(np.float64), float(left)))
        names, counts = np.unique(self.cliques, return_counts=True)
        rows += [((self.cliques == name).astype(float), 1.0) for name in names[counts > 1]]
        weights = np.array([row for row, _ in rows])
        most = np.array([limit for _, limit in rows])
        # In units of the largest weight of each.
        unit = weights.max(axis=1, initial=0.0)
        unit[unit == 0] = 1.0
        return LinearLimits(self.unit_of, weights / unit[:, None], most / unit)

    @cached_property
    def _neighbours(self) -> tuple[Index, Index]:
        """Where the neighbours of each unit begin, and all of them."""
        both = np.concatenate([self.pairs, self.pairs[:, ::-1]])
        both = both[np.argsort(both[:, 0], kind="stable")]
        return np.searchsorted(both[:, 0], np.arange(self.n_units + 1)), both[:, 1]

    def neighbours(self, unit: int) -> Index:
        """Return the units in conflict with one."""
        begins, units = self._neighbours
        return units[begins[unit] : begins[unit + 1]]

    def feasible(self, chosen: Mask) -> Mask:
        """Say which rows of a mask of units keep all limits."""
        fine = chosen.sum(axis=1) <= self.units_left
        fine &= chosen @ self.sizes <= self.n_left
        if self.is_costly:
            fine &= chosen @ self.costs <= self.purse
        for group in np.flatnonzero(self.group_left < self.n_units):
            fine &= chosen[:, self.groups == group].sum(axis=1) <= self.group_left[group]
        for first, second in np.unique(np.sort(self.pairs, axis=1), axis=0):
            fine &= ~(chosen[:, first] & chosen[:, second])
        return fine


@dataclass(frozen=True, eq=False)
class EasySum:
    """The largest sum of scores under nested limits, with multipliers for the others.

    Parameters
    ----------
    levels : nested limits, the smaller sets first
    most : units that may be chosen
    scores : of the units, less what multipliers take
    chosen : the units with the largest sum
    value : the bound, rounded upwards
    slack : what a score may be off by
    """

    levels: Sequence[Level]
    most: int
    scores: FloatArray
    chosen: Index
    value: float
    slack: float

    @classmethod
    def of(
        cls, free: FreeUnits, levels: Sequence[Level], scores: FloatArray, sizes: FloatArray
    ) -> "EasySum":
        """Look for the best multipliers.

        Parameters
        ----------
        free : the units
        levels : nested limits
        scores : of the units
        sizes : sums of the absolute scores of their features
        """
        limits, most = free.limits, free.most
        multipliers = _multipliers(limits, levels, most, scores)
        reduced, paid = scores.copy(), sizes.copy()
        value = 0.0
        for (weights, limit), multiplier in zip(limits, multipliers, strict=True):
            reduced -= multiplier * weights
            paid += multiplier * weights
            value += multiplier * limit
        chosen = greedy(reduced, levels, most)
        n_largest = int(free.sizes.max(initial=1))
        slack = (n_largest + 16) * UNIT * float(paid.max(initial=0.0))
        total = float(reduced[chosen].sum())
        value = (value + total) * (1 + 8 * UNIT) + (most + 1) * (slack + UNIT * total)
        return cls(levels, most, reduced, chosen, value, slack)

    def losses(self) -> tuple[FloatArray, FloatArray]:
        """Return what the sum loses, at least, with each unit in and with each out.

        A unit that has to come in displaces the least one of the smallest full set it is in. One
        that has to go makes room for the best of those for which the smallest full set has it.
        """
        n, scores = self.scores.size, self.scores
        inside = np.zeros(n, dtype=bool)
        inside[self.chosen] = True
        everything = np.zeros(n, dtype=np.intp), np.array([self.most])
        displaced, settled = np.zeros(n), np.zeros(n, dtype=bool)
        instead = np.zeros(n)
        for labels, caps in (*self.levels, everything):
            count = np.bincount(labels[self.chosen], minlength=caps.size)
            full = count >= caps
            least = np.full(caps.size, np.inf)
            np.minimum.at(least, labels[self.chosen], scores[self.chosen])
            new = full[labels] & ~inside & ~settled
            displaced[new] = least[labels[new]]
            best = np.zeros(caps.size)
            np.maximum.at(best, labels[new], scores[new])
            instead = np.maximum(instead, best[labels])
            settled |= new
        # A full set without a member is closed: nothing can come in.
        put_in = np.where(inside, 0.0, displaced - scores)
        left_out = np.where(inside, scores - instead, 0.0)
        return tuple(np.maximum(part - 4 * self.slack, 0.0) for part in (put_in, left_out))  # type: ignore[return-value]


def greedy(scores: FloatArray, levels: Sequence[Level], most: int) -> Index:
    """Return the units with the largest sum of scores under nested limits; none below zero."""
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > 0]
    for labels, caps in levels:
        own = labels[order]
        by_label = np.argsort(own, kind="stable")
        sorted_labels = own[by_label]
        starts = np.searchsorted(sorted_labels, sorted_labels)
        rank = np.empty(order.size, dtype=np.intp)
        rank[by_label] = np.arange(order.size) - starts
        order = order[rank < caps[own]]
    return order[:most]


def _multipliers(
    limits: Sequence[tuple[FloatArray, float]], levels: Sequence[Level], most: int,
    scores: FloatArray,
) -> FloatArray:  # fmt: skip
    """Return multipliers that make the bound about as small as it gets, one after the other."""
    multipliers = np.zeros(len(limits))
    for _ in range(N_ROUNDS if len(limits) > 1 else 1):
        for place, (weights, limit) in enumerate(limits):
            rest = scores.copy()
            for other, (others, _) in enumerate(limits):
                if other != place:
                    rest -= multipliers[other] * others
            multipliers[place] = _multiplier(rest, weights, limit, levels, most)
    return multipliers


def _multiplier(
    scores: FloatArray, weights: FloatArray, limit: float, levels: Sequence[Level], most: int
) -> float:
    """Return the smallest multiplier with which the greedy choice keeps a limit."""

    def keeps(multiplier: float) -> bool:
        chosen = greedy(scores - multiplier * weights, levels, most)
        return float(weights[chosen].sum()) <= limit

    if keeps(0.0):
        return 0.0
    worth = (scores > 0) & (weights > 0)
    high = float((scores[worth] / weights[worth]).max(initial=0.0))
    low = 0.0
    for _ in range(N_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


def clique_cover(pairs: Index, units: Index) -> Index:
    """Return a number for each feature: those with the same one are all in conflict.

    Greedy, features with many conflicts first. Features of one unit get the same number.

    Parameters
    ----------
    pairs : (n, 2) features in conflict
    units : (d,) units of the features
    """
    names, unit_of = np.unique(units, return_inverse=True)
    cliques = np.arange(names.size)
    if len(pairs):
        near: dict[int, set[int]] = {}
        for first, second in unit_of[pairs].tolist():
            if first != second:
                near.setdefault(first, set()).add(second)
                near.setdefault(second, set()).add(first)
        waiting = sorted(near, key=lambda unit: (-len(near[unit]), unit))
        done: set[int] = set()
        for first in waiting:
            if first in done:
                continue
            done.add(first)
            common = near[first] - done
            while common:
                other = min(common, key=lambda unit: (-len(near[unit]), unit))
                cliques[other] = first
                done.add(other)
                common &= near[other]
    return cliques[unit_of]
