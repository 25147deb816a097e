"""Weights for the bound by row sums (`kspan.proofs.check.row_sums`): a power iteration.

Every sweep over the rows of |A| evaluates the bound for the present weights, and its row sums are
the weights of the next one. Steps after the first are damped: rows choose other entries then.
"""

import numpy as np

from kspan.proofs.check.row_sums import (
    LARGEST_WEIGHT,
    SMALLEST_WEIGHT,
    AbsoluteRows,
    RowWitness,
    row_sums,
    total_of,
)
from kspan.proofs.search.proof import Proof

MIN_GAIN = 0.03  # stop when a sweep closes less than this share of the gap


def prove_by_rows(proof: Proof, rows: AbsoluteRows, max_sweeps: int) -> RowWitness | None:
    """Lower the bound sweep by sweep; return the witness of the best one, None without any.

    It starts from standard deviations: features that vary more have larger loadings.
    """
    problem = proof.problem
    deviations = np.sqrt(np.maximum(problem.covariance.diagonal()[problem.choice.features], 0.0))
    largest = float(deviations.max(initial=0.0))
    if largest == 0.0:
        return None
    weights = np.maximum(deviations / largest, SMALLEST_WEIGHT)
    best, lowest = None, np.inf
    for sweep in range(max_sweeps):
        witness = RowWitness(weights)
        try:
            sums, _ = row_sums(rows, weights, stop=proof.monitor.out_of_time)
        except TimeoutError:
            break
        value, before = total_of(problem, sums), lowest
        if value < lowest:
            best, lowest = witness, value
        proof.offer(value, witness)
        if proof.report() or before - value < MIN_GAIN * (lowest - proof.lower):
            break
        weights = _next(weights, sums, 1.0 if sweep == 0 else 0.5)
    proof.note()
    return best


def _next(weights: np.ndarray, sums: np.ndarray, power: float) -> np.ndarray:
    """Return weights moved towards those that would make all row sums alike."""
    moved = weights * np.maximum(sums, 0.0) ** power
    moved /= moved.max() or 1.0
    return np.clip(moved, SMALLEST_WEIGHT, LARGEST_WEIGHT)
