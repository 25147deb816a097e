"""`FeatureSparseSelector` makes the choice of `FeatureSparsePCA` and returns the columns."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from kspan import FeatureSparsePCA, FeatureSparseSelector

NAMES = ["ash", "beech", "cedar", "dogwood", "elm", "fir", "ginkgo", "hazel"]
FITTED = [
    "components_",
    "explained_variance_",
    "explained_variance_ratio_",
    "objective_",
    "objective_history_",
    "n_iter_",
    "solver_",
    "status_",
    "mean_",
    "scale_",
    "n_components_",
    "n_features_to_select_",
    "n_features_in_",
    "selected_features_",
]


@pytest.fixture
def X():
    """40 samples of 8 correlated features."""
    rng = np.random.default_rng(31)
    mixing = rng.standard_normal((8, 8)) * np.linspace(2.0, 0.5, 8)
    return rng.standard_normal((40, 8)) @ mixing + np.arange(8)


def selector(**parameters):
    return FeatureSparseSelector(
        **{"n_components": 2, "n_features_to_select": 3, "solver": "ipu", **parameters}
    )


@pytest.mark.parametrize("solver", ["auto", "go", "ipu", "brute-force"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_features_to_select": 3},
        {"n_features_to_select": 0.5, "scale": True},
        {"n_features_to_select": None, "explained_share": 0.8},
        {"n_features_to_select": 4, "include": [7], "exclude": [0]},
        {"n_features_to_select": 3, "init": "random"},
    ],
    ids=["number", "share of features", "explained share", "include and exclude", "random start"],
)
def test_the_same_fit_as_feature_sparse_pca(solver, parameters, X):
    if solver in ("go", "brute-force"):  # they start nowhere
        parameters = {**parameters, "init": None}
    if solver == "auto":
        parameters = {**parameters, "solver_options": {"n_restarts": 4, "n_kicks": 1}}
    parameters = {"n_components": 2, "solver": solver, "random_state": 5, **parameters}
    chosen, pca = FeatureSparseSelector(**parameters).fit(X), FeatureSparsePCA(**parameters).fit(X)
    np.testing.assert_array_equal(chosen.get_support(), pca.get_support())
    for name in FITTED:
        np.testing.assert_array_equal(getattr(chosen, name), getattr(pca, name), err_msg=name)
    assert chosen.score(X) == pca.score(X)


def test_the_same_fit_from_a_covariance(X):
    A = np.cov(X.T)
    chosen = selector(covariance="precomputed").fit(A)
    pca = FeatureSparsePCA(2, 3, solver="ipu", covariance="precomputed").fit(A)
    np.testing.assert_array_equal(chosen.get_support(), pca.get_support())
    assert chosen.objective_ == pca.objective_
    # The choice is of features, so it cuts data as well.
    np.testing.assert_array_equal(chosen.transform(X), X[:, chosen.get_support()])


@pytest.mark.parametrize("scale", [False, True])
def test_transform_gives_the_columns_as_they_are(scale, X):
    chosen = selector(scale=scale).fit(X)
    fresh = np.random.default_rng(1).standard_normal((5, 8))
    np.testing.assert_array_equal(chosen.transform(fresh), fresh[:, chosen.get_support()])
    np.testing.assert_array_equal(chosen.fit_transform(X), X[:, chosen.get_support()])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_transform_keeps_type_and_sparsity(dtype, layout, X):
    X[np.abs(X) < 1] = 0.0
    data = layout(X.astype(dtype))
    chosen = selector().fit(data)
    out = chosen.transform(data)
    assert out.dtype == dtype
    assert scipy.sparse.issparse(out) == scipy.sparse.issparse(data)
    dense = out.toarray() if scipy.sparse.issparse(out) else out
    np.testing.assert_array_equal(dense, X.astype(dtype)[:, chosen.get_support()])


def test_inverse_transform_puts_the_columns_back(X):
    chosen = selector().fit(X)
    back = chosen.inverse_transform(chosen.transform(X))
    mask = chosen.get_support()
    np.testing.assert_array_equal(back[:, mask], X[:, mask])
    assert np.all(back[:, ~mask] == 0)


@pytest.mark.parametrize("n_features_to_select", [2, 5, 8])
def test_get_support_as_mask_and_as_indices(n_features_to_select, X):
    chosen = selector(n_features_to_select=n_features_to_select).fit(X)
    mask, indices = chosen.get_support(), chosen.get_support(indices=True)
    assert mask.dtype == bool
    assert mask.shape == (8,)
    np.testing.assert_array_equal(np.flatnonzero(mask), indices)
    assert len(indices) == n_features_to_select


@pytest.mark.parametrize(
    "frame",
    [lambda X: pd.DataFrame(X, columns=NAMES), lambda X: pl.DataFrame(X, schema=NAMES)],
    ids=["pandas", "polars"],
)
def test_names_of_the_chosen_features(frame, X):
    chosen = selector(include=["hazel"]).fit(frame(X))
    names = [NAMES[i] for i in chosen.get_support(indices=True)]
    assert "hazel" in names
    assert list(chosen.get_feature_names_out()) == names
    assert list(chosen.selected_features_) == names
    assert list(chosen.feature_names_in_) == NAMES


def test_features_without_names_are_numbered(X):
    chosen = selector().fit(X)
    indices = chosen.get_support(indices=True)
    assert list(chosen.get_feature_names_out()) == [f"x{i}" for i in indices]
    np.testing.assert_array_equal(chosen.selected_features_, indices)


def test_text_columns_that_are_only_passed_through_are_refused():
    frame = pd.DataFrame({"number": [1.0, 2.0, 4.0], "word": ["a", "b", "c"]})
    with pytest.raises(ValueError, match="could not convert string to float: 'a'"):
        selector(n_components=1, n_features_to_select=1).fit(frame)
