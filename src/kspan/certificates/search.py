"""What a branch-and-bound search remembers: open nodes, the proof so far, budgets.

Plain arrays and dataclasses only, so that a search can be written to a file between two rounds
and go on from there with the same result.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from kspan.arrays import Index, Mask
from kspan.certificates.cone_relaxation import ConeSnapshot
from kspan.certificates.relaxation import Snapshot
from kspan.certificates.witness import NodeWitness, Record, Strengthening, TreeWitness


@dataclass(eq=False)
class Node:
    """An open node: its allowed features, which of them are forced, and a warm start."""

    record: int
    allowed: Index
    forced: Mask
    bound: float
    start: Snapshot | ConeSnapshot | None
    strengthening: int = -1
    n_iter: int = 0  # steps spent on it


@dataclass(frozen=True)
class Options:
    """Budgets and tolerances. Counts decide, so that a run can be repeated."""

    gap: float = 1e-6  # stop at (upper - lower) ≤ gap · upper
    max_nodes: int = 1_000_000_000
    max_iter: int = 80  # Newton steps in one node
    converge: float = 0.25  # stop a node when ν's share of its gap to the incumbent is this
    root_converge: float = 0.1
    enumerate_cost: float = 1e6  # a node with fewer (supports)·(k³ + 200) is enumerated
    heuristic_every: int = 25  # nodes
    strengthen_gap: float = 0.005  # the root is strengthened when its gap is larger
    cone_iter: int = 800  # ADMM steps at the root of a nonnegative problem
    cone_node_iter: int = 160  # and in its other nodes
    cone_patience: float = 0.1  # stop when 60 steps close less than this share of the gap


@dataclass
class Search:
    """State of a search. All values are in units of `scale`."""

    scale: float
    support: Index
    lower: float
    upper: float = math.inf
    settled: float = -math.inf  # largest bound of what is closed or cut off
    open: list[Node] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    witnesses: list[NodeWitness] = field(default_factory=list)
    strengthenings: list[Strengthening] = field(default_factory=list)
    n_nodes: int = 0
    n_eigensolves: int = 0
    seconds: float = 0.0
    history: list[list[float]] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """``(upper - lower) / upper``; 0 when both are 0."""
        return max(0.0, (self.upper - self.lower) / self.upper) if self.upper > 0 else 0.0

    def best_open(self) -> Node | None:
        """The open node with the largest bound; ties to the older one."""
        return max(self.open, key=lambda node: (node.bound, -node.record), default=None)

    def refresh(self) -> None:
        """Bring `upper` up to date."""
        best = self.best_open()
        self.upper = max(self.settled, self.lower, -math.inf if best is None else best.bound)

    def settled_at_root(self) -> tuple[Index, Index]:
        """Features in every, and in no, optimal support, as the root's cuts prove."""
        cuts = self.records[0].reductions
        empty = np.empty(0, dtype=np.intp)
        fixed = np.concatenate([empty, *(cut.fixed for cut in cuts)])
        removed = np.concatenate([empty, *(cut.removed for cut in cuts)])
        return np.sort(fixed), np.sort(removed)

    def proof(self) -> TreeWitness:
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
        return TreeWitness(self.scale, records, kept, self.strengthenings)
