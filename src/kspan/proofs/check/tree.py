"""A search tree as a witness, and the walk through it that computes its bound again.

Starting from all supports, a record may cut off pieces with a witness (supports with a removed
feature, supports without a fixed one), be split on a feature, or be a leaf that is bounded by a
witness or enumerated. Every number is recomputed and compared with the one claimed; the upper
bound that follows is the largest of all pieces. No incumbent's value enters it.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.problem import Choice
from kspan.proofs.check.bounds import (
    Bound,
    Cones,
    SharedCones,
    dual_bound,
    has_no_interior_optimum,
)
from kspan.proofs.check.claims import (
    CertificateError,
    Part,
    Problem,
    Witness,
    cuts_below,
    feature_numbers,
    follow,
    need,
)
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.check.screening import cut_levels
from kspan.proofs.check.witnesses import require_signs

# No honest search enumerates more supports in one node.
MAX_ENUMERATED = 100_000


@dataclass(frozen=True)
class NodeWitness(Part):
    """``B = factor factor'`` on `features`; no factor means B = A.

    Good for every node whose features are among `features`: take their rows.
    """

    features: Index
    factor: FloatArray | None
    shared: int = -1  # which of the tree's shared cones it goes with, -1 for none
    cones: Cones | None = None  # of its own


@dataclass(frozen=True)
class Reduction(Part):
    """Features cut off (never chosen) and fixed (always chosen) by one witness.

    `level` bounds every support that was cut off: those with a removed feature and those
    without a fixed one.
    """

    witness: int
    removed: Index
    fixed: Index
    level: float


@dataclass
class Record(Part):
    """One node of the search tree.

    kind: "branched" (children cover it), "bound" (its witness bounds it), "enumerated" (all its
    supports were tried), "void" (nonnegative: all features are forced, and no vector that uses all
    of them is optimal), "open" (not finished; its witness still bounds it).
    """

    parent: int
    feature: int  # the feature it was split off by, -1 at the root
    included: bool
    reductions: list[Reduction] = field(default_factory=list)
    kind: str = "open"
    witness: int = -1
    bound: float = math.inf
    children: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class TreeWitness(Witness):
    """A search tree: every support is cut off, or in a leaf, by a record that says why."""

    scale: float
    records: list[Record]
    witnesses: list[NodeWitness]
    shared_cones: list[SharedCones]

    @property
    def method(self) -> str:
        """A tree of one node is a relaxation."""
        done = sum(record.kind != "open" for record in self.records)
        return "relaxation" if done <= 1 else "branch and bound"

    def evaluate(self, problem: Problem) -> float:
        """See `Witness.evaluate`."""
        return _Walk(problem, self).upper() * self.scale

    def settled(self, lower: float) -> tuple[Index, Index]:
        """Return what the root's cuts settle; they bound all supports of the problem."""
        return settled_by_root(self.records, lower / self.scale)


def settled_by_root(records: list[Record], lower: float) -> tuple[Index, Index]:
    """Return the features that the root's cuts fix, and remove; `lower` in units of the tree."""
    nothing = np.empty(0, dtype=np.intp)
    cuts = cuts_below(records[0].reductions, lower)
    fixed = np.concatenate([nothing, *(cut.fixed for cut in cuts)])
    removed = np.concatenate([nothing, *(cut.removed for cut in cuts)])
    return np.sort(fixed), np.sort(removed)


@dataclass(frozen=True, eq=False)
class Place:
    """A node: the features that are left of the problem's, and the choice between them."""

    features: Index
    choice: Choice

    def usable(self) -> "Place":
        """Go on with the features that can still be chosen."""
        left = self.choice.usable()
        if left.size == self.features.size:
            return self
        return Place(self.features[left], self.choice.on(left))

    def without(self, removed: Index, fixed: Index) -> "Place":
        """Take features out, by their places, and fix others."""
        kept = np.delete(np.arange(self.features.size), removed)
        return Place(self.features[kept], self.choice.settled(fixed=fixed).on(kept))


