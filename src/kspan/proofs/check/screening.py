r"""Screening by reduced costs: which features one witness settles.

With the scores b and the value v = D(B; k) of one and the same witness, and b_(j) the j-th
largest score among the free features (κ of which may still be chosen): supports that contain a
feature i outside the top κ have a value of at most :math:`v - b_{(κ)} + b_i`; supports that lack
a feature i inside, at most :math:`v - b_i + b_{(κ+1)}`. A feature whose bound is below the value
of the incumbent is in no (in every) optimal support. Rounded upwards; ties do not count as below.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.rounding import UNIT
from kspan.problem import Choice
from kspan.proofs.check.bounds import Bound


@dataclass(frozen=True)
class Screen:
    """Features settled by a witness and the largest bound among what was cut off."""

    removed: Index
    fixed: Index
    level: float

    @property
    def n_settled(self) -> int:
        """How many features are removed or fixed."""
        return self.removed.size + self.fixed.size


def cut_levels(bound: Bound, choice: Choice) -> tuple[FloatArray, FloatArray]:
    """Return the bound on supports with, and on supports without, each feature."""
    put_in, left_out = choice.losses(bound.scores)
    largest = float(np.abs(bound.scores).max(initial=0.0))
    top = bound.value + 16 * UNIT * (abs(bound.value) + 2 * largest)
    return np.minimum(top - put_in, bound.value), np.minimum(top - left_out, bound.value)


def screen(bound: Bound, choice: Choice, lower: float) -> Screen:
    """Return the features that no support of value ≥ `lower` has, or that all of them have."""
    with_it, without = cut_levels(bound, choice)
    free = choice.free
    removed, fixed = free[with_it[free] < lower], free[without[free] < lower]
    fixed = np.setdiff1d(fixed, removed)  # under rules there may be no good support at all
    level = max(with_it[removed].max(initial=-np.inf), without[fixed].max(initial=-np.inf))
    return Screen(removed, fixed, float(level))
