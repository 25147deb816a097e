"""Branch and bound for one nonnegative component: at most k features, x ≥ 0.

The search of `branch_and_bound.py`, with another relaxation of its nodes (`cone_relaxation.py` with
P ≥ 0). What differs from the row-sparse problem:

- A node is split on x_i = 0 or x_i > 0. It holds the vectors with support between its forced and
  its allowed features; with at most k allowed ones it may still be hard, as signs matter.
- An eigenvalue bounds what a support explains, and is reached only by an eigenvector of one sign.
- When fewer than k features do best, the limit k does not matter: then one vector x of value λ
  with ``(A + N)x = λx`` and λ the largest eigenvalue proves itself, and `complete_signs` makes
  such an N from one that is nearly so.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.nonnegative import best_on_support, climb_support, complete_signs
from kspan.linalg.selection import places_in
from kspan.proofs.check.bounds import (
    Bound,
    Cones,
    dual_bound,
    has_no_interior_optimum,
)
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.check.screening import Screen, screen
from kspan.proofs.search.cone_relaxation import ConeRelaxation, ConeSnapshot
from kspan.proofs.search.node_steps import NodeSteps

CHECK_EVERY = 20  # steps between two evaluations of the bound
PATIENCE = 3  # evaluations


@dataclass
class _Best:
    """The best bound of a node so far, the arrays behind it, and how its gap went."""

    bound: Bound
    factor: FloatArray | None = None
    cones: Cones | None = None
    gaps: list[float] = field(default_factory=list)

    def slow(self, patience: float) -> bool:
        """Whether the last evaluations closed less than a share of the gap."""
        if len(self.gaps) <= PATIENCE:
            return False
        return self.gaps[-1] > (1 - patience) * self.gaps[-1 - PATIENCE]


class NonnegativeSteps(NodeSteps):
    """The steps for one nonnegative component; parameters as in `NodeSteps`, m = 1."""

    def refit(self, support: Index) -> tuple[Index, float]:
        """Return the features that a local maximum on the support uses, and its value at least."""
        x, value = best_on_support(self.known.on(support).A)
        return support[x > 0], value - self.error

    def close_enumerated(self, bound: float) -> bool:
        """Bound few supports by their eigenvalues, if these are good enough."""
        if bound > self.prune_level:
            return False  # the eigenvector has both signs
        return super().close_enumerated(bound)

    def round(self) -> None:
        """Close, shrink or split one node."""
        node = self.node
        known = self.known.on(node.features)
        if self.settle_small(known) or self.out_of_time():
            return
        start = node.start if isinstance(node.start, ConeSnapshot) else None
        choice = node.choice.resized(min(node.choice.size, known.n_features))
        relax = ConeRelaxation(known.A, 1, choice, nonnegative=True, start=start)
        best, cut = self.iterate(known, relax)
        self.fork.n_eigensolves += relax.n_eigensolves
        witness = self.fork.keep(best.factor, best.cones)
        if self.bounded(best.bound.value, witness):
            return
        if cut.n_settled:
            self.shrink(relax.snapshot(), witness, cut)
        elif self.out_of_time():
            node.start = relax.snapshot()
        else:
            self.divide(relax)

    def iterate(self, known: KnownMatrix, relax: ConeRelaxation) -> tuple[_Best, Screen]:
        """Steps until the node can be pruned, can shrink, or has no more to gain."""
        is_root, budgets, node = self.fork.is_root, self.budgets, self.node
        budget = budgets.cone_iter if is_root else budgets.cone_node_iter
        best: _Best | None = None
        while True:
            for _ in range(CHECK_EVERY):
                relax.step()
                node.n_iter += 1
                if self.out_of_time():
                    break
            if is_root:
                self.improve(relax.z)
            best = self.better(known, relax, best)
            best.gaps.append(best.bound.value - self.fork.lower)
            spent = node.n_iter >= budget or best.slow(budgets.cone_patience)
            enough = best.bound.value <= self.prune_level
            cut = screen(best.bound, node.choice, self.fork.lower)
            smaller = cut.n_settled > budgets.clearly_smaller * node.choice.free.size
            if enough or smaller or spent or self.out_of_time():
                return best, cut

    def better(self, known: KnownMatrix, relax: ConeRelaxation, best: _Best | None) -> _Best:
        """Return the best bound so far; the trace bound if the iteration went astray."""
        node, gaps = self.node, [] if best is None else best.gaps
        for factor, cones in self.candidates(known.A, relax):
            self.fork.n_eigensolves += 1
            try:
                bound = dual_bound(known, factor, 1, node.choice, cones)
            except (FloatingPointError, np.linalg.LinAlgError):
                continue
            if best is None or bound.value < best.bound.value:
                best = _Best(bound, factor, cones, gaps)
        return _Best(dual_bound(known, None, 1, node.choice)) if best is None else best

    def candidates(self, A: FloatArray, relax: ConeRelaxation) -> list[tuple[FloatArray, Cones]]:
        """Return the iteration's witness, and one that may prove a vector to the last digit."""
        node = self.node
        factor, cones = relax.witness()
        found = [(factor, cones.compact(node.choice.size - 1))]
        x = self.local_optimum(A, relax)
        if np.count_nonzero(x) < node.choice.size or len(A) <= node.choice.size:
            signs = complete_signs(A, x, cones.signs)
            found.append((np.zeros((len(A), 0)), Cones(signs=signs)))
        return found

    def local_optimum(self, A: FloatArray, relax: ConeRelaxation) -> FloatArray:
        """Return a good vector of this node: the incumbent if it is here, or what P suggests."""
        node = self.node
        places = places_in(self.fork.support, node.features)
        start = np.zeros(len(A))
        if places is not None:
            start[places] = 1.0
        else:
            weights = np.maximum(np.diagonal(relax.P).astype(np.float64), 0.0)
            chosen = node.choice.select(weights)
            start[chosen] = np.sqrt(weights[chosen])
            if not start.any():
                start[int(np.argmax(np.diagonal(A)))] = 1.0
        inside = np.flatnonzero(start)
        x, _ = climb_support(A[np.ix_(inside, inside)], start[inside])
        start[inside] = x
        return start

    def divide(self, relax: ConeRelaxation) -> None:
        """Split on the feature whose share is least decided; close the node if none is free."""
        node, free = self.node, self.node.choice.free
        if free.size == 0:
            if has_no_interior_optimum(self.known.on(node.features)):
                # An optimum uses fewer of these features, and is in another node.
                self.fork.close("void", -math.inf)
            else:
                self.fork.close("bound", node.bound, self.fork.record.witness)
            return
        z = relax.z[free].astype(np.float64)
        undecided = z * (1 - z)
        if undecided.max() < 1e-3:  # k does not bind: by the share in P, which the signs dispute
            undecided = np.diagonal(relax.P)[free].astype(np.float64)
        self.split(relax.z, relax.snapshot(), int(free[int(np.argmax(undecided))]))
