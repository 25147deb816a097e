"""A search tree over patterns as a witness, and the walk that computes its bound again.

What `tree.py` is for supports that all components share. A record may cut off pieces with a witness
(patterns in which a component of a team has a removed feature, or lacks a fixed one), be split on
how many components of a team have a feature, or be a leaf that a witness bounds. One that was never
worked on has the bound of its parent. Every number is recomputed and compared with the one claimed;
the upper bound that follows is the largest of all pieces.
"""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from kspan.arrays import Index
from kspan.problem import Patterns, StiefelProblem
from kspan.proofs.check.bounds import Cones
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
from kspan.proofs.check.partly_known import PartlyKnown
from kspan.proofs.check.teams import (
    Teams,
    TeamsBound,
    TeamsWitness,
    first_teams,
    settle_teams,
    split_team,
    team_cut_levels,
    teams_bound,
    tidy,
)


@dataclass(frozen=True)
class TeamCut(Part):
    """Features that one witness settles: for every team those it has not, and those all have.

    `level` bounds every pattern that was cut off.
    """

    witness: int
    removed: list[Index]
    fixed: list[Index]
    level: float


@dataclass
class PatternRecord(Part):
    """One node of the search.

    kind: "branched" (child j has the feature in j components of the team), "bound" (its witness
    bounds it), "open" (not finished). One without a witness of its own has its parent's bound;
    of one that is "void" there is no pattern at all.
    """

    parent: int
    cuts: list[TeamCut] = field(default_factory=list)
    kind: str = "open"
    witness: int = -1
    bound: float = math.inf
    team: int = -1  # which is split, on which feature
    feature: int = -1
    children: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class PatternTreeWitness(Witness):
    """A search tree: every pattern is cut off, or in a leaf, by a record that says why."""

    label: ClassVar[str] = "joint relaxation"

    scale: float
    records: list[PatternRecord]
    witnesses: list[TeamsWitness]

    @property
    def method(self) -> str:
        """A tree of one node is a relaxation."""
        done = sum(record.kind != "open" for record in self.records)
        return self.label if done <= 1 else "joint branch and bound"

    def evaluate(self, problem: Problem) -> float:
        """See `Witness.evaluate`."""
        return _Walk(problem, self).upper() * self.scale

    def matrix_of(self, problem: Problem) -> KnownMatrix | PartlyKnown:
        """Return what is known of A."""
        return KnownMatrix.of(problem, np.arange(problem.n_features), self.scale)

    def settled(self, lower: float) -> tuple[Index, Index]:
        """Return what the root's cuts settle for all teams: in no component, or in all."""
        fixed = removed = np.empty(0, dtype=np.intp)
        for cut in cuts_below(self.records[0].cuts, lower / self.scale):
            removed = np.union1d(removed, _in_all(cut.removed))
            fixed = np.union1d(fixed, _in_all(cut.fixed))
        return fixed, removed


@dataclass(frozen=True)
class InsideTreeWitness(PatternTreeWitness):
    """The same, where only features `inside` are relaxed, and of others the lengths of rows count.

    No matrix of all features is formed: see `partly_known.py`.
    """

    inside: Index

    def matrix_of(self, problem: Problem) -> PartlyKnown:
        """Return what is known of A."""
        inside = feature_numbers(self.inside, problem.n_features, "witness: inside")
        return PartlyKnown.of(problem, inside, other_counts(counted_patterns(problem)), self.scale)


def other_counts(patterns: Patterns) -> Index:
    """Return how many features a component may have beside one, each number once, rising."""
    return np.unique(patterns.limits) - 1


def _in_all(lists: list[Index]) -> Index:
    """Return what all lists have."""
    found = lists[0]
    for other in lists[1:]:
        found = np.intersect1d(found, other)
    return found


def counted_patterns(problem: Problem) -> Patterns:
    """Return the patterns of a problem; `CertificateError` if it has none."""
    patterns = problem.patterns if isinstance(problem, StiefelProblem) else None
    if patterns is None:
        raise CertificateError("witness: is about components with counts of their own")
    return patterns


