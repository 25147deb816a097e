"""The measures of a fit: attributes, `measure` on any data, and what they cost."""

import numpy as np
import pytest
import scipy.sparse as sp

from kspan import (
    ElementSparsePCA,
    FeatureSparsePCA,
    FeatureSparseSelector,
    NonnegativeSparsePCA,
    StiefelSparsePCA,
    as_covariance,
)
from kspan.problem import variance_shares
from tests.out_of_core import OUT_OF_CORE
from tests.test_shares import draw, expected

ESTIMATORS = {
    "features": lambda **rest: FeatureSparsePCA(2, 5, random_state=0, **rest),
    "selector": lambda **rest: FeatureSparseSelector(2, 5, random_state=0, **rest),
    "orthonormal": lambda **rest: StiefelSparsePCA(
        2, n_nonzero_coefs=3, random_state=0, **rest
    ),
    "separate": lambda **rest: ElementSparsePCA(2, 3, random_state=0, **rest),
    "nonnegative": lambda **rest: NonnegativeSparsePCA(2, 3, random_state=0, **rest),
}  # fmt: skip


def fitted(model):
    return (
        model.represented_variance_ratio_, model.panel_variance_ratio_,
        model.effective_features_, model.pca_variance_ratio_,
    )  # fmt: skip


def measured(shares):
    return shares.represented, shares.panel, shares.effective_features, shares.pca


@pytest.mark.parametrize(
    "form", [np.asarray, sp.csr_array, lambda X: X[:9]], ids=["dense", "sparse", "wide"]
)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_fit_measures_what_it_tells(rng, kind, form):
    X = form(draw(rng, 60, 14))
    dense = X.toarray() if sp.issparse(X) else X
    model = ESTIMATORS[kind]().fit(X)
    support = model.get_support(indices=True)
    W = model.components_[:, support].T
    np.testing.assert_allclose(fitted(model), expected(dense, support, W), rtol=1e-7)
    assert all(type(value) is float for value in fitted(model))
    # The same from `measure`, and what `score` says.
    again = model.measure(X)
    np.testing.assert_allclose(measured(again), fitted(model), rtol=1e-9)
    assert again.explained == pytest.approx(model.score(X), rel=1e-12)


def test_other_data_is_measured_by_itself(rng):
    X, other, w = draw(rng, 60, 14), draw(rng, 40, 14), rng.uniform(0.5, 2, 40)
    model = FeatureSparsePCA(2, 5, scale=True, random_state=0).fit(X)
    support = model.get_support(indices=True)
    W = model.components_[:, support].T
    found = model.measure(other, sample_weight=w)
    scaled = other / X.std(axis=0, ddof=1)
    np.testing.assert_allclose(measured(found), expected(scaled, support, W, w), rtol=1e-7)
    assert found.explained == pytest.approx(model.score(other, sample_weight=w), rel=1e-12)
    given = FeatureSparsePCA(2, 5, covariance="precomputed", random_state=0).fit(np.cov(X.T))
    support, W = given.get_support(indices=True), given.components_.T
    np.testing.assert_allclose(
        measured(given.measure(np.cov(other.T))), expected(other, support, W[support]), rtol=1e-7
    )


def test_float32_components_are_measured_as_they_are_kept(rng):
    X = draw(rng, 60, 14).astype(np.float32)
    model = FeatureSparsePCA(2, 5, random_state=0).fit(X)
    support = model.get_support(indices=True)
    W = model.components_[:, support].T
    assert W.dtype == np.float32
    found = variance_shares(as_covariance(X), support, W.astype(np.float64))
    np.testing.assert_allclose(fitted(model), measured(found), rtol=1e-6)


def test_blocks_of_rows_are_measured_too(rng):
    X = draw(rng, 60, 14)
    model = FeatureSparsePCA(2, 5, random_state=0)
    for block in np.split(X, 3):
        model.partial_fit(block)
    whole = FeatureSparsePCA(2, 5, random_state=0).fit(X)
    np.testing.assert_allclose(fitted(model), fitted(whole), rtol=1e-9)


@pytest.mark.parametrize(
    ("form", "passes"),
    [(np.asarray, 1), (sp.csr_array, 1), (OUT_OF_CORE["npy"], 2)],
    ids=["dense", "sparse", "disk"],
)
def test_it_takes_two_passes_at_most(rng, form, passes, monkeypatch):
    """Where nothing is formed; and without what PCA tells, where that is costly.

    In memory one: the columns of the choice are those that were taken last.
    """
    X = draw(rng, 40, 60)
    covariance = as_covariance(form(X))
    monkeypatch.setattr(type(covariance), "reads_are_costly", True)
    sizes, estimator = [], FeatureSparsePCA(1, 5, solver="tpower", random_state=0)
    shares = estimator._shares

    def noted(covariance):
        before = covariance.n_passes
        found = shares(covariance)
        sizes.append(covariance.n_passes - before)
        return found

    monkeypatch.setattr(estimator, "_shares", noted)
    estimator.fit(covariance)
    assert sizes == [passes]
    assert estimator.pca_variance_ratio_ is None
    assert estimator.n_passes_ == covariance.n_passes
    assert covariance.n_grams == 0
