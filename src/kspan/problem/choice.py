r"""`Choice`: which features may be chosen together. The feasible set, and all that is asked of it.

A support S is feasible when

.. math:: \text{forced} \subseteq S \subseteq \text{allowed}, \qquad |S| = k

(or :math:`|S| \le k`). Solvers take the best scores from it, bounds sum them, searches cut it down,
split and enumerate it; none of them sees k or a mask. A new rule about which features go together
belongs here, or in the subclass of `rules.py` that knows groups, costs and conflicts, and nowhere
else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations, islice
from math import comb
from numbers import Integral

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.linalg.rounding import UNIT
from kspan.linalg.selection import top_k

# Supports that are enumerated at a time.
BATCH = 4096


@dataclass(frozen=True, eq=False)
class LinearLimits:
    """Limits ``rows @ z <= most`` that every choice keeps, for shares z of units in 0..1.

    Parameters
    ----------
    unit_of : the unit of each free feature
    rows : (n, units) array, not negative
    most : (n,) array, positive
    """

    unit_of: Index
    rows: FloatArray
    most: FloatArray


@dataclass(frozen=True, eq=False)
class Choice:
    """All supports with every forced feature, allowed features only, and k in all.

    Parameters
    ----------
    size : int
        k.
    forced, allowed : (d,) masks
        Features that must, and that may, be chosen; what is forced is allowed.
    at_most : bool
        Fewer than k features may be chosen too.

    Examples
    --------
    >>> import numpy as np
    >>> choice = Choice.of(4, 2, include=[3])
    >>> choice.select(np.array([0.5, 0.9, 0.1, 0.0]))
    array([1, 3])
    >>> [supports.tolist() for supports in choice.supports()]
    [[[0, 3], [1, 3], [2, 3]]]
    """

    size: int
    forced: Mask
    allowed: Mask
    at_most: bool = False

    @classmethod
    def of(
        cls, n_features: int, size: int, include: Sequence[int] | Index = (),
        exclude: Sequence[int] | Index = (), *, at_most: bool = False,
    ) -> "Choice":  # fmt: skip
        """Make one from lists of features; `ValueError` if nothing can be chosen.

        Parameters
        ----------
        n_features : d
        size : k
        include, exclude : sequences of int
            Features that must, and must not, be chosen.
        at_most : see above
        """
        d, k = n_features, as_count("n_features_to_select", size)
        forced, forbidden = _mask("include", include, d), _mask("exclude", exclude, d)
        clash = np.flatnonzero(forced & forbidden)
        if clash.size:
            raise ValueError(f"include and exclude both name feature {clash[0]}.")
        n_forced, n_left = int(forced.sum()), d - int(forbidden.sum())
        if n_forced > k:
            raise ValueError(
                f"include names {n_forced} features, more than the "
                f"n_features_to_select={k} that may be chosen."
            )
        if n_left < k and not at_most:
            raise ValueError(
                f"exclude leaves {n_left} features, fewer than the "
                f"n_features_to_select={k} to choose."
            )
        return cls(k, forced, ~forbidden, at_most)

    # --- what it is

    @property
    def n_features(self) -> int:
        """The number d of features, allowed or not."""
        return self.allowed.size

    @property
    def features(self) -> Index:
        """The features that may be chosen."""
        return np.flatnonzero(self.allowed)

    @property
    def include(self) -> Index:
        """The features that must be chosen."""
        return np.flatnonzero(self.forced)

    @property
    def exclude(self) -> Index:
        """The features that must not be chosen."""
        return np.flatnonzero(~self.allowed)

    @property
    def free(self) -> Index:
        """The features about which nothing is settled."""
        return np.flatnonzero(self.allowed & ~self.forced)

    @property
    def n_open(self) -> int:
        """How many of the free features are chosen, at most."""
        n_free = int(self.allowed.sum()) - int(self.forced.sum())
        return min(max(self.size - int(self.forced.sum()), 0), n_free)

    @property
    def is_empty(self) -> bool:
        """Whether there is no support at all."""
        too_few = int(self.allowed.sum()) < self.size and not self.at_most
        return too_few or int(self.forced.sum()) > self.size

    @property
    def has_options(self) -> bool:
        """Whether features are left to choose between: some go in, and not all can."""
        return 0 < self.n_open < self.free.size

    @property
    def has_supports(self) -> bool:
        """Whether there is a support."""
        return not self.is_empty

    @property
    def has_rules(self) -> bool:
        """Whether more is asked of a support than its size and single features."""
        return False

    @property
    def largest_size(self) -> int:
        """The largest number of features for which what is known of this choice holds."""
        return self.features.size

    @property
    def most_features(self) -> int:
        """The most features that could be asked for."""
        return self.features.size

    def usable(self) -> Index:
        """Return the features that a support may still have.

        When as many features are forced as may be used, no other one can be.
        """
        full = self.at_most and int(self.forced.sum()) == self.size
        return self.include if full else self.features

    def without_rules(self) -> "Choice":
        """Return all supports with so many of the allowed features, whatever goes together."""
        return self

    def whole(self, features: Index) -> Index:
        """Return features with all that are chosen together with them."""
        return features

    def with_whole(self, scores: FloatArray) -> FloatArray:
        """Return the scores of features with those of all that are chosen together with them.

        What is minus infinity is not free, and stays so.
        """
        return scores

    def apart(self, features: Index, others: Index) -> Mask | None:
        """Return which features are in no support with which others; None: there is no such pair.

        Of pairs of one and the same feature nothing is said.
        """
        return None

    def linear_limits(self) -> "LinearLimits | None":
        """Return limits on the relaxed choice of the free features; None for k of them."""
        return None

    def at_least(self, least: int) -> "Choice":
        """Return the supports with so many features or more, where there may be fewer than k."""
        return self

    def same_as(self, other: "Choice") -> bool:
        """Say whether both have the same supports, by what they are made of."""
        if type(self) is not type(other):
            return False
        names = [part.name for part in fields(self)]
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    def objection(self, support: Index) -> str | None:
        """Say why a support, features each named once, is not feasible; None if it is."""
        wrong = support.size > self.size if self.at_most else support.size != self.size
        if wrong or (self.at_most and support.size == 0):
            return "has a wrong size"
        chosen = np.zeros(self.n_features, dtype=bool)
        chosen[support] = True
        if (self.forced & ~chosen).any():
            return "lacks a feature to include"
        if (chosen & ~self.allowed).any():
            return "has an excluded feature"
        return None

    # --- the best of it

    def select(self, scores: FloatArray) -> Index:
        """Return the support with the largest sum of scores; ties go to smaller indices.

        Scores must be finite. With `at_most` it is one of the largest supports.
        """
        keys = np.where(self.allowed, scores, -np.inf)
        keys[self.forced] = np.inf
        return top_k(keys, min(self.size, int(self.allowed.sum())))

    def best_sum(self, scores: FloatArray) -> float:
        """Return the largest sum of the scores of a support, rounded upwards."""
        free, n_open = scores[self.free], self.n_open
        if self.at_most:
            free = np.maximum(free, 0.0)
        if 0 < n_open < free.size:
            free = np.partition(free, free.size - n_open)[free.size - n_open :]
        elif n_open == 0:
            free = free[:0]
        fixed = scores[self.forced]
        size = float(np.abs(fixed).sum() + np.abs(free).sum())
        return float(fixed.sum() + free.sum()) + (self.size + 8) * UNIT * size

    def best_sums(self, scores: FloatArray) -> FloatArray:
        """Return the largest sums of the rows of (b, d) nonnegative scores, as they are added up.

        To rank them; a bound takes `best_sum`.
        """
        free, first = scores[:, self.free], max(self.free.size - self.n_open, 0)
        if 0 < first < self.free.size:
            free = np.partition(free, first, axis=1)
        sums: FloatArray = scores[:, self.forced].sum(axis=1) + free[:, first:].sum(axis=1)
        return sums

    def sums_with(self, places: Index, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the largest sums of supports with one feature each, rounded upwards.

        Parameters
        ----------
        places : (b,) features, one for each row
        scores : (b, d) nonnegative

        Returns
        -------
        sums : (b,) array
            Minus infinity where there is no such support.
        least : (b,) array
            What another feature has to displace at least, infinity where none can come in.
        """
        rows, free, n_open = np.arange(places.size), self.free, self.n_open
        own = np.where(self.forced[places], 0.0, scores[rows, places])
        fixed = scores[:, self.forced].sum(axis=1) + own
        others = scores.copy()
        others[rows, places] = -np.inf
        others = others[:, free]
        n_best = min(n_open, free.size)
        best = others[:, :0]
        if n_best:
            best = np.partition(others, free.size - n_best, axis=1)[:, free.size - n_best :]
        best = np.sort(
            best, axis=1
        )  # ascending: the first one is left out for a feature of its own
        takes_room = ~self.forced[places]
        feasible = ~takes_room | (n_open > 0)
        if n_best:
            best[takes_room, 0] = 0.0
        best = np.maximum(best, 0.0)  # what is not there adds nothing
        sums = fixed + best.sum(axis=1)
        sums *= 1 + (self.size + 8) * UNIT
        least = np.full(places.size, np.inf)
        for takes, first in ((False, 0), (True, 1)):
            if n_best > first:
                least[takes_room == takes] = best[takes_room == takes, first]
        return np.where(feasible, sums, -np.inf), least

    def losses(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        r"""Return what the best sum loses, at least, with each feature in and with each out.

        With :math:`b_{(j)}` the j-th largest score among the free features, κ of which are
        chosen: a feature i outside of the best κ costs :math:`b_{(κ)} - b_i` when it has to be
        in, one inside :math:`b_i - b_{(κ+1)}` when it has to be out. All others cost nothing.
        """
        free, n_open = self.free, self.n_open
        order = free[np.argsort(-scores[free], kind="stable")]
        inside, outside = order[:n_open], order[n_open:]
        put_in, left_out = np.zeros(scores.size), np.zeros(scores.size)
        if inside.size and outside.size:
            put_in[outside] = scores[inside[-1]] - scores[outside]
            left_out[inside] = scores[inside] - scores[outside[0]]
        return put_in, left_out

    # --- smaller and larger ones

    def on(self, features: Index) -> "Choice":
        """Return the supports within some features, which are numbered anew in that order.

        All forced features must be among them.
        """
        return replace(self, forced=self.forced[features], allowed=self.allowed[features])

    def settled(
        self, fixed: Sequence[int] | Index = (), removed: Sequence[int] | Index = ()
    ) -> "Choice":
        """Return the supports with all of some features and none of some others."""
        forced, allowed = self.forced.copy(), self.allowed.copy()
        forced[np.asarray(fixed, dtype=np.intp)] = True
        allowed[np.asarray(removed, dtype=np.intp)] = False
        return replace(self, forced=forced, allowed=allowed)

    def within(self, features: Index) -> "Choice":
        """Return the supports within some features, under the same numbers."""
        allowed = np.zeros_like(self.allowed)
        allowed[features] = self.allowed[features]
        return replace(self, allowed=allowed)

    def resized(self, size: int) -> "Choice":
        """Return the same rules for another number of features."""
        return replace(self, size=size)

    # --- all of it, and its neighbours

    @property
    def n_supports(self) -> int:
        """The number of supports; with `at_most` of the largest ones."""
        return 0 if self.is_empty else comb(self.free.size, self.n_open)

    def supports(self, batch: int = BATCH) -> Iterator[Index]:
        """Yield all supports, (s, k) sorted rows at a time; with `at_most` the largest ones."""
        if self.is_empty:
            return
        include, n_open = self.include, self.n_open
        choices = combinations(self.free.tolist(), n_open)
        while some := list(islice(choices, batch)):
            chosen = np.array(some, dtype=np.intp).reshape(len(some), n_open)
            forced = np.broadcast_to(include, (len(some), include.size))
            yield np.sort(np.hstack([chosen, forced]), axis=1)

    def leaving(self, support: Index) -> Index:
        """Return the places in a support of the features that may leave it."""
        return np.flatnonzero(~self.forced[support])

    def coming(self, support: Index) -> Mask:
        """Return which features may come in for one that leaves."""
        mask = self.allowed.copy()
        mask[support] = False
        return mask

    def exchange(self, support: Index, rng: np.random.Generator, usable: Mask) -> Index:
        """Return a support with about a third of its features exchanged at random, or two.

        One alone would be a swap.

        Parameters
        ----------
        support : a feasible one
        rng : numpy.random.Generator
        usable : (d,) features worth taking in
        """
        free = support[self.leaving(support)]
        pool = np.flatnonzero(self.coming(support) & usable)
        count = min(max(2, free.size // 3), pool.size, free.size)
        gone = rng.choice(free, count, replace=False) if count else free[:0]
        come = rng.choice(pool, count, replace=False) if count else pool[:0]
        return np.sort(np.append(np.setdiff1d(support, gone), come))


class HasChoice:
    """Something with a `choice`, of which it knows the most wanted by names of its own."""

    choice: Choice

    @property
    def n_features_to_select(self) -> int:
        """The number k of features to choose."""
        return self.choice.size

    @property
    def n_features(self) -> int:
        """The number d of features, allowed or not."""
        return self.choice.n_features

    @property
    def include(self) -> Index:
        """The features that must be chosen."""
        return self.choice.include

    @property
    def exclude(self) -> Index:
        """The features that must not be chosen."""
        return self.choice.exclude


def is_count(value: object) -> bool:
    """Say whether a value is a whole number, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def as_count(name: str, value: object) -> int:
    """Return a whole number as an int; `ValueError` for anything else."""
    if not is_count(value):
        raise ValueError(f"{name} must be an integer, got {value!r}.")
    return int(value)  # type: ignore[call-overload]


def require_count(name: str, value: object, least: int) -> None:
    """Raise `ValueError` unless an option is a whole number, `least` or more."""
    if not (is_count(value) and int(value) >= least):  # type: ignore[call-overload]
        raise ValueError(f"{name} must be a whole number, {least} or more, got {value!r}.")


def _mask(name: str, features: Sequence[int] | Index, d: int) -> Mask:
    """Return which of d features are named."""
    array = np.asarray(features)
    mask = np.zeros(d, dtype=bool)
    if array.size == 0:
        return mask
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a list of feature indices, got {features!r}.")
    if array.min() < 0 or array.max() >= d:
        raise ValueError(f"{name} must hold indices from 0 to {d - 1}, got {features!r}.")
    mask[array] = True
    return mask
