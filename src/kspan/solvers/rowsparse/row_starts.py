r"""Starts for data whose variances are alike: the features most related to one, or to a few.

With one component these are the k largest entries of the row of a leader (`leaders.py`). With
several, further leaders are those that are little related to the leaders before, and a feature
counts by the leader that it is most related to. On correlations, where variances say nothing, these
are the best starts there are. Deterministic.
"""

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.problem import Candidate, RowSparseProblem
from kspan.solvers.rowsparse.leaders import Leaders

# Leaders of one start are related by less than this.
UNLIKE = 0.6


def row_starts(problem: RowSparseProblem, leaders: Leaders) -> list[Candidate]:
    """Return points on the features most related to leaders."""
    choice, rows = problem.choice, np.abs(leaders.rows)
    found = {}
    for group in _unlike(rows[:, leaders.features], problem.n_components, choice.n_open):
        scores = rows[group].max(axis=0)
        if choice.has_rules:  # they may not go together
            scores[leaders.features[group]] = 2 * scores.max()
            support = problem.select(scores)
        else:
            led = problem.changed(choice=choice.settled(fixed=leaders.features[group]))
            support = led.select(scores)
        found[support.tobytes()] = support
    return problem.refit_all(list(found.values()))


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
