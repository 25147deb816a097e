r"""Rows that come in blocks and do not stay: an accumulated covariance, or a sketch of it.

Up to `EXACT_LIMIT` features the matrix of squared deviations S is accumulated, exactly, whatever
the order of the blocks. Beyond, it would not fit: S is then sketched by *frequent directions*, an
ℓ × d matrix B. When its 2ℓ rows are full, all squared singular values are lowered by the ℓ-th
largest one, δ, which empties half of them, and Δ = Σδ is kept. Then always

.. math:: 0 \preceq S - B'B \preceq Δ I, \qquad Δ \le \frac{\|S\|_F\text{-tail}}{ℓ - r}

for every r, the tail being what the best rank r leaves of tr S: `error` is Δ over the number of
samples, and no sum of m variances is off by more than m times that. Means and variances of the
features are exact in both.

Blocks of rows are centred on their own means, and the distance of the means is one more row, so a
large mean costs no digits.

Reference: Liberty, Simple and Deterministic Matrix Sketching, KDD 2013; Ghashami et al., SIAM J.
Comput. 45 (2016).
"""

from typing import Any

import numpy as np
import scipy.sparse

from kspan.covariance.data_covariance import constant_columns
from kspan.covariance.dense_data import DenseDataCovariance
from kspan.covariance.derived import UnitCovariance
from kspan.covariance.interface import Covariance
from kspan.covariance.matrix import DenseCovariance

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
        self.count = 0
        self.mean = np.zeros(n_features)
        self.squares = np.zeros(n_features)
        self.exact = n_features <= EXACT_LIMIT
        self.lost = 0.0  # Δ
        self.dtype: np.dtype[np.floating] = np.dtype(np.float64)
        self._used = 0
        self._rows = sketch_rows
        shape = (n_features, n_features) if self.exact else (2 * sketch_rows, n_features)
        self._S = np.zeros(shape)

    def add(self, X: Any) -> None:
        """Take in a block of rows: a dense array of finite numbers."""
        if not len(X):
            return
        self.dtype = X.dtype if self.count == 0 else np.promote_types(self.dtype, X.dtype)
        X = X.astype(np.float64)  # a copy
        part_mean = X.mean(axis=0)
        X -= part_mean
        shift, total = part_mean - self.mean, self.count + len(X)
        weight = self.count * len(X) / total
        self.squares += np.einsum("ij,ij->j", X, X) + shift * shift * weight
        if self.exact:
            self._S += X.T @ X
            self._S += np.outer(shift, shift * weight)
        else:
            for row in np.vstack([X, np.sqrt(weight) * shift]):
                if self._used == len(self._S):
                    self._shrink()
                self._S[self._used] = row
                self._used += 1
        self.mean += shift * (len(X) / total)
        self.count = total

    def _shrink(self) -> None:
        """Lower the squared singular values until half of the rows are free."""
        _, sizes, directions = np.linalg.svd(self._S, full_matrices=False)
        delta = float(sizes[self._rows - 1] ** 2)
        kept = np.sqrt(np.maximum(sizes**2 - delta, 0.0))
        self._S[: len(kept)] = kept[:, None] * directions
        self._used = self._rows - 1
        self._S[self._used :] = 0.0
        self.lost += delta

    def error(self, ddof: int = 1) -> float:
        """Return by how much a variance along any direction may be underestimated; 0 if exact."""
        return self.lost / (self.count - ddof)

    def covariance(self, *, scale: bool, ddof: int = 1) -> Covariance:
        """Return the covariance of the rows so far."""
        if self.count <= ddof:
            raise ValueError(
                f"Found {self.count} sample(s) so far while a minimum of {ddof + 1} is required: "
                "one sample has no variance."
            )
        divisor = self.count - ddof
        constant = constant_columns(self.count, self.mean, self.squares)
        variances = np.where(constant, 0.0, self.squares / divisor)
        if not variances.any():
            raise ValueError("All features are constant: there is no variance to explain.")
        scales = np.sqrt(np.where(constant, 1.0, variances)) if scale else np.ones_like(variances)
        result: Covariance
        if self.exact:
            A = self._S / np.outer(scales, scales * divisor)
            A[constant], A[:, constant] = 0.0, 0.0
            result = DenseCovariance(0.5 * (A + A.T), self.dtype)
        else:
            B = self._S[: max(self._used, 1)] * np.where(constant, 0.0, 1 / scales)
            squares = np.einsum("ij,ij->j", B, B) / divisor
            centred, unscaled = np.zeros_like(scales), np.ones_like(scales)
            rows = DenseDataCovariance(
                B * np.sqrt(len(B) / divisor), centred, unscaled, squares, ddof=0
            )
            rows.has_samples = False  # they are those of the sketch
            result = UnitCovariance(rows, 1.0)  # with means and scales of its own
            result.dtype = self.dtype
        result.n_samples, result.kind, result.standardised = self.count, "data", scale
        result.mean, result.scale = self.mean.copy(), scales
        return result
