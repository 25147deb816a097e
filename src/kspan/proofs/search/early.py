"""A look from above while a search still goes on: whether there is anything left to find.

Of small problems the relaxation costs as much as a few starts of a heuristic. Its rounded
selection is a good start itself, and often it settles the problem. So a search asks for one look
(``kspan.problem.Look``): closed forms, then a tree of a few nodes with relaxations that are
given up where the gap stays wide. What that proves is proved as rigorously as a certificate is, but
no witness is kept.
"""

from dataclasses import replace

import numpy as np

from kspan.problem import Candidate, Outlook, RowSparseProblem
from kspan.progress import Monitor, Status
from kspan.proofs.search.proof import Heuristic, Proof
from kspan.proofs.search.prover import ProofOptions, RowSparseProver
from kspan.proofs.search.tree_state import Budgets

# Features up to which a relaxation costs no more than the starts that it may save.
LARGEST = 100

# A few nodes, one at a time; no cones, and little patience.
EARLY = Budgets(
    round_size=1, strengthen_gap=2.0, enumerate_cost=3e5, first_look=8, heuristic_every=1_000_000
)

# Nodes times features, and a gap that a few nodes do not close: of many features, and of few.
WORK, WIDE_GAP, GAP_OF_FEW = 1500, 0.03, 1.0


def nodes_of(n_features: int) -> int:
    """Return how many nodes a look may take."""
    return 1 + WORK // max(n_features, 1)


def look_early(
    problem: RowSparseProblem, best: Candidate, *, heuristic: Heuristic, monitor: Monitor
) -> Outlook:
    """Bound a problem within the time of a few starts.

    Parameters
    ----------
    problem : RowSparseProblem
    best : the best point that is known
    heuristic : see `kspan.proofs.search.prover.prove`
    monitor : asked whether to stop; what is done reports nothing to it
    """
    if not problem.covariance.knows_psd:  # bounds rely on it, and to find out is no look
        return Outlook(best, np.inf, is_settled=False, is_led=False)
    proof = Proof(problem, best, monitor.inner(quiet=True), heuristic)
    size = max(problem.choice.features.size, 1)
    budgets = replace(EARLY, max_nodes=nodes_of(size), hopeless=max(WIDE_GAP, GAP_OF_FEW / size))
    prover = RowSparseProver(proof, ProofOptions(budgets=budgets))
    prover.begin()
    relaxes = size <= LARGEST
    if relaxes:
        prover.work("early")
    settled = proof.certificate("early").status is Status.OPTIMAL
    return Outlook(proof.best, proof.upper, settled, is_led=relaxes)