class _Walk:
    """Goes through a tree from its root; all numbers in units of the witness's scale."""

    def __init__(self, problem: Problem, tree: PatternTreeWitness):
        self.tree, self.patterns = tree, counted_patterns(problem)
        self.known = tree.matrix_of(problem)
        m, choice, uncertainty = problem.n_components, problem.choice, self.known.uncertainty
        self.error, self.noise = uncertainty.total(m, choice), uncertainty.noise(m, choice)

    def upper(self) -> float:
        """Return the largest bound of all pieces."""
        upper, seen = -math.inf, set[int]()
        todo: list[tuple[int, Teams | None, float]] = [(0, first_teams(self.patterns), math.inf)]
        while todo:
            index, teams, above = todo.pop()
            need(
                0 <= index < len(self.tree.records) and index not in seen,
                f"node {index}: missing, or visited twice",
            )
            seen.add(index)
            value, children = self.record(index, teams, above)
            upper = max(upper, value)
            todo.extend(children)
        return upper

    def record(
        self, index: int, teams: Teams | None, above: float
    ) -> tuple[float, list[tuple[int, Teams | None, float]]]:
        """Return the bound of what this record settles, and the children left to visit."""
        record, upper, what = self.tree.records[index], -math.inf, f"node {index}"
        teams = None if teams is None else tidy(teams, self.patterns)
        for step, cut in enumerate(record.cuts):
            if teams is None:
                raise CertificateError(f"{what}, cut {step}: there is nothing left to cut")
            teams, level = self.cut(cut, teams, f"{what}, cut {step}")
            upper = max(upper, level)
        if teams is None:
            return upper, []  # there is no pattern left
        if record.kind == "branched":
            return upper, self.children(index, teams, above)
        need(record.kind in ("bound", "open"), f"{what}: unknown kind {record.kind!r}")
        value = above
        if record.witness >= 0:
            value = self.bound(record.witness, teams, what).value
        follow(f"{what}, bound", value, record.bound, self.noise)
        return max(upper, value), []

    def bound(self, index: int, teams: Teams, what: str) -> TeamsBound:
        """Return the bound of a node by one of the witnesses."""
        need(0 <= index < len(self.tree.witnesses), f"{what}: there is no witness {index}")
        witness = self.tree.witnesses[index]
        for number, part in enumerate(witness.parts):
            feature_numbers(part.features, self.patterns.n_features, f"{what}: team {number}")
            need(isinstance(part.cones, Cones), f"{what}: team {number} has no cones")
        found = teams_bound(self.known, teams, witness, self.patterns)
        return replace(found, value=found.value + self.error)

    def cut(self, cut: TeamCut, teams: Teams, what: str) -> tuple[Teams | None, float]:
        """Check one screening step; return the smaller node and the level of what went."""
        bound = self.bound(cut.witness, teams, what)
        fits = len(cut.removed) == len(cut.fixed) == len(teams)
        need(fits, f"{what}: does not fit the teams")
        d, level = self.patterns.n_features, -math.inf
        all_gone, all_kept = [], []
        levels = team_cut_levels(bound, teams, self.patterns)
        for team, (with_it, without), removed, fixed in zip(
            teams, levels, cut.removed, cut.fixed, strict=True
        ):
            gone = feature_numbers(removed, d, f"{what}: removed")
            kept = feature_numbers(fixed, d, f"{what}: fixed")
            free = team.choice.free
            settled = bool(np.isin(gone, free).all() and np.isin(kept, free).all())
            need(settled, f"{what}: settles what is not free")
            need(np.intersect1d(gone, kept).size == 0, f"{what}: removes what it fixes")
            all_gone.append(gone)
            all_kept.append(kept)
            level = max(
                level, with_it[gone].max(initial=-math.inf), without[kept].max(initial=-math.inf)
            )
        follow(f"{what}, level", float(level), cut.level, self.noise)
        return tidy(settle_teams(teams, all_gone, all_kept), self.patterns), float(level)

    def children(
        self, index: int, teams: Teams, above: float
    ) -> list[tuple[int, Teams | None, float]]:
        """Check that the children cover a node; return them with their teams."""
        what, records, record = f"node {index}", self.tree.records, self.tree.records[index]
        need(0 <= record.team < len(teams), f"{what}: there is no team {record.team}")
        team = teams[record.team]
        need(
            bool(np.isin(record.feature, team.choice.free)),
            f"{what}: is split on a feature that is settled",
        )
        need(len(record.children) == team.count + 1, f"{what}: the children do not cover it")
        for child in record.children:
            need(0 < child < len(records), f"{what}: a child is missing")
            need(records[child].parent == index, f"{what}: a child has another parent")
        if record.witness >= 0:
            # For those that have no bound of their own.
            heirs = any(
                records[child].witness < 0 and records[child].kind != "void"
                for child in record.children
            )
            above = self.bound(record.witness, teams, what).value if heirs else math.inf
        return [
            (child, split_team(teams, record.team, record.feature, n_with), above)
            for n_with, child in enumerate(record.children)
        ]
