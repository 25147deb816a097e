"""Derived covariances: all that the interface offers equals the definition, or is refused."""

import numpy as np
import pytest
import scipy.sparse as sp

from kspan import as_covariance
from kspan.covariance import (
    Covariance,
    MaskedCovariance,
    ShiftedCovariance,
    UnitCovariance,
    UpdatedCovariance,
)
from kspan.covariance.memory import NOTHING
from tests.out_of_core import npy

D = 9
S = np.array([1, 2, 5, 8])
KEEP = np.isin(np.arange(D), [1, 4, 5], invert=True)
BASES = {
    "matrix": lambda X: as_covariance(np.cov(X.T), kind="covariance"),
    "tall": as_covariance,
    "wide": lambda X: as_covariance(X[:5]),
    "standardised": lambda X: as_covariance(X, scale=True),
    "sparse": lambda X: as_covariance(sp.csr_array(X)),
    "blocks": lambda X: as_covariance(npy(X)),
}


def low_rank(rng):
    return rng.standard_normal((D, 2)), np.array([[1.0, 0.3], [0.3, -0.2]])


class Case:
    """A derived covariance, and everything that is known about it from the definition."""

    def __init__(self, kind, form, rng):
        X = rng.standard_normal((40, D)) @ rng.standard_normal((D, D)) + 3
        self.base = base = BASES[form](X)
        self.form, self.rng = form, rng
        X = X[:5] if form == "wide" else X
        scale = X.std(axis=0, ddof=1) if form == "standardised" else np.ones(D)
        self.mean, self.scale = X.mean(axis=0), scale
        Z = (X - X.mean(axis=0)) / scale
        A = Z.T @ Z / (len(Z) - 1)
        self.Z = None  # the samples behind it
        if kind == "unit":
            self.derived = UnitCovariance(base)
            unit = self.derived.unit
            assert 1 <= np.diag(A).max() / unit < 2 or unit == 1
            self.A, self.Z = A / unit, Z / np.sqrt(unit)
            self.scale = scale * np.sqrt(unit)
        elif kind == "masked":
            self.derived = MaskedCovariance(base, KEEP)
            self.A, self.Z = A * KEEP * KEEP[:, None], Z * KEEP
        elif kind == "shifted":
            self.derived = ShiftedCovariance(base, 2.5)
            self.A = A + 2.5 * np.eye(D)
        else:
            L, C = low_rank(rng)
            self.derived = UpdatedCovariance(base, L, C)
            self.A = A + L @ C @ L.T
        self.kind = kind
        if form == "matrix":
            self.Z = None

    def close(self, found, expected):
        np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(self.A).max())


def check_entries(case):
    W, A, derived = case.rng.standard_normal((D, 3)), case.A, case.derived
    inside = A[np.ix_(S, S)]
    case.close(derived.diagonal(), np.diag(A))
    assert derived.trace() == pytest.approx(np.trace(A))
    case.close(derived.matmat(W), A @ W)
    case.close(derived.matmat(W[S], S), A[:, S] @ W[S])
    case.close(derived.submatrix(S), inside)
    case.close(derived.columns(S), A[:, S])
    case.close(derived.variance_along(W[S], S), np.trace(W[S].T @ inside @ W[S]))
    case.close(derived.products_within(S, lambda own: 2 * own), 2 * A[:, S] @ inside)
    stack = np.array([S, S[::-1]])
    case.close(derived.submatrices(stack), np.stack([inside, inside[::-1, ::-1]]))
    part = derived.restrict(S)
    case.close(part.submatrix(np.arange(4)), inside)
    case.close(part.matmat(np.eye(4)), inside)


def check_eigenpairs(case):
    for pairs, A in (
        (case.derived.leading(3), case.A),
        (case.derived.leading(2, S), case.A[np.ix_(S, S)]),
    ):
        m = pairs.values.size
        case.close(pairs.values, np.linalg.eigvalsh(A)[::-1][:m])
        case.close(A @ pairs.vectors, pairs.vectors * pairs.values)
    case.close(case.derived.leading_if_cheap(2).values, case.derived.leading(2).values)


