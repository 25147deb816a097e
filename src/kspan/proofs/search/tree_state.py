"""What a branch-and-bound search remembers: open nodes, the proof so far, budgets.

Plain arrays and dataclasses only, so that a search can be written to a file between two rounds
and go on from there with the same result.
"""

import math
import os
import warnings
from dataclasses import dataclass, field, replace

import numpy as np

from kspan.arrays import Index
from kspan.problem import Choice
from kspan.progress import relative_gap
from kspan.proofs.check.bounds import SharedCones, dual_bound
from kspan.proofs.check.claims import Part
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.check.screening import Screen
from kspan.proofs.check.tree import NodeWitness, Record, TreeWitness
from kspan.proofs.search.cone_relaxation import ConeSnapshot
from kspan.proofs.search.relaxation import Snapshot
from kspan.storage import digest, load_file, require_writable, save_file


@dataclass(frozen=True)
class Budgets:
    """Budgets and tolerances of proofs. Counts decide, so that a run can be repeated."""

    gap: float = 1e-6  # stop at (upper - lower) ≤ gap · upper
    max_nodes: int = 1_000_000_000
    max_iter: int = 80  # Newton steps in one node
    converge: float = 0.25  # stop a node when ν's share of its gap to the incumbent is this
    root_converge: float = 0.1
    enumerate_cost: float = 1e6  # a node with fewer (supports)·(k³ + 200) is enumerated
    heuristic_every: int = 25  # nodes
    strengthen_gap: float = 0.005  # a node is strengthened when its gap is larger
    strengthen_iter: int = 150  # ADMM steps for its cones
    strengthen_patience: float = 0.15  # stop when 25 steps close less than this share of the gap
    alone_iter: int = 1000  # the same two where cones alone have to do: splitting brings less there
    alone_patience: float = 0.03
    strengthen_again: float = 0.6  # once more when this share of their features is left
    clearly_smaller: float = 0.15  # a new start pays when this share of a node is settled
    cone_iter: int = 800  # ADMM steps at the root of a nonnegative problem
    cone_node_iter: int = 160  # and in its other nodes
    cone_patience: float = 0.1  # stop when 60 steps close less than this share of the gap
    newton_limit: int = 1000  # features up to which Newton's method relaxes A, at O(d³) a step
    dense_limit: int = 2500  # up to which A is relaxed as a whole: cones take 60 d² numbers
    row_sweeps: int = 8  # over the rows of A, for weights of row sums
    fast_sweeps: int = 2
    n_inside: int = 500  # features that the split bound relaxes
    split_iter: int = 400
    split_patience: float = 0.04  # stop when 20 steps close less than this share of the gap
    narrower: float = 0.9  # go on with the rest when so few features are left, or fewer
    sample_iter: int = 150
    path_iter: int = 14  # Newton steps for each full-size witness of the path
    path_cone_iter: int = 200  # ADMM steps for each of them when the component is nonnegative
    tail_limit: int = 4000  # features up to which A is formed for the tail of a net
    n_draws: int = 4000  # directions of a random net

    def for_cones_alone(self) -> "Budgets":
        """Return those of a node with too many features for Newton's method."""
        return replace(
            self, strengthen_iter=self.alone_iter, strengthen_patience=self.alone_patience
        )

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
        """Go on with some of the features, and with another choice on all of them."""
        self.start = None if self.start is None else self.start.restrict(places)
        self.features, self.choice = self.features[places], choice.on(places)

    def shrink(self, cut: Screen) -> None:
        """Take out what is settled."""
        kept = np.delete(np.arange(self.features.size), cut.removed)
        self.keep(kept, self.choice.settled(fixed=cut.fixed))


@dataclass
class TreeState(Part):
    """State of a search. All values are in units of `scale`, `lower` rounded downwards."""

    scale: float
    support: Index
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
        return max(self.open, key=lambda node: (node.bound, -node.record), default=None)

    def refresh(self) -> None:
        """Bring `upper` up to date."""
        best = self.best_open()
        self.upper = max(self.settled, -math.inf if best is None else best.bound)

    def witness(self) -> TreeWitness:
        """The proof so far, with the witnesses it refers to and no others."""
        used: dict[int, int] = {}
        records = []
        for record in self.records:
            cuts = [
                replace(cut, witness=used.setdefault(cut.witness, len(used)))
                for cut in record.reductions
            ]
            leaf = record.kind in ("bound", "open")
            witness = used.setdefault(record.witness, len(used)) if leaf else -1
            records.append(replace(record, reductions=cuts, witness=witness))
        kept = [self.witnesses[i] for i in used]
        return TreeWitness(self.scale, records, kept, self.shared_cones)


class Undo:
    """What a round may change, as it was before."""

    def __init__(self, state: TreeState, node: Node):
        record = state.records[node.record]
        self.node = replace(node)
        self.record = replace(record, reductions=list(record.reductions))
        self.open = list(state.open)
        self.sizes = len(state.records), len(state.witnesses), len(state.shared_cones)
        self.values = (state.lower, state.support, state.settled, state.n_nodes)

    def restore(self, state: TreeState, node: Node) -> None:
        """Put everything back."""
        for name, value in vars(self.node).items():
            setattr(node, name, value)
        state.records[node.record] = self.record
        state.open = self.open
        n_records, n_witnesses, n_shared = self.sizes
        del state.records[n_records:], state.witnesses[n_witnesses:]
        del state.shared_cones[n_shared:]
        state.lower, state.support, state.settled, state.n_nodes = self.values


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
        checkpoint = load_file(self.path, (Choice, *Part.known))
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
