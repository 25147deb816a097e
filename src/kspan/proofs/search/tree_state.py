"""What a branch-and-bound search remembers: open nodes, the proof so far, budgets.

Plain arrays and dataclasses only, so that a search can be written to a file between two rounds
and go on from there with the same result. The nodes of a round are worked on apart from each other,
each on a `Fork` of the state, by whoever has time; `TreeState.after` brings the forks together.
"""

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index
from kspan.problem import Choice, RuledChoice
from kspan.progress import relative_gap
from kspan.proofs.check.bounds import Cones, SharedCones, dual_bound
from kspan.proofs.check.certificate import RELAXED_AS_WHOLE
from kspan.proofs.check.claims import Part
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.check.screening import Screen
from kspan.proofs.check.tree import NodeWitness, Record, Reduction, TreeWitness
from kspan.proofs.search.cone_relaxation import ConeSnapshot
from kspan.proofs.search.relaxation import Snapshot
from kspan.storage import digest, load_file, require_writable, save_file


@dataclass(frozen=True)
class Budgets:
    """Budgets and tolerances of proofs. Counts decide, so that a run can be repeated."""

    gap: float = 1e-6  # stop at (upper - lower) ≤ gap · upper
    max_nodes: int = 1_000_000_000  # looked at between rounds
    tight_nodes: int = 1  # of a proof that is not asked to go to the end
    round_size: int = 4  # nodes worked on apart from each other: more are a detour for one worker
    worth_sending: float = 0.05  # seconds that a node takes, for other processes to work on it
    workers_start: float = 3.0  # seconds that must be left: they take a while to begin
    max_iter: int = 80  # Newton steps in one node
    first_look: int = 80  # steps after which a node with a hopeless gap is given up
    hopeless: float = 1.0  # a gap with which a search is not begun, as a share of its bound
    converge: float = 0.25  # stop a node when ν's share of its gap to the incumbent is this
    root_converge: float = 0.1
    enumerate_cost: float = 1e6  # a node with fewer (supports)·(k³ + 200) is enumerated
    heuristic_every: int = 25  # one node of so many is asked for a better support
    strengthen_gap: float = 0.005  # a node is strengthened when its gap is larger
    few_features: int = 150  # up to which splitting is so cheap
    few_patience: float = 3.0  # that the gap must be so many times larger
    strengthen_iter: int = 150  # ADMM steps for its cones
    strengthen_patience: float = 0.15  # stop when some steps close less than this share of the gap
    strengthen_window: int = 1  # and so many times 25 are these steps
    # The same three where cones alone have to do: splitting brings less there.
    alone_iter: int = 3000
    alone_patience: float = 0.03  # also of the split bound in exact proofs
    alone_window: int = 4
    strengthen_again: float = 0.85  # once more when this share of their features is left
    clearly_smaller: float = 0.15  # a new start pays when this share of a node is settled
    cone_iter: int = 800  # ADMM steps at the root of a nonnegative problem
    cone_node_iter: int = 160  # and in its other nodes
    pattern_root_iter: int = 600  # ADMM steps at the root of a search over patterns
    pattern_iter: int = 45  # and in its other nodes: splitting brings more than patience
    pattern_leaf_iter: int = 240  # where nothing is left to split
    pattern_patience: float = 0.06  # stop when 45 steps close less than this share of the gap
    pattern_hints: int = 8  # one node of so many leads to loadings
    pattern_limit: int = 400  # features up to which all of them are relaxed, not those that count
    inside_iter: int = 90  # ADMM steps to see which features must be relaxed
    least_inside: int = 150  # of them
    cone_patience: float = 0.1  # stop when 60 steps close less than this share of the gap
    newton_limit: int = 1000  # features up to which Newton's method relaxes A, at O(d³) a step
    dense_limit: int = RELAXED_AS_WHOLE
    row_sweeps: int = 8  # over the rows of A, for weights of row sums
    fast_sweeps: int = 2
    n_inside: int = 500  # features that the split bound relaxes
    split_iter: int = 400
    split_enough: float = 0.0  # the gap that is small enough
    split_patience: float = 0.1  # stop when 20 steps close less than this share of the gap
    narrower: float = 0.9  # go on with the rest when so few features are left, or fewer
    sample_iter: int = 150
    path_iter: int = 14  # Newton steps for each full-size witness of the path
    path_cone_iter: int = 200  # ADMM steps for each of them when the component is nonnegative
    tail_limit: int = 4000  # features up to which A is formed for the tail of a net
    n_draws: int = 4000  # directions of a random net

    def for_cones_alone(self) -> "Budgets":
        """Return those of a node with too many features for Newton's method."""
        return replace(
            self, strengthen_iter=self.alone_iter, strengthen_patience=self.alone_patience,
            strengthen_window=self.alone_window,
        )  # fmt: skip

    def enumerates(self, choice: Choice) -> bool:
        """Whether trying all supports is cheaper than relaxing them."""
        count = choice.n_supports
        return count <= 1 or count * (choice.size**3 + 200) <= self.enumerate_cost


