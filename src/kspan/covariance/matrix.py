"""A covariance that is given as an array.

It may lack positive semidefiniteness: by rounding, as it was printed with a few digits, or as its
entries come from different rows (`missing.py`). Rounding of its own type is cut off. More is told
(`indefiniteness`), and the matrix stays as it was given: variances are its own, and bounds make up
for what it lacks (`psd_slack`). If λ is its smallest eigenvalue, A + |λ|I is positive semidefinite,
so that both hold for A itself, and a search can still close the gap between them.
"""

import warnings
from typing import Literal

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index
from kspan.covariance.block_kernels import row_digests
from kspan.covariance.interface import Covariance
from kspan.covariance.memory import Leading
from kspan.linalg.eigen import EigenPairs, leading_dense
from kspan.linalg.rounding import UNIT

# Up to this order a Cholesky factorisation settles at once whether A is PSD (under 15 ms).
# Beyond it, the eigensolver that every fit runs sees a negative eigenvalue on its way.
CHOLESKY_LIMIT = 1024

# Whether what is not positive semidefinite, beyond rounding, is made up for or refused.
Psd = Literal["mend", "raise"]

# What is made up for at most: the size of the smallest eigenvalue over that of the largest. Three
# digits of correlations cost some 1e-3; what lacks more than this is no covariance with few digits.
MOST_MENDED = 0.05


