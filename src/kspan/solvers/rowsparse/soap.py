r"""SOAP: orthogonal iteration in which only the k rows of largest leverage survive.

.. math:: V = \mathrm{qf}(A U_t), \quad I = \text{top}_k \|V_{i:}\|, \quad
          U_{t+1} = \mathrm{qf}(V_{I:}) \text{ on } I, \text{ zero elsewhere}

Cost: O(dkm + dm²) a step for a covariance. Passes over the data: two a step, and one over the k
new columns of each start, which are read for the objective alone.

Guarantee: none on the objective, which may fall, and none that it settles. Under a spiked model it
converges to the sparse subspace at the best statistical rate.

Reference: Wang, Lu, Liu, Tighten after Relax: Minimax-Optimal Sparse PCA in Polynomial Time,
NIPS 2014, the second stage; its first stage is ``init="convex"``.

Differs from the paper in: it returns its best iterate and not the last one, and stops when the
subspace no longer moves instead of after a number of steps. The working sparsity is k itself.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray
from kspan.solvers.rowsparse.row_scores import RowRule, RowRuleMethod, row_norms


def leverages(B: FloatArray, values: FloatArray) -> FloatArray:
    """Return the row norms of an orthonormal basis of B."""
    size = np.abs(B).max(initial=0.0)
    if size == 0:
        return np.zeros(B.shape[0])
    left, strengths, _ = np.linalg.svd(B / size, full_matrices=False)
    # Directions that only rounding brought in have no say.
    kept = strengths > B.shape[0] * np.finfo(float).eps * strengths[0]
    return row_norms(left[:, kept])


LEVERAGE = RowRule(score=leverages, refits=False)


@dataclass(frozen=True, eq=False)
class SOAP(RowRuleMethod):
    """Truncated orthogonal iteration; returns the best iterate, as it is not monotone.

    Parameters
    ----------
    init, n_restarts : see `~kspan.solvers.rowsparse.ipu.IPU`
    max_iter : int
    shift : float
        Iterate with A + shift·I. The objective is always that of A.
    """

    name = "soap"
    summary = "orthogonal iteration that keeps the k rows of largest leverage"
    reference = "Wang, Lu, Liu, NIPS 2014"
    rule = LEVERAGE
