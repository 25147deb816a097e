"""Fits that remember: the same answer as without, and nothing about the data is found out twice."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kspan.estimators.covariance_estimator as covariance_estimator
from kspan import (
    ElementSparsePCA,
    FeatureSparsePCA,
    FeatureSparseSelector,
    FitRecord,
    Memory,
    NonnegativeSparsePCA,
    StiefelSparsePCA,
    as_covariance,
)
from kspan.covariance import DataCovariance
from kspan.covariance.memory import Columns, Folder
from tests.out_of_core import npy

SMALL_BUDGET = {"n_restarts": 4, "n_kicks": 1}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(Folder, "least_work", 0.0)  # keep small data in files too


@pytest.fixture
def X(rng):
    Z = rng.standard_normal((60, 4)) @ rng.standard_normal((4, 12))
    return Z + rng.standard_normal((60, 12)) + np.arange(12)


@pytest.fixture
def counted(monkeypatch):
    """The covariances of fits, and for how many of them moments and eigenpairs were computed."""
    done = {"covariances": [], "moments": 0, "pairs": 0}

    def built(*args, **kwargs):
        done["covariances"].append(as_covariance(*args, **kwargs))
        return done["covariances"][-1]

    def found(self, m):
        done["pairs"] += any(self is covariance for covariance in done["covariances"])
        return original(self, m)

    def of(origin, moments, product=None):
        done["moments"] += 1
        return columns(origin, moments, product)

    original, columns = DataCovariance._found_leading, Columns.of
    monkeypatch.setattr(covariance_estimator, "as_covariance", built)
    monkeypatch.setattr(DataCovariance, "_found_leading", found)
    monkeypatch.setattr(Columns, "of", of)
    return done


def n_grams(counted):
    return sum(covariance.n_grams for covariance in counted["covariances"])


def public(estimator):
    """Return all that a fit has set, but for how often it read the data, and how long it took."""
    return {name: value for name, value in vars(estimator).items()
            if name.endswith("_") and name != "n_passes_"}  # fmt: skip


def same(one, other):
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert_array_equal(one, other)
    elif isinstance(one, list):
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif hasattr(one, "witness"):
        for name in ("lower", "upper", "status"):
            assert getattr(one, name) == getattr(other, name)
    else:
        assert one == other


def same_fit(one, other):
    found, expected = public(one), public(other)
    assert found.keys() == expected.keys()
    for name, value in found.items():
        same(value, expected[name])


FORMS = {
    "dense": np.asarray,
    "wide": lambda X: np.hstack([X, X[:, ::-1] ** 2, np.cos(X)])[:20],
    "Fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "CSR": lambda X: sp.csr_array(np.where(X > 3, X, 0.0)),
    "CSC, wide": lambda X: sp.csc_array(np.where(X[:9] > 3, X[:9], 0.0)),
    "DataFrame": lambda X: pd.DataFrame(X, columns=list("abcdefghijkl")),
    "npy": npy,
}


@pytest.mark.parametrize("how", [{}, {"scale": True}, {"certify": "exact"}], ids=str)
@pytest.mark.parametrize("solver", ["ipu", "auto"])
@pytest.mark.parametrize("form", FORMS)
def test_answers_are_those_of_fits_without(X, tmp_path, form, solver, how):
    """In any order of the numbers of features and components, from this process and from files."""
    given, memory = FORMS[form](X), Memory()
    for m, k in ((2, 5), (2, 3), (1, 3), (3, 4), (2, 4)):
        parameters = dict(how, solver=solver, random_state=0)
        if solver == "auto":
            parameters["solver_options"] = SMALL_BUDGET
        fresh = FeatureSparsePCA(m, k, **parameters).fit(given)
        for place in (memory, tmp_path):
            same_fit(FeatureSparsePCA(m, k, memory=place, **parameters).fit(given), fresh)
    assert memory.hits > memory.misses


OTHERS = {
    "selector": lambda **how: FeatureSparseSelector(2, 3, solver="soap", **how),
    "represent": lambda **how: FeatureSparsePCA(
        2, 3, criterion="represent", solver_options=SMALL_BUDGET, **how
    ),
    "share": lambda **how: FeatureSparsePCA(2, solver="ipu", explained_share=0.7, **how),
    "streaming": lambda **how: FeatureSparsePCA(2, 3, solver="streaming-srt", **how),
    "orthonormal": lambda **how: StiefelSparsePCA(2, n_nonzero_coefs=3, certify="fast", **how),
    "penalty": lambda **how: StiefelSparsePCA(2, alpha=0.1, solver="sadmm", **how),
    "separate": lambda **how: ElementSparsePCA(2, 3, certify=True, **how),
    "nonnegative": lambda **how: NonnegativeSparsePCA(2, 3, certify=True, **how),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_every_estimator_remembers(X, kind):
    make, memory = OTHERS[kind], Memory()
    fresh = make(random_state=0).fit(X)
    make(random_state=0, memory=memory).fit(X)
    computed = memory.misses
    same_fit(make(random_state=0, memory=memory).fit(X), fresh)
    assert memory.hits >= computed
    assert memory.misses == computed


def test_weights_and_holes(X):
    memory, w = Memory(), np.arange(60.0)
    holes = X.copy()
    holes[[2, 8], [3, 7]] = np.nan
    for data, weights, rule in (
        (X, w, "raise"), (holes, None, "mean"), (holes, w, "mean"), (holes, None, "pairwise"),
        (holes, w, "pairwise"),
    ):  # fmt: skip
        how = {"solver": "ipu", "missing": rule, "random_state": 0}
        for k in (4, 3, 4):
            fresh = FeatureSparsePCA(2, k, **how).fit(data, sample_weight=weights)
            found = FeatureSparsePCA(2, k, memory=memory, **how).fit(data, sample_weight=weights)
            same_fit(found, fresh)


def test_precomputed(X):
    memory, A = Memory(), np.cov(X.T)
    for k in (4, 3):
        how = {"solver": "ipu", "covariance": "precomputed", "random_state": 0}
        found = FeatureSparsePCA(2, k, memory=memory, **how).fit(A)
        same_fit(found, FeatureSparsePCA(2, k, **how).fit(A))
    assert (memory.misses, memory.hits) == (1, 1)
    same_fit(FeatureSparsePCA(2, 4, memory=memory, random_state=0).fit(as_covariance(X)),
             FeatureSparsePCA(2, 4, random_state=0).fit(as_covariance(X)))  # fmt: skip
    assert memory.hits == 1, "a covariance remembers by itself"


@pytest.mark.parametrize("solver", ["ipu", "auto"])
@pytest.mark.parametrize("form", ["dense", "wide", "CSR", "CSC, wide"])
def test_the_second_fit_finds_out_nothing_about_the_data(X, counted, form, solver):
    given, memory = FORMS[form](X), Memory()
    how = {"solver": solver, "memory": memory, "random_state": 0}
    FeatureSparsePCA(2, 4, **how).fit(given)
    assert counted["moments"] == 1
    assert counted["pairs"] >= 1
    assert n_grams(counted) >= 1
    counted.update(covariances=[], moments=0, pairs=0)
    FeatureSparsePCA(2, 3, **how).fit(given)
    assert counted["moments"] == counted["pairs"] == 0
    # A look at few features forms A on them, which of wide data is nobody else's.
    assert n_grams(counted) == (solver == "auto" and "wide" in form)


def test_a_grid_search_finds_out_once_per_fold(X, counted):
    memory = Memory()
    grid = {"n_features_to_select": [2, 3, 4, 5, 6]}
    how = {"solver": "ipu", "random_state": 0}
    plain = GridSearchCV(FeatureSparsePCA(2, **how), grid, cv=3).fit(X)
    counted.update(covariances=[], moments=0, pairs=0)
    search = GridSearchCV(FeatureSparsePCA(2, memory=memory, **how), grid, cv=3).fit(X)
    assert search.best_params_ == plain.best_params_
    assert search.best_score_ == plain.best_score_
    assert_array_equal(search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])
    same_fit(search.best_estimator_, plain.best_estimator_)
    assert n_grams(counted) == counted["pairs"] == 4, "three folds, and the fit of all rows"
    assert counted["moments"] == 4 + 3 * 5, "and those of the rows that are scored"
    assert search.best_estimator_.memory is memory


def test_two_processes_share_a_folder(rng, tmp_path, counted):
    X = rng.standard_normal((9600, 4)) @ rng.standard_normal((4, 96))
    X += rng.standard_normal(X.shape)  # as large as what is kept in files, by any process
    grid, how = {"n_features_to_select": [4, 6, 8, 10]}, {"solver": "ipu", "random_state": 0}
    plain = GridSearchCV(FeatureSparsePCA(2, **how), grid, cv=3).fit(X)
    remembers = FeatureSparsePCA(2, memory=tmp_path, **how)
    for n_jobs in (2, 1):
        counted.update(covariances=[], moments=0, pairs=0)
        search = GridSearchCV(remembers, grid, cv=3, n_jobs=n_jobs).fit(X)
        assert search.best_params_ == plain.best_params_
        np.testing.assert_allclose(  # workers have one BLAS thread
            search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], rtol=1e-12
        )
    assert n_grams(counted) == counted["pairs"] == 0, "all are those of the workers"
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3 * 4  # moments, A, pairs of three folds and of all rows
    assert all(file.suffix == ".kspan" for file in files), "nothing half written"


def test_in_a_pipeline_it_survives_cloning(X):
    memory = Memory()
    pipeline = make_pipeline(StandardScaler(), FeatureSparsePCA(2, 3, memory=memory))
    assert clone(pipeline)[-1].memory is memory
    for _ in range(2):
        clone(pipeline).fit(X)
    assert memory.hits == memory.misses > 0


@pytest.mark.parametrize("memory", [3, 2.5, ["folder"], object()])
def test_what_is_no_memory_is_refused(X, memory):
    with pytest.raises(ValueError, match="'memory' parameter"):
        FeatureSparsePCA(2, 3, memory=memory).fit(X)


def test_a_record_does_not_know_of_it(X, tmp_path):
    how = {"solver": "ipu", "random_state": 0}
    one = FitRecord.from_estimator(FeatureSparsePCA(2, 3, **how).fit(X), X)
    other = FitRecord.from_estimator(FeatureSparsePCA(2, 3, memory=tmp_path, **how).fit(X), X)
    assert one.parameters == other.parameters
    other.verify(X)


def test_scores_read_the_data_once_for_variances_and_once_for_scores(X, monkeypatch):
    """A score needs no covariance of features, and no memory."""
    memory, asked = Memory(), []
    pca = FeatureSparsePCA(2, 4, solver="ipu", memory=memory, random_state=0).fit(X)
    before = memory.hits, memory.misses
    monkeypatch.setattr(DataCovariance, "_computed", lambda *args: asked.append(args))
    score = pca.score(X[:30])
    assert not asked
    assert (memory.hits, memory.misses) == before
    near = X[:30] - X[:30].mean(axis=0)
    expected = np.sum((near @ pca.components_.T) ** 2) / np.sum(near**2)
    assert score == pytest.approx(expected, rel=1e-12)