class HasRecords(Protocol):
    """A tree, whatever bounds its nodes."""

    @property
    def records(self) -> list[Record]:
        """Its nodes, the root first."""


class TreeWalk(ABC):
    """Goes through a tree from its root; all numbers in units of the witness's scale.

    Attributes
    ----------
    problem, tree : what is claimed about what
    noise : by how much claims of nodes may differ from what follows
    """

    problem: Problem
    tree: HasRecords
    noise: float

    @abstractmethod
    def bound(self, index: int, place: Place, what: str) -> Bound:
        """Return the bound of a node by one of the witnesses."""

    @abstractmethod
    def enumerate(self, place: Place, what: str) -> float:
        """Return a bound from all supports of a node."""

    def upper(self) -> float:
        """Return the largest bound of all pieces."""
        upper = -math.inf
        seen: set[int] = set()
        features = self.problem.choice.features
        todo = [(0, Place(features, self.problem.choice.on(features)))]
        while todo:
            index, place = todo.pop()
            need(
                0 <= index < len(self.tree.records) and index not in seen,
                f"node {index}: missing, or visited twice",
            )
            seen.add(index)
            value, children = self.record(index, place)
            upper = max(upper, value)
            todo.extend(children)
        return upper

    def record(self, index: int, place: Place) -> tuple[float, list[tuple[int, Place]]]:
        """Return the bound of what this record settles, and the children left to visit."""
        record, upper = self.tree.records[index], -math.inf
        if place.choice.is_empty:
            return upper, []
        place = place.usable()
        for step, reduction in enumerate(record.reductions):
            place, level = self.cut(reduction, place, f"node {index}, cut {step}")
            upper = max(upper, level)
            if place.choice.is_empty:
                last = step + 1 == len(record.reductions)
                need(last, f"node {index}, cut {step + 1}: there is nothing left to cut")
                return upper, []  # every support was cut off
            place = place.usable()
        if record.kind == "branched":
            return upper, self.children(index, place)
        return max(upper, self.leaf(record, place, f"node {index}")), []

    def leaf(self, record: Record, place: Place, what: str) -> float:
        """Return the bound of all supports of a node that is not split."""
        if record.kind == "void":
            need(self.is_void(place), f"{what}: is not void")
            return -math.inf
        if record.kind == "enumerated":
            value = self.enumerate(place, what)
        elif record.kind in ("bound", "open"):
            value = self.bound(record.witness, place, what).value
        else:
            raise CertificateError(f"{what}: unknown kind {record.kind!r}")
        follow(f"{what}, bound", value, record.bound, self.noise)
        return value

    def is_void(self, place: Place) -> bool:
        """Whether no support of a node can be the best one."""
        return False

    def cut(self, reduction: Reduction, place: Place, what: str) -> tuple[Place, float]:
        """Check one screening step; return the smaller node and the level of what went."""
        d, forced = self.problem.n_features, place.choice.forced
        bound = self.bound(reduction.witness, place, what)
        removed = np.isin(place.features, feature_numbers(reduction.removed, d, f"{what}: removed"))
        fixed = np.isin(place.features, feature_numbers(reduction.fixed, d, f"{what}: fixed"))
        need(int(fixed.sum()) == reduction.fixed.size, f"{what}: fixes what is not allowed")
        need(not (removed & (fixed | forced)).any(), f"{what}: removes a forced feature")
        with_it, without = cut_levels(bound, place.choice)
        level = max(
            with_it[removed].max(initial=-math.inf),
            without[fixed & ~forced].max(initial=-math.inf),
        )
        follow(f"{what}, level", float(level), reduction.level, self.noise)
        return place.without(np.flatnonzero(removed), np.flatnonzero(fixed)), float(level)

    def children(self, index: int, place: Place) -> list[tuple[int, Place]]:
        """Check that two children cover a node; return them with their supports."""
        what, records = f"node {index}", self.tree.records
        need(len(records[index].children) == 2, f"{what}: must have two children")
        first, second = records[index].children
        need(
            min(first, second) > 0 and max(first, second) < len(records),
            f"{what}: a child is missing",
        )
        with_it, without = records[first], records[second]
        need(
            with_it.feature == without.feature and with_it.included and not without.included,
            f"{what}: the children do not cover it",
        )
        need(with_it.parent == without.parent == index, f"{what}: a child has another parent")
        split = np.flatnonzero(place.features == with_it.feature)
        need(
            split.size == 1 and not place.choice.forced[split[0]],
            f"{what}: is split on a feature that is settled",
        )
        nothing = split[:0]
        return [(first, place.without(nothing, split)), (second, place.without(split, nothing))]