@dataclass(eq=False)
class Node(Part):
    """An open node: its features, the choice between them, its bound, and a warm start."""

    record: int
    features: Index
    choice: Choice
    bound: float
    start: Snapshot | ConeSnapshot | None
    shared: int = -1
    n_iter: int = 0  # steps spent on it

    def keep(self, places: Index, choice: Choice) -> None:
        """Go on with some of the features, and with another choice on all of them.

        And with those of them only that can still be chosen.
        """
        inside = choice.on(places)
        if not inside.is_empty and (left := inside.usable()).size < places.size:
            places, inside = places[left], inside.on(left)
        if places.size < self.features.size:
            self.start = None if self.start is None else self.start.restrict(places)
        self.features, self.choice = self.features[places], inside

    def shrink(self, cut: Screen) -> None:
        """Take out what is settled."""
        kept = np.delete(np.arange(self.features.size), cut.removed)
        self.keep(kept, self.choice.settled(fixed=cut.fixed))


@dataclass
class TreeState(Part):
    """State of a search. All values are in units of `scale`, `lower` rounded downwards."""

    scale: float
    support: NDArray[Any]  # features, or loadings where each component has its own
    lower: float
    upper: float = math.inf
    settled: float = -math.inf  # largest bound of what is closed or cut off
    open: list[Node] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    witnesses: list[NodeWitness] = field(default_factory=list)
    shared_cones: list[SharedCones] = field(default_factory=list)
    n_nodes: int = 0
    n_eigensolves: int = 0
    seconds: float = 0.0
    history: list[list[float]] = field(default_factory=list)

    @classmethod
    def start(
        cls, known: KnownMatrix, m: int, choice: Choice, support: Index, lower: float
    ) -> "TreeState":
        """Return a search at its root: all allowed features, bounded by the trace bound."""
        features = choice.features
        inside = choice.on(features)
        trace = dual_bound(known.on(features), None, m, inside).value
        state = cls(known.scale, np.sort(support), lower)
        state.witnesses.append(NodeWitness(features, None))
        state.records.append(Record(-1, -1, False, witness=0, bound=trace))
        state.open.append(Node(0, features, inside, trace, None))
        state.refresh()
        return state

    @property
    def gap(self) -> float:
        """``(upper - lower) / upper``; 0 when both are 0."""
        return relative_gap(self.lower, self.upper)

    def best_open(self) -> Node | None:
        """The open node with the largest bound; ties to the older one."""
        return min(self.open, key=_rank, default=None)

    def next_round(self, budgets: Budgets) -> list["Fork"]:
        """Take apart the open nodes with the largest bounds that keep the gap open.

        Who works on them, and how many at a time, must not matter: each knows of the others what
        was known before the round.
        """
        best = nsmallest(budgets.round_size, self.open, key=_rank)
        others = (n for n in best[1:] if relative_gap(self.lower, n.bound) > budgets.gap)
        return [self._fork(node) for node in (*best[:1], *others)]

    def _fork(self, node: Node) -> "Fork":
        record = self.records[node.record]
        return Fork(
            replace(node),
            replace(record, reductions=list(record.reductions)),
            self.lower,
            self.support,
            None if node.shared < 0 else self.shared_cones[node.shared],
            (len(self.records), len(self.witnesses), len(self.shared_cones)),
        )

    def after(self, forks: Sequence["Fork"]) -> "TreeState":
        """Return the state after a round; this one stays as it was, for who is interrupted."""
        done = {fork.node.record for fork in forks}
        state = replace(
            self,
            open=[node for node in self.open if node.record not in done],
            records=list(self.records),
            witnesses=list(self.witnesses),
            shared_cones=list(self.shared_cones),
        )
        for fork in forks:
            fork.join(state)
        return state

    def refresh(self) -> None:
        """Bring `upper` up to date."""
        best = self.best_open()
        self.upper = max(self.settled, -math.inf if best is None else best.bound)

    def witness(self) -> TreeWitness:
        """The proof so far, with the witnesses and cones it refers to and no others."""
        used: dict[int, int] = {}
        used_cones: dict[int, int] = {-1: -1}
        records = []
        for record in self.records:
            cuts = [
                replace(cut, witness=used.setdefault(cut.witness, len(used)))
                for cut in record.reductions
            ]
            leaf = record.kind in ("bound", "open")
            witness = used.setdefault(record.witness, len(used)) if leaf else -1
            records.append(replace(record, reductions=cuts, witness=witness))
        kept = [
            replace(witness, shared=used_cones.setdefault(witness.shared, len(used_cones) - 1))
            for witness in (self.witnesses[i] for i in used)
        ]
        cones = [self.shared_cones[i] for i in used_cones if i >= 0]
        return TreeWitness(self.scale, records, kept, cones)


