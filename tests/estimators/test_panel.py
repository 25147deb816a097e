"""The panel alone: the chosen columns are all that anybody has to measure again."""

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from kspan import (
    ElementSparsePCA,
    FeatureSparsePCA,
    FeatureSparseSelector,
    NonnegativeSparsePCA,
    StiefelSparsePCA,
)
from kspan.estimators import PanelSelector, PanelTransformer

NAMES = ["ash", "beech", "cedar", "dogwood", "elm", "fir", "ginkgo", "holly"]

QUICK = {"random_state": 0}
ESTIMATORS = {
    "features": FeatureSparsePCA(2, 3, **QUICK),
    "scaled": FeatureSparsePCA(2, 3, scale=True, **QUICK),
    "represent": FeatureSparsePCA(2, 3, criterion="represent", **QUICK),
    "represent, scaled": FeatureSparsePCA(2, 4, criterion="represent", scale=True, **QUICK),
    "all": FeatureSparsePCA(2, 8, **QUICK),
    "nonnegative": NonnegativeSparsePCA(2, 2, scale=True, **QUICK),
    "orthonormal": StiefelSparsePCA(2, n_nonzero_coefs=2, **QUICK),
    "separate": ElementSparsePCA(2, 2, scale=True, **QUICK),
    "selector": FeatureSparseSelector(2, 3, scale=True, **QUICK),
}


@pytest.fixture
def X(rng):
    """Samples with means far from zero and different variances."""
    return rng.standard_normal((40, 8)) @ rng.standard_normal((8, 8)) + 10 * np.arange(8)


@pytest.fixture
def frame(X):
    return pd.DataFrame(X, columns=NAMES)


def fitted(name, data):
    return clone(ESTIMATORS[name]).fit(data)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_scores_are_those_of_the_whole_table(name, X, frame):
    whole = fitted(name, frame)
    panel, chosen = whole.panel(), list(whole.selected_features_)
    expected = whole.transform(frame)
    support = whole.get_support(indices=True)
    np.testing.assert_array_equal(panel.support_, support)
    assert panel.n_features_in_ == support.size
    assert list(panel.feature_names_in_) == chosen
    assert list(panel.get_feature_names_out()) == list(whole.get_feature_names_out())
    for given in (
        frame[chosen], frame[chosen[::-1]], frame, frame[NAMES[::-1]].assign(note="text"),
        pl.DataFrame(frame[chosen[::-1]]), X[:, support], X[:, support].tolist(),
        sp.csr_array(X[:, support]), sp.coo_array(X[:, support]),
    ):  # fmt: skip
        found = panel.transform(given)
        found = found.toarray() if sp.issparse(found) else found
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)
    back = panel.inverse_transform(panel.transform(X[:, support]))
    np.testing.assert_allclose(back, whole.inverse_transform(expected)[:, support], atol=1e-9)


@pytest.mark.parametrize("name", ["features", "represent", "selector"])
def test_without_names_columns_are_in_the_order_of_the_support(name, X):
    whole = fitted(name, X)
    panel, support = whole.panel(), whole.get_support(indices=True)
    assert not hasattr(panel, "feature_names_in_")
    expected = whole.transform(X)
    np.testing.assert_allclose(panel.transform(X[:, support]), expected, atol=1e-9)
    other = pd.DataFrame(X[:, support], columns=["a", "b", "c"])
    np.testing.assert_allclose(panel.transform(other), expected, atol=1e-9)
    for wrong in (X, X[:, :2], pd.DataFrame(X)):
        with pytest.raises(ValueError, match=r"expected the 3 chosen ones in their order\."):
            panel.transform(wrong)


