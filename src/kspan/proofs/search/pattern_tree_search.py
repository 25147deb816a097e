"""Branch and bound over patterns: what it remembers, and what is done with a node.

The loop is that of `branch_and_bound.py`, the proof a tree of `check/pattern_tree.py`. A node is a
list of teams (`check/teams.py`). It is relaxed (`team_relaxation.py`), cut down by what its bound
settles, and split on how many components of a team have the feature that the relaxation is least
sure about. When every component has its features, what is left is not convex all the same: the
relaxation's bound counts, and is the value itself unless the components share features in a way
that it cannot tell apart.

Where A is known in part (`check/partly_known.py`) only features inside are relaxed, and split on.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.problem import Patterns
from kspan.progress import Monitor
from kspan.proofs.check.claims import Part
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.check.partly_known import PartlyKnown, parted
from kspan.proofs.check.pattern_tree import (
    InsideTreeWitness,
    PatternRecord,
    PatternTreeWitness,
    TeamCut,
)
from kspan.proofs.check.teams import (
    Team,
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
from kspan.proofs.search.team_relaxation import TeamRelaxation, TeamsSnapshot
from kspan.proofs.search.tree_state import Budgets, TreeState

# A node, and loadings near which there may be better ones -> their value at least, and loadings.
AskLoadings = Callable[["PatternNode", FloatArray], tuple[float, FloatArray] | None]

CHECK_EVERY = 15  # steps between two looks at the bound


@dataclass(eq=False)
class PatternNode(Part):
    """An open node: its teams, its bound, and a warm start."""

    record: int
    teams: list[Team]
    bound: float
    start: TeamsSnapshot | None = None
    n_iter: int = 0

    @property
    def features(self) -> Index:
        """The features that any team may use."""
        return np.flatnonzero(np.any([team.choice.allowed for team in self.teams], axis=0))


@dataclass
class PatternState(TreeState):
    """State of a search over patterns; `support` holds the best loadings, (d, r).

    `inside` are the features that are relaxed, where not all are.
    """

    open: list["PatternNode"] = field(default_factory=list)  # type: ignore[assignment]
    records: list[PatternRecord] = field(default_factory=list)  # type: ignore[assignment]
    witnesses: list[TeamsWitness] = field(default_factory=list)  # type: ignore[assignment]
    inside: Index | None = None

    @classmethod
    def at_root(
        cls, known: KnownMatrix | PartlyKnown, patterns: Patterns, loadings: FloatArray,
        lower: float, far: float,
    ) -> "PatternState":  # fmt: skip
        """Return a search at its root, where there is no bound yet but one that is far above."""
        state = cls(known.scale, loadings, lower)
        state.inside = known.inside if isinstance(known, PartlyKnown) else None
        state.records.append(PatternRecord(-1))
        teams = tidy(first_teams(patterns), patterns)
        assert teams is not None  # a problem has patterns
        state.open.append(PatternNode(0, list(teams), far))
        state.refresh()
        return state

    def _fork(self, node: PatternNode) -> "PatternFork":  # type: ignore[override]
        record: PatternRecord = self.records[node.record]
        return PatternFork(
            replace(node), replace(record, cuts=list(record.cuts)), self.lower, self.support,
            (len(self.records), len(self.witnesses)),
        )  # fmt: skip

    def witness(self) -> PatternTreeWitness:  # type: ignore[override]
        """The proof so far, with the witnesses it refers to and no others."""
        used: dict[int, int] = {-1: -1}
        records: list[PatternRecord] = []
        mine: list[PatternRecord] = self.records
        for record in mine:
            cuts = [
                replace(cut, witness=used.setdefault(cut.witness, len(used) - 1))
                for cut in record.cuts
            ]
            # A parent's bound is that of children without one of their own.
            needed = record.kind != "branched" or any(
                mine[child].witness < 0 and mine[child].kind != "void" for child in record.children
            )
            witness = used.setdefault(record.witness if needed else -1, len(used) - 1)
            records.append(replace(record, cuts=cuts, witness=witness))
        kept: list[TeamsWitness] = [self.witnesses[i] for i in used if i >= 0]
        if self.inside is not None:
            return InsideTreeWitness(self.scale, records, kept, self.inside)
        return PatternTreeWitness(self.scale, records, kept)


@dataclass
class PatternFork:
    """An open node by itself, and what comes of work on it; see `tree_state.Fork`."""

    node: PatternNode
    record: PatternRecord
    lower: float
    support: FloatArray
    sizes: tuple[int, int]  # records and witnesses of the tree
    settled: float = -math.inf
    children: list[tuple[PatternRecord, PatternNode]] = field(default_factory=list)
    witnesses: list[TeamsWitness] = field(default_factory=list)
    cones: None = None
    n_eigensolves: int = 0
    hint: FloatArray | None = None
    hurried: bool = False
    seconds: float = 0.0

    @property
    def is_root(self) -> bool:
        """Whether the node is the first of all."""
        return self.node.record == 0

    @property
    def is_open(self) -> bool:
        """Whether there is more to do here."""
        return self.record.kind == "open"

    def keep(self, witness: TeamsWitness) -> int:
        """Store a witness and return its number."""
        self.witnesses.append(witness)
        return self.sizes[1] + len(self.witnesses) - 1

    def close(self) -> None:
        """Mark the node as settled by its bound."""
        self.record.kind = "bound"
        self.settled = max(self.settled, self.node.bound)

    def cut(self, cut: TeamCut, teams: Teams | None) -> None:
        """Go on with what a cut leaves; with nothing, the node is settled."""
        self.record.cuts.append(cut)
        self.settled = max(self.settled, cut.level)
        if teams is None:
            self.record.kind = "bound"
        else:
            self.node.teams = list(teams)

    def split(
        self, place: int, feature: int, patterns: Patterns, start: TeamsSnapshot | None
    ) -> None:
        """Split the node on how many components of a team have a feature."""
        node, first, teams = self.node, self.sizes[0], tuple(self.node.teams)
        count = teams[place].count
        self.record.kind, self.record.team, self.record.feature = "branched", place, feature
        self.record.children = list(range(first, first + count + 1))
        for n_with, number in enumerate(self.record.children):
            child = tidy(split_team(teams, place, feature, n_with), patterns)
            record = PatternRecord(node.record, bound=node.bound)
            counts = tuple(part for part in (n_with, count - n_with) if part)
            begin = None if start is None else start.divided(place, counts)
            if child is None:  # no pattern is like that
                record.kind = "void"
            self.children.append(
                (record, PatternNode(number, list(child or ()), node.bound, begin))
            )

    def join(self, state: PatternState) -> None:
        """Add what came of it to a state that the forks before it have joined."""
        n_records, n_witnesses = len(state.records), len(state.witnesses)

        def moved(number: int) -> int:
            return number if number < self.sizes[1] else number + n_witnesses - self.sizes[1]

        def moved_record(number: int) -> int:
            return number if number < self.sizes[0] else number + n_records - self.sizes[0]

        def at_home(record: PatternRecord) -> PatternRecord:
            return replace(
                record,
                cuts=[replace(cut, witness=moved(cut.witness)) for cut in record.cuts],
                witness=moved(record.witness),
                children=[moved_record(child) for child in record.children],
            )

        records: list[PatternRecord] = state.records
        records[self.node.record] = at_home(self.record)
        records += [at_home(record) for record, _ in self.children]
        state.witnesses += self.witnesses
        left = [self.node] if self.is_open else []
        left += [
            replace(node, record=moved_record(node.record))
            for record, node in self.children
            if record.kind == "open"
        ]
        state.open += left
        state.n_nodes += not self.is_open
        state.n_eigensolves += self.n_eigensolves
        state.settled = max(state.settled, self.settled)
        if self.lower > state.lower:
            state.lower, state.support = self.lower, self.support


@dataclass(frozen=True, eq=False)
class PatternGiven:
    """What all nodes of a search share: A, the patterns, budgets, and how well A is known."""

    known: KnownMatrix | PartlyKnown
    patterns: Patterns
    budgets: Budgets
    error: float


class PatternSteps:
    """The steps on one node; see `node_steps.NodeSteps`."""

    def __init__(
        self, given: PatternGiven, fork: PatternFork, monitor: Monitor,
        ask: AskLoadings | None = None,
    ):  # fmt: skip
        self.known, self.patterns, self.budgets = given.known, given.patterns, given.budgets
        self.error = given.error
        self.fork, self.node, self.monitor, self.ask = fork, fork.node, monitor, ask

    @property
    def prune_level(self) -> float:
        """Bounds up to here need no more work."""
        lower = self.fork.lower
        return max(lower / (1 - 0.9 * self.budgets.gap), lower + 3 * self.error)

    def improve(self, guess: FloatArray) -> None:
        """Ask for better loadings, led by relaxed ones."""
        if self.ask is None or self.monitor.out_of_time():
            return
        found = self.ask(self.node, guess)
        if found is not None and found[0] > self.fork.lower:
            self.fork.lower, self.fork.support = found

    def round(self) -> None:
        """Close, shrink or split the node."""
        node, fork = self.node, self.fork
        teams = tuple(node.teams)
        relaxed = relaxed_teams(self.known, teams)
        if relaxed is None:
            fork.close()  # what is above it bounds it
            return
        near = None
        if fork.is_root and node.start is None:
            near = fork.support[:, np.argsort(-self.patterns.limits, kind="stable")]
        relax = TeamRelaxation(self.known, relaxed, self.patterns, start=node.start, near=near)
        found = self._relax(relax, teams)
        fork.n_eigensolves += relax.n_eigensolves
        node.n_iter += relax.n_iter
        if found is not None:
            self._take(*found)
        if fork.is_root or not _is_open(relaxed) or node.record % self.budgets.pattern_hints == 0:
            self._hint(relax, relaxed)
        if node.bound <= self.prune_level:
            fork.close()
            return
        if found is not None and self._screened(*found, teams, relax):
            return
        if self.monitor.out_of_time():
            node.start = relax.snapshot()
            return
        left = relaxed_teams(self.known, tuple(node.teams))
        if left is None or not _is_open(left):
            fork.close()  # nothing left to choose: its bound counts
            return
        place, feature = least_sure(relax, left)
        fork.split(place, feature, self.patterns, relax.snapshot())

    def _relax(self, relax: TeamRelaxation, teams: Teams) -> tuple[TeamsBound, TeamsWitness] | None:
        """Take steps as long as they pay; return the best bound on the way and its witness."""
        fork, budgets = self.fork, self.budgets
        is_leaf = not _is_open(relax.teams)
        most = budgets.pattern_iter
        if fork.is_root:
            most = budgets.pattern_root_iter
        elif is_leaf:
            most = budgets.pattern_leaf_iter
        best: tuple[TeamsBound, TeamsWitness] | None = None
        lowest, looked = math.inf, math.inf
        while True:
            for _ in range(CHECK_EVERY):
                relax.step()
                if self.monitor.out_of_time():
                    break
            witness = relax.witness()
            try:
                bound = teams_bound(self.known, teams, witness, self.patterns)
            except (FloatingPointError, np.linalg.LinAlgError):
                return best
            bound = replace(bound, value=bound.value + self.error)
            if bound.value < lowest:
                best, lowest = (bound, witness), bound.value
            if lowest <= self.prune_level or relax.n_iter >= most or self.monitor.out_of_time():
                return best
            if relax.n_iter % (3 * CHECK_EVERY) == 0:
                # Of a leaf the bound has to be found to all digits; elsewhere splitting goes on.
                share = 1e-3 if is_leaf else budgets.pattern_patience
                if looked - lowest < share * (lowest - fork.lower):
                    return best
                looked = lowest

    def _take(self, bound: TeamsBound, witness: TeamsWitness) -> None:
        """Take a bound of the node if it is better."""
        node, record = self.node, self.fork.record
        if bound.value < node.bound:
            node.bound = record.bound = bound.value
            record.witness = self.fork.keep(witness)

    def _hint(self, relax: TeamRelaxation, teams: Teams) -> None:
        """Leave loadings near the relaxed ones for who can make something of them."""
        d, columns = self.known.n_features, []
        for team, P in zip(teams, relax.P, strict=True):
            vectors = np.zeros((d, team.count))
            vectors[team.choice.features] = np.linalg.eigh(P)[1][:, ::-1][:, : team.count]
            columns.append(vectors)
        order = np.argsort(-self.patterns.limits, kind="stable")
        guess = np.empty((d, order.size))
        guess[:, order] = np.hstack(columns)
        if self.ask is not None:
            self.improve(guess)
        else:
            self.fork.hint = guess

    def _screened(
        self, bound: TeamsBound, witness: TeamsWitness, teams: Teams, relax: TeamRelaxation
    ) -> bool:
        """Cut off what the bound settles; say whether the node is done with for now."""
        fork, lower = self.fork, self.fork.lower
        removed, fixed, level, n_settled, n_smaller = [], [], -math.inf, 0, 0
        for team, (with_it, without) in zip(
            teams, team_cut_levels(bound, teams, self.patterns), strict=True
        ):
            free = team.choice.free
            gone, kept = free[with_it[free] < lower], free[without[free] < lower]
            kept = parted(self.known, np.setdiff1d(kept, gone))[0]
            level = max(
                level, with_it[gone].max(initial=-math.inf), without[kept].max(initial=-math.inf)
            )
            removed.append(gone)
            fixed.append(kept)
            n_settled += gone.size + kept.size
            n_smaller += parted(self.known, gone)[0].size + kept.size
        if not n_settled:
            return False
        n_free = sum(team.choice.free.size for team in relax.teams)
        left = tidy(settle_teams(teams, removed, fixed), self.patterns)
        number = fork.record.witness
        if not fork.witnesses or fork.witnesses[-1] is not witness:
            number = fork.keep(witness)
        fork.cut(TeamCut(number, removed, fixed, level), left)
        if left is None:
            return True
        self.node.start = relax.snapshot()
        inside = relaxed_teams(self.known, left)
        is_done = inside is not None and not _is_open(inside)
        return n_smaller > self.budgets.clearly_smaller * n_free or is_done


def relaxed_teams(known: KnownMatrix | PartlyKnown, teams: Teams) -> Teams | None:
    """Return teams on the features that are relaxed; None if one has too few of them."""
    if isinstance(known, KnownMatrix):
        return teams
    relaxed = tuple(replace(team, choice=team.choice.within(known.inside)) for team in teams)
    few = any(team.choice.features.size < team.count for team in relaxed)
    return None if few else relaxed


def _is_open(teams: Teams) -> bool:
    """Whether a component has features to choose between."""
    return any(team.choice.free.size for team in teams)


def least_sure(relax: TeamRelaxation, teams: Teams) -> tuple[int, int]:
    """Return the team, and the feature, about which the relaxation is least sure.

    Weighted by how much of it the components are made of: where a heavy feature belongs tells them
    apart. Without the weight pitprops takes two to four times as many nodes.
    """
    best, where = -1.0, (0, 0)
    for place, (team, known, z, P) in enumerate(
        zip(relax.teams, teams, relax.z, relax.P, strict=True)
    ):
        score = np.zeros(team.choice.n_features)
        share = np.clip(z / team.count, 0.0, 1.0)
        score[team.choice.features] = share * (1 - share) * np.maximum(np.diagonal(P), 1e-9)
        free = known.choice.free
        if free.size and score[free].max() > best:
            best = float(score[free].max())
            where = place, int(free[int(np.argmax(score[free]))])
    return where
