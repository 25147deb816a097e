"""A covariance from which some features have been taken out: their rows and columns are zero."""

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.covariance.base import Covariance
from kspan.linalg.eigen import EigenPairs


class MaskedCovariance(Covariance):
    """``D A D`` with D = diag(keep): features that are not kept look constant.

    Parameters
    ----------
    base : Covariance
    keep : (d,) mask
    """

    base: Covariance
    keep: Mask

    def __init__(self, base: Covariance, keep: Mask):
        if isinstance(base, MaskedCovariance):  # one mask, however often it is masked
            keep = base.keep & keep
            base = base.base
        self.base, self.keep = base, keep
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
        """Return the variances, zero for features that are not kept."""
        return np.where(self.keep, self.base.diagonal(), 0.0)

    def matmat(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return ``D A D W``."""
        rows = self.keep if support is None else self.keep[support]
        return self.keep[:, None] * self.base.matmat(rows[:, None] * W, support)

    def submatrix(self, support: Index) -> FloatArray:
        """Return its rows and columns on a support."""
        keep = self.keep[support]
        return keep[:, None] * self.base.submatrix(support) * keep

    def columns(self, support: Index) -> FloatArray:
        """Return its columns on a support."""
        return self.keep[:, None] * self.base.columns(support) * self.keep[support]

    def restrict(self, support: Index) -> Covariance:
        """Return it on the chosen features alone."""
        base, keep = self.base.restrict(support), self.keep[support]
        return base if keep.all() else MaskedCovariance(base, keep)

    @property
    def is_wide(self) -> bool:
        """Whether `sample_factor` has an answer."""
        return self.base.is_wide

    def sample_factor(self) -> FloatArray | None:
        """Return XD where ``A = X'X``, if X has fewer rows than features, else None."""
        X = self.base.sample_factor()
        return None if X is None else X * self.keep

    def _leading(self, m: int) -> EigenPairs:
        """Eigenpairs of the kept part, with zeros between; any directions beyond its rank."""
        kept = np.flatnonzero(self.keep)
        few = min(m, kept.size)
        vectors = np.zeros((self.n_features, m))
        values, residuals = np.zeros(m), np.zeros(m)
        if few:
            pairs = self.base.restrict(kept).leading(few)
            vectors[kept, :few] = pairs.vectors
            values[:few], residuals[:few] = pairs.values, pairs.residuals
        others = np.flatnonzero(~self.keep)[: m - few]
        vectors[others, few + np.arange(others.size)] = 1.0
        return EigenPairs(values, vectors, residuals, None)
