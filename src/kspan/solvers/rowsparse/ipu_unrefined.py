r"""Unrefined IPU: the proxy update as it is derived, without the refinement of the eigenvectors.

.. math:: W_{t+1} = \arg\max_W \mathrm{tr}(W' P_t W), \quad P_t = A W_t (W_t' A W_t)^\dagger W_t' A

over all orthonormal W with at most k nonzero rows (eq. 4.1). P_t has rank m, so that Go solves this
exactly: the features with the k largest entries of diag(P_t), and on them the m leading
eigenvectors of (P_t)_II. With :math:`P_t = FF'`, :math:`F = A W_t (W_t'AW_t)^{\dagger 1/2}`, these
are the left singular vectors of F on the chosen rows, which span the rows of AW_t there; no
eigenproblem of order k has to be solved (footnote 2). IPU itself puts the leading eigenvectors of
A on the chosen rows instead, which explain more.

Cost: O(dkm) a step for a covariance. Passes over the data: two a step (scores and back), and one
over the k new columns of each start, which are read for the objective alone.

Guarantee: the objective never decreases: :math:`P_t \preceq A` with equality on the span of W_t, so
tr(W_{t+1}'AW_{t+1}) ≥ tr(W_{t+1}'P_tW_{t+1}) ≥ tr(W_t'P_tW_t) = tr(W_t'AW_t) (Claim 4.1).

Reference: Tian, Nie, Wang, Li, Learning Feature Sparse Principal Subspace, NeurIPS 2020, equation
(4.1) and footnote 2.

Differs from the paper in: the shift A + εI (ε = 0.1 there) is off by default, as what it does
depends on the scale of the data.
"""

from dataclasses import dataclass

from kspan.solvers.rowsparse.ipu import proxy_diagonal
from kspan.solvers.rowsparse.row_scores import RowRule, RowRuleMethod


@dataclass(frozen=True, eq=False)
class UnrefinedIPU(RowRuleMethod):
    """The update of equation (4.1), without refinement.

    Parameters
    ----------
    init, n_restarts : see `~kspan.solvers.rowsparse.ipu.IPU`
    max_iter : int
    shift : float
        Choose features by A + shift·I. The objective is always that of A.
    """

    name = "ipu-unrefined"
    summary = "IPU with the eigenvectors of the proxy and not of A on the chosen features"
    guarantee = "the objective never falls"
    reference = "Tian et al., NeurIPS 2020"
    rule = RowRule(score=proxy_diagonal, refits=False)
