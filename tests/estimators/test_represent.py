"""criterion="represent": scores, the way back, and what they tell of new data."""

import time

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression

from kspan import (
    FeatureSparsePCA,
    FeatureSparseSelector,
    RepresentProblem,
    as_covariance,
    verify,
)
from tests.telling import told_by_regression


def data(n=60, d=7, seed=11):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d))
    return Z + 0.5 * rng.standard_normal((n, d)) + np.arange(d)


def model(m=2, k=3, **more):
    return FeatureSparsePCA(m, k, **{"criterion": "represent", "random_state": 0, **more})


@pytest.mark.parametrize("ridge", [None, 0.0, 0.2])
def test_scores_are_uncorrelated_and_the_way_back_is_a_regression(ridge):
    X = data()
    fitted = model(ridge=ridge).fit(X)
    scores = fitted.transform(X)
    # Each has the variance that it explains of all features.
    expected = np.diag(fitted.explained_variance_)
    np.testing.assert_allclose(np.cov(scores.T), expected, atol=1e-10)
    assert (np.diff(fitted.explained_variance_) <= 0).all()
    assert (fitted.components_[:, ~fitted.get_support()] == 0).all()
    np.testing.assert_allclose(fitted.decoder_ @ fitted.decoder_.T, np.eye(2), atol=1e-10)
    back = LinearRegression().fit(scores, X).predict(scores)
    np.testing.assert_allclose(fitted.inverse_transform(scores), back, atol=1e-10)
    error = np.sum((X - back) ** 2) / np.sum((X - X.mean(axis=0)) ** 2)
    assert fitted.score(X) == pytest.approx(1 - error, rel=1e-10)
    assert fitted.score(X) == pytest.approx(fitted.explained_variance_ratio_.sum(), rel=1e-10)


def test_the_objective_is_that_of_a_regression():
    X = data()
    fitted = model(ridge=0.0, certify="exact").fit(X)
    wanted = told_by_regression(X, fitted.selected_features_, 2)
    assert fitted.objective_ == pytest.approx(wanted, rel=1e-9)
    assert fitted.explained_variance_.sum() == pytest.approx(wanted, rel=1e-9)
    assert fitted.certificate_.status.value == "optimal"


def test_new_data():
    X, new = data(), data(seed=12)
    fitted = model().fit(X)
    # About the mean of the new data, as the variance is.
    centred = new - new.mean(axis=0)
    back = fitted.inverse_transform(fitted.transform(new)) - fitted.inverse_transform(
        fitted.transform(new)
    ).mean(axis=0)
    error = np.sum((centred - back) ** 2) / np.sum(centred**2)
    assert fitted.score(new) == pytest.approx(1 - error, rel=1e-10)


