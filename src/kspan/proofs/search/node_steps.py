r"""What is done with one node of a search: bounded, shrunk, tightened, settled or split.

A node is a set of supports: some features, and the choice between them. It is bounded by the
relaxation (`relaxation.py`), shrunk by screening, tightened by row cones (`strengthening.py`),
settled by enumeration when few supports are left, or split on one feature. All that comes of it
depends on the fork that it is given, and on nothing else but the clock.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index
from kspan.linalg.machine import one_blas_thread
from kspan.linalg.selection import places_in
from kspan.problem import Choice
from kspan.progress import Deadline, Monitor
from kspan.proofs.check.bounds import Bound, Cones, SharedCones, dual_bound, with_cones
from kspan.proofs.check.claims import Problem
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.check.screening import Screen, screen
from kspan.proofs.search.cone_relaxation import ConeSnapshot
from kspan.proofs.search.relaxation import Relaxation, Snapshot
from kspan.proofs.search.strengthening import Strengthened, strengthen, taking_part
from kspan.proofs.search.tree_state import Budgets, Fork, Node

# From a node and a relaxed selection of its features to a support.
Ask = Callable[[Node, NDArray[Any]], Index]


def branching_feature(relax: Relaxation) -> int:
    """Largest product of the predicted losses of z_j = 0 and z_j = 1; ties to the first."""
    z, z1 = relax.z[relax.free], relax.z1[relax.free]
    w = z * z1
    score = w
    if relax.kkt is not None and relax.limits is None:
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


@dataclass(frozen=True, eq=False)
class Given:
    """What all nodes of a search share.

    Parameters
    ----------
    known : A on all features of the problem, in units of the search
    m : components
    budgets : Budgets
    error : what the computed value of a support may be off by
    unseen : what A has not seen of it
    """

    known: KnownMatrix
    m: int
    budgets: Budgets
    error: float
    unseen: float

    @classmethod
    def of(cls, problem: Problem, known: KnownMatrix, budgets: Budgets) -> "Given":
        """Take it from a problem."""
        m = problem.n_components
        error, unseen = known.value_error(m, problem.choice), known.uncertainty.ky_fan(m)
        return cls(known, m, budgets, error, unseen)


class NodeSteps:
    """The steps on one node.

    Parameters
    ----------
    given : what all nodes share
    fork : the node; what comes of the steps is added to it
    monitor : when to stop
    ask : gives supports; the root asks at once, other nodes leave a hint for whoever can
    """

    def __init__(self, given: Given, fork: Fork, monitor: Monitor, ask: Ask | None = None):
        self.known, self.m, self.budgets = given.known, given.m, given.budgets
        self.error, self.unseen = given.error, given.unseen
        self.fork, self.node, self.monitor, self.ask = fork, fork.node, monitor, ask

    def out_of_time(self) -> bool:
        """Whether the work must stop now."""
        return self.monitor.out_of_time()

    # --- incumbents

    def offer(self, support: Index) -> None:
        """Take the support if it is better; its value is always computed here."""
        if not support.size:
            return  # a nonnegative component may use fewer features, but not none
        support, value = self.refit(np.sort(support))
        if value > self.fork.lower:
            self.fork.lower, self.fork.support = value, support

    def refit(self, support: Index) -> tuple[Index, float]:
        """Return what is used of a support, and what it explains at least."""
        return support, value_of(self.known, support, self.m) - self.error

    def improve(self, z: NDArray[Any]) -> None:
        """Ask for a better support in this node, led by the relaxation's z."""
        if self.ask is not None and not self.out_of_time():
            self.offer(self.ask(self.node, z))

    # --- leaves

    @property
    def prune_level(self) -> float:
        """Bounds up to here need no more work.

        They keep the final gap within ``gap``; or the incumbent's own leaf will have no better one,
        as A is not known any better.
        """
        lower = self.fork.lower
        return max(lower / (1 - 0.9 * self.budgets.gap), lower + 2 * self.error + self.unseen)

    def settle_small(self, known: KnownMatrix) -> bool:
        """Enumerate the supports of a node when that is cheaper than relaxing it."""
        if not self.budgets.enumerates(self.node.choice):
            return False
        found = best_by_enumeration(known.A, self.m, self.node.choice, self.monitor)
        if found is None:
            if self.out_of_time():
                return False
            return self.close_enumerated(0.0)  # there is no support that keeps all rules
        self.offer(self.node.features[found[0]])
        return self.close_enumerated(found[1] + self.error + self.unseen)

    def close_enumerated(self, bound: float) -> bool:
        """Settle a node all of whose supports were tried."""
        self.fork.close("enumerated", bound)
        return True

    def settle_diagonal(self, known: KnownMatrix) -> None:
        """K = m: the value is the trace, so B = A is exact (and the relaxation has no interior).

        But for rules about which features go together: those are left to splitting.
        """
        choice = self.node.choice
        if choice.has_supports:
            self.offer(self.node.features[choice.select(known.variances)])
        bound = dual_bound(known, None, self.m, choice)
        witness = self.fork.keep(None)
        if choice.has_rules:
            cut = screen(bound, choice, self.fork.lower)
            if self.bounded(bound.value, witness):
                return
            if cut.n_settled:
                self.shrink(None, witness, cut)
            else:
                free = choice.free
                self.fork.split(int(free[int(np.argmax(known.variances[free]))]), None)
            return
        self.fork.close("bound", bound.value, witness)

    # --- one round

    def round(self) -> None:
        """Close, shrink, strengthen or split the node."""
        node, fork = self.node, self.fork
        if node.choice.is_empty:  # all was cut off
            fork.close("bound", -np.inf, fork.record.witness)
            return
        known = self.known.on(node.features)
        if self.settle_small(known) or self.out_of_time():
            return
        if self.m == node.choice.size:
            self.settle_diagonal(known)
            return
        if isinstance(node.start, ConeSnapshot) or self.is_large:
            self.round_with_cones(known)
            return
        cones = None if fork.cones is None else fork.cones.on(node.features)
        relax = self.relaxation(known, cones)
        bound, cut = self.converge(known, relax, cones)
        node.n_iter += relax.n_eigensolves
        fork.n_eigensolves += relax.n_eigensolves
        witness = fork.keep(relax.witness())
        if self.bounded(bound.value, witness):
            return
        if cut is not None:
            self.shrink(relax.snapshot(), witness, cut)
        elif self.out_of_time():
            node.start = relax.snapshot()  # whoever goes on from here does so at this node
        elif not self.strengthened(known, relax):
            self.split(relax.z, relax.snapshot(), branching_feature(relax))

    @property
    def is_large(self) -> bool:
        """Whether a node has too many features for Newton's method: cones alone have to do."""
        return self.node.features.size > self.budgets.newton_limit

    def round_with_cones(self, known: KnownMatrix) -> None:
        """Look for cones on all features of a node; split a large one that they leave as it is."""
        node, before = self.node, self.node.features.size
        start = node.start if isinstance(node.start, ConeSnapshot) else None
        found = self.strengthen(known, np.arange(before), start)
        settled = not self.fork.is_open or node.features.size < before
        if settled or self.out_of_time() or not self.is_large:
            return
        if found is None:
            raise FloatingPointError("no row cones for a node of many features")
        free = node.choice.free
        undecided = found.z[free] * (1 - found.z[free])
        self.split(found.z, found.start, int(free[int(np.argmax(undecided))]))

    def relaxation(self, known: KnownMatrix, cones: Cones | None) -> Relaxation:
        """Return the relaxation of a node, at its warm start."""
        C, offset, node = known.A, None, self.node
        if cones is not None:
            C, offset, _ = with_cones(known.A, cones, node.choice.size - 1)
        start = node.start if isinstance(node.start, Snapshot) else None
        return Relaxation(C, self.m, node.choice, offset=offset, start=start, monitor=self.monitor)

    def bounded(self, value: float, witness: int) -> bool:
        """Take a bound of the node if it is better; close the node if it is good enough."""
        node, record = self.node, self.fork.record
        if value < node.bound:
            node.bound, record.bound, record.witness = value, value, witness
        if node.bound > self.prune_level:
            return False
        self.fork.close("bound", node.bound, record.witness)
        return True

    def converge(
        self, known: KnownMatrix, relax: Relaxation, cones: Cones | None
    ) -> tuple[Bound, Screen | None]:
        """Newton steps until the node can be pruned, can shrink, or has no more to gain."""
        is_root, node = self.fork.is_root, self.node
        look_every = 4 if is_root else 3
        while True:
            last = relax.upper <= self.prune_level or self.converged(relax)
            if not last:
                relax.step()
                if relax.n_eigensolves % look_every:
                    continue
            if is_root and (last or relax.n_eigensolves % 8 == 0):
                self.improve(relax.z)
            bound = self.evaluate(known, relax, cones)
            if bound.value <= self.prune_level:
                return bound, None
            cut = screen(bound, node.choice, self.fork.lower)
            if cut.n_settled and (
                last or cut.n_settled > self.budgets.clearly_smaller * relax.free.size
            ):
                return bound, cut
            if last:
                return bound, None

    def converged(self, relax: Relaxation) -> bool:
        """Whether more steps would gain little, or there is no budget for them."""
        budgets = self.budgets
        spent = relax.n_eigensolves + self.node.n_iter >= budgets.max_iter
        if relax.stalled or spent or self.out_of_time():
            return True
        looked = relax.n_eigensolves + self.node.n_iter >= budgets.first_look
        if looked and relax.upper - self.fork.lower > budgets.hopeless * relax.upper:
            return True
        share = budgets.root_converge if self.fork.is_root else budgets.converge
        relax.wanted = share * (relax.upper - self.fork.lower)
        return relax.precision <= relax.wanted and relax.centrality < 0.5

    def evaluate(self, known: KnownMatrix, relax: Relaxation, cones: Cones | None) -> Bound:
        """The rigorous bound; the trace bound if the relaxation went astray."""
        self.fork.n_eigensolves += 1
        try:
            return dual_bound(known, relax.witness(), self.m, self.node.choice, cones)
        except (FloatingPointError, np.linalg.LinAlgError):
            relax.discard()
            return dual_bound(known, None, self.m, self.node.choice)

    def shrink(self, start: Snapshot | ConeSnapshot | None, witness: int, cut: Screen) -> None:
        """Take the features that are settled out of the node, and go on from a point there."""
        self.node.start = start
        self.fork.cut(cut, witness)

    def strengthened(self, known: KnownMatrix, relax: Relaxation) -> bool:
        """Look for row cones if that is worth it; say whether there are new ones."""
        node, cones = self.node, self.fork.cones
        worth = self.worth_cones(relax)
        # Those that had cones keep them: features that take part only get more, and it ends.
        had = node.features[:0] if cones is None else cones.features
        features = taking_part(node.choice, np.where(np.isin(node.features, had), 1.0, relax.z))
        return worth and self.strengthen(known, features) is not None

    def worth_cones(self, relax: Relaxation) -> bool:
        """Whether row cones may help: far from settled, and none yet that fit.

        Those it has fit no more when few of their features are left, or much of z is elsewhere.
        """
        node, cones, budgets = self.node, self.fork.cones, self.budgets
        # A single node is not split.
        few = node.features.size <= budgets.few_features and budgets.max_nodes > 1
        least = budgets.strengthen_gap * (budgets.few_patience if few else 1.0)
        if node.bound - self.fork.lower < least * node.bound:
            return False
        if cones is None:
            return True
        elsewhere = float(relax.z[~np.isin(node.features, cones.features)].sum())
        left = node.features.size <= budgets.strengthen_again * cones.features.size
        return left or elsewhere > 0.1 * node.choice.size

    def strengthen(
        self, known: KnownMatrix, features: Index, start: ConeSnapshot | None = None
    ) -> Strengthened | None:
        """Look for row cones, which the subtree inherits; they may settle or cut the node at once.

        Returns None when there are none.
        """
        node, fork = self.node, self.fork
        # Some of the time has to be left to use what is found.
        share, budgets = STRENGTHENING_SHARE, self.budgets
        if self.is_large:
            share, budgets = CONES_ALONE_SHARE, budgets.for_cones_alone()
        monitor = self.monitor.inner(quiet=True, share=share)
        found = strengthen(
            known, self.m, node.choice, features, lower=fork.lower, enough=self.prune_level,
            budgets=budgets, monitor=monitor, start=start,
            near=places_in(fork.support, node.features),
        )  # fmt: skip
        fork.hurried = fork.hurried or monitor.stopped is not None
        node.start = None
        if found is None:
            return None
        fork.n_eigensolves += found.n_eigensolves
        fork.share(SharedCones(node.features[found.features], found.cones))
        if found.bound is None:
            return found
        if fork.is_root:
            self.improve(found.z)
        witness, cut = fork.keep(found.factor), screen(found.bound, node.choice, fork.lower)
        if not self.bounded(found.bound.value, witness) and cut.n_settled:
            smaller = cut.n_settled > self.budgets.clearly_smaller * node.choice.free.size
            self.shrink(found.start if smaller else None, witness, cut)
        return found

    def split(self, z: NDArray[Any], start: Snapshot | ConeSnapshot | None, place: int) -> None:
        """Split the node on one feature, given by its place; now and then z is left as a hint.

        Parameters
        ----------
        z : the node's relaxed selection
        start : where its children go on
        place : of the feature
        """
        if self.node.record % self.budgets.heuristic_every == 0:
            self.fork.hint = z
        self.fork.split(place, start)


def advance(steps: type[NodeSteps], given: Given, deadline: Deadline, fork: Fork) -> Fork:
    """Work on one node, wherever this runs; when time is up it stays as it is."""
    if deadline.passed:
        return fork
    monitor = Monitor("node", deadline=deadline)
    with one_blas_thread():
        steps(given, fork, monitor).round()
    fork.seconds = monitor.seconds
    fork.cones = None  # whoever sent it has them
    return fork


def value_of(known: KnownMatrix, support: Index, m: int) -> float:
    """Return what a support explains."""
    values = np.linalg.eigvalsh(known.on(support).A)[-m:]
    return float(np.maximum(values, 0.0).sum())
