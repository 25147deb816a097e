r"""Best-first branch and bound for the row-sparse problem, with a proof that can be rechecked.

A node is a set of supports {S : forced ⊆ S ⊆ allowed, |S| = k}. It is bounded by the relaxation
(`relaxation.py`), shrunk by screening, tightened at the root (`strengthening.py`), settled by
enumeration when few supports are left, or split on one feature (`branching.py`).

The proof has one record for each node that says what was cut off by which witness, so that

    OPT ≤ max(value of the support, levels of all cuts, bounds of all leaves)

follows from A alone: `verify.py` computes it again. No incumbent's value enters the proof.
"""

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index, Mask
from kspan.certificates.bounds import UNIT, Bound, dual_bound, spread, strengthened
from kspan.certificates.branching import best_by_enumeration, branching_feature
from kspan.certificates.cone_relaxation import ConeRelaxation, ConeSnapshot
from kspan.certificates.relaxation import Relaxation, Snapshot
from kspan.certificates.screening import Screen, screen
from kspan.certificates.search import Node, Options, Search
from kspan.certificates.strengthening import strengthen
from kspan.certificates.witness import (
    TYPES,
    Cones,
    NodeWitness,
    Record,
    Reduction,
    Strengthening,
)
from kspan.progress import Monitor, Status
from kspan.storage import load_file, save_file

# scores of all features, those forced in, those left out -> a support
Heuristic = Callable[[FloatArray, Index, Index], Index]
Extra = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class Checkpoint:
    """A search on disk, with a fingerprint of the problem it belongs to."""

    fingerprint: str
    search: Search


@dataclass(frozen=True)
class Keeper:
    """Writes a search to a file now and then."""

    path: str | os.PathLike[str]
    fingerprint: str
    every: float  # seconds

    def load(self) -> Search | None:
        """Return the search in the file, or None without a file; refuse another problem's."""
        if not os.path.exists(self.path):
            return None
        types = (Checkpoint, Search, Node, Snapshot, ConeSnapshot, *TYPES)
        checkpoint = load_file(self.path, types)
        if checkpoint.fingerprint != self.fingerprint:
            raise ValueError(
                f"The checkpoint {os.fspath(self.path)!r} belongs to another problem; "
                "delete it or use another path."
            )
        search: Search = checkpoint.search
        return search

    def save(self, search: Search) -> None:
        """Write atomically."""
        save_file(self.path, Checkpoint(self.fingerprint, search))


def start_search(A: FloatArray, scale: float, m: int, k: int, forced: Mask, allowed: Index,
                 support: Index, lower: float) -> Search:  # fmt: skip
    """Return a search at its root: all allowed features, bounded by the trace bound."""
    search = Search(scale, np.sort(support), lower)
    trace = dual_bound(A[np.ix_(allowed, allowed)], None, m, k, forced[allowed]).value
    search.witnesses.append(NodeWitness(allowed, None))
    search.records.append(Record(-1, -1, False, witness=0, bound=trace))
    search.open.append(Node(0, allowed, forced[allowed], trace, None))
    search.refresh()
    return search


def value_of(A: FloatArray, support: Index, m: int) -> float:
    """Return what a support explains."""
    values = np.linalg.eigvalsh(A[np.ix_(support, support)])[-m:]
    return float(np.maximum(values, 0.0).sum())