def _rank(node: Node) -> tuple[float, int]:
    """Smallest for the largest bound; ties to the older node."""
    return -node.bound, node.record


@dataclass
class Fork:
    """An open node by itself: what work on it needs of the tree, and what comes of that work.

    What is new is numbered as if no other fork added anything; `join` moves the numbers on.
    """

    node: Node
    record: Record
    lower: float
    support: Index
    cones: SharedCones | None  # the node's
    sizes: tuple[int, int, int]  # records, witnesses and cones of the tree
    settled: float = -math.inf
    children: list[tuple[Record, Node]] = field(default_factory=list)
    witnesses: list[NodeWitness] = field(default_factory=list)
    new_cones: list[SharedCones] = field(default_factory=list)
    n_eigensolves: int = 0
    hint: FloatArray | None = None  # a relaxed selection that may lead to a better support
    hurried: bool = False  # whether a part was cut short for want of time
    seconds: float = 0.0  # spent on it

    @property
    def is_root(self) -> bool:
        """Whether the node is the first of all."""
        return self.node.record == 0

    @property
    def is_open(self) -> bool:
        """Whether there is more to do here."""
        return self.record.kind == "open"

    def keep(self, factor: FloatArray | None, cones: Cones | None = None) -> int:
        """Store a witness of the node and return its number."""
        shared = -1 if factor is None else self.node.shared
        self.witnesses.append(NodeWitness(self.node.features, factor, shared, cones))
        return self.sizes[1] + len(self.witnesses) - 1

    def share(self, cones: SharedCones) -> None:
        """Give the node, and all that comes of it, other cones."""
        self.new_cones.append(cones)
        self.node.shared = self.sizes[2] + len(self.new_cones) - 1

    def close(self, kind: str, bound: float, witness: int = -1) -> None:
        """Mark the node as settled with this bound."""
        self.record.kind, self.record.bound, self.record.witness = kind, bound, witness
        self.settled = max(self.settled, bound)

    def cut(self, cut: Screen, witness: int) -> None:
        """Take the features that are settled out of the node."""
        removed, fixed = self.node.features[cut.removed], self.node.features[cut.fixed]
        self.record.reductions.append(Reduction(witness, removed, fixed, cut.level))
        self.settled = max(self.settled, cut.level)
        self.node.shrink(cut)

    def split(self, place: int, start: Snapshot | ConeSnapshot | None) -> None:
        """Split the node on one feature, given by its place; its children go on from `start`."""
        node, first = self.node, self.sizes[0]
        feature, witness = int(node.features[place]), self.record.witness
        self.record.kind, self.record.children = "branched", [first, first + 1]
        with_it, without = (
            Node(number, node.features, node.choice, node.bound, start, node.shared)
            for number in self.record.children
        )
        everything = np.arange(node.features.size)
        with_it.keep(everything, node.choice.settled(fixed=[place]))
        without.keep(np.delete(np.arange(node.features.size), place), node.choice)
        for child in (with_it, without):
            included = child is with_it
            record = Record(node.record, feature, included, witness=witness, bound=node.bound)
            if child.choice.is_empty:  # nothing to bound, and `verify` finds that out by itself
                record.kind = "bound"
            self.children.append((record, child))

    def join(self, state: TreeState) -> None:
        """Add what came of it to a state that the forks before it have joined."""
        sizes = len(state.records), len(state.witnesses), len(state.shared_cones)

        def moved(number: int, kind: int) -> int:
            first = self.sizes[kind]
            return number if number < first else number + sizes[kind] - first

        def moved_record(record: Record) -> Record:
            return replace(
                record,
                reductions=[replace(r, witness=moved(r.witness, 1)) for r in record.reductions],
                witness=moved(record.witness, 1),
                children=[moved(child, 0) for child in record.children],
            )

        def moved_node(node: Node) -> Node:
            return replace(node, record=moved(node.record, 0), shared=moved(node.shared, 2))

        state.records[self.node.record] = moved_record(self.record)
        state.records += [moved_record(record) for record, _ in self.children]
        state.witnesses += [replace(w, shared=moved(w.shared, 2)) for w in self.witnesses]
        state.shared_cones += self.new_cones
        left = [self.node] if self.is_open else []
        left += [child for record, child in self.children if record.kind == "open"]
        state.open += [moved_node(node) for node in left]
        state.n_nodes += not self.is_open
        state.n_eigensolves += self.n_eigensolves
        state.settled = max(state.settled, self.settled)
        if self.lower > state.lower:
            state.lower, state.support = self.lower, self.support


