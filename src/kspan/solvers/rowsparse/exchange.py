r"""Component exchange: one component makes room for what a leader brings.

The k features are those that m directions explain best, so good supports of standardised data are
combinations of groups of related features, and a better one often has another group. Swaps and IPU
do not get there, as one feature of a new group is worth little. With :math:`B = AW` and the
variances λ of the components, the directions without component l, together with leader j
(`leaders.py`), explain of feature i

.. math:: p_i = \sum_{r \ne l} b_{ir}^2 / λ_r + c_{ij}^2 / c_{jj}, \qquad
          c_{ij} = a_{ij} - \sum_{r \ne l} b_{ir} b_{jr} / λ_r .

These are IPU's scores for these directions, so the best k features explain at least the sum of
theirs: all pairs of l and j are ranked by it, and the best of them are starts.

Cost: O(ndm²) for n leaders, and one product with A. Deterministic.
"""

import numpy as np

from kspan.arrays import FloatArray
from kspan.problem import Candidate, RowSparseProblem
from kspan.progress import Monitor
from kspan.solvers.rowsparse.leaders import Leaders

# Exchanges that are tried at a time.
N_EXCHANGES = 24

# Directions with less than this share of a variance are rounding.
LEAST_SHARE = 1e-6


def exchanged(
    problem: RowSparseProblem, candidate: Candidate, leaders: Leaders, monitor: Monitor
) -> list[Candidate]:
    """Return the most promising points with another component, none on the candidate's support.

    None at all when time is up.
    """
    product = problem.covariance.matmat(candidate.weights, candidate.support)
    real = candidate.variances > LEAST_SHARE * candidate.variances[0]
    scores = []
    for component in range(problem.n_components):
        if monitor.out_of_time():
            return []
        others = real & (np.arange(real.size) != component)
        kept = product[:, others] / np.sqrt(candidate.variances[others])
        scores.append(_with_leaders(problem, kept, leaders))
    pairs = np.concatenate(scores)
    found = {candidate.support.tobytes(): candidate.support}
    for pair in np.argsort(-problem.choice.best_sums(pairs), kind="stable"):
        if len(found) > N_EXCHANGES:
            break
        support = problem.select(pairs[pair])
        found.setdefault(support.tobytes(), support)
    new = list(found.values())[1:]
    return problem.refit_all(new) if new else []


def _with_leaders(problem: RowSparseProblem, kept: FloatArray, leaders: Leaders) -> FloatArray:
    r"""Return the scores of all features for some directions and each leader, a row for each.

    Parameters
    ----------
    problem : RowSparseProblem
    kept : (d, r) array
        :math:`b_{ir} / \sqrt{λ_r}` of the components that stay.
    leaders : Leaders
        Those that bring nothing new are left out.
    """
    explained = np.einsum("ij,ij->i", kept, kept)
    variances = problem.covariance.diagonal()[leaders.features]
    left = variances - explained[leaders.features]
    useful = np.flatnonzero(left > LEAST_SHARE * variances)
    new = leaders.rows[useful] - kept[leaders.features[useful]] @ kept.T
    # Dividing before squaring keeps huge and tiny scales in range.
    new /= np.sqrt(left[useful])[:, None]
    np.square(new, out=new)
    new += explained
    return new
