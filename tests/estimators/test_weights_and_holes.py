"""Weights, missing values and matrices of few digits, through every estimator and what it makes."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from kspan import (
    ElementSparsePCA,
    FeatureSparsePCA,
    FeatureSparseSelector,
    FitRecord,
    NonnegativeSparsePCA,
    StiefelSparsePCA,
    as_covariance,
    selection_stability,
    sparsity_path,
)
from kspan.proofs import CertificateError
from tests.effort import examples
from tests.out_of_core import npy, parquet

EXACT = {"certify": "exact", "random_state": 0}
MODELS = {
    "pca": FeatureSparsePCA(2, 3, **EXACT),
    "selector": FeatureSparseSelector(2, 3, **EXACT),
    "orthonormal": StiefelSparsePCA(2, n_nonzero_coefs=3, certify="tight", random_state=0),
    "separate": ElementSparsePCA(2, 3, **EXACT),
    "nonnegative": NonnegativeSparsePCA(2, 3, **EXACT),
}
FORMS = {"dense": np.asarray, "sparse": sp.csr_array, "file": npy, "dask": da.from_array}
PAIRS = [("pca", form) for form in FORMS] + [(name, "dense") for name in MODELS if name != "pca"]


def model_of(name, **changes):
    return clone(MODELS[name]).set_params(**changes)


@pytest.fixture
def X():
    rng = np.random.default_rng(5)
    hidden = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 6))
    return hidden + 0.3 * rng.standard_normal((30, 6)) + 2


@pytest.fixture
def weights():
    return np.random.default_rng(6).integers(0, 4, 30)


@pytest.fixture
def holes(X):
    X = X.copy()
    X[np.random.default_rng(7).random(X.shape) < 0.1] = np.nan
    return X


def filled(X):
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X)


def proofs(model):
    return getattr(model, "certificates_", None) or [model.certificate_]


# --- weights


@pytest.mark.parametrize(("name", "form"), PAIRS)
def test_weights_repeat_rows(name, form, X, weights):
    found = model_of(name).fit(FORMS[form](X), sample_weight=weights)
    expected = model_of(name).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-6)
    assert found.objective_ == pytest.approx(expected.objective_)
    assert proofs(found)[0].lower == pytest.approx(proofs(expected)[0].lower)


@pytest.mark.parametrize("scale", [False, True])
@examples(25)
@given(seed=st.integers(0, 2**32))
def test_any_weights_repeat_rows(seed, scale):
    rng = np.random.default_rng(seed)
    X, weights = rng.standard_normal((9, 5)) + 1, rng.integers(0, 4, 9)
    weights[:3] += 1  # something varies
    model = FeatureSparsePCA(2, 3, scale=scale, solver="brute-force")
    weighted = model.fit(X, sample_weight=weights)
    objective, mean = weighted.objective_, weighted.mean_
    score = weighted.score(X, sample_weight=weights)
    repeated = model.fit(np.repeat(X, weights, axis=0))
    assert objective == pytest.approx(repeated.objective_)
    np.testing.assert_allclose(mean, repeated.mean_)
    assert score == pytest.approx(repeated.explained_variance_ratio_.sum())


def test_rows_that_come_in_blocks_are_weighted(X, weights):
    whole = FeatureSparsePCA(2, 3, solver="ipu").fit(X, sample_weight=weights)
    parts = FeatureSparsePCA(2, 3, solver="ipu")
    for start in range(0, 30, 10):
        parts.partial_fit(X[start : start + 10], sample_weight=weights[start : start + 10])
    np.testing.assert_allclose(parts.components_, whole.components_, atol=1e-9)
    assert parts.n_samples_ == 30
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(3,\)"):
        parts.partial_fit(X[:10], sample_weight=np.ones(3))


@pytest.mark.parametrize("name", MODELS)
def test_a_covariance_is_not_weighted(name, X):
    model = model_of(name, covariance="precomputed")
    for A in (np.cov(X.T), as_covariance(np.cov(X.T), kind="covariance")):
        with pytest.raises(ValueError, match="sample_weight needs data: a covariance has no"):
            model.fit(A, sample_weight=np.ones(6))


def test_a_path_and_resamples_are_weighted(X, weights):
    repeated = np.repeat(X, weights, axis=0)
    for estimator in ("features", "nonnegative"):
        how = {"estimator": estimator, "ks": [2, 3], "random_state": 0}
        found = sparsity_path(X, 2, sample_weight=weights, **how)
        expected = sparsity_path(repeated, 2, **how)
        np.testing.assert_allclose(found.objective, expected.objective)
        np.testing.assert_allclose(found.upper, expected.upper, rtol=1e-6)
    for form in (np.asarray, sp.csr_array):
        heavy = np.ones(30)
        heavy[weights == 0] = 0.0
        out = selection_stability(form(X), 2, 3, sample_weight=heavy, n_resamples=5, random_state=0)
        again = selection_stability(
            as_covariance(form(X), sample_weight=heavy), 2, 3, n_resamples=5, random_state=0
        )
        np.testing.assert_array_equal(out.supports, again.supports)


@pytest.mark.parametrize("name", MODELS)
def test_a_record_knows_the_weights(name, X, weights, tmp_path):
    model = model_of(name).fit(X, sample_weight=weights)
    record = FitRecord.from_estimator(model, X, sample_weight=weights)
    record.save(tmp_path / "x.kspan")
    record = FitRecord.load(tmp_path / "x.kspan")
    done = record.verify(sp.csr_array(X), sample_weight=weights.astype(float))
    assert "with its weights" in done[0]
    assert record.verify(as_covariance(X, sample_weight=weights))
    assert record.remarks() == ["Samples are weighted."]
    with pytest.raises(CertificateError, match="weights: the fit had sample weights, and none"):
        record.verify(X)
    with pytest.raises(CertificateError, match="weights: these are not the sample weights"):
        record.verify(X, sample_weight=weights + 1)
    with pytest.raises(CertificateError, match="weights: these are not the sample weights"):
        record.verify(as_covariance(X))
    with pytest.raises(ValueError, match="The fit had other sample weights"):
        FitRecord.from_estimator(model, X)
    plain = FitRecord.from_estimator(model_of(name).fit(X), X)
    with pytest.raises(CertificateError, match="weights: the fit had no sample weights"):
        plain.verify(X, sample_weight=weights)


# --- missing values


@pytest.mark.parametrize(("name", "form"), PAIRS)
def test_the_mean_equals_filling_by_hand(name, form, holes):
    found = model_of(name, missing="mean").fit(FORMS[form](holes))
    record = FitRecord.from_estimator(found, holes)
    expected = model_of(name).fit(filled(holes))
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-6)
    assert found.objective_ == pytest.approx(expected.objective_)
    assert record.n_missing == np.isnan(holes).sum()
    assert record.verify(npy(holes))
    assert "missing: the mean of the feature" in record.remarks()[0]
    with pytest.raises(CertificateError, match="fingerprint"):
        record.verify(filled(holes))


@pytest.mark.filterwarnings("ignore:The covariance is not positive")
@pytest.mark.parametrize("rule", ["mean", "pairwise"])
def test_new_rows_with_holes_lie_at_the_mean(rule, holes):
    model = FeatureSparsePCA(2, 3, missing=rule, random_state=0, scale=True).fit(holes)
    at_mean = np.where(np.isnan(holes), model.mean_, holes)
    expected = model.transform(at_mean)
    for form in FORMS.values():
        np.testing.assert_allclose(model.transform(form(holes)), expected, atol=1e-12)
    record = FitRecord.from_estimator(model, holes)
    np.testing.assert_allclose(record.transform(holes), expected, atol=1e-12)
    assert record.verify(sp.csc_array(holes))
    with pytest.raises(ValueError, match="infinity"):
        model.transform(np.full((1, 6), np.inf))
    model.set_params(missing="raise")
    for form in (np.asarray, sp.csr_array, npy):
        with pytest.raises(ValueError, match="contains NaN"):
            model.transform(form(holes))


def test_a_record_of_single_precision_with_holes(holes):
    single = holes.astype(np.float32)
    model = model_of("pca", missing="mean").fit(single)
    assert model.components_.dtype == np.float32
    record = FitRecord.from_estimator(model, single)
    for form in (single, single.astype(np.float64), npy(single)):
        assert record.verify(form)
        assert record.verify(as_covariance(form, missing="mean"))
    with pytest.raises(CertificateError, match="dtype: float32"):
        record.verify(holes)


def test_a_selector_leaves_holes_as_they_are(holes):
    selector = FeatureSparseSelector(2, 3, missing="mean", random_state=0).fit(holes)
    chosen = holes[:, selector.get_support()]
    for form in (np.asarray, npy):
        np.testing.assert_array_equal(selector.transform(form(holes)), chosen)
    with pytest.raises(ValueError, match="contains NaN"):
        selector.set_params(missing="raise").transform(holes)


def test_frames_and_files_with_holes(holes, tmp_path):
    frame = pd.DataFrame(holes, columns=list("abcdef"))
    frame.to_csv(tmp_path / "x.csv", index=False)
    model = FeatureSparsePCA(2, 3, missing="mean", random_state=0)
    expected = model.fit(holes).components_
    for form in (frame, frame.convert_dtypes(), tmp_path / "x.csv", parquet(holes)):
        np.testing.assert_allclose(model.fit(form).components_, expected)
    with pytest.raises(ValueError, match="missing values, the first in row"):
        FeatureSparsePCA(2, 3).fit(tmp_path / "x.csv")


def test_tags_say_whether_values_may_be_missing():
    for model in MODELS.values():
        assert not model.__sklearn_tags__().input_tags.allow_nan
        assert type(model)(missing="mean").__sklearn_tags__().input_tags.allow_nan


def test_a_fit_by_pairs_is_proved_and_checked(holes):
    expected = pd.DataFrame(holes).cov().to_numpy()
    model = model_of("pca", missing="pairwise")
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model.fit(holes)
    W = model.components_
    assert model.objective_ == pytest.approx(np.trace(W @ expected @ W.T))
    record = FitRecord.from_estimator(model, holes)
    assert record.verify(holes)
    assert "samples that have both" in record.remarks()[0]


def test_resamples_of_filled_rows(holes, monkeypatch):
    how = {"n_resamples": 4, "random_state": 0}
    found = selection_stability(holes, 2, 3, missing="mean", **how)
    expected = selection_stability(filled(holes), 2, 3, **how)
    np.testing.assert_array_equal(found.supports, expected.supports)
    monkeypatch.setattr("kspan.covariance.convert.COPY_BYTES", 0)
    found = selection_stability(holes, 2, 3, missing="mean", **how)
    np.testing.assert_array_equal(found.supports, expected.supports)
    with pytest.raises(ValueError, match="use missing='mean'"):
        selection_stability(holes, 2, 3, missing="pairwise", **how)


# --- matrices of few digits


@pytest.mark.parametrize("name", MODELS)
def test_a_record_of_a_matrix_of_few_digits(name, X):
    A = np.round(np.corrcoef(np.c_[X, X[:, 0] + X[:, 1]].T), 2)
    model = model_of(name, covariance="precomputed")
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model.fit(A)
    record = FitRecord.from_estimator(model, A)
    values = np.linalg.eigvalsh(A)
    assert record.indefiniteness == pytest.approx(-values[0] / values[-1])
    done = record.verify(A)
    assert any("about the matrix as it is" in line for line in done)
    assert "not positive semidefinite" in record.remarks()[0]
