"""The data behind a bound, as one object: what is known of A, in which units, how exactly."""

import math
from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.rounding import UNIT, unit_scale
from kspan.proofs.check.claims import CertificateError, Problem


@dataclass(frozen=True, eq=False)
class KnownMatrix:
    """A on some features.

    Parameters
    ----------
    A : (n, n) array, exactly symmetric, in units of `scale`
    scale : a power of four
    n_samples : rows of the data that A was computed from, 0 if it was given
        Every bound's rounding margin grows with them.
    """

    A: FloatArray
    scale: float = 1.0
    n_samples: int = 0

    @classmethod
    def of(cls, problem: Problem, features: Index, scale: float | None = None) -> "KnownMatrix":
        """Take it from a problem, in a witness's units or in those of the data's size."""
        scale = data_scale(problem) if scale is None else checked_scale(problem, scale)
        A = problem.covariance.submatrix(features) / scale
        return cls(0.5 * (A + A.T), scale, problem.covariance.n_samples or 0)

    def on(self, places: Index) -> "KnownMatrix":
        """Return the part on some of the features."""
        return KnownMatrix(self.A[np.ix_(places, places)], self.scale, self.n_samples)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.A)

    @property
    def variances(self) -> FloatArray:
        """The diagonal of A."""
        return np.diagonal(self.A)

    def value_error(self, m: int, k: int) -> float:
        """What the computed sum of m eigenvalues on k features may be off by.

        An eigenvalue is off by 4k·u times a norm, and that norm is at most k times the largest
        variance; A itself by n_samples·u times the trace.
        """
        largest = float(np.abs(self.variances).max(initial=0.0))
        return 8 * m * k * (k + self.n_samples) * UNIT * largest


@dataclass(frozen=True, eq=False)
class KnownFactor:
    """X with ``A = X'X`` on some features, for data with few samples.

    Parameters
    ----------
    X : (r, n) array, in units of the root of `scale`
    scale : a power of four
    """

    X: FloatArray
    scale: float = 1.0

    @classmethod
    def of(
        cls, problem: Problem, features: Index | None = None, scale: float | None = None
    ) -> "KnownFactor":
        """Take it from a problem, all features by default."""
        scale = data_scale(problem) if scale is None else checked_scale(problem, scale)
        X = problem.covariance.sample_factor()
        if X is None:
            raise CertificateError("witness: the problem has no data with few samples behind it")
        X = X if features is None else X[:, features]
        return cls(X / math.sqrt(scale), scale)


def data_scale(problem: Problem) -> float:
    """Return the power of four at the size of the largest variance."""
    return unit_scale(float(problem.covariance.diagonal().max()))


def checked_scale(problem: Problem, scale: float) -> float:
    """Require a power of four of about the size of the data.

    Then dividing by it and by its root is exact, and the rounding margins hold.
    """
    if math.isfinite(scale) and scale > 0:
        mantissa, exponent = math.frexp(scale)
        size = math.frexp(float(problem.covariance.diagonal().max()))[1]
        if mantissa == 0.5 and exponent % 2 == 1 and abs(exponent - size) <= 20:
            return scale
    raise CertificateError(f"the scale is not a power of four of the data's size: {scale!r}")