class _Walk(TreeWalk):
    """The walk of a tree about components."""

    tree: TreeWitness

    def __init__(self, problem: Problem, tree: TreeWitness):
        self.problem, self.tree = problem, tree
        self.m = problem.n_components
        self.known = KnownMatrix.of(problem, np.arange(problem.n_features), tree.scale)
        self.error = self.known.value_error(self.m, problem.choice)
        self.error += self.known.uncertainty.ky_fan(self.m)
        self.noise = self.known.uncertainty.noise(self.m, problem.choice)

    def is_void(self, place: Place) -> bool:
        """See `TreeWalk.is_void`: a nonnegative vector has to use all that is forced."""
        all_in = place.choice.at_most and bool(place.choice.forced.all())
        return (
            self.problem.nonnegative
            and all_in
            and has_no_interior_optimum(self.known.on(place.features))
        )

    def bound(self, index: int, place: Place, what: str) -> Bound:
        """Return the bound of a node by one of the witnesses."""
        need(0 <= index < len(self.tree.witnesses), f"{what}: there is no witness {index}")
        witness, d = self.tree.witnesses[index], self.problem.n_features
        features = feature_numbers(witness.features, d, f"{what}: witness")
        row_of = np.full(d, -1)
        row_of[features] = np.arange(features.size)
        rows = row_of[place.features]
        need(bool((rows >= 0).all()), f"{what}: the witness lacks a feature")
        known, choice = self.known.on(place.features), place.choice
        if witness.factor is None:
            return dual_bound(known, None, self.m, choice)
        need(
            witness.factor.ndim == 2 and len(witness.factor) == features.size,
            f"{what}: the factor has a wrong shape",
        )
        factor = witness.factor[rows]
        if witness.cones is None:
            cones = self.shared_cones(witness.shared, place.features, what)
        else:
            require_signs(self.problem, witness.cones, what)
            cones = witness.cones.on(rows)
        return dual_bound(known, factor, self.m, choice, cones)

    def shared_cones(self, index: int, features: Index, what: str) -> Cones | None:
        """Return one of the shared cones on the features of a node."""
        if index < 0:
            return None
        shared = self.tree.shared_cones
        need(index < len(shared), f"{what}: there are no shared cones {index}")
        d = self.problem.n_features
        feature_numbers(shared[index].features, d, f"{what}: shared cones")
        return shared[index].on(features)

    def enumerate(self, place: Place, what: str) -> float:
        """Try all supports; when fewer features may be used, an eigenvalue bounds these too."""
        choice, best = place.choice, -math.inf
        if not place.features.size:
            return best
        need(choice.n_supports <= MAX_ENUMERATED, f"{what}: too many supports to enumerate")
        for places in choice.supports():
            supports = place.features[places]
            blocks = self.known.A[supports[:, :, None], supports[:, None, :]]
            values = np.linalg.eigvalsh(blocks)[:, -self.m :].sum(axis=1)
            best = max(best, float(values.max()))
        return best + self.error
