"""scikit-learn's contract: its own checks with nothing excused, and what users build on it."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from kspan import (
    ElementSparsePCA,
    FeatureSparsePCA,
    FeatureSparseSelector,
    Memory,
    NonnegativeSparsePCA,
    StiefelSparsePCA,
)

BOTH = [FeatureSparsePCA, FeatureSparseSelector]
NAMES = ["ash", "beech", "cedar", "dogwood", "elm", "fir", "ginkgo"]
SMALL_BUDGET = {"n_restarts": 4, "n_kicks": 1}


@pytest.fixture
def X():
    """40 samples of 7 features with different variances, correlations and means."""
    rng = np.random.default_rng(11)
    mixing = rng.standard_normal((7, 7)) * np.linspace(2.0, 0.5, 7)
    return rng.standard_normal((40, 7)) @ mixing + np.arange(7)


@pytest.fixture
def quick():
    """Parameters of a fit in which the solver is not the point."""
    return {"n_components": 2, "n_features_to_select": 3, "solver": "ipu", "random_state": 0}


# --- scikit-learn's own checks ---------------------------------------------------------------


# Checks of the array API are skipped by scikit-learn itself unless SCIPY_ARRAY_API is set.
@parametrize_with_checks(
    [
        FeatureSparsePCA(),
        FeatureSparsePCA(solver="ipu", scale=True),
        FeatureSparsePCA(solver="ipu", memory=Memory()),
        FeatureSparseSelector(solver_options=SMALL_BUDGET),
        FeatureSparsePCA(criterion="represent", solver_options=SMALL_BUDGET),
        FeatureSparseSelector(criterion="represent", certify="tight", solver_options=SMALL_BUDGET),
        StiefelSparsePCA(),
        StiefelSparsePCA(n_components=1, solver="deflation", scale=True),
        StiefelSparsePCA(n_components=1, solver="two-stage", n_features_to_select=1),
        StiefelSparsePCA(1, n_nonzero_coefs=[1], n_nonzero_total=2, disjoint=True, random_state=0),
        ElementSparsePCA(solver_options=SMALL_BUDGET),
        ElementSparsePCA(solver="gpower-l1-block"),
        ElementSparsePCA(solver="tpower", certify="fast", scale=True),
        ElementSparsePCA(1, solver="exact", deflation="schur"),
        NonnegativeSparsePCA(),
        NonnegativeSparsePCA(solver="em", certify="fast", scale=True, missing="mean"),
    ]
)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


# --- parameters ------------------------------------------------------------------------------

PARAMETERS = {
    "n_components": 3,
    "n_features_to_select": 5,
    "explained_share": 0.75,
    "criterion": "represent",
    "ridge": 0.01,
    "solver": "ipu",
    "init": "random",
    "include": [1],
    "exclude": [2],
    "groups": list("aab"),
    "group_rule": "together",
    "n_groups": 2,
    "max_per_group": 1,
    "costs": [1.0, 2.0, 3.0],
    "budget": 4.0,
    "max_correlation": 0.9,
    "scale": True,
    "covariance": "precomputed",
    "missing": "mean",
    "psd": "raise",
    "memory": "a folder",
    "certify": True,
    "n_jobs": 2,
    "solver_options": {"max_iter": 3},
    "time_limit": 2.5,
    "callback": print,
    "verbose": 1,
    "random_state": 4,
}


@pytest.mark.parametrize("Estimator", BOTH)
def test_every_parameter_is_kept_as_it_was_given(Estimator):
    given = Estimator(**PARAMETERS).get_params()
    assert given.keys() == PARAMETERS.keys()
    assert all(given[name] is value for name, value in PARAMETERS.items())


@pytest.mark.parametrize("Estimator", BOTH)
def test_defaults_are_those_of_the_design(Estimator):
    defaults = Estimator().get_params()
    assert defaults["n_components"] == 2
    assert defaults["n_features_to_select"] is None
    assert defaults["explained_share"] is None
    assert defaults["solver"] == "auto"
    assert defaults["certify"] is False
    assert defaults["time_limit"] is None


@pytest.mark.parametrize("Estimator", BOTH)
def test_set_params_changes_the_next_fit(Estimator, X, quick):
    estimator = Estimator(**quick).fit(X)
    assert estimator.get_support().sum() == 3
    assert estimator.set_params(n_features_to_select=5) is estimator
    assert estimator.fit(X).get_support().sum() == 5


@pytest.mark.parametrize("Estimator", BOTH)
def test_fit_leaves_the_parameters_alone(Estimator, X):
    mask = np.array([True, False, False, False, False, False, False])
    start = np.eye(7)[:, :2]
    parameters = {"include": mask, "exclude": [3], "init": start, "solver_options": {"max_iter": 5}}
    estimator = Estimator(2, 3, solver="ipu", **parameters).fit(X)
    assert all(getattr(estimator, name) is value for name, value in parameters.items())
    assert parameters["solver_options"] == {"max_iter": 5}
    assert parameters["exclude"] == [3]
    np.testing.assert_array_equal(mask, [True] + [False] * 6)
    np.testing.assert_array_equal(start, np.eye(7)[:, :2])


@pytest.mark.parametrize("Estimator", BOTH)
def test_clone_has_the_parameters_but_not_the_fit(Estimator, X, quick):
    fitted = Estimator(**quick, include=[0], solver_options={"max_iter": 5}).fit(X)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copy.get_support()
    np.testing.assert_array_equal(copy.fit(X).components_, fitted.components_)


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize("as_frame", [False, True], ids=["array", "frame"])
def test_a_pickled_fit_answers_as_the_original(Estimator, as_frame, X, quick):
    data = pd.DataFrame(X, columns=NAMES) if as_frame else X
    fitted = Estimator(**quick).fit(data)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.transform(data), fitted.transform(data))
    np.testing.assert_array_equal(copy.selected_features_, fitted.selected_features_)
    np.testing.assert_array_equal(copy.get_feature_names_out(), fitted.get_feature_names_out())
    assert copy.objective_ == fitted.objective_
    assert copy.score(data) == fitted.score(data)


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize("method", ["transform", "score", "get_support", "inverse_transform"])
def test_methods_before_fit_raise_not_fitted(Estimator, method, X):
    arguments = () if method == "get_support" else (X,)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(Estimator(), method)(*arguments)


@pytest.mark.parametrize("Estimator", BOTH)
def test_a_second_fit_forgets_the_first(Estimator, X, quick):
    frame = pd.DataFrame(X, columns=NAMES)
    estimator = Estimator(**quick).fit(frame)
    assert estimator.n_samples_ == 40
    estimator.set_params(covariance="precomputed").fit(np.cov(X[:, :5].T))
    assert estimator.n_features_in_ == 5
    assert not hasattr(estimator, "feature_names_in_")
    assert not hasattr(estimator, "n_samples_")  # a covariance has no samples
    np.testing.assert_array_equal(estimator.mean_, np.zeros(5))


# --- pipelines and grid search ---------------------------------------------------------------


def test_in_a_pipeline_with_scaler_and_regression(X, quick):
    y = X @ np.arange(7)
    model = make_pipeline(StandardScaler(), FeatureSparsePCA(**quick), LinearRegression())
    predicted = model.fit(X, y).predict(X)

    standardised = StandardScaler().fit_transform(X)
    scores = FeatureSparsePCA(**quick).fit_transform(standardised)
    by_hand = LinearRegression().fit(scores, y).predict(scores)
    np.testing.assert_array_equal(predicted, by_hand)


def test_a_pipeline_passes_names_through(X, quick):
    frame = pd.DataFrame(X, columns=NAMES)
    selector = make_pipeline(StandardScaler(), FeatureSparseSelector(**quick))
    selector.set_output(transform="pandas").fit(frame)
    chosen = list(selector[-1].get_feature_names_out())
    assert len(chosen) == 3
    assert set(chosen) <= set(NAMES)
    assert list(selector.get_feature_names_out()) == chosen
    assert list(selector.transform(frame).columns) == chosen


def test_in_a_feature_union(X, quick):
    union = FeatureUnion(
        [("kept", FeatureSparseSelector(**quick)), ("axes", FeatureSparsePCA(**quick))]
    ).fit(X)
    assert union.transform(X).shape == (40, 3 + 2)


@pytest.mark.parametrize("Estimator", BOTH)
def test_grid_search_over_the_number_of_features(Estimator, X, quick):
    sizes = [2, 4, 7]
    grid = {"n_features_to_select": sizes}
    search = GridSearchCV(Estimator(**quick), grid, cv=3, error_score="raise").fit(X)
    # On held-out rows, the share that two components explain, averaged over the folds.
    by_hand = [
        cross_val_score(Estimator(**{**quick, "n_features_to_select": k}), X, cv=3).mean()
        for k in sizes
    ]
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], by_hand)
    best = {**quick, "n_features_to_select": sizes[int(np.argmax(by_hand))]}
    np.testing.assert_array_equal(
        search.best_estimator_.components_, Estimator(**best).fit(X).components_
    )


def test_grid_search_reaches_through_a_pipeline(X):
    y = X[:, 0] - X[:, 3]
    pca = FeatureSparsePCA(2, solver_options=SMALL_BUDGET, random_state=0)
    model = Pipeline([("pca", pca), ("fit", LinearRegression())])
    grid = {"pca__n_features_to_select": [2, 0.5, 7], "pca__scale": [False, True]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == 6
    k = search.best_params_["pca__n_features_to_select"]
    expected = {2: 2, 0.5: 3, 7: 7}[k]  # half of seven features, rounded down
    assert search.best_estimator_["pca"].get_support().sum() == expected


# --- frames out, names out -------------------------------------------------------------------

FRAMES = {
    "pandas": (pd.DataFrame, lambda X: pd.DataFrame(X, columns=NAMES)),
    "polars": (pl.DataFrame, lambda X: pl.DataFrame(X, schema=NAMES)),
}


@pytest.mark.parametrize("into", FRAMES)
@pytest.mark.parametrize("given", ["array", *FRAMES])
def test_set_output_of_the_components(given, into, X, quick):
    data = X if given == "array" else FRAMES[given][1](X)
    plain = FeatureSparsePCA(**quick).fit(data)
    framed = FeatureSparsePCA(**quick).set_output(transform=into).fit(data)
    out = framed.transform(data)
    assert isinstance(out, FRAMES[into][0])
    assert list(out.columns) == ["featuresparsepca0", "featuresparsepca1"]
    np.testing.assert_array_equal(out.to_numpy(), plain.transform(data))


@pytest.mark.parametrize("into", FRAMES)
@pytest.mark.parametrize("given", ["array", *FRAMES])
def test_set_output_of_the_selector(given, into, X, quick):
    data = X if given == "array" else FRAMES[given][1](X)
    selector = FeatureSparseSelector(**quick).set_output(transform=into).fit(data)
    out = selector.transform(data)
    support = selector.get_support(indices=True)
    assert isinstance(out, FRAMES[into][0])
    names = [f"x{i}" for i in range(7)] if given == "array" else NAMES
    assert list(out.columns) == [names[i] for i in support]
    np.testing.assert_array_equal(out.to_numpy(), X[:, support])


@pytest.mark.parametrize("Estimator", BOTH)
def test_pandas_output_keeps_the_index(Estimator, X, quick):
    frame = pd.DataFrame(X, columns=NAMES, index=[f"row{i}" for i in range(40)])
    out = Estimator(**quick).set_output(transform="pandas").fit_transform(frame)
    pd.testing.assert_index_equal(out.index, frame.index)


@pytest.mark.parametrize("n_components", [1, 3])
def test_names_out_of_the_components(n_components, X, quick):
    pca = FeatureSparsePCA(**{**quick, "n_components": n_components})
    names = pca.fit(pd.DataFrame(X, columns=NAMES)).get_feature_names_out()
    assert list(names) == [f"featuresparsepca{i}" for i in range(n_components)]


def test_names_out_of_the_selector(X, quick):
    frame = pd.DataFrame(X, columns=NAMES)
    named = FeatureSparseSelector(**quick).fit(frame)
    support = named.get_support(indices=True)
    assert list(named.get_feature_names_out()) == [NAMES[i] for i in support]
    bare = FeatureSparseSelector(**quick).fit(X)
    assert list(bare.get_feature_names_out()) == [f"x{i}" for i in support]
    assert list(bare.get_feature_names_out(NAMES)) == [NAMES[i] for i in support]
