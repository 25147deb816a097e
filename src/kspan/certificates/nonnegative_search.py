"""Branch and bound for one nonnegative component: at most k features, x ≥ 0.

The search of `branch_and_bound.py` with another relaxation (`cone_relaxation.py` with P ≥ 0).
What differs from the row-sparse problem:

- A node is split on x_i = 0 or x_i > 0. It holds the vectors with support between its forced and
  its allowed features; with at most k allowed ones it may still be hard, as signs matter.
- An eigenvalue bounds what a support explains, and is reached only by an eigenvector of one sign.
- When fewer than k features do best, the limit k does not matter: then one vector x of value λ
  with ``(A + N)x = λx`` and λ the largest eigenvalue proves itself, and `complete_signs` makes
  such an N from one that is nearly so.
"""

import math

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.certificates.bounds import Bound, dual_bound, full_bound
from kspan.certificates.branch_and_bound import BranchAndBound
from kspan.certificates.branching import best_by_enumeration
from kspan.certificates.cone_relaxation import ConeRelaxation, ConeSnapshot
from kspan.certificates.screening import screen
from kspan.certificates.search import Node
from kspan.certificates.witness import Cones
from kspan.linalg.nonnegative import (
    best_on_support,
    climb_support,
    complete_signs,
    has_no_interior_optimum,
)

CHECK_EVERY = 20  # steps between two evaluations of the bound
PATIENCE = 3  # evaluations


class NonnegativeBranchAndBound(BranchAndBound):
    """The search for one nonnegative component; parameters as in `BranchAndBound`, m = 1."""

    def refit(self, support: Index) -> tuple[Index, float]:
        """Return the features that a local maximum on the support uses, and its value."""
        x, value = best_on_support(self.A[np.ix_(support, support)])
        return support[x > 0], value

    def settle_small(self, node: Node) -> bool:
        """Bound few supports by their eigenvalues, if these are good enough."""
        base, free = node.allowed[node.forced], node.allowed[~node.forced]
        n_free = min(self.k - base.size, free.size)
        n_supports = math.comb(free.size, n_free)
        if n_supports > 1 and n_supports * (self.k**3 + 200) > self.options.enumerate_cost:
            return False
        support, best = best_by_enumeration(self.A, 1, base, free, n_free)
        self.offer(support)
        if best + self.error > self.prune_level:
            return False  # the eigenvector has both signs
        self.close(node, "enumerated", best + self.error)
        return True

    def round(self, node: Node) -> None:
        """Close, shrink or split one node."""
        if int(node.forced.sum()) == self.k and node.allowed.size > self.k:
            # As many as may be used are: no other feature can come in.
            kept = np.flatnonzero(node.forced)
            node.start = None if node.start is None else node.start.restrict(kept)
            node.allowed, node.forced = node.allowed[kept], node.forced[kept]
        if self.settle_small(node):
            return
        s, options, is_root = self.s, self.options, node.record == 0
        A = self.A[np.ix_(node.allowed, node.allowed)]
        start = node.start if isinstance(node.start, ConeSnapshot) else None
        relax = ConeRelaxation(
            A, 1, min(self.k, len(A)), forced=node.forced, nonnegative=True, start=start
        )
        budget = options.cone_iter if is_root else options.cone_node_iter
        best: tuple[Bound, FloatArray | None, Cones | None] | None = None
        gaps: list[float] = []
        while True:
            for _ in range(CHECK_EVERY):
                relax.step()
                node.n_iter += 1
                if self.out_of_time():
                    break
            if is_root:
                self.improve(node, relax.z)
            for factor, cones in self.candidates(node, A, relax):
                bound = self.evaluate_cones(node, A, factor, cones)
                if bound is not None and (best is None or bound.value < best[0].value):
                    best = bound, factor, cones
            if best is None:  # the iteration went astray
                best = dual_bound(A, None, 1, self.k, node.forced), None, None
            bound = best[0]
            gaps.append(bound.value - s.lower)
            slow = len(gaps) > PATIENCE and (
                gaps[-1] > (1 - options.cone_patience) * gaps[-1 - PATIENCE]
            )
            enough = bound.value <= self.prune_level
            done = enough or slow or node.n_iter >= budget or self.out_of_time()
            cut = screen(bound, node.forced, self.k, s.lower - self.error)
            settled = cut.removed.size + cut.fixed.size
            if done or settled > 0.15 * int((~node.forced).sum()):
                break
        s.n_eigensolves += relax.n_eigensolves
        witness = self.keep(node, *best[1:])
        if self.bounded(node, bound.value, witness):
            return
        if settled:
            self.shrink(node, relax, witness, cut)
        else:
            self.divide(node, relax)

    def candidates(
        self, node: Node, A: FloatArray, relax: ConeRelaxation
    ) -> list[tuple[FloatArray, Cones]]:
        """Return the iteration's witness, and one that may prove a vector to the last digit."""
        factor, cones = relax.witness()
        found = [(factor, cones.compact())]
        x = self.local_optimum(node, A, relax)
        if np.count_nonzero(x) < self.k or len(A) <= self.k:
            signs = complete_signs(A, x, cones.signs)
            found.append((np.zeros((len(A), 0)), Cones(signs=signs)))
        return found

    def local_optimum(self, node: Node, A: FloatArray, relax: ConeRelaxation) -> FloatArray:
        """Return a good vector of this node: the incumbent if it is here, or what P suggests."""
        places = np.searchsorted(node.allowed, self.s.support)
        places = np.minimum(places, node.allowed.size - 1)
        start = np.zeros(len(A))
        if np.array_equal(node.allowed[places], self.s.support):
            start[places] = 1.0
        else:
            weights = np.maximum(np.diagonal(relax.P).astype(np.float64), 0.0)
            chosen = np.argsort(-weights, kind="stable")[: self.k]
            start[chosen] = np.sqrt(weights[chosen])
            if not start.any():
                start[int(np.argmax(np.diagonal(A)))] = 1.0
        inside = np.flatnonzero(start)
        x, _ = climb_support(A[np.ix_(inside, inside)], start[inside])
        start[inside] = x
        return start

    def evaluate_cones(
        self, node: Node, A: FloatArray, factor: FloatArray, cones: Cones
    ) -> Bound | None:
        """The rigorous bound; None when the witness gives none."""
        self.s.n_eigensolves += 1
        try:
            return full_bound(A, factor, cones, 1, self.k, node.forced, self.n_samples)
        except (FloatingPointError, np.linalg.LinAlgError):
            return None

    def divide(self, node: Node, relax: ConeRelaxation) -> None:
        """Split on the feature whose share is least decided; close the node if none is free."""
        free = np.flatnonzero(~node.forced)
        if free.size == 0:
            if has_no_interior_optimum(self.A[np.ix_(node.allowed, node.allowed)]):
                # An optimum uses fewer of these features, and is in another node.
                self.close(node, "void", -math.inf)
            else:
                self.close(node, "bound", node.bound, self.s.records[node.record].witness)
            return
        z = relax.z[free].astype(np.float64)
        undecided = z * (1 - z)
        if undecided.max() < 1e-3:  # k does not bind: by the share in P, which the signs dispute
            undecided = np.diagonal(relax.P)[free].astype(np.float64)
        self.split(node, relax, int(free[int(np.argmax(undecided))]))