@dataclass(frozen=True)
class Checkpoint(Part):
    """A search on disk, with a fingerprint of the problem it belongs to, and a digest of itself.

    The search goes on from it as from its own memory: what was changed would lead it astray.
    """

    fingerprint: str
    digest: str
    search: TreeState


@dataclass
class Keeper:
    """Writes a search to a file now and then."""

    path: str | os.PathLike[str]
    fingerprint: str
    every: float  # seconds
    warned: bool = False

    def load(self) -> TreeState | None:
        """Return the search in the file, or None without a file; refuse another problem's.

        A place that cannot be written to raises `OSError`: now, before any work is done.
        """
        require_writable(self.path)
        if not os.path.exists(self.path):
            return None
        checkpoint = load_file(self.path, (Choice, RuledChoice, *Part.known))
        if not isinstance(checkpoint, Checkpoint):
            raise ValueError(f"{os.fspath(self.path)} does not hold a checkpoint of a search.")
        if checkpoint.fingerprint != self.fingerprint:
            raise ValueError(
                f"The checkpoint {os.fspath(self.path)!r} belongs to another problem; "
                "delete it or use another path."
            )
        if checkpoint.digest != digest(checkpoint.search):
            raise ValueError(
                f"The checkpoint {os.fspath(self.path)!r} was changed after it was written; "
                "delete it or use another path."
            )
        return checkpoint.search

    def save(self, state: TreeState) -> None:
        """Write atomically. If that fails the checkpoint is lost, with a warning; never the proof.

        The disk may be full by now, or the folder gone.
        """
        try:
            save_file(self.path, Checkpoint(self.fingerprint, digest(state), state))
        except OSError as error:
            if not self.warned:
                warnings.warn(
                    f"The checkpoint {os.fspath(self.path)!r} could not be written: "
                    f"{error.strerror or error}. The proof goes on without it.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self.warned = True
