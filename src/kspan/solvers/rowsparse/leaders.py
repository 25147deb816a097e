r"""Leaders: the features to which groups of others are most related, for variances that are alike.

Let v be the leading eigenvector of A_SS and i its largest entry. Then

.. math:: λ_1 = \sum_{j∈S} a_{ij} v_j / v_i \le \sum_{j∈S} |a_{ij}| ,

so only features whose rows of \|A\| have large sums of k entries can lead a good support of one
component, and its other features are those with large entries in that row. With several components
some have few of the k features: leaders of these have large sums of k/2 or k/4 entries.

Cost: the products of at most `MOST_ROWS_READ` features with all others, in blocks. Beyond, every
second, third, ... feature is looked at: one that is missed is one of many that are related to each
other, as it would not lead otherwise. Deterministic.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance.block_kernels import block_slices
from kspan.problem import RowSparseProblem
from kspan.progress import Monitor

# How many leaders there are.
N_LEADERS = 60

# Variances lead the way when the middle one is below this share of the largest.
EVEN_SHARE = 0.25

# Rows of |A| that are looked at, and bytes of a block of them.
MOST_ROWS_READ, ROW_BYTES = 4000, 1 << 25


@dataclass(frozen=True)
class Leaders:
    """Features that groups of others are related to, the best first.

    Attributes
    ----------
    features : (n,) array
    rows : (n, d) array
        Their rows of A.
    """

    features: Index
    rows: FloatArray


def find_leaders(problem: RowSparseProblem, monitor: Monitor) -> Leaders | None:
    """Return the leaders; None if variances differ much, or if there is no choice or no time."""
    choice, features = problem.choice, problem.choice.features
    variances = problem.covariance.diagonal()[features]
    even = np.median(variances) >= EVEN_SHARE * variances.max(initial=0.0) > 0
    if not even or choice.n_open == 0:
        return None
    varies = features[variances > 0]
    looked_at = varies[:: -(-varies.size // MOST_ROWS_READ)]
    sums = row_sums(problem, looked_at, _group_sizes(problem), monitor)
    if monitor.stopped is not None:
        return None
    # The best for every size, in turn.
    ranked = np.argsort(-sums, axis=1, kind="stable").T.ravel()
    first_seen = np.sort(np.unique(ranked, return_index=True)[1])
    leaders = looked_at[ranked[first_seen[:N_LEADERS]]]
    return Leaders(leaders, np.ascontiguousarray(problem.covariance.columns(leaders).T))


def _group_sizes(problem: RowSparseProblem) -> list[int]:
    """Return how many features a component may have: all k or, when there are more, a part."""
    k = problem.choice.size
    return [k] if problem.n_components == 1 else sorted({k, -(-k // 2), -(-k // 4)}, reverse=True)


def row_sums(
    problem: RowSparseProblem, looked_at: Index, sizes: list[int], monitor: Monitor
) -> FloatArray:
    """Return the sums of the largest entries of some rows of |A|, zero where time is up.

    Parameters
    ----------
    problem : RowSparseProblem
    looked_at : (n,) features
    sizes : how many entries, descending
    monitor : asked whether to stop

    Returns
    -------
    (s, n) array
    """
    features = problem.choice.features
    sums = np.zeros((len(sizes), looked_at.size))
    for block in block_slices(looked_at.size, 8 * problem.n_features, ROW_BYTES):
        if monitor.out_of_time():
            break
        rows = np.abs(problem.covariance.columns(looked_at[block]).T[:, features])
        for i, size in enumerate(sizes):
            rows = np.partition(rows, -size, axis=1)[:, -size:]
            sums[i, block] = rows.sum(axis=1)
    return sums