def test_it_is_a_fitted_transformer(X, frame):
    whole = fitted("scaled", frame)
    panel = whole.panel()
    check_is_fitted(panel)
    assert isinstance(panel, PanelTransformer)
    assert clone(panel) is panel.fit(X) is panel
    chosen = frame[list(whole.selected_features_)]
    expected = whole.transform(frame)
    copy = pickle.loads(pickle.dumps(panel))
    np.testing.assert_array_equal(copy.transform(chosen), panel.transform(chosen))
    assert len(pickle.dumps(panel)) < 3000
    np.testing.assert_allclose(panel.fit_transform(chosen), expected, atol=1e-9)
    last = make_pipeline(panel, StandardScaler()).fit(chosen).transform(chosen)
    np.testing.assert_allclose(last.std(axis=0), 1)
    for made in (PanelTransformer(), PanelSelector()):
        for method in (made.transform, made.inverse_transform, made.fit):
            with pytest.raises(NotFittedError):
                method(X)
    with pytest.raises(NotFittedError):
        FeatureSparsePCA().panel()
    with pytest.raises(ValueError, match="one for each of its 2 components"):
        panel.inverse_transform(X)
    with pytest.raises(ValueError, match="one for each of its 3 chosen features"):
        fitted("selector", frame).panel().inverse_transform(X)


@pytest.mark.parametrize("name", ["features", "selector"])
def test_output_has_the_names_of_the_whole_fit(name, frame):
    whole = fitted(name, frame).set_output(transform="pandas")
    panel = whole.panel()
    found = panel.transform(frame[list(whole.selected_features_)])
    pd.testing.assert_frame_equal(found, whole.transform(frame))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_types_are_kept(name, X):
    data = X.astype(np.float32)
    whole = fitted(name, data)
    panel, support = whole.panel(), whole.get_support(indices=True)
    found = panel.transform(data[:, support])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, whole.transform(data), rtol=1e-4, atol=1e-4)
    assert panel.inverse_transform(found).dtype == np.float32


def test_missing_values_are_the_mean_where_the_fit_allows_them(X, frame):
    frame = frame.copy()
    frame.iloc[3, :] = np.nan
    for name in ("features", "selector"):
        whole = fitted(name, frame.fillna(0.0))
        with pytest.raises(ValueError, match="NaN"):
            whole.panel().transform(frame[list(whole.selected_features_)])
        allowing = clone(ESTIMATORS[name]).set_params(missing="mean").fit(frame)
        chosen = frame[list(allowing.selected_features_)]
        found = allowing.panel().transform(chosen)
        np.testing.assert_allclose(found, allowing.transform(frame), atol=1e-9)
    scores = FeatureSparsePCA(2, 3, missing="mean", random_state=0).fit(frame).panel()
    np.testing.assert_allclose(scores.transform(frame)[3], 0, atol=1e-9)
    # What is missing elsewhere does not matter.
    whole = fitted("features", X)
    panel, support = whole.panel(), whole.get_support(indices=True)
    named = fitted("features", pd.DataFrame(X, columns=NAMES)).panel()
    others = frame.copy()
    others.iloc[3, support] = X[3, support]
    np.testing.assert_allclose(named.transform(others), panel.transform(X[:, support]), atol=1e-9)


def test_a_covariance_has_no_means(X):
    centred = X - X.mean(axis=0)
    whole = FeatureSparsePCA(2, 3, covariance="precomputed", random_state=0).fit(np.cov(X.T))
    panel = whole.panel()
    np.testing.assert_array_equal(panel.mean_, 0)
    found = panel.transform(centred[:, whole.get_support()])
    np.testing.assert_allclose(found, whole.transform(centred), atol=1e-9)


@pytest.mark.parametrize("name", ["scaled", "selector"])
def test_files_and_blocks(name, X, frame, tmp_path):
    whole = fitted(name, frame)
    panel, chosen = whole.panel(), list(whole.selected_features_)
    expected = whole.transform(frame)
    frame[[*chosen[::-1], "ash"]].T.drop_duplicates().T.to_csv(tmp_path / "t.csv", index=False)
    frame[chosen[::-1]].to_parquet(tmp_path / "t.parquet", row_group_size=7)
    np.save(tmp_path / "t.npy", frame[chosen].to_numpy())
    for ending in ("csv", "parquet", "npy"):
        found = panel.transform(tmp_path / f"t.{ending}")
        np.testing.assert_allclose(found, expected, atol=1e-9)
    blocks = da.from_array(frame[chosen].to_numpy(), chunks=(9, -1))
    found = panel.transform(blocks)
    assert isinstance(found, da.Array) == (name == "scaled")  # as of the whole fit
    np.testing.assert_allclose(np.asarray(found), expected, atol=1e-9)
    if name == "scaled":
        found = panel.transform(dd.from_pandas(frame[chosen[::-1]], npartitions=3))
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-9)