def test_all_features_are_principal_components():
    X = data()
    fitted, pca = model(2, 7, ridge=0.0).fit(X), PCA(2).fit(X)
    np.testing.assert_allclose(fitted.explained_variance_, pca.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(
        np.abs(np.sum(fitted.decoder_ * pca.components_, axis=1)), 1.0, rtol=1e-9
    )
    np.testing.assert_allclose(
        np.abs(fitted.transform(X)), np.abs(pca.transform(X)), atol=1e-8
    )  # fmt: skip


def test_single_precision():
    X = data().astype(np.float32)
    fitted = model().fit(X)
    assert fitted.components_.dtype == fitted.decoder_.dtype == np.float32
    assert fitted.transform(X).dtype == np.float32
    assert fitted.score(X) == pytest.approx(fitted.explained_variance_ratio_.sum(), rel=1e-4)
    wanted = model().fit(X.astype(float)).selected_features_
    np.testing.assert_array_equal(fitted.selected_features_, wanted)


@pytest.mark.parametrize("form", [scipy.sparse.csr_array, np.asfortranarray])
def test_other_forms(form):
    X = data()
    fitted, plain = model().fit(form(X)), model().fit(X)
    np.testing.assert_array_equal(fitted.selected_features_, plain.selected_features_)
    np.testing.assert_allclose(fitted.components_, plain.components_, atol=1e-9)
    np.testing.assert_allclose(fitted.decoder_, plain.decoder_, atol=1e-9)


def test_a_covariance_in_place_of_data():
    X = data()
    fitted, plain = model(covariance="precomputed").fit(np.cov(X.T)), model().fit(X)
    np.testing.assert_allclose(fitted.components_, plain.components_, atol=1e-9)
    np.testing.assert_allclose(fitted.decoder_, plain.decoder_, atol=1e-9)
    assert fitted.score(np.cov(X.T)) == pytest.approx(plain.score(X), rel=1e-9)


def test_weights_are_repetitions_and_holes_are_means():
    X, weights = data(), np.arange(60) % 3
    fitted = model().fit(X, sample_weight=weights)
    plain = model().fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(fitted.components_, plain.components_, atol=1e-9)
    assert fitted.score(X, sample_weight=weights) == pytest.approx(
        fitted.explained_variance_ratio_.sum(), rel=1e-9
    )
    holed = X.copy()
    holed[3, 2] = np.nan
    full = holed.copy()
    full[3, 2] = np.nanmean(holed[:, 2])
    np.testing.assert_allclose(
        model(missing="mean").fit(holed).components_, model().fit(full).components_, atol=1e-9
    )


def test_scaled():
    X = data() * 10.0 ** np.arange(7)
    fitted = model(scale=True).fit(X)
    assert fitted.score(X) == pytest.approx(fitted.explained_variance_ratio_.sum(), rel=1e-9)
    scores = fitted.transform(X)
    back = LinearRegression().fit(scores, X).predict(scores)
    np.testing.assert_allclose(fitted.inverse_transform(scores), back, rtol=1e-8)


def test_blocks_of_rows():
    X = data()
    fitted = model(certify="tight")
    for block in np.array_split(X, 4):
        fitted.partial_fit(block)
    np.testing.assert_allclose(fitted.components_, model().fit(X).components_, atol=1e-9)
    assert fitted.certificate_.upper >= fitted.objective_ * (1 - 1e-9)


@pytest.mark.parametrize("level", ["fast", "tight", "exact"])
@pytest.mark.parametrize("Estimator", [FeatureSparsePCA, FeatureSparseSelector])
def test_levels_of_proof(Estimator, level):
    X = data()
    fitted = Estimator(2, 3, criterion="represent", certify=level, random_state=0).fit(X)
    certificate = fitted.certificate_
    assert certificate.lower <= fitted.objective_ * (1 + 1e-9)
    assert certificate.upper >= fitted.objective_ * (1 - 1e-9)
    assert certificate.problem == "represent"
    if level == "exact":
        assert certificate.gap <= 1e-6
        verify(RepresentProblem(as_covariance(X), 2, 3), certificate)


def test_the_fewest_features():
    X = data()
    fitted = model(2, None, explained_share=0.95).fit(X)
    full = PCA(2).fit(X).explained_variance_.sum()
    assert fitted.objective_ >= 0.95 * full * (1 - 1e-9)
    fewer = model(2, fitted.n_features_to_select_ - 1, solver="exact").fit(X)
    assert fewer.objective_ < 0.95 * full
    assert model(2, 0.5).fit(X).get_support().sum() == 3


def test_rules_of_panels():
    fitted = model(2, 3, groups=list("aabbccd"), max_per_group=1, exclude=[6]).fit(data())
    assert len({i // 2 for i in fitted.selected_features_}) == 3


def test_a_time_limit_is_met():
    rng = np.random.default_rng(0)
    X, started = rng.standard_normal((300, 200)), time.perf_counter()
    fitted = model(5, 30, time_limit=0.3, certify="exact").fit(X)
    assert time.perf_counter() - started < 3
    assert fitted.get_support().sum() == 30


def test_a_second_fit_forgets_the_way_back():
    X = data()
    fitted = model().fit(X)
    assert hasattr(fitted, "decoder_")
    assert not hasattr(fitted.set_params(criterion="variance").fit(X), "decoder_")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"criterion": "variance", "ridge": 0.1}, "ridge needs criterion='represent'"),
        ({"solver": "ipu"}, "solver"),
        ({"init": "random"}, "init"),
        ({"init": np.eye(7)[:, :2]}, "init"),
        ({"ridge": -1.0}, "ridge"),
        ({"criterion": "all"}, "criterion"),
    ],
)
def test_what_does_not_go_together(parameters, message):
    with pytest.raises(ValueError, match=message):
        model(**parameters).fit(data())
