r"""How much of the variance of all features a fit tells.

What is maximised is the variance of scores, which are made of the chosen features and measured on
them. What scores *tell* is more: of every feature, chosen or not, the part that a linear regression
on the scores gives back. With A the covariance, S the chosen features and W the loadings,

.. math:: \frac{\mathrm{tr}\,(W'AW)^+ W'A^2W}{\mathrm{tr}\,A}
          \quad\text{and}\quad \frac{\mathrm{tr}\,A_{SS}^+ (A^2)_{SS}}{\mathrm{tr}\,A}

are the shares that the scores and all chosen features tell. Both are sums of :math:`\|Ab\|^2` over
an orthonormal basis (in the metric of A) of what is regressed on, so no d×d matrix is needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.covariance import Covariance
from kspan.covariance.block_kernels import block_slices
from kspan.linalg.machine import one_blas_thread
from kspan.linalg.representing import DEPENDENT, whitened
from kspan.linalg.rounding import unit_scale

# A score adds nothing if others, or rounding, leave less than this share of its standard deviation.
DEPENDENT_SCORE = 1e-6

# Products of all features with more numbers than this are made in blocks of columns.
MOST_NUMBERS = 5e7


@dataclass(frozen=True)
class VarianceShares:
    """What components and their features tell about all features, as shares of their variance.

    Attributes
    ----------
    represented : float
        What the scores of the components tell of all features, by linear regression.
    panel : float
        What all chosen features together tell, by linear regression; never less.
    effective_features : float
        How many distinct signals the chosen features carry: their number, if they are
        uncorrelated, and 1 if they are copies of each other. ``k² / Σr²`` over all correlations r
        of the k features; constant ones do not count.
    pca : float or None
        What the best scores there are tell, those of PCA with as many components on all features;
        None if that is not at hand, and costly to compute.
    explained : float
        Variance along the components, measured on their own features: what `score` returns.
    """

    represented: float
    panel: float
    effective_features: float
    pca: float | None
    explained: float


@one_blas_thread()
def variance_shares(
    covariance: Covariance, support: Index, weights: FloatArray, dependent: float = DEPENDENT
) -> VarianceShares:
    """Measure what components tell about all features.

    Two passes over data, or none once its covariance is formed; d × k beyond `MOST_NUMBERS` takes
    more.

    Parameters
    ----------
    covariance : Covariance
    support : (k,) the chosen features
    weights : (k, m) loadings on them, of any rank
    dependent : a feature adds nothing if others leave less than this share of its variance

    Examples
    --------
    Two copies of a signal, and one that is their opposite but for noise:

    >>> import numpy as np
    >>> from kspan import as_covariance
    >>> A = np.array([[1.0, 1.0, -0.9], [1.0, 1.0, -0.9], [-0.9, -0.9, 1.0]])
    >>> A = as_covariance(A, kind="covariance")
    >>> shares = variance_shares(A, np.array([0, 1]), np.array([[1.0], [0.0]]))
    >>> round(shares.represented, 4), round(shares.panel, 4), shares.effective_features
    (0.9367, 0.9367, 1.0)
    """
    variances = np.maximum(covariance.diagonal(), 0.0)
    unit = unit_scale(float(variances.max()))
    total = float((variances / unit).sum())
    pairs = covariance.leading_if_cheap(weights.shape[1])
    pca = None if pairs is None else _share(float((pairs.values / unit).sum()), total)
    varies = variances[support] > 0
    if not varies.any():
        return VarianceShares(0.0, 0.0, 0.0, pca, 0.0)
    is_all = np.count_nonzero(varies) == np.count_nonzero(variances)
    made: list[_Regressors] = []

    def basis(A: FloatArray) -> FloatArray:
        made.append(_Regressors.of(A / unit, weights, varies, dependent))
        return made[0].for_scores / unit if is_all else made[0].basis / unit

    if support.size * covariance.n_features <= MOST_NUMBERS:
        products = covariance.products_within(support, basis)
        regressors = made[0]
        told = _square(products)
        by_scores = told if is_all else _square(products @ regressors.scores)
    else:
        basis(covariance.submatrix(support))
        regressors, told = made[0], 0.0
        by_scores = _square(covariance.matmat(regressors.for_scores / unit, support))
        width = 0 if is_all else regressors.basis.shape[1]
        for columns in block_slices(width, covariance.n_features, int(MOST_NUMBERS)):
            block = np.ascontiguousarray(regressors.basis[:, columns]) / unit
            told += _square(covariance.matmat(block, support))
    panel = 1.0 if is_all else _share(told, total)
    return VarianceShares(
        represented=min(_share(by_scores, total), panel), panel=panel,
        effective_features=regressors.effective_features, pca=pca,
        explained=regressors.explained / total,
    )  # fmt: skip


@one_blas_thread()
def shares_along(
    covariance: Covariance, supports: Sequence[Index], weights: Sequence[FloatArray],
    dependent: float = DEPENDENT,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return `represented` and `panel` of `variance_shares` for many supports.

    The data is read for all of them together, two passes at most, if their features are not too
    many: for each support only products of its own features are left to do.

    Parameters
    ----------
    covariance : Covariance
    supports : t arrays of features
    weights : t arrays of loadings on them
    dependent : see `variance_shares`
    """
    variances = np.maximum(covariance.diagonal(), 0.0)
    unit = unit_scale(float(variances.max()))
    total = float((variances / unit).sum())
    union = np.unique(np.concatenate(supports))
    inside = _Inside.of(covariance, union, unit)
    if inside is None:
        each = [variance_shares(covariance, *both, dependent)
                for both in zip(supports, weights, strict=True)]  # fmt: skip
        return np.array([s.represented for s in each]), np.array([s.panel for s in each])
    represented, panels = np.zeros(len(supports)), np.zeros(len(supports))
    for place, (support, W) in enumerate(zip(supports, weights, strict=True)):
        own, varies = np.searchsorted(union, support), variances[support] > 0
        if not varies.any():
            continue
        regressors = _Regressors.of(inside.A[np.ix_(own, own)], W, varies, dependent)
        is_all = np.count_nonzero(varies) == np.count_nonzero(variances)
        panels[place] = 1.0 if is_all else _share(inside.told(own, regressors.basis), total)
        by_scores = _share(inside.told(own, regressors.for_scores), total)
        represented[place] = min(by_scores, panels[place])
    return represented, panels


