"""A covariance plus a symmetric matrix of low rank, neither of them formed."""

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance.base import Covariance
from kspan.linalg.eigen import EigenPairs, lanczos, leading_dense

# Up to this order the sum is formed for its eigenvectors.
FORM_LIMIT = 2000


class UpdatedCovariance(Covariance):
    """``A + L C L'`` behind the interface of A: what is left of A after a deflation.

    It need not be positive semidefinite.

    Parameters
    ----------
    base : Covariance
    L : (d, r) array
    C : (r, r) symmetric array
    """

    base: Covariance
    L: FloatArray
    C: FloatArray

    def __init__(self, base: Covariance, L: FloatArray, C: FloatArray):
        if isinstance(base, UpdatedCovariance):  # one update, however often it is updated
            r, s = base.C.shape[0], C.shape[0]
            C = np.block([[base.C, np.zeros((r, s))], [np.zeros((s, r)), C]])
            L = np.hstack([base.L, L])
            base = base.base
        self.base, self.L, self.C = base, L, C
        self.n_features, self.n_samples = base.n_features, base.n_samples
        self.dtype, self.mean, self.scale = base.dtype, base.mean, base.scale

    @property
    def n_passes(self) -> int:  # type: ignore[override]
        """Passes over the data behind it."""
        return self.base.n_passes

    def prepare(self) -> None:
        """Of what it is made from."""
        self.base.prepare()

    def ensure_psd(self) -> None:
        """Of what it is made from."""
        self.base.ensure_psd()

    def diagonal(self) -> FloatArray:
        """Return the diagonal; entries of rounding size, beside A's own, are zero."""
        before = self.base.diagonal()
        after = before + np.einsum("ij,ij->i", self.L @ self.C, self.L)
        rounding = 16 * np.finfo(float).eps * self.L.shape[1]
        return np.where(np.abs(after) <= rounding * before, 0.0, after)

    def matmat(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return ``(A + L C L') W``."""
        rows = self.L if support is None else self.L[support]
        return self.base.matmat(W, support) + self.L @ (self.C @ (rows.T @ W))

    def submatrix(self, support: Index) -> FloatArray:
        """Return its rows and columns on a support."""
        rows = self.L[support]
        return self.base.submatrix(support) + rows @ self.C @ rows.T

    def columns(self, support: Index) -> FloatArray:
        """Return its columns on a support."""
        return self.base.columns(support) + self.L @ (self.C @ self.L[support].T)

    def restrict(self, support: Index) -> "UpdatedCovariance":
        """Return it on the chosen features alone."""
        return UpdatedCovariance(self.base.restrict(support), self.L[support], self.C)

    def _leading(self, m: int) -> EigenPairs:
        d = self.n_features
        if d <= FORM_LIMIT:
            return leading_dense(self.submatrix(np.arange(d)), m)
        return lanczos(self.matmat, d, m)
