"""How much each row counts."""

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kspan.arrays import FloatArray

# Weights that are meant to sum to one sum to one up to rounding, of float32 at worst.
NOTHING_LEFT = 1e-6


@dataclass(frozen=True, eq=False)
class Weights:
    """One weight for each row: a row of weight 2 counts as if it were there twice.

    Parameters
    ----------
    values : (n,) array, none negative
    total, rest : float
        Their sum as the nearest double, and what that lacks: what is divided by, the sum less one,
        is then as exact for weights that hardly exceed one.
    """

    values: FloatArray
    total: float
    rest: float = 0.0

    @classmethod
    def of(cls, given: Any, n_samples: int, ddof: int = 1) -> "Weights":
        """Take weights as they come; refuse those that cannot be.

        Parameters
        ----------
        given : one number for each row, or one for all
        n_samples : how many rows there are
        ddof : what is taken off their sum before it divides
        """
        values = checked_weights(given, n_samples)
        if not values.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
        weights = cls._summed(values)
        if not weights.less(ddof) > NOTHING_LEFT * weights.total:
            raise ValueError(
                f"The sample weights sum to {weights.total:.6g}, and a covariance divides by their "
                f"sum minus {ddof}: multiply them by a constant, such as the one by which they sum "
                "to the number of samples."
            )
        return weights

    @classmethod
    def _summed(cls, values: FloatArray) -> "Weights":
        try:
            numbers = values.tolist()
            total = math.fsum(numbers)
            return cls(values, total, math.fsum([*numbers, -total]))
        except OverflowError:
            raise ValueError("The sum of the sample weights overflows.") from None

    def less(self, ddof: int) -> float:
        """Return the sum less a number."""
        return (self.total - ddof) + self.rest

    @cached_property
    def roots(self) -> FloatArray:
        """Their square roots: rows times these have products that are weighted."""
        return np.sqrt(self.values)

    @property
    def heaviest(self) -> int:
        """A row that counts most: no further from the mean than √n standard deviations."""
        return int(self.values.argmax())

    def part(self, start: int, stop: int) -> "Weights":
        """Return those of some rows; of rows that do not count, with a sum that may divide."""
        values = self.values[start:stop]
        return Weights(values, float(values.sum()) or 1.0)

    def digest(self) -> str:
        """Return a SHA-256 of the numbers."""
        return hashlib.sha256(self.values.astype("<f8").tobytes()).hexdigest()


def checked_weights(given: Any, n_samples: int) -> FloatArray:
    """Return a weight for each row; refuse what is none, in scikit-learn's words.

    Examples
    --------
    >>> checked_weights([1, 2], 3)
    Traceback (most recent call last):
    ValueError: sample_weight.shape == (2,), expected (3,)!
    """
    values = np.array(given, dtype=np.float64)  # a copy: a caller may change it
    if values.ndim == 0:
        values = np.full(n_samples, values)
    if values.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got {values.ndim}D array. Expected "
            f"either a scalar value or a 1D array of length {n_samples}."
        )
    if values.shape != (n_samples,):
        raise ValueError(f"sample_weight.shape == {values.shape}, expected {(n_samples,)}!")
    if np.isnan(values).any():
        raise ValueError("Input sample_weight contains NaN.")
    if np.isinf(values).any():
        raise ValueError("Input sample_weight contains infinity.")
    if (values < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`.")
    return values
