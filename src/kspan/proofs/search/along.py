"""Proofs for many numbers of features of the same data, each from where the one before it ended.

One split of the features (`wide_search.py`) serves all k, A is formed on T once, and a relaxation
for one k begins where that of the nearest other k ended: some dozens of steps are then enough. Each
certificate also bounds the k around its own (`SplitPathWitness`).
"""

from collections.abc import Sequence

import numpy as np

from kspan.arrays import Index
from kspan.linalg.machine import one_blas_thread
from kspan.linalg.selection import placed
from kspan.problem import Candidate, RowSparseProblem
from kspan.progress import Monitor
from kspan.proofs.check.certificate import Certificate
from kspan.proofs.check.witnesses import SplitPathWitness
from kspan.proofs.search.closed_forms import prove_by_trace
from kspan.proofs.search.cone_relaxation import ConeSnapshot
from kspan.proofs.search.proof import Heuristic, Proof
from kspan.proofs.search.tree_state import Budgets
from kspan.proofs.search.wide_search import Split, choose_inside, says_something

# Features that are relaxed: at least so many, and a third of that beside those of all supports.
LEAST_INSIDE = 300

# Steps for each k, fewer where the gap is small enough for a band.
ALONG = Budgets(split_iter=60, split_patience=0.05, split_enough=0.015)


class Along:
    """Makes certificates for one k after another.

    Parameters
    ----------
    problem : with any of the k, of two features or more
    supports : the best ones known, of all k: they are relaxed
    heuristic : asked for better points
    monitor : when to stop
    """

    def __init__(
        self, problem: RowSparseProblem, supports: Sequence[Index], *, heuristic: Heuristic,
        monitor: Monitor,
    ):  # fmt: skip
        self.heuristic, self.monitor = heuristic, monitor
        used = np.unique(np.concatenate(list(supports)))
        size = min(max(LEAST_INSIDE, used.size + LEAST_INSIDE // 3), problem.choice.features.size)
        plain = problem.choice.without_rules()
        inside = choose_inside(problem.covariance.diagonal(), size, used, plain)
        self.split = Split.of(problem, inside)
        self.snapshots: dict[int, ConeSnapshot] = {}

    def says_something(self, problem: RowSparseProblem, upper: float) -> bool:
        """Whether the split may lower a bound."""
        return says_something(problem, self.split.inside, upper)

    def prove(self, problem: RowSparseProblem, best: Candidate, most: int) -> Certificate:
        """Prove how good a point is; the witness holds for all k up to `most`, for fewer too."""
        proof = Proof(problem, best, self.monitor, self.heuristic)
        prove_by_trace(proof)
        k = problem.choice.size
        with self.monitor.interruptible(), one_blas_thread():
            relax = self.split.relaxation(problem, best.support, self._nearest(k))
            witness = self.split.prove(proof, relax, ALONG)
            self.snapshots[k] = relax.snapshot()
            proof.improve(placed(relax.z, self.split.inside, problem.n_features))
            if witness is not None:
                known, everywhere = self.split.known, self.split.everywhere
                path = SplitPathWitness.of(problem, witness, max(most, k), known, everywhere)
                proof.path.append(path.with_room(everywhere, problem.n_components))
        return proof.certificate("tight")

    def _nearest(self, k: int) -> ConeSnapshot | None:
        """Return where the relaxation of the nearest k ended."""
        if not self.snapshots:
            return None
        return self.snapshots[min(self.snapshots, key=lambda other: abs(np.log(other / k)))]
