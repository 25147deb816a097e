r"""Best-first branch and bound for the row-sparse problem, with a proof that can be rechecked.

A node is a set of supports: some features, and the choice between them. It is bounded by the
relaxation (`relaxation.py`), shrunk by screening, tightened by row cones (`strengthening.py`),
settled by enumeration when few supports are left, or split on one feature.

The proof has one record for each node that says what was cut off by which witness, so that

    OPT ≤ max(value of the support, levels of all cuts, bounds of all leaves)

follows from A alone: `kspan.proofs.check.tree` computes it again. No incumbent's value enters it.
"""

import time
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index
from kspan.linalg.selection import places_in
from kspan.problem import Choice
from kspan.progress import Monitor
from kspan.proofs.check.bounds import Bound, Cones, SharedCones, dual_bound, with_cones
from kspan.proofs.check.claims import Problem
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.check.screening import Screen, screen
from kspan.proofs.check.tree import NodeWitness, Record, Reduction
from kspan.proofs.search.cone_relaxation import ConeSnapshot
from kspan.proofs.search.proof import Heuristic
from kspan.proofs.search.relaxation import Relaxation, Snapshot
from kspan.proofs.search.strengthening import Strengthened, strengthen, taking_part
from kspan.proofs.search.tree_state import Budgets, Keeper, Node, TreeState, Undo


def branching_feature(relax: Relaxation) -> int:
    """Largest product of the predicted losses of z_j = 0 and z_j = 1; ties to the first."""
    z, z1 = relax.z[relax.free], relax.z1[relax.free]
    w = z * z1
    score = w
    if relax.kkt is not None:
        try:
            # in logits; a step of the logit moves z by w
            variance = -np.diagonal(np.linalg.inv(relax.kkt))[: len(w)] * w**2
            usable = np.isfinite(variance) & (variance > 0) & (w > 1e-3)
            if usable.any():
                score = np.zeros(len(w))
                score[usable] = w[usable] / variance[usable]
        except LinAlgError:
            pass
    return int(relax.free[int(np.argmax(score))])