class DenseCovariance(Covariance):
    """The array itself. One pass is one product with the whole of it.

    Parameters
    ----------
    A : (d, d) array
    dtype : as the numbers came
    is_psd : whether what A was computed from is positive semidefinite
    errors : see `Covariance.entry_errors`; nothing for a matrix that is given
    psd : "raise" to refuse what is not positive semidefinite beyond rounding
    most : what is made up for otherwise, at most: see `indefiniteness`
    """

    def __init__(
        self, A: FloatArray, dtype: np.dtype[np.floating] | None = None, *,
        is_psd: bool = False, errors: FloatArray | None = None, psd: Psd = "mend",
        most: float = MOST_MENDED,
    ):  # fmt: skip
        self.A = A
        self._most = most if psd == "mend" else 0.0
        self._warns = True  # once: not of its parts
        self._is_psd = is_psd  # known to be, up to `psd_slack`
        self._errors = np.zeros(len(A)) if errors is None else errors
        self._slack = np.zeros(len(A))
        self.n_features = A.shape[0]
        self.dtype = np.dtype(dtype or A.dtype)
        self._diagonal = np.ascontiguousarray(np.diagonal(A))

    def diagonal(self) -> FloatArray:
        """Return the variances."""
        return self._diagonal

    def entry_errors(self) -> FloatArray:
        """Return zeros for a matrix that was given, else what it was computed with."""
        return self._errors

    def matmat(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return ``A W``; with a support only those rows of A are read."""
        if support is None:
            self.n_passes += 1
            return self.A @ W
        return self.A[support].T @ W  # A is symmetric, and its rows lie together in memory

    def _row_digests(self) -> NDArray[np.uint8]:
        if self.n_samples is not None:
            return super()._row_digests()  # of data: its rows are not here
        return row_digests(self.A)

    def submatrix(self, support: Index) -> FloatArray:
        """Return ``A[support, support]``."""
        return self.A[np.ix_(support, support)]

    def submatrices(self, supports: Index) -> FloatArray:
        """Return ``A[S, S]`` for every row S of `supports`."""
        return self.A[supports[:, :, None], supports[:, None, :]]

    def columns(self, support: Index) -> FloatArray:
        """Return ``A[:, support]``."""
        return self.A[support].T

    def restrict(self, support: Index) -> "DenseCovariance":
        """Return the covariance of the chosen features."""
        return matrix_on(self, support, self.dtype, is_psd=self._is_psd)

    def _leading(self, m: int) -> EigenPairs:
        was_psd = self._is_psd
        name = f"{m} pairs, {'settled' if was_psd else 'not settled'}"
        known = self.recall.find(name, Leading)
        if known is not None and not known.changed:
            return known.pairs
        pairs = self._found_leading(m)
        if known is None:  # a matrix that is settled on the way may warn, and change: not again
            self.recall.keep(name, Leading(pairs, self._is_psd != was_psd))
        return pairs

    def _found_leading(self, m: int) -> EigenPairs:
        pairs = leading_dense(self.A, m)
        if pairs.smallest is None:
            settled = self.n_features <= CHOLESKY_LIMIT
        else:
            settled = pairs.smallest >= -self._rounding()
        if not settled:
            given = self.A
            self.ensure_psd()
            if self.A is not given:
                pairs = leading_dense(self.A, m)
        return pairs

    def ensure_psd(self) -> None:
        """Settle whether A is PSD; if it is but for its rounding, take the nearest that is.

        Half the digits of its type may be rounding: what a float32 matrix lacks shows in
        doubles, and the sum of k variances would no longer bound what k features explain. What it
        lacks beyond that is `indefiniteness`, with a warning, and part of `psd_slack`.

        Raises
        ------
        ValueError
            If it lacks more than may be.
        """
        if self._is_psd:
            return
        d, diagonal = self.n_features, self._diagonal
        largest = float(np.abs(diagonal).max()) or 1.0
        # In units of standard deviations, so that small features count as much as large ones.
        units = np.sqrt(np.where(diagonal > 0, diagonal, largest))
        rounding = 8 * d * np.finfo(np.float64).eps
        overlooked = 4 * d * (d + 1) * UNIT  # by Cholesky, and by an eigensolver
        try:
            shifted = self.A / units[:, None] / units + rounding * np.eye(d)
            scipy.linalg.cholesky(shifted, overwrite_a=True, check_finite=False)
            self._slack = (rounding + overlooked) * units**2
        except scipy.linalg.LinAlgError:
            values, vectors = np.linalg.eigh(self.A)
            lacking = -float(values[0])
            if lacking > self._rounding():
                self.indefiniteness = self._mended(lacking, float(values[-1]))
            elif lacking > rounding * largest:
                below = vectors[:, values < 0]
                A = self.A - (below * values[values < 0]) @ below.T
                self.A = 0.5 * (A + A.T)
                self._diagonal = np.ascontiguousarray(np.diagonal(self.A))
                self._pairs = None
            slack = (rounding + overlooked) * (largest + max(lacking, 0.0))
            self._slack = np.full(d, slack + (lacking if self.indefiniteness else 0.0))
        self._slack[~self.A.any(axis=1)] = 0.0
        self._is_psd = True

    @property
    def knows_psd(self) -> bool:
        """See `Covariance.knows_psd`."""
        return self._is_psd

    def psd_slack(self) -> FloatArray:
        """See `Covariance.psd_slack`: what `ensure_psd` has left open."""
        return self._slack

    def is_finite(self) -> bool:
        """Say whether A holds neither NaN nor infinity, without an array of d×d answers."""
        with np.errstate(all="ignore"):
            spread = self.A @ np.zeros(self.n_features)  # 0 times NaN or infinity is NaN
        self.n_passes += 1
        return bool(np.isfinite(spread).all())

    def validate(self) -> None:
        """Raise `ValueError` unless A is symmetric, and PSD as asked; make it symmetric.

        Whoever reads one triangle must find what others find in the other.
        """
        self.n_passes += 1
        asymmetry = largest_asymmetry(self.A)
        if asymmetry > self._rounding():
            raise ValueError(
                f"The covariance is not symmetric: the largest |A - A.T| is {asymmetry:.3g}, "
                "beyond rounding."
            )
        if asymmetry > 0:
            self.A = 0.5 * (self.A + self.A.T)
            self._errors = 2 * UNIT * np.abs(self._diagonal)
        smallest = int(self._diagonal.argmin())
        if self._diagonal[smallest] < -self._rounding():
            raise ValueError(
                f"The covariance is not positive semidefinite: the variance of column {smallest} "
                f"is {self._diagonal[smallest]:.4g}, below zero."
            )
        if self.n_features <= CHOLESKY_LIMIT:
            self.ensure_psd()

    def _rounding(self) -> float:
        """How large an error of A may be called rounding: half the digits of its type."""
        return float(np.sqrt(np.finfo(self.dtype).eps) * np.abs(self._diagonal).max())

    def _mended(self, lacking: float, largest: float) -> float:
        """Return how far A is from positive semidefinite, as a share of the largest eigenvalue.

        With a warning, or a `ValueError` if it is too far.
        """
        wrong = (
            "The covariance is not positive semidefinite: it has an eigenvalue of "
            f"{-lacking:.4g}, beyond rounding"
        )
        if self._most == 0.0:
            raise ValueError(f"{wrong}.")
        share = lacking / largest if largest > 0 else np.inf
        if share > self._most:
            raise ValueError(
                f"{wrong} and by {share:.2%} of the largest one: {self._most:.0%} is the most that "
                "can be mended."
            )
        if self._warns:
            warnings.warn(
                f"{wrong}: by {share:.2g} of the largest one. Variances are those of the matrix as "
                "it is, and upper bounds hold for it: they make up for what it lacks.",
                stacklevel=2,
            )
        return share


# Tiles of this many rows and columns stay in the cache while they are transposed.
TILE = 256


def largest_asymmetry(A: FloatArray) -> float:
    """Return the largest |A - A'|, tile by tile."""
    largest, starts = 0.0, range(0, len(A), TILE)
    for i in starts:
        for j in range(0, i + 1, TILE):
            difference = A[i : i + TILE, j : j + TILE] - A[j : j + TILE, i : i + TILE].T
            largest = max(largest, float(difference.max()), -float(difference.min()))
    return largest


def matrix_on(
    covariance: Covariance, support: Index, dtype: np.dtype[np.floating] | None, *, is_psd: bool
) -> DenseCovariance:
    """Return a covariance on some of its features, as a matrix that knows where it is from."""
    errors = covariance.entry_errors()[support]
    part = DenseCovariance(covariance.submatrix(support), dtype, is_psd=is_psd, errors=errors)
    part._slack = covariance.psd_slack()[support]
    part.indefiniteness, part._warns = covariance.indefiniteness, False
    if isinstance(covariance, DenseCovariance):
        part._most = covariance._most
    part.n_samples, part.kind = covariance.n_samples, covariance.kind
    part.standardised = covariance.standardised
    part.mean = None if covariance.mean is None else covariance.mean[support]
    part.scale = None if covariance.scale is None else covariance.scale[support]
    return part
