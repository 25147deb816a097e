r"""What is added to the eigenvalues of A before a method looks at the leading ones.

A constant σ on the diagonal gives every unit vector σ more, and so changes no optimum: those of A
and :math:`A - σI` are the same. It does change the best approximation of low rank, which is what
some methods work on. If :math:`A = σI + C` with C of rank r, as in the spiked model (r directions
of signal, and noise that is alike in all), a method that is exact at rank r finds the optimum from
:math:`A - σI`, but not from A: the r leading eigenvectors of A carry noise too.

"auto" takes off the mean of the eigenvalues beyond the leading ones, which is the most likely σ of
that model (Tipping and Bishop, Probabilistic Principal Component Analysis, 1999). The trace has it,
so it costs nothing; and as it is no larger than the last of the leading eigenvalues, what is left
of those is positive semidefinite.
"""

import math
from numbers import Real

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance import Covariance
from kspan.linalg.eigen import mean_of_rest

# Eigenvalues up to this share of the first are rounding.
RANK_TOL = 1e-12


def require_shift(name: str, shift: object) -> None:
    """Raise `ValueError` unless a shift is "auto" or a finite number."""
    if not ((isinstance(shift, str) and shift == "auto") or _is_finite(shift)):
        raise ValueError(f"{name} must be 'auto' or a finite number, got {shift!r}.")


def require_lift(name: str, shift: object) -> None:
    """Raise `ValueError` unless a shift leaves A positive semidefinite, whatever A is."""
    if not (_is_finite(shift) and shift >= 0):  # type: ignore[operator]
        raise ValueError(f"{name} must be a finite number, 0 or more, got {shift!r}.")


def _is_finite(shift: object) -> bool:
    if isinstance(shift, bool) or not isinstance(shift, Real):
        return False
    try:
        return math.isfinite(shift)
    except OverflowError:  # a whole number that no float holds
        return False


def shift_of(covariance: Covariance, rank: int, shift: float | str, unit: float = 1.0) -> float:
    """Return the number that a shift stands for, when so many leading eigenpairs are looked at.

    It is zero if the shift would leave nothing: of noise alone no direction is better than others.

    Parameters
    ----------
    covariance : A
    rank : how many leading eigenpairs
    shift : "auto", or a number in units of the user's
    unit : what those are divided by in A
    """
    values = covariance.leading(min(rank, covariance.n_features)).values
    if isinstance(shift, str):
        added = -mean_of_rest(values, covariance.diagonal())
    else:
        added = float(shift) / unit
    return added if values[0] + added > RANK_TOL * max(float(values[0]), 0.0) else 0.0


def shifted(values: FloatArray, shift: float) -> FloatArray:
    """Return leading eigenvalues with a shift; none is below zero, before and after."""
    return np.maximum(np.maximum(values, 0.0) + shift, 0.0)
