r"""Starts for data whose variances are alike: the features most related to one, or to a few.

Let v be the leading eigenvector of A_SS and i its largest entry. Then

.. math:: λ_1 = \sum_{j∈S} a_{ij} v_j / v_i \le \sum_{j∈S} |a_{ij}| ,

so only features whose rows of \|A\| have large sums of k entries can lead a good support, and its
other features are those with large entries in that row. On correlations, where variances say
nothing, these are the best starts there are. With several components, further leaders are those
with large sums that are little related to the leaders before.

Cost: the products of at most `MOST_ROWS_READ` features with all others, in blocks. Beyond, every
second, third, ... feature is looked at: one that is missed is one of many that are related to each
other, as it would not lead otherwise. Deterministic.
"""

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance.block_kernels import block_slices
from kspan.linalg.selection import top_k
from kspan.problem import Candidate, RowSparseProblem
from kspan.progress import Monitor

# Features that lead a start.
N_LEADERS = 60

# Leaders of one start are related by less than this.
UNLIKE = 0.6

# Variances lead the way when the middle one is below this share of the largest.
EVEN_SHARE = 0.25

# Rows of |A| that are looked at, and bytes of a block of them.
MOST_ROWS_READ, ROW_BYTES = 4000, 1 << 25


def row_starts(problem: RowSparseProblem, monitor: Monitor) -> list[Candidate]:
    """Return points on the features most related to leaders; none if variances differ much."""
    choice, features = problem.choice, problem.choice.features
    variances = problem.covariance.diagonal()[features]
    even = np.median(variances) >= EVEN_SHARE * variances.max(initial=0.0) > 0
    if not even or choice.n_open == 0:
        return []
    varies = features[variances > 0]
    looked_at = varies[:: -(-varies.size // MOST_ROWS_READ)]
    sums = _row_sums(problem, looked_at, monitor)
    if monitor.stopped is not None:
        return []
    leaders = looked_at[top_k(sums, min(N_LEADERS, sums.size))]
    rows = np.abs(problem.covariance.columns(leaders))
    found = {}
    for group in _unlike(rows[leaders], problem.n_components, choice.n_open):
        led = problem.changed(choice=choice.settled(fixed=leaders[group]))
        support = led.select(rows[:, group].max(axis=1))
        found[support.tobytes()] = support
    return problem.refit_all(list(found.values()))


def _row_sums(problem: RowSparseProblem, looked_at: Index, monitor: Monitor) -> FloatArray:
    """Return the sum of the k largest entries of some rows of |A|, zero where time is up."""
    features, size = problem.choice.features, problem.choice.size
    sums = np.zeros(looked_at.size)
    for block in block_slices(looked_at.size, 8 * problem.n_features, ROW_BYTES):
        if monitor.out_of_time():
            break
        rows = np.abs(problem.covariance.columns(looked_at[block]).T[:, features])
        sums[block] = np.partition(rows, -size, axis=1)[:, -size:].sum(axis=1)
    return sums


def _unlike(related: FloatArray, m: int, n_open: int) -> list[Index]:
    """Return groups of at most m leaders, each with another one first."""
    root = np.sqrt(np.diagonal(related))
    root[root == 0] = 1.0  # squares that underflow
    related = related / root[:, None] / root
    groups = []
    for first in range(len(related)):
        group = [first]
        for other in range(len(related)):
            if len(group) < min(m, n_open) and (related[other, group] < UNLIKE).all():
                group.append(other)
        groups.append(np.array(group))
    return groups
