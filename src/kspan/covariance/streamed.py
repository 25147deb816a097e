r"""Rows that come in blocks and do not stay: an accumulated covariance, or a sketch of it.

Up to `EXACT_LIMIT` features the matrix of squared deviations S is accumulated, exactly, whatever
the order of the blocks. Beyond, it would not fit: S is then sketched by *frequent directions*, an
ℓ × d matrix B. When its 2ℓ rows are full, all squared singular values are lowered by the ℓ-th
largest one, δ, which empties half of them, and Δ = Σδ is kept. Then always

.. math:: 0 \preceq S - B'B \preceq Δ I, \qquad Δ \le \frac{\|S\|_F\text{-tail}}{ℓ - r}

for every r, the tail being what the best rank r leaves of tr S: `error` is Δ over the number of
samples, and no sum of m variances is off by more than m times that. Means and variances of the
features are exact in both.

Rows are measured from the first one and blocks of them centred on their own means; the distance of
the means is one more row. So a large mean costs no digits, and a column of equal numbers is exactly
constant.

Reference: Liberty, Simple and Deterministic Matrix Sketching, KDD 2013; Ghashami et al., SIAM J.
Comput. 45 (2016).
"""

from typing import Any

import numpy as np
import scipy.sparse

from kspan.arrays import FloatArray, Index
from kspan.covariance.block_kernels import Moments
from kspan.covariance.data_covariance import divisors_for, require_variance, sum_errors
from kspan.covariance.dense_data import DenseDataCovariance
from kspan.covariance.derived import UnitCovariance
from kspan.covariance.interface import Covariance
from kspan.covariance.matrix import DenseCovariance
from kspan.linalg.rounding import UNIT

# Features up to which S is accumulated: 200 MB.
EXACT_LIMIT = 5000

# ℓ, the rows of a sketch.
SKETCH_ROWS = 200


def as_rows(X: Any) -> Any:
    """Return a block as a dense array: it is small, and goes away."""
    return X.toarray() if scipy.sparse.issparse(X) else np.asarray(X)


