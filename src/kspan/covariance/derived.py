"""Covariances made from another one: in other units, with features taken out, shifted, updated.

`DerivedCovariance` hands on the whole interface of its base; the others say what differs.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.covariance.interface import Covariance
from kspan.linalg.eigen import EigenPairs, lanczos, leading_dense, power_of_two
from kspan.linalg.rounding import UNIT


class DerivedCovariance(Covariance):
    """Another covariance behind the whole interface, changed in what a subclass says.

    That is `diagonal`, `matmat`, `_leading`, the entries (`_entries`) and how to do the same to
    another covariance (`_on`). Samples carry over if they are still samples of it when their
    features are multiplied by something (`_weights`). A fingerprint does not: it is that of
    numbers as they were given.

    Parameters
    ----------
    base : Covariance
        What it is made from. Passes over the data, and products of all of it, are counted there.
    """

    base: Covariance

    def __init__(self, base: Covariance):
        self.base = base
        self.n_features, self.n_samples, self.dtype = base.n_features, base.n_samples, base.dtype
        self.mean, self.scale = base.mean, base.scale
        self.kind, self.standardised = base.kind, base.standardised
        self.has_samples = base.has_samples and self._weights() is not None

    @abstractmethod
    def _entries(self, values: FloatArray, rows: Any, columns: Index) -> FloatArray:
        """Return what becomes of entries of A, given their rows and columns (or stacks of both)."""

    @abstractmethod
    def _on(self, base: Covariance, support: Index | None = None) -> Covariance:
        """Do the same to another covariance, which may have some of the features only."""

    def _weights(self) -> FloatArray | None:
        """Return what each feature of a sample is multiplied by; None if there are no samples."""
        return None

    @property
    def n_passes(self) -> int:  # type: ignore[override]
        """Passes over the data behind it."""
        return self.base.n_passes

    @property
    def n_grams(self) -> int:  # type: ignore[override]
        """How often A, or XX', was computed from the data behind it."""
        return self.base.n_grams

    @property
    def indefiniteness(self) -> float:  # type: ignore[override]
        """That of what it is made from."""
        return self.base.indefiniteness

    @property
    def weights_digest(self) -> str | None:  # type: ignore[override]
        """That of the data behind it."""
        return self.base.weights_digest

    @property
    def reads_are_costly(self) -> bool:
        """Whether those of what it is made from are."""
        return self.base.reads_are_costly

    def entry_errors(self) -> FloatArray:
        """See `Covariance.entry_errors`: those of the base, if its samples carry over."""
        return self.base.entry_errors() * self._squared_weights()

    def product_errors(self) -> FloatArray:
        """See `Covariance.product_errors`."""
        return self.base.product_errors() * self._squared_weights()

    def psd_slack(self) -> FloatArray:
        """See `Covariance.psd_slack`."""
        return self.base.psd_slack() * self._squared_weights()

    def unseen(self) -> FloatArray:
        """See `Covariance.unseen`."""
        return self.base.unseen() * self._squared_weights()

    def precise_product(self, w: FloatArray) -> FloatArray:
        """See `Covariance.precise_product`, if samples carry over."""
        weights = self._weights()
        assert weights is not None
        return weights[:, None] * self.base.precise_product(weights[:, None] * w)

    def _squared_weights(self) -> Any:
        weights = self._weights()
        return 1.0 if weights is None else weights**2

    def prepare(self) -> None:
        """Prepare what it is made from."""
        self.base.prepare()

    @property
    def knows_psd(self) -> bool:
        """Whether it is known of what it is made from."""
        return self.base.knows_psd

    def ensure_psd(self) -> None:
        """Make sure of what it is made from."""
        self.base.ensure_psd()

    def submatrix(self, support: Index) -> FloatArray:
        """Return its rows and columns on a support."""
        return self._entries(self.base.submatrix(support), support, support)

    def submatrices(self, supports: Index) -> FloatArray:
        """Return its rows and columns on many supports."""
        return self._entries(self.base.submatrices(supports), supports, supports)

    def columns(self, support: Index) -> FloatArray:
        """Return its columns on a support."""
        return self._entries(self.base.columns(support), slice(None), support)

    def restrict(self, support: Index) -> Covariance:
        """Return it on the chosen features alone."""
        return self._on(self.base.restrict(support), support)

    def densified(self) -> Covariance:
        """Return it with all samples in one dense array."""
        base = self.base.densified()
        return self if base is self.base else self._on(base)

    def scores(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return the coordinates of the samples, if they carry over."""
        weights = self._weights()
        if not self.has_samples or weights is None:
            return super().scores(W, support)
        weights = weights if support is None else weights[support]
        return self.base.scores(weights[:, None] * W, support)

    def row_blocks(self, size: int) -> Iterator[Covariance]:
        """Yield what becomes of the covariance of each block of rows, if samples carry over."""
        if not self.has_samples:
            return super().row_blocks(size)
        return map(self._on, self.base.row_blocks(size))

    @property
    def is_wide(self) -> bool:
        """Whether `sample_factor` has an answer."""
        return self.base.is_wide and self._weights() is not None

    def sample_factor(self, support: Index | None = None) -> FloatArray | None:
        """Return X with ``X'X`` this covariance, if X has fewer rows than features, else None."""
        weights = self._weights()
        if weights is None or (X := self.base.sample_factor(support)) is None:
            return None
        return X * (weights if support is None else weights[support])


class UnitCovariance(DerivedCovariance):
    """A covariance divided by a power of two, so that its largest variance is near one.

    Parameters
    ----------
    base : Covariance
    unit : float, optional
        The divisor.
    """

    def __init__(self, base: Covariance, unit: float | None = None):
        self.unit = power_of_two(float(base.diagonal().max())) if unit is None else unit
        super().__init__(base)
        if base.scale is not None:
            self.scale = base.scale * np.sqrt(self.unit)
        if base.sketch is not None:
            self.sketch = base.sketch[0], base.sketch[1] / self.unit

    def diagonal(self) -> FloatArray:
        """Return the variances."""
        return self.base.diagonal() / self.unit

    def matmat(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return ``A W / unit``."""
        return self.base.matmat(W, support) / self.unit

    def precise_product(self, w: FloatArray) -> FloatArray:
        """See `Covariance.precise_product`."""
        return self.base.precise_product(w) / self.unit

    def _entries(self, values: FloatArray, rows: Any, columns: Index) -> FloatArray:
        return values / self.unit

    def _on(self, base: Covariance, support: Index | None = None) -> "UnitCovariance":
        return UnitCovariance(base, self.unit)

    def _weights(self) -> FloatArray:
        return np.full(self.base.n_features, 1 / np.sqrt(self.unit))

    def _leading(self, m: int) -> EigenPairs:
        pairs = self.base.leading(m)
        smallest = None if pairs.smallest is None else pairs.smallest / self.unit
        return EigenPairs(
            pairs.values / self.unit, pairs.vectors, pairs.residuals / self.unit, smallest
        )


class MaskedCovariance(DerivedCovariance):
    """``D A D`` with D = diag(keep): features that are not kept look constant.

    Parameters
    ----------
    base : Covariance
    keep : (d,) mask
    """

    keep: Mask

    def __init__(self, base: Covariance, keep: Mask):
        if isinstance(base, MaskedCovariance):  # one mask, however often it is masked
            keep = base.keep & keep
            base = base.base
        self.keep = keep
        super().__init__(base)

    def diagonal(self) -> FloatArray:
        """Return the variances, zero for features that are not kept."""
        return np.where(self.keep, self.base.diagonal(), 0.0)

    def matmat(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return ``D A D W``."""
        rows = self.keep if support is None else self.keep[support]
        return self.keep[:, None] * self.base.matmat(rows[:, None] * W, support)

    def _entries(self, values: FloatArray, rows: Any, columns: Index) -> FloatArray:
        return self.keep[rows][..., :, None] * values * self.keep[columns][..., None, :]

    def _on(self, base: Covariance, support: Index | None = None) -> Covariance:
        keep = self.keep if support is None else self.keep[support]
        return base if keep.all() else MaskedCovariance(base, keep)

    def _weights(self) -> FloatArray:
        return self.keep.astype(np.float64)

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


class ShiftedCovariance(DerivedCovariance):
    """``A + shift I``: what unit vectors explain grows by the shift, for all of them alike.

    Parameters
    ----------
    base : Covariance
    shift : float
    """

    def __init__(self, base: Covariance, shift: float):
        self.shift = shift
        super().__init__(base)
        self.standardised = False
        if base.sketch is not None:
            columns, image = base.sketch
            self.sketch = columns, image + shift * columns

    def diagonal(self) -> FloatArray:
        """Return the diagonal."""
        return self.base.diagonal() + self.shift

    def matmat(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return ``(A + shift I) W``."""
        product = self.base.matmat(W, support).copy()
        product[slice(None) if support is None else support] += self.shift * W
        return product

    def precise_product(self, w: FloatArray) -> FloatArray:
        """See `Covariance.precise_product`."""
        return self.base.precise_product(w) + self.shift * w

    def product_errors(self) -> FloatArray:
        """See `Covariance.product_errors`."""
        return self.base.product_errors() + 4 * UNIT * np.abs(self.diagonal())

    def entry_errors(self) -> FloatArray:
        """See `Covariance.entry_errors`."""
        return self.base.entry_errors() + 4 * UNIT * np.abs(self.diagonal())

    def _entries(self, values: FloatArray, rows: Any, columns: Index) -> FloatArray:
        places = np.arange(self.n_features)[rows]
        return values + self.shift * (places[..., :, None] == columns[..., None, :])

    def _on(self, base: Covariance, support: Index | None = None) -> "ShiftedCovariance":
        return ShiftedCovariance(base, self.shift)

    def _leading(self, m: int) -> EigenPairs:
        pairs = self.base.leading(m)
        smallest = None if pairs.smallest is None else pairs.smallest + self.shift
        return EigenPairs(pairs.values + self.shift, pairs.vectors, pairs.residuals, smallest)


# Up to this order the sum is formed for its eigenvectors.
UPDATE_FORM_LIMIT = 2000


def largest_doubts(covariance: Covariance) -> tuple[float, float]:
    """Return the largest entries of `psd_slack` and `unseen`."""
    slack, unseen = covariance.psd_slack(), covariance.unseen()
    return float(slack.max(initial=0.0)), float(unseen.max(initial=0.0))


class UpdatedCovariance(DerivedCovariance):
    """``A + L C L'`` behind the interface of A: what is left of A after a deflation.

    It need not be positive semidefinite, `ensure_psd` is about A; and it has no samples.

    Parameters
    ----------
    base : Covariance
    L : (d, r) array
    C : (r, r) symmetric array
    errors : (d,) array
        How well it is known, see `Covariance.entry_errors`; None if nobody asks.
    bounds : two floats
        The largest entries of `psd_slack` and `unseen`: those of the base if it has all features
        and the update makes none larger, as a projection.
    """

    L: FloatArray
    C: FloatArray

    def __init__(
        self, base: Covariance, L: FloatArray, C: FloatArray, errors: FloatArray | None = None,
        bounds: tuple[float, float] | None = None,
    ):  # fmt: skip
        self.errors = errors
        self.bounds = largest_doubts(base) if bounds is None else bounds
        if isinstance(base, UpdatedCovariance):  # one update, however often it is updated
            r, s = base.C.shape[0], C.shape[0]
            C = np.block([[base.C, np.zeros((r, s))], [np.zeros((s, r)), C]])
            L = np.hstack([base.L, L])
            base = base.base
        self.L, self.C = L, C
        super().__init__(base)
        self.standardised = False  # its diagonal is not that of correlations any more
        if base.sketch is not None:
            columns, image = base.sketch
            self.sketch = columns, image + L @ (C @ (L.T @ columns))

    def diagonal(self) -> FloatArray:
        """Return the diagonal; entries of the size of their errors, or of rounding, are zero."""
        after = self._sums()
        return np.where(np.abs(after) <= self._threshold(), 0.0, after)

    def _sums(self) -> FloatArray:
        """Return the diagonal as it is computed."""
        return self.base.diagonal() + np.einsum("ij,ij->i", self.L @ self.C, self.L)

    def _threshold(self) -> FloatArray:
        """Return what a variance has to be above."""
        rounding = 16 * np.finfo(float).eps * self.L.shape[1] * self.base.diagonal()
        return rounding if self.errors is None else np.maximum(rounding, self.errors)

    def matmat(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return ``(A + L C L') W``."""
        rows = self.L if support is None else self.L[support]
        return self.base.matmat(W, support) + self.L @ (self.C @ (rows.T @ W))

    def _entries(self, values: FloatArray, rows: Any, columns: Index) -> FloatArray:
        return values + self.L[rows] @ (self.C @ np.swapaxes(self.L[columns], -1, -2))

    def _on(self, base: Covariance, support: Index | None = None) -> "UpdatedCovariance":
        rows: Any = slice(None) if support is None else support
        errors = None if self.errors is None else self.errors[rows]
        return UpdatedCovariance(base, self.L[rows], self.C, errors, self.bounds)

    def entry_errors(self) -> FloatArray:
        """See `Covariance.entry_errors`: what the deflation says.

        A variance that is taken for zero was below the threshold, and off by its error before that.
        """
        if self.errors is None:
            raise ValueError("Nothing is known of the rounding of this update.")
        threshold = self._threshold()
        return np.where(np.abs(self._sums()) <= threshold, self.errors + threshold, self.errors)

    def psd_slack(self) -> FloatArray:
        """See `Covariance.psd_slack`: directions are mixed, so the largest counts for all."""
        return np.full(self.n_features, self.bounds[0])

    def unseen(self) -> FloatArray:
        """See `Covariance.unseen`: directions are mixed, so the largest counts for all."""
        return np.full(self.n_features, self.bounds[1])

    def product_errors(self) -> FloatArray:
        """See `Covariance.product_errors`: `errors` are those of products too."""
        return self.entry_errors()

    def precise_product(self, w: FloatArray) -> FloatArray:
        """See `Covariance.precise_product`."""
        return self.base.precise_product(w) + self.L @ (self.C @ (self.L.T @ w))

    def _leading(self, m: int) -> EigenPairs:
        d = self.n_features
        if d <= UPDATE_FORM_LIMIT:
            return leading_dense(self.submatrix(np.arange(d)), m)
        return lanczos(self.matmat, d, m)