def best_by_enumeration(
    A: FloatArray, m: int, choice: Choice, monitor: Monitor
) -> tuple[Index, float] | None:
    """Return the best of all supports by batched eigenvalues; None when time is up."""
    best, value = None, -np.inf
    for supports in choice.supports(1 + 2**20 // choice.size**2):
        if best is not None and monitor.out_of_time():
            return None
        blocks = A[supports[:, :, None], supports[:, None, :]]
        totals = np.linalg.eigvalsh(blocks)[:, -m:].sum(axis=1)
        if totals.max() > value:
            best, value = supports[int(np.argmax(totals))], float(totals.max())
    return None if best is None else (best, value)


# Of the time that is left when strengthening begins: the relaxation after it takes longer. Where
# cones alone have to do, there is only the bound left to compute.
STRENGTHENING_SHARE, CONES_ALONE_SHARE = 0.4, 0.9


class BranchAndBound:
    """The steps of the search; all state is in a `TreeState`.

    Parameters
    ----------
    problem : what is searched
    state : where to go on
    known : A on all features of the problem, in units of ``state.scale``
    heuristic : asked for supports, led by the relaxation's z
    budgets, monitor : when to stop; reports
    keeper : writes checkpoints
    ceiling : a bound that holds anyway, for reports
    """

    def __init__(
        self,
        problem: Problem,
        state: TreeState,
        known: KnownMatrix,
        *,
        heuristic: Heuristic | None,
        budgets: Budgets,
        monitor: Monitor,
        keeper: Keeper | None = None,
        ceiling: float = np.inf,
    ):
        self.problem, self.s, self.known, self.m = problem, state, known, problem.n_components
        self.heuristic, self.budgets, self.monitor = heuristic, budgets, monitor
        self.keeper, self.ceiling = keeper, ceiling
        self.error = known.value_error(self.m, problem.choice)
        self.unseen = known.uncertainty.ky_fan(self.m)
        self.seconds_before = state.seconds
        self.saved_at = time.perf_counter()
        self.hurried = False  # whether a part was cut short for want of time

    # --- incumbents

    def offer(self, support: Index) -> None:
        """Take the support if it is better; its value is always computed here."""
        if not support.size:
            return  # a nonnegative component may use fewer features, but not none
        support, value = self.refit(np.sort(support))
        if value > self.s.lower:
            self.s.lower, self.s.support = value, support

    def refit(self, support: Index) -> tuple[Index, float]:
        """Return what is used of a support, and what it explains at least."""
        return support, value_of(self.known, support, self.m) - self.error

    def improve(self, node: Node, z: NDArray[Any]) -> None:
        """Ask the heuristic for a support of this node, led by the relaxation's z."""
        if self.heuristic is None or self.out_of_time():
            return
        scores = np.zeros(self.problem.n_features)
        scores[node.features] = z
        fixed = node.features[node.choice.include]
        choice = self.problem.choice.within(node.features).settled(fixed=fixed)
        inner = self.monitor.inner(quiet=True)
        self.offer(self.heuristic(self.problem, scores, choice, inner))

    # --- leaves

    @property
    def prune_level(self) -> float:
        """Bounds up to here need no more work.

        They keep the final gap within ``gap``; or the incumbent's own leaf will have no better one,
        as A is not known any better.
        """
        own = self.s.lower + 2 * self.error + self.unseen
        return max(self.s.lower / (1 - 0.9 * self.budgets.gap), own)

    def keep(self, node: Node, factor: FloatArray | None, cones: Cones | None = None) -> int:
        """Store a witness and return its number."""
        shared = -1 if factor is None else node.shared
        self.s.witnesses.append(NodeWitness(node.features, factor, shared, cones))
        return len(self.s.witnesses) - 1

    def close(self, node: Node, kind: str, bound: float, witness: int = -1) -> None:
        """Mark the node as settled with this bound."""
        record = self.s.records[node.record]
        record.kind, record.bound, record.witness = kind, bound, witness
        self.s.settled = max(self.s.settled, bound)

    def settle_small(self, node: Node, known: KnownMatrix) -> bool:
        """Enumerate the supports of a node when that is cheaper than relaxing it."""
        if not self.budgets.enumerates(node.choice):
            return False
        found = best_by_enumeration(known.A, self.m, node.choice, self.monitor)
        if found is None:
            return False
        self.offer(node.features[found[0]])
        return self.close_enumerated(node, found[1] + self.error + self.unseen)

    def close_enumerated(self, node: Node, bound: float) -> bool:
        """Settle a node all of whose supports were tried."""
        self.close(node, "enumerated", bound)
        return True

    def settle_diagonal(self, node: Node, known: KnownMatrix) -> None:
        """K = m: the value is the trace, so B = A is exact (and the relaxation has no interior)."""
        self.offer(node.features[node.choice.select(known.variances)])
        bound = dual_bound(known, None, self.m, node.choice)
        self.close(node, "bound", bound.value, self.keep(node, None))

    # --- one round

    def round(self, node: Node) -> None:
        """Close, shrink, strengthen or split one node."""
        known = self.known.on(node.features)
        if self.settle_small(node, known) or self.out_of_time():
            return
        if self.m == node.choice.size:
            self.settle_diagonal(node, known)
            return
        if isinstance(node.start, ConeSnapshot) or self.is_large(node):
            self.round_with_cones(node, known)
            return
        cones = None if node.shared < 0 else self.s.shared_cones[node.shared].on(node.features)
        relax = self.relaxation(node, known, cones)
        bound, cut = self.converge(node, known, relax, cones)
        node.n_iter += relax.n_eigensolves
        self.s.n_eigensolves += relax.n_eigensolves
        witness = self.keep(node, relax.witness())
        if self.bounded(node, bound.value, witness):
            return
        if cut is not None:
            self.shrink(node, relax.snapshot(), witness, cut)
        elif self.out_of_time():
            node.start = relax.snapshot()  # whoever goes on from here does so at this node
        elif not self.strengthened(node, known, relax):
            self.split(node, relax.z, relax.snapshot(), branching_feature(relax))

    def is_large(self, node: Node) -> bool:
        """Whether a node has too many features for Newton's method: cones alone have to do."""
        return node.features.size > self.budgets.newton_limit

    def round_with_cones(self, node: Node, known: KnownMatrix) -> None:
        """Look for cones on all features of a node; split a large one that they leave as it is."""
        before = node.features.size
        start = node.start if isinstance(node.start, ConeSnapshot) else None
        found = self.strengthen(node, known, np.arange(before), start)
        settled = self.s.records[node.record].kind != "open" or node.features.size < before
        if settled or self.out_of_time() or not self.is_large(node):
            return
        if found is None:
            raise FloatingPointError("no row cones for a node of many features")
        free = node.choice.free
        undecided = found.z[free] * (1 - found.z[free])
        self.split(node, found.z, found.start, int(free[int(np.argmax(undecided))]))

    def relaxation(self, node: Node, known: KnownMatrix, cones: Cones | None) -> Relaxation:
        """Return the relaxation of a node, at its warm start."""
        C, offset = known.A, None
        if cones is not None:
            C, offset, _ = with_cones(known.A, cones, node.choice.size - 1)
        start = node.start if isinstance(node.start, Snapshot) else None
        return Relaxation(C, self.m, node.choice, offset=offset, start=start, monitor=self.monitor)

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
        self, node: Node, known: KnownMatrix, relax: Relaxation, cones: Cones | None
    ) -> tuple[Bound, Screen | None]:
        """Newton steps until the node can be pruned, can shrink, or has no more to gain."""
        is_root = node.record == 0
        look_every = 4 if is_root else 3
        while True:
            last = relax.upper <= self.prune_level or self.converged(node, relax)
            if not last:
                relax.step()
                if relax.n_eigensolves % look_every:
                    continue
            if is_root and (last or relax.n_eigensolves % 8 == 0):
                self.improve(node, relax.z)
            bound = self.evaluate(node, known, relax, cones)
            if bound.value <= self.prune_level:
                return bound, None
            cut = screen(bound, node.choice, self.s.lower)
            if cut.n_settled and (
                last or cut.n_settled > self.budgets.clearly_smaller * relax.free.size
            ):
                return bound, cut
            if last:
                return bound, None

    def converged(self, node: Node, relax: Relaxation) -> bool:
        """Whether more steps would gain little, or there is no budget for them."""
        budgets = self.budgets
        spent = relax.n_eigensolves + node.n_iter >= budgets.max_iter
        if relax.stalled or spent or self.out_of_time():
            return True
        share = budgets.root_converge if node.record == 0 else budgets.converge
        relax.wanted = share * (relax.upper - self.s.lower)
        return relax.precision <= relax.wanted and relax.centrality < 0.5

    def evaluate(
        self, node: Node, known: KnownMatrix, relax: Relaxation, cones: Cones | None
    ) -> Bound:
        """The rigorous bound; the trace bound if the relaxation went astray."""
        self.s.n_eigensolves += 1
        try:
            return dual_bound(known, relax.witness(), self.m, node.choice, cones)
        except (FloatingPointError, np.linalg.LinAlgError):
            relax.discard()
            return dual_bound(known, None, self.m, node.choice)

    def shrink(
        self, node: Node, start: Snapshot | ConeSnapshot | None, witness: int, cut: Screen
    ) -> None:
        """Take the features that are settled out of the node, and go on from a point there."""
        removed, fixed = node.features[cut.removed], node.features[cut.fixed]
        self.s.records[node.record].reductions.append(Reduction(witness, removed, fixed, cut.level))
        self.s.settled = max(self.s.settled, cut.level)
        node.start = start
        node.shrink(cut)

    def strengthened(self, node: Node, known: KnownMatrix, relax: Relaxation) -> bool:
        """Look for row cones if that is worth it; say whether there are new ones."""
        s = self.s
        worth = self.worth_cones(node, relax)
        # Those that had cones keep them: features that take part only get more, and it ends.
        had = node.features[:0] if node.shared < 0 else s.shared_cones[node.shared].features
        features = taking_part(node.choice, np.where(np.isin(node.features, had), 1.0, relax.z))
        return worth and self.strengthen(node, known, features) is not None

    def worth_cones(self, node: Node, relax: Relaxation) -> bool:
        """Whether row cones may help: far from settled, and none yet that fit.

        Those it has fit no more when few of their features are left, or much of z is elsewhere.
        """
        if node.bound - self.s.lower < self.budgets.strengthen_gap * node.bound:
            return False
        if node.shared < 0:
            return True
        known = self.s.shared_cones[node.shared].features
        elsewhere = float(relax.z[~np.isin(node.features, known)].sum())
        few = node.features.size <= self.budgets.strengthen_again * known.size
        return few or elsewhere > 0.1 * node.choice.size

    def strengthen(
        self, node: Node, known: KnownMatrix, features: Index, start: ConeSnapshot | None = None
    ) -> Strengthened | None:
        """Look for row cones, which the subtree inherits; they may settle or cut the node at once.

        Returns None when there are none.
        """
        s = self.s
        # Some of the time has to be left to use what is found.
        share, budgets = STRENGTHENING_SHARE, self.budgets
        if self.is_large(node):
            share, budgets = CONES_ALONE_SHARE, budgets.for_cones_alone()
        monitor = self.monitor.inner(quiet=True, share=share)
        found = strengthen(
            known, self.m, node.choice, features, lower=s.lower, enough=self.prune_level,
            budgets=budgets, monitor=monitor, start=start,
            near=places_in(s.support, node.features),
        )  # fmt: skip
        self.hurried = self.hurried or monitor.stopped is not None
        node.start = None
        if found is None:
            return None
        s.n_eigensolves += found.n_eigensolves
        s.shared_cones.append(SharedCones(node.features[found.features], found.cones))
        node.shared = len(s.shared_cones) - 1
        if found.bound is None:
            return found
        if node.record == 0:
            self.improve(node, found.z)
        witness, cut = self.keep(node, found.factor), screen(found.bound, node.choice, s.lower)
        if not self.bounded(node, found.bound.value, witness) and cut.n_settled:
            smaller = cut.n_settled > self.budgets.clearly_smaller * node.choice.free.size
            self.shrink(node, found.start if smaller else None, witness, cut)
        return found

    def split(
        self, node: Node, z: NDArray[Any], start: Snapshot | ConeSnapshot | None, place: int
    ) -> None:
        """Split the node on one feature, given by its place among the node's.

        Parameters
        ----------
        node : Node
        z : its relaxed selection
        start : where its children go on
        place : of the feature
        """
        s, first = self.s, len(self.s.records)
        if s.n_nodes % self.budgets.heuristic_every == 0:
            self.improve(node, z)
        record, feature = s.records[node.record], int(node.features[place])
        for included in (True, False):
            s.records.append(
                Record(node.record, feature, included, witness=record.witness, bound=node.bound)
            )
        record.kind, record.children = "branched", [first, first + 1]
        with_it, without = (
            Node(index, node.features, node.choice, node.bound, start, node.shared)
            for index in record.children
        )
        with_it.choice = node.choice.settled(fixed=[place])
        without.keep(np.delete(np.arange(node.features.size), place), node.choice)
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
        upper = min(s.upper * s.scale, self.ceiling)
        s.history.append([s.seconds, s.lower * s.scale, upper])
        self.monitor.report(
            s.lower * s.scale, upper=upper, n_nodes=s.n_nodes, n_open=len(s.open),
            n_features_left=0 if best is None else best.features.size,
        )  # fmt: skip
        if self.keeper is not None:
            now = time.perf_counter()
            if now - self.saved_at >= self.keeper.every:
                self.keeper.save(s)
                self.saved_at = now

    def advance(self, node: Node) -> None:
        """One round, undone when it is interrupted."""
        s, before = self.s, Undo(self.s, node)
        try:
            self.round(node)
            if s.records[node.record].kind != "open":
                s.open.remove(node)
                s.n_nodes += 1
        except BaseException:
            before.restore(s, node)
            raise

    def run(self) -> None:
        """Go on until the gap is closed, a budget is spent, or somebody says stop."""
        s = self.s
        with self.monitor.interruptible():
            self.report()
            while s.gap > self.budgets.gap and s.n_nodes < self.budgets.max_nodes:
                node = s.best_open()
                if node is None or self.monitor.stopped is not None or self.out_of_time():
                    break
                self.advance(node)
                self.report()
        s.refresh()
        if self.keeper is not None:
            with self.monitor.interruptible():  # the proof is done
                self.keeper.save(s)


def value_of(known: KnownMatrix, support: Index, m: int) -> float:
    """Return what a support explains."""
    values = np.linalg.eigvalsh(known.on(support).A)[-m:]
    return float(np.maximum(values, 0.0).sum())
