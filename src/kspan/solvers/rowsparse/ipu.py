r"""IPU: iterative proxy update, a monotone ascent for the row-sparse problem.

.. math:: P_t = A W_t (W_t' A W_t)^\dagger W_t' A, \quad
          I = \text{top}_k\,\mathrm{diag}(P_t), \quad W_{t+1} = \mathrm{eig}_m(A_{II})

P_t has rank m and lies below A, with equality on the span of W_t, so the best support for P_t
(which Go finds exactly) is at least as good for A. Only the diagonal of P_t is computed.

Cost: O(dkm + k³) a step for a covariance. Passes over the data: two a step (scores and back), and
one over the k new columns of each start.

Guarantee: the objective never decreases (Theorem 5.5); the subspace converges (Theorem 5.8).

Reference: Tian, Nie, Wang, Li, Learning Feature Sparse Principal Subspace, NeurIPS 2020,
Algorithm 2 and footnote 3.

Differs from the paper in: the shift A + εI (ε = 0.1 there) is off by default, as what it does
depends on the scale of the data.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray
from kspan.solvers.method import counted
from kspan.solvers.rowsparse.row_scores import RowRule, RowRuleMethod


def proxy_diagonal(B: FloatArray, values: FloatArray) -> FloatArray:
    """Return the diagonal of ``B diag(values)^† B'``, where B = AW and W'B = diag(values)."""
    cutoff = np.finfo(float).eps * B.shape[0] * values.max(initial=0.0)
    kept = values > cutoff
    # Dividing before squaring keeps huge and tiny scales in range.
    scaled = B[:, kept] / np.sqrt(values[kept])
    diagonal: FloatArray = np.einsum("ij,ij->i", scaled, scaled)
    return diagonal


PROXY = RowRule(score=proxy_diagonal, refits=True)


@dataclass(frozen=True, eq=False)
class IPU(RowRuleMethod):
    """Algorithm 2.

    Parameters
    ----------
    init : {"low-rank", "convex", "variance", "random"} or (d, m) array
        Go's solution, the convex relaxation cut to k rows, unit vectors of the features with the
        largest variances, a random subspace, or a subspace to start from. By default Go's
        solution, or random subspaces if there are several restarts.
    n_restarts : int
        Random starts, of which the best result is returned.
    max_iter : int
    shift : float
        ε of the paper: choose features by A + εI. The objective is always that of A.
    """

    name = "ipu"
    summary = "iterative proxy update, Go on proxies of A of rank m: costs a little more than Go"
    guarantee = "the objective never falls"
    reference = "Tian et al., NeurIPS 2020"
    rule = PROXY

    max_iter: int = counted(20, least=0)

    @property
    def makes_many_products(self) -> bool:
        """From one start A need not be formed."""
        return self.n_restarts > 1
