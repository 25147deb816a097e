r"""Features shared out to components, each of which takes a number of them: compiled.

.. math:: \max \sum_{(i, t)} s_{it} \quad \text{each feature } i \text{ to one component at most},
          \; k_t \text{ features to component } t

An assignment of features to places, of which those of a component are all alike. That makes it
small: component after component takes one feature more, along the best chain of components, each of
which gives a feature to the one before it. What a feature is worth more to another one is known for
each two components, and only changes for those of the chain.

Cost: O(n log n) for the order of the features, then r k_t of a component for each that changes.
"""

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.machine import compiled

# A chain must be better by this share to take the place of a shorter one: rounding alone would let
# features go round in circles.
ROUNDING = 1e-13


@compiled
def share_out(scores: FloatArray, limits: Index) -> Index:
    """Return the component of each feature (n,), -1 for none; all limits are reached.

    Parameters
    ----------
    scores : (n, r)
    limits : (r,) of which the sum is at most n
    """
    n, r = scores.shape
    owner = np.full(n, -1)
    order = np.empty((r, n), dtype=np.int64)
    for t in range(r):
        order[t] = np.argsort(-scores[:, t])
    begin = np.zeros(r, dtype=np.int64)  # the first in the order that may be free
    worth, which = np.full((r, r), -np.inf), np.zeros((r, r), dtype=np.int64)
    reach, following = np.empty(r), np.empty(r, dtype=np.int64)
    changed = np.ones(r, dtype=np.bool_)
    for start in range(r):
        for _ in range(limits[start]):
            for t in range(r):  # what it is worth to a if b gives it a feature, and which one
                if changed[t]:
                    worth[:, t] = -np.inf
                    for i in range(n):
                        if owner[i] == t:
                            for a in range(r):
                                gain = scores[i, a] - scores[i, t]
                                if a != t and gain > worth[a, t]:
                                    worth[a, t], which[a, t] = gain, i
                    changed[t] = False
            for t in range(r):
                while owner[order[t, begin[t]]] >= 0:
                    begin[t] += 1
                reach[t], following[t] = scores[order[t, begin[t]], t], -1
            for _round in range(r - 1):  # chains of one component more
                for a in range(r):
                    for b in range(r):
                        if worth[a, b] + reach[b] > reach[a] + ROUNDING * abs(reach[a]):
                            reach[a], following[a] = worth[a, b] + reach[b], b
            t = start
            for _step in range(r):
                changed[t] = True
                if following[t] < 0:
                    owner[order[t, begin[t]]] = t
                    break
                giver = following[t]
                owner[which[t, giver]] = t
                t = giver
    return owner
