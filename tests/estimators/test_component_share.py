"""As many components as a share of the variance takes."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA

from kspan import (
    CertificateError,
    ElementSparsePCA,
    FeatureSparsePCA,
    FeatureSparseSelector,
    FitRecord,
    NonnegativeSparsePCA,
    StiefelSparsePCA,
    as_covariance,
)
from kspan.choosing_k import components
from kspan.choosing_k.components import components_for

X = load_wine().data
Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.6, 0.8, 0.9, 0.99, 1 - 1e-9])
@pytest.mark.parametrize("make", [np.array, sp.csr_array, lambda Z: Z.astype(np.float32)])
def test_it_is_as_many_as_pca_takes(share, make):
    assert components_for(as_covariance(make(Z)), share) == PCA(share).fit(Z).n_components_


def test_a_share_that_is_reached_exactly_takes_no_more():
    A = as_covariance(np.diag([6.0, 3.0, 1.0]), kind="covariance")
    assert [components_for(A, share) for share in (0.6, 0.9, 0.91)] == [1, 2, 3]


def test_batches_grow(rng):
    """Wide data, of which some of many components are enough."""
    X = rng.normal(size=(150, 400)) * np.geomspace(1, 0.05, 400)
    assert components_for(as_covariance(X), 0.9) == PCA(0.9, svd_solver="full").fit(X).n_components_


def test_out_of_reach(rng, monkeypatch):
    monkeypatch.setattr(components, "MOST", 20)
    monkeypatch.setattr(components, "ALL_AT_ONCE", 30)
    A = as_covariance(rng.normal(size=(300, 50)))
    with pytest.raises(ValueError, match=r"the first 20 principal components have 5.*out of reach"):
        components_for(A, 0.9)
    assert components_for(A, 0.2) < 20


@pytest.mark.parametrize(
    "model",
    [
        FeatureSparsePCA(0.6, 6),
        FeatureSparsePCA(0.6, 6, criterion="represent"),
        FeatureSparsePCA(0.6, explained_share=0.7),
        FeatureSparseSelector(0.6, 6),
        StiefelSparsePCA(0.6, n_nonzero_coefs=4),
        ElementSparsePCA(0.6, 4),
        NonnegativeSparsePCA(0.6, 4),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_estimator_takes_a_share(model, tmp_path):
    m = PCA(0.6).fit(Z).n_components_
    assert m == 3
    found = clone(model).set_params(scale=True, random_state=0).fit(X)
    assert found.n_components == 0.6
    assert found.n_components_ == m
    same = clone(model).set_params(n_components=m, scale=True, random_state=0).fit(X)
    np.testing.assert_allclose(found.components_, same.components_, rtol=0, atol=1e-12)
    record = FitRecord.from_estimator(found, X)
    record.save(tmp_path / "record")
    record = FitRecord.load(tmp_path / "record")
    assert record.parameters["n_components"] == 0.6
    record.verify(X)
    for wrong in (0.5, 0.8):  # two, and five
        changed = replace(record, parameters={**record.parameters, "n_components": wrong})
        with pytest.raises(CertificateError, match="n_components"):
            changed.verify(X)


@pytest.mark.parametrize("wrong", [0.0, 1.0, 1.5, -0.5])
def test_what_is_no_share_is_refused(wrong):
    with pytest.raises(ValueError, match="n_components"):
        FeatureSparsePCA(wrong, 5).fit(X)


def test_blocks_of_rows():
    model = FeatureSparsePCA(0.6, 6, random_state=0)
    for block in np.array_split(Z, 3):
        model.partial_fit(block)
    assert model.n_components_ == 3
