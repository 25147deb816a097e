"""A covariance in units in which its largest variance is near one."""

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance.base import Covariance
from kspan.linalg.eigen import EigenPairs, power_of_two


class UnitCovariance(Covariance):
    """A covariance divided by a power of two, so that its largest variance is near one.

    Parameters
    ----------
    base : Covariance
    unit : float, optional
        The divisor.
    """

    def __init__(self, base: Covariance, unit: float | None = None):
        self.base = base
        self.unit = power_of_two(float(base.diagonal().max())) if unit is None else unit
        self.n_features, self.n_samples = base.n_features, base.n_samples
        self.dtype, self.mean, self.scale = base.dtype, base.mean, base.scale

    @property
    def n_passes(self) -> int:  # type: ignore[override]
        """Passes over the data behind it."""
        return self.base.n_passes

    def diagonal(self) -> FloatArray:
        """Return the variances."""
        return self.base.diagonal() / self.unit

    def matmat(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return ``A W / unit``."""
        return self.base.matmat(W, support) / self.unit

    def submatrix(self, support: Index) -> FloatArray:
        """Return its rows and columns on a support."""
        return self.base.submatrix(support) / self.unit

    def submatrices(self, supports: Index) -> FloatArray:
        """Return its rows and columns on many supports."""
        return self.base.submatrices(supports) / self.unit

    def columns(self, support: Index) -> FloatArray:
        """Return its columns on a support."""
        return self.base.columns(support) / self.unit

    def restrict(self, support: Index) -> "UnitCovariance":
        """Return it on the chosen features alone."""
        return UnitCovariance(self.base.restrict(support), self.unit)

    @property
    def is_wide(self) -> bool:
        """Whether `sample_factor` has an answer."""
        return self.base.is_wide

    def sample_factor(self) -> FloatArray | None:
        """Return X with ``X'X`` this covariance, if X has fewer rows than features, else None."""
        X = self.base.sample_factor()
        return None if X is None else X / np.sqrt(self.unit)

    def _leading(self, m: int) -> EigenPairs:
        pairs = self.base.leading(m)
        smallest = None if pairs.smallest is None else pairs.smallest / self.unit
        return EigenPairs(
            pairs.values / self.unit, pairs.vectors, pairs.residuals / self.unit, smallest
        )