def check_samples(case):
    derived, Z = case.derived, case.Z
    W = case.rng.standard_normal((D, 2))
    assert derived.has_samples == (Z is not None)
    if Z is None:
        with pytest.raises(ValueError, match="no samples; give the data"):
            derived.scores(W)
        with pytest.raises(ValueError, match="no rows to stream"):
            derived.row_blocks(3)
        return
    case.close(derived.scores(W), Z @ W)
    case.close(derived.scores(W[S], S), Z[:, S] @ W[S])
    blocks = [block.matmat(np.eye(D)) for block in derived.row_blocks(len(Z) // 2)]
    assert len(blocks) == 2
    for found, rows in zip(blocks, np.array_split(Z, [len(Z) // 2]), strict=True):
        case.close(found, rows.T @ rows / len(rows))


def check_factor(case):
    derived = case.derived
    assert derived.is_wide == (case.form == "wide" and case.Z is not None)
    factor = derived.sample_factor()
    if derived.is_wide:
        case.close(factor.T @ factor, case.A)
    else:
        assert factor is None


def check_dense_copy(case):
    case.close(case.derived.densified().matmat(np.eye(D)), case.A)


def check_sketch(case):
    if case.form == "blocks" and case.kind != "masked":  # DADΩ does not follow from AΩ
        columns, image = case.derived.sketch
        case.close(image, case.A @ columns)
    else:
        assert case.derived.sketch is None


def check_frame(case):
    derived, base = case.derived, case.base
    for name in ("n_features", "n_samples", "dtype", "kind", "reads_are_costly", "weights_digest"):
        assert getattr(derived, name) == getattr(base, name)
    assert derived.missing is None  # told of data as it came
    assert derived.recall is NOTHING  # kept of the base alone
    if case.form == "matrix":
        assert derived.mean is None
        assert derived.scale is None
    else:
        np.testing.assert_allclose(derived.mean, case.mean)
        np.testing.assert_allclose(derived.scale, case.scale)
    correlations = case.form == "standardised" and case.kind in ("unit", "masked")
    assert derived.standardised == correlations


def check_counts(case):
    derived, base = case.derived, case.base
    derived.prepare()
    derived.ensure_psd()
    derived.matmat(np.ones((D, 1)))
    assert derived.n_passes == base.n_passes > 0
    derived.submatrix(np.arange(D))
    assert derived.n_grams == base.n_grams == (case.form != "matrix")


def check_accuracy(case):
    base, derived, W = case.base, case.derived, case.rng.standard_normal((D, 3))
    case.close(derived.precise_product(W), case.A @ W)
    unit = derived.unit if case.kind == "unit" else 1.0
    assert (base.psd_slack() > 0).all() == (case.form == "matrix")
    assert derived.indefiniteness == base.indefiniteness == 0.0
    np.testing.assert_array_equal(derived.unseen(), np.zeros(D))
    if case.kind == "updated":
        with pytest.raises(ValueError, match="Nothing is known of the rounding"):
            derived.entry_errors()
        errors = np.arange(D) + 1.0
        derived = UpdatedCovariance(base, derived.L, derived.C, errors)
        # A variance below its error is taken for zero, and may be twice the error.
        doubled = np.where(derived.diagonal() == 0, 2 * errors, errors)
        np.testing.assert_array_equal(derived.entry_errors(), doubled)
        np.testing.assert_array_equal(derived.product_errors(), doubled)
        np.testing.assert_array_equal(derived.psd_slack(), np.full(D, base.psd_slack().max()))
        return
    weights = KEEP if case.kind == "masked" else 1 / unit
    np.testing.assert_allclose(derived.psd_slack(), base.psd_slack() * weights)
    if case.kind == "shifted":  # a sum more
        assert (derived.entry_errors() > base.entry_errors()).all()
        assert (derived.product_errors() > base.product_errors()).all()
        return
    np.testing.assert_allclose(derived.entry_errors(), base.entry_errors() * weights)
    np.testing.assert_allclose(derived.product_errors(), base.product_errors() * weights)


def check_fingerprint(case):
    with pytest.raises(ValueError, match="not what is derived from them"):
        case.derived.fingerprint()


CHECKS = {
    check_entries: {
        "diagonal", "trace", "matmat", "submatrix", "submatrices", "columns", "restrict",
        "products_within", "variance_along",
    },
    check_eigenpairs: {"leading", "leading_if_cheap"},
    check_samples: {"has_samples", "scores", "row_blocks"},
    check_factor: {"is_wide", "sample_factor", "sample_gram"},
    check_dense_copy: {"densified"},
    check_sketch: {"sketch"},
    check_frame: {
        "n_features", "n_samples", "dtype", "kind", "mean", "scale", "standardised",
        "reads_are_costly", "weights_digest", "missing", "recall",
    },
    check_counts: {"n_passes", "n_grams", "prepare", "ensure_psd"},
    check_fingerprint: {"fingerprint"},
    check_accuracy: {
        "entry_errors", "product_errors", "precise_product", "unseen", "psd_slack",
        "indefiniteness", "knows_psd",
    },
}  # fmt: skip


def test_everything_that_a_covariance_offers_is_checked():
    offered = {*vars(Covariance), *Covariance.__annotations__}
    assert set().union(*CHECKS.values()) == {name for name in offered if not name.startswith("_")}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("form", BASES)
@pytest.mark.parametrize("kind", ["unit", "masked", "shifted", "updated"])
def test_equals_the_definition(rng, kind, form, check):
    check(Case(kind, form, rng))


@pytest.mark.parametrize("form", BASES)
def test_derived_from_derived(rng, form):
    """A mask of an update of a mask of a unit: each is applied to what the one before left."""
    L, C = low_rank(rng)
    other = np.arange(D) != 0
    case = Case("unit", form, rng)
    masked = MaskedCovariance(case.derived, KEEP)
    whole = MaskedCovariance(UpdatedCovariance(masked, L, C), other)
    case.A = (case.A * KEEP * KEEP[:, None] + L @ C @ L.T) * other * other[:, None]
    case.derived, case.Z, case.kind = whole, None, "masked"
    for check in (check_entries, check_eigenpairs, check_samples, check_factor, check_dense_copy):
        check(case)


def test_the_same_twice_is_one(rng):
    base = as_covariance(rng.standard_normal((30, D)))
    L, C = low_rank(rng)
    masked = MaskedCovariance(MaskedCovariance(base, KEEP), np.arange(D) != 0)
    updated = UpdatedCovariance(UpdatedCovariance(base, L, C), L, C)
    assert masked.base is base
    assert updated.base is base
    np.testing.assert_array_equal(masked.keep, KEEP & (np.arange(D) != 0))
    np.testing.assert_allclose(
        updated.submatrix(S), base.submatrix(S) + 2 * (L @ C @ L.T)[np.ix_(S, S)], atol=1e-12
    )


def test_nothing_is_computed_twice(rng):
    """A, or XX', is formed once, however many look at it, and through whatever."""
    for X in (rng.standard_normal((40, D)), rng.standard_normal((5, D))):
        for form in (np.asarray, sp.csr_array):
            base = as_covariance(form(X))
            assert base.n_grams == 0
            for derived in (base, UnitCovariance(base), UnitCovariance(base)):
                derived.leading(3)
            assert base.n_grams == 1
