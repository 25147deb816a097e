r"""Screening by reduced costs: which features one witness settles.

With the scores b and the value v = D(B; k) of one and the same witness, and b_(j) the j-th
largest score among the free features (κ of which may still be chosen): supports that contain a
feature i outside the top κ have a value of at most :math:`v - b_{(κ)} + b_i`; supports that lack
a feature i inside, at most :math:`v - b_i + b_{(κ+1)}`. A feature whose bound is below the value
of the incumbent is in no (in every) optimal support. Rounded upwards; ties do not count as below.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.certificates.bounds import UNIT, Bound


@dataclass(frozen=True)
class Screen:
    """Features settled by a witness and the largest bound among what was cut off."""

    removed: Index
    fixed: Index
    level: float


def cut_levels(bound: Bound, forced: Mask, k: int) -> tuple[FloatArray, FloatArray]:
    """Return the bound on supports with, and on supports without, each feature."""
    b = bound.scores
    free = np.flatnonzero(~forced)
    n_free = k - int(forced.sum())
    order = free[np.argsort(-b[free], kind="stable")]
    inside, outside = order[:n_free], order[n_free:]
    slack = 16 * UNIT * (abs(bound.value) + 2 * float(np.abs(b).max(initial=0.0)))
    with_it = np.full(b.size, bound.value)
    without = np.full(b.size, bound.value)
    if inside.size and outside.size:
        with_it[outside] = bound.value - b[inside[-1]] + b[outside] + slack
        without[inside] = bound.value - b[inside] + b[outside[0]] + slack
    return np.minimum(with_it, bound.value), np.minimum(without, bound.value)


def screen(bound: Bound, forced: Mask, k: int, lower: float) -> Screen:
    """Return the features that no support of value ≥ `lower` has, or that all of them have."""
    with_it, without = cut_levels(bound, forced, k)
    removed = np.flatnonzero(~forced & (with_it < lower))
    fixed = np.flatnonzero(~forced & (without < lower))
    level = max(with_it[removed].max(initial=-np.inf), without[fixed].max(initial=-np.inf))
    return Screen(removed, fixed, float(level))