@dataclass(frozen=True)
class _Inside:
    """What is known of some features, U, without going back to the others.

    Attributes
    ----------
    A : A on them
    squares : (A²) on them, ``A[:, U]' A[:, U]``; None for wide data
    samples : of wide data X with ``A = X'X`` on them, and XX' of all features
    """

    A: FloatArray
    squares: FloatArray | None
    samples: tuple[FloatArray, FloatArray] | None

    @classmethod
    def of(cls, covariance: Covariance, features: Index, unit: float) -> "_Inside | None":
        """Read it, with A divided by a power of four; None if that would take too much memory."""
        n, d = covariance.n_samples or 0, covariance.n_features
        if covariance.is_wide and n * d <= MOST_NUMBERS:
            X = covariance.sample_factor()
            assert X is not None
            X /= np.sqrt(unit)
            own = X[:, features]
            return cls(own.T @ own, None, (own, X @ X.T))
        if features.size * d > MOST_NUMBERS:
            return None
        columns = covariance.products_within(features, lambda A: np.eye(len(A)) / unit)
        return cls(columns[features], columns.T @ columns, None)

    def told(self, places: Index, basis: FloatArray) -> float:
        """Return the sum of ‖Ab‖² over columns b that have rows at some places of U."""
        if self.samples is not None:
            X, products = self.samples
            Z = X[:, places] @ basis
            return float(np.sum(Z * (products @ Z)))
        assert self.squares is not None
        return float(np.sum(basis * (self.squares[np.ix_(places, places)] @ basis)))


def _square(columns: FloatArray) -> float:
    """Return the sum of the squared lengths of columns."""
    return float(np.einsum("ij,ij->", columns, columns))


def _share(part: float, whole: float) -> float:
    """Return a share; beyond 0 and 1 it is by rounding, or by what an indefinite matrix lacks."""
    return min(max(part / whole, 0.0), 1.0)


@dataclass(frozen=True)
class _Regressors:
    """The chosen features as an orthonormal basis, in the metric of A.

    Attributes
    ----------
    basis : (k, r) weights on the features: ``basis' A_SS basis`` is the identity
    scores : (r, q) orthonormal columns, coordinates in that basis of what the scores span
    effective_features : see `VarianceShares`
    explained : variance along the components
    """

    basis: FloatArray
    scores: FloatArray
    effective_features: float
    explained: float

    @property
    def for_scores(self) -> FloatArray:
        """The (k, q) weights on the features that span the scores."""
        return self.basis @ self.scores

    @classmethod
    def of(cls, A: FloatArray, W: FloatArray, varies: Mask, dependent: float) -> "_Regressors":
        """Build from A on the support and the loadings; `varies` says which are not constant."""
        axes = np.linalg.qr(W)[0]
        explained = float(np.sum(axes * (A @ axes)))
        deviations = np.sqrt(np.where(varies, np.maximum(np.diagonal(A), 0.0), 0.0))
        varies = deviations > 0
        if not varies.any():
            return cls(np.zeros((len(A), 1)), np.zeros((1, 1)), 0.0, explained)
        own = np.ix_(varies, varies)
        related = np.clip(A[own] / deviations[varies] / deviations[varies, None], -1.0, 1.0)
        basis = whitened(np.where(varies & varies[:, None], A, 0.0), dependent)
        scores = _span(basis.T @ (A @ W), deviations @ np.abs(W))
        return cls(basis, scores, len(related) ** 2 / float(np.sum(related**2)), explained)


def _span(scores: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return an orthonormal basis of columns, without those that are rounding.

    Parameters
    ----------
    scores : (r, m) array
    sizes : (m,) how long each column could be
    """
    lengths = np.linalg.norm(scores, axis=0)
    some = lengths > DEPENDENT_SCORE * sizes
    if not some.any():
        return np.zeros((len(scores), 1))
    left, strengths, _ = np.linalg.svd(scores[:, some] / lengths[some], full_matrices=False)
    return left[:, strengths > DEPENDENT_SCORE]