class BranchAndBound:
    """The steps of the search; all state is in a `Search`.

    Parameters
    ----------
    search : where to go on
    A : (d, d) array in units of ``search.scale``, all features of the problem
    m, k : components and features
    n_samples : rows of the data behind A, for the rounding margin; 0 for a given covariance
    heuristic : asked for supports, led by the relaxation's z
    options, monitor : budgets; reports and early stops
    keeper : writes checkpoints
    """

    def __init__(
        self,
        search: Search,
        A: FloatArray,
        m: int,
        k: int,
        *,
        n_samples: int,
        heuristic: Heuristic | None,
        options: Options,
        monitor: Monitor,
        keeper: Keeper | None = None,
    ):
        self.s, self.A, self.m, self.k, self.n_samples = search, A, m, k, n_samples
        self.heuristic, self.options, self.monitor, self.keeper = (
            heuristic,
            options,
            monitor,
            keeper,
        )
        # A computed value on k features is off by m·4k·u times a norm ≤ k times the largest entry.
        largest = float(np.abs(np.diagonal(A)).max())
        self.error = 8 * m * k * (k + n_samples) * UNIT * largest
        self.seconds_before = search.seconds
        self.saved_at = time.perf_counter()

    # --- incumbents

    def offer(self, support: Index) -> None:
        """Take the support if it is better; its value is always computed here."""
        support, value = self.refit(np.sort(support))
        if value > self.s.lower:
            self.s.lower, self.s.support = value, support

    def refit(self, support: Index) -> tuple[Index, float]:
        """Return what is used of a support, and what it explains."""
        return support, value_of(self.A, support, self.m)

    def improve(self, node: Node, z: NDArray[Any]) -> None:
        """Ask the heuristic for a support of this node, led by the relaxation's z."""
        if self.heuristic is None:
            return
        scores = np.zeros(len(self.A))
        scores[node.allowed] = z
        excluded = np.setdiff1d(np.arange(len(self.A)), node.allowed)
        self.offer(self.heuristic(scores, node.allowed[node.forced], excluded))

    # --- leaves

    @property
    def prune_level(self) -> float:
        """Bounds up to here need no more work: they keep the final gap within ``gap``."""
        return self.s.lower / (1 - 0.9 * self.options.gap)

    def keep(self, node: Node, factor: FloatArray | None, cones: Cones | None = None) -> int:
        """Store a witness and return its number."""
        shared = -1 if factor is None else node.strengthening
        self.s.witnesses.append(NodeWitness(node.allowed, factor, shared, cones))
        return len(self.s.witnesses) - 1

    def close(self, node: Node, kind: str, bound: float, witness: int = -1) -> None:
        """Mark the node as settled with this bound."""
        record = self.s.records[node.record]
        record.kind, record.bound, record.witness = kind, bound, witness
        self.s.settled = max(self.s.settled, bound)

    def settle_small(self, node: Node) -> bool:
        """Enumerate the supports of a node when that is cheaper than relaxing it."""
        base, free = node.allowed[node.forced], node.allowed[~node.forced]
        n_free = self.k - base.size
        n_supports = math.comb(free.size, n_free)
        if n_supports > 1 and n_supports * (self.k**3 + 200) > self.options.enumerate_cost:
            return False
        support, best = best_by_enumeration(self.A, self.m, base, free, n_free)
        self.offer(support)
        self.close(node, "enumerated", best + self.error)
        return True

    def settle_diagonal(self, node: Node, A: FloatArray) -> None:
        """K = m: the value is the trace, so B = A is exact (and the relaxation has no interior)."""
        scores = np.where(node.forced, np.inf, np.diagonal(A))
        self.offer(node.allowed[np.argsort(-scores, kind="stable")[: self.k]])
        bound = dual_bound(A, None, self.m, self.k, node.forced)
        self.close(node, "bound", bound.value, self.keep(node, None))

    # --- one round

    def round(self, node: Node) -> None:
        """Close, shrink, strengthen or split one node."""
        s = self.s
        if self.settle_small(node):
            return
        A = self.A[np.ix_(node.allowed, node.allowed)]
        if self.m == self.k:
            self.settle_diagonal(node, A)
            return
        extra: Extra | None = None
        C, offset = A, None
        if node.strengthening >= 0:
            extra = spread(s.strengthenings[node.strengthening], node.allowed)
            C, offset, _ = strengthened(A, self.k, *extra)
        start = node.start if isinstance(node.start, Snapshot) else None
        relax = Relaxation(C, self.m, self.k, node.forced, offset, start=start)
        bound, cut = self.converge(node, A, relax, extra)
        node.n_iter += relax.n_eigensolves
        s.n_eigensolves += relax.n_eigensolves
        witness = self.keep(node, relax.witness())
        if self.bounded(node, bound.value, witness):
            return
        if cut is not None:
            self.shrink(node, relax, witness, cut)
        elif not self.strengthen(node, A, relax):
            self.split(node, relax, branching_feature(relax))

    def bounded(self, node: Node, value: float, witness: int) -> bool:
        """Take a bound of the node if it is better; close the node if it is good enough."""
        record = self.s.records[node.record]
        if value < node.bound:
            node.bound, record.bound, record.witness = value, value, witness
        if node.bound > self.prune_level:
            return False
        self.close(node, "bound", node.bound, record.witness)
        return True

    def converge(
        self, node: Node, A: FloatArray, relax: Relaxation, extra: Extra | None
    ) -> tuple[Bound, Screen | None]:
        """Newton steps until the node can be pruned, can shrink, or has no more to gain."""
        s, options, is_root = self.s, self.options, node.record == 0
        share = options.root_converge if is_root else options.converge
        look_every = 4 if is_root else 3
        while True:
            enough = relax.upper <= self.prune_level
            spent = relax.n_eigensolves + node.n_iter >= options.max_iter
            done = relax.stalled or spent or self.out_of_time()
            if not (enough or done):
                relax.wanted = share * (relax.upper - s.lower)
                done = relax.precision <= relax.wanted and relax.centrality < 0.5
            if not (enough or done):
                relax.step()
                if relax.n_eigensolves % look_every:
                    continue
            if is_root and (done or relax.n_eigensolves % 8 == 0):
                self.improve(node, relax.z)
            bound = self.evaluate(node, A, relax, extra)
            if bound.value <= self.prune_level:
                return bound, None
            cut = screen(bound, node.forced, self.k, s.lower - self.error)
            settled = cut.removed.size + cut.fixed.size
            # A new start on the smaller problem pays when it is clearly smaller.
            if settled and (done or enough or settled > 0.15 * relax.free.size):
                return bound, cut
            if done or enough:
                return bound, None

    def evaluate(self, node: Node, A: FloatArray, relax: Relaxation, extra: Extra | None) -> Bound:
        """The rigorous bound; the trace bound if the relaxation went astray."""
        self.s.n_eigensolves += 1
        try:
            return dual_bound(
                A, relax.witness(), self.m, self.k, node.forced, extra, self.n_samples
            )
        except (FloatingPointError, np.linalg.LinAlgError):
            relax.discard()
            return dual_bound(A, None, self.m, self.k, node.forced)

    def shrink(
        self, node: Node, relax: Relaxation | ConeRelaxation, witness: int, cut: Screen
    ) -> None:
        """Take the features that are settled out of the node."""
        removed, fixed = node.allowed[cut.removed], node.allowed[cut.fixed]
        self.s.records[node.record].reductions.append(Reduction(witness, removed, fixed, cut.level))
        self.s.settled = max(self.s.settled, cut.level)
        kept = np.delete(np.arange(node.allowed.size), cut.removed)
        forced = node.forced.copy()
        forced[cut.fixed] = True
        node.start = relax.snapshot().restrict(kept)
        node.allowed, node.forced = node.allowed[kept], forced[kept]

    def strengthen(self, node: Node, A: FloatArray, relax: Relaxation) -> bool:
        """Tighten a root that is far from settled; the whole tree inherits H and β."""
        s = self.s
        small = node.bound - s.lower < self.options.strengthen_gap * node.bound
        if node.record > 0 or node.strengthening >= 0 or small or self.out_of_time():
            return False
        found = strengthen(A, self.m, self.k, node.forced, relax, s.lower)
        if found is None:
            return False
        s.n_eigensolves += found.n_eigensolves
        s.strengthenings.append(Strengthening(node.allowed[found.features], found.H, found.beta))
        node.strengthening, node.start = len(s.strengthenings) - 1, relax.snapshot()
        return True

    def split(self, node: Node, relax: Relaxation | ConeRelaxation, place: int) -> None:
        """Split the node on one feature, given by its place among the allowed ones."""
        s, first = self.s, len(self.s.records)
        if s.n_nodes % self.options.heuristic_every == 0:
            self.improve(node, relax.z)
        record, feature = s.records[node.record], int(node.allowed[place])
        kept = np.delete(np.arange(node.allowed.size), place)
        forced = node.forced.copy()
        forced[place] = True
        start = relax.snapshot()
        for included in (True, False):
            s.records.append(
                Record(node.record, feature, included, witness=record.witness, bound=node.bound)
            )
        record.kind, record.children = "branched", [first, first + 1]
        with_it = Node(first, node.allowed, forced, node.bound, start, node.strengthening)
        without = Node(
            first + 1, node.allowed[kept], node.forced[kept], node.bound,
            start.restrict(kept), node.strengthening,
        )  # fmt: skip
        s.open += [with_it, without]

    # --- main loop

    def out_of_time(self) -> bool:
        """Whether the search must stop now."""
        self.s.seconds = self.seconds_before + self.monitor.seconds
        return self.monitor.out_of_time()

    def report(self) -> None:
        """Bring the bounds up to date and tell them."""
        s = self.s
        s.refresh()
        best = s.best_open()
        s.seconds = self.seconds_before + self.monitor.seconds
        s.history.append([s.seconds, s.lower * s.scale, s.upper * s.scale])
        self.monitor.report(
            s.lower * s.scale, upper=s.upper * s.scale, n_nodes=s.n_nodes, n_open=len(s.open),
            n_features_left=0 if best is None else best.allowed.size,
        )  # fmt: skip
        if self.keeper is not None:
            now = time.perf_counter()
            if now - self.saved_at >= self.keeper.every:
                self.keeper.save(s)
                self.saved_at = now

    def advance(self, node: Node) -> None:
        """One round, undone when it is interrupted."""
        s, saved = self.s, _Saved(self.s, node)
        try:
            self.round(node)
            if s.records[node.record].kind != "open":
                s.open.remove(node)
                s.n_nodes += 1
        except BaseException:
            saved.restore(s, node)
            raise

    def run(self) -> Search:
        """Go on until the gap is closed, a budget is spent, or somebody says stop."""
        s = self.s
        try:
            self.report()
            while s.gap > self.options.gap and s.n_nodes < self.options.max_nodes:
                node = s.best_open()
                if node is None or self.monitor.stopped is not None or self.out_of_time():
                    break
                self.advance(node)
                self.report()
        except KeyboardInterrupt:
            self.monitor.stopped = Status.INTERRUPTED
        s.refresh()
        if self.keeper is not None:
            self.keeper.save(s)
        return s


class _Saved:
    """What a round may change, as it was before."""

    def __init__(self, s: Search, node: Node):
        record = s.records[node.record]
        self.node = replace(node)
        self.record = replace(record, reductions=list(record.reductions))
        self.open = list(s.open)
        self.sizes = len(s.records), len(s.witnesses), len(s.strengthenings)
        self.values = (s.lower, s.support, s.settled, s.n_nodes)

    def restore(self, s: Search, node: Node) -> None:
        for name, value in vars(self.node).items():
            setattr(node, name, value)
        s.records[node.record] = self.record
        s.open = self.open
        n_records, n_witnesses, n_strengthenings = self.sizes
        del s.records[n_records:], s.witnesses[n_witnesses:], s.strengthenings[n_strengthenings:]
        s.lower, s.support, s.settled, s.n_nodes = self.values