class RowStream:
    """What is known of the rows so far.

    Parameters
    ----------
    n_features : d
    sketch_rows : ℓ, used beyond `EXACT_LIMIT` features
    """

    def __init__(self, n_features: int, sketch_rows: int = SKETCH_ROWS):
        self.origin = np.zeros(n_features)
        self.moments: Moments | None = None  # from the origin
        self.count = 0  # of rows so far
        self.exact = n_features <= EXACT_LIMIT
        self.lost = 0.0  # Δ
        self.rounded = 0.0  # what the singular values that were computed may be off by
        self.dtype: np.dtype[np.floating] = np.dtype(np.float64)
        self._used = 0
        self._rows = sketch_rows
        shape = (n_features, n_features) if self.exact else (2 * sketch_rows, n_features)
        self._S = np.zeros(shape)

    def add(self, X: Any, weights: FloatArray | None = None) -> None:
        """Take in a block of rows: a dense array of finite numbers, and what each of them counts.

        A row of weight 2 counts as if it came twice.
        """
        if not len(X):
            return
        self.dtype = X.dtype if self.count == 0 else np.promote_types(self.dtype, X.dtype)
        self.count += len(X)
        if weights is not None and not weights.any():
            return
        if self.moments is None:
            # The row that counts most is no further from the mean than √n standard deviations.
            self.origin = X[0 if weights is None else weights.argmax()].astype(np.float64)
        X = X - self.origin  # float64, whatever X is
        found = Moments.centring(X, weights)
        apart = np.zeros_like(self.origin) if self.moments is None else self.moments.apart(found)
        if self.exact:
            self._S += X.T @ X
            self._S += np.outer(apart, apart)
        else:
            for row in np.vstack([X, apart]):
                if self._used == len(self._S):
                    self._shrink()
                self._S[self._used] = row
                self._used += 1
        self.moments = found if self.moments is None else self.moments.merged(found)

    @property
    def total(self) -> float:
        """The weight of the rows so far: their number, if each counts once."""
        return 0 if self.moments is None else self.moments.count

    def _shrink(self) -> None:
        """Lower the squared singular values until half of the rows are free."""
        _, sizes, directions = np.linalg.svd(self._S, full_matrices=False)
        delta = float(sizes[self._rows - 1] ** 2)
        kept = np.sqrt(np.maximum(sizes**2 - delta, 0.0))
        self._S[: len(kept)] = kept[:, None] * directions
        self._used = self._rows - 1
        self._S[self._used :] = 0.0
        # LAPACK's singular values, and vectors, are those of a matrix that is off by this much.
        rounded = 8 * (len(self._S) + 8) * UNIT * float(sizes[0] * sizes.sum())
        self.lost += delta + rounded
        self.rounded += rounded

    def error(self, ddof: int = 1) -> float:
        """Return by how much a variance along any direction may be underestimated; 0 if exact."""
        return self.lost / (self.total - ddof)

    def covariance(self, *, scale: bool, ddof: int = 1) -> Covariance:
        """Return the covariance of the rows so far."""
        if self.moments is None or self.total <= ddof:
            raise ValueError(
                f"Found {self.total:g} sample(s) so far while a minimum of {ddof + 1} is required: "
                "one sample has no variance."
            )
        divisor = self.total - ddof
        variances = self.moments.squares / divisor
        require_variance(variances, scale)
        scales = divisors_for(variances, scale)
        errors = sum_errors(self.count, variances / scales / scales)
        result: Covariance
        if self.exact:
            A = self._S / divisor
            A /= scales[:, None]
            A /= scales
            result = DenseCovariance(A, self.dtype, is_psd=True, errors=errors)
        else:
            B = self._S[: max(self._used, 1)] / scales
            rows = _sketched_rows(B * np.sqrt(len(B) / divisor))
            rounded, lost = (part / divisor / scales / scales for part in (self.rounded, self.lost))
            result = SketchCovariance(rows, errors + rounded, lost)
            result.dtype = self.dtype
        result.n_samples, result.kind, result.standardised = self.count, "data", scale
        result.mean, result.scale = self.moments.centre(self.origin)[0], scales
        return result


def _sketched_rows(B: FloatArray) -> DenseDataCovariance:
    """Return ``B'B / len(B)``, of rows that are not those of the data."""
    squares = np.einsum("ij,ij->j", B, B) / len(B)
    nothing, ones = np.zeros_like(squares), np.ones_like(squares)
    rows = DenseDataCovariance(B, nothing, ones, squares, ddof=0)
    rows.has_samples = False
    return rows


class SketchCovariance(UnitCovariance):
    """The covariance of a sketch's rows, which says what it has not seen.

    Parameters
    ----------
    base : of the rows
    errors : (d,) array, see `Covariance.entry_errors`
    unseen : (d,) array, see `Covariance.unseen`
    """

    def __init__(self, base: Covariance, errors: FloatArray, unseen: FloatArray):
        self._errors, self._unseen = errors, unseen
        super().__init__(base, 1.0)

    def _on(self, base: Covariance, support: Index | None = None) -> "SketchCovariance":
        rows: Any = slice(None) if support is None else support
        part = SketchCovariance(base, self._errors[rows], self._unseen[rows])
        part.n_samples, part.kind, part.standardised = self.n_samples, self.kind, self.standardised
        return part

    def entry_errors(self) -> FloatArray:
        """See `Covariance.entry_errors`."""
        return self._errors + self.base.entry_errors()

    def product_errors(self) -> FloatArray:
        """See `Covariance.product_errors`."""
        return self._errors + self.base.product_errors()

    def unseen(self) -> FloatArray:
        """See `Covariance.unseen`: what the sketch has lost."""
        return self._unseen
