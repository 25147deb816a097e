"""What a fitted `FeatureSparsePCA` says, against numpy, scikit-learn's PCA and enumeration."""

from copy import deepcopy
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.decomposition import PCA

from kspan import FeatureSparsePCA

SOLVERS = ["auto", "go", "ipu", "brute-force"]
# With the starts that they may have.
STARTED = [("go", None), ("brute-force", None)] + [
    (solver, init) for solver in ("auto", "ipu") for init in ("low-rank", "random")
]
NAMES = [f"gene{i}" for i in range(10)]
SMALL_BUDGET = {"n_restarts": 8, "n_kicks": 2}

# Sums of a few hundred rounded products: relative errors of some hundred units of rounding.
RTOL = 1e-12


def make_data(n_samples, n_features, seed):
    """Correlated features with variances from about 1 to 16 and means that are not zero."""
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((n_features, n_features)) / np.sqrt(n_features)
    mixing *= np.linspace(4.0, 1.0, n_features)
    return rng.standard_normal((n_samples, n_features)) @ mixing + rng.uniform(-5, 5, n_features)


@pytest.fixture
def X():
    return make_data(60, 10, seed=7)


def small(n_components=2, n_features_to_select=4, **parameters):
    """An estimator whose solver is quick, deterministic and not the point."""
    parameters = {"solver": "ipu", "random_state": 0, **parameters}
    return FeatureSparsePCA(n_components, n_features_to_select, **parameters)


def best_support(A, m, k, include=(), exclude=()):
    """Return the optimum by trying every support: its value and its features."""
    allowed = [i for i in range(len(A)) if i not in exclude]
    supports = np.array([S for S in combinations(allowed, k) if set(include) <= set(S)])
    values = np.linalg.eigvalsh(A[supports[:, :, None], supports[:, None, :]])[:, -m:].sum(axis=1)
    winner = int(np.argmax(values))
    return float(values[winner]), supports[winner].tolist()


# --- the fitted attributes -------------------------------------------------------------------

FITS = {
    "plain": {},
    "scaled": {"scale": True},
    "one component": {"n_components": 1},
    "m = k": {"n_components": 4},
    "k = d": {"n_features_to_select": 10},
    "k = m = d": {"n_components": 10, "n_features_to_select": 10},
    "k = 1": {"n_components": 1, "n_features_to_select": 1},
    "auto": {"solver": "auto", "solver_options": SMALL_BUDGET},
    "go": {"solver": "go"},
    "go as printed": {"solver": "go", "solver_options": {"refine": False}},
    "brute force": {"solver": "brute-force"},
}


@pytest.fixture(params=FITS)
def fit(request, X):
    """Several fits, and the covariance (or correlation) that each of them is about."""
    estimator = small(**FITS[request.param]).fit(X)
    A = np.corrcoef(X.T) if estimator.scale else np.cov(X.T)
    return estimator, A


def test_rows_are_orthonormal(fit):
    C = fit[0].components_
    np.testing.assert_allclose(C @ C.T, np.eye(len(C)), atol=1e-13)


def test_exactly_the_chosen_columns_are_nonzero(fit):
    estimator, _ = fit
    assert estimator.components_.shape == (estimator.n_components, 10)
    np.testing.assert_array_equal((estimator.components_ != 0).any(axis=0), estimator.get_support())
    assert estimator.get_support().sum() == estimator.n_features_to_select


def test_rows_are_principal_axes_of_their_span(fit):
    estimator, A = fit
    C = estimator.components_
    within = C @ A @ C.T
    np.testing.assert_allclose(within, np.diag(estimator.explained_variance_), atol=1e-12 * A.max())


def test_variances_are_sorted_and_sum_to_the_objective(fit):
    estimator, A = fit
    assert np.all(np.diff(estimator.explained_variance_) <= 0)
    assert estimator.explained_variance_.sum() == estimator.objective_
    np.testing.assert_allclose(
        estimator.explained_variance_ratio_,
        estimator.explained_variance_ / np.trace(A),
        rtol=RTOL,
    )


def test_the_largest_entry_of_each_row_is_positive(fit):
    C = fit[0].components_
    assert np.all(C.max(axis=1) == np.abs(C).max(axis=1))


def test_history_never_falls_and_ends_at_the_objective(fit):
    estimator, _ = fit
    history = estimator.objective_history_
    assert np.all(np.diff(history) >= -RTOL * history[-1])
    assert history[-1] == pytest.approx(estimator.objective_, rel=RTOL)


def test_score_of_the_training_data_is_the_explained_share(fit, X):
    estimator, _ = fit
    assert estimator.score(X) == pytest.approx(estimator.explained_variance_ratio_.sum(), rel=RTOL)


def test_supports_agree_with_each_other(fit):
    estimator, _ = fit
    mask, indices = estimator.get_support(), estimator.get_support(indices=True)
    assert mask.dtype == bool
    assert mask.shape == (10,)
    np.testing.assert_array_equal(np.flatnonzero(mask), indices)
    np.testing.assert_array_equal(estimator.selected_features_, indices)


def test_small_facts_about_the_fit(X):
    estimator = small().fit(X)
    assert estimator.n_components_ == 2
    assert estimator.n_features_to_select_ == 4
    assert estimator.n_samples_ == 60
    assert estimator.n_features_in_ == 10
    assert estimator.solver_ == "ipu"
    assert estimator.status_ == "converged"
    assert estimator.scale_ is None
    assert estimator.n_iter_ == len(estimator.objective_history_) - 1
    assert estimator.n_passes_ >= 1
    np.testing.assert_allclose(estimator.mean_, X.mean(axis=0), rtol=RTOL)


def test_scaled_fits_keep_the_sample_standard_deviation(X):
    np.testing.assert_allclose(small(scale=True).fit(X).scale_, X.std(axis=0, ddof=1), rtol=RTOL)


def test_selected_features_are_names_where_there_are_names(X):
    estimator = small().fit(pd.DataFrame(X, columns=NAMES))
    support = estimator.get_support(indices=True)
    assert list(estimator.selected_features_) == [NAMES[i] for i in support]


# --- against scikit-learn's PCA --------------------------------------------------------------


@pytest.mark.parametrize("shape", [(60, 10), (12, 30)], ids=["tall", "wide"])
@pytest.mark.parametrize("solver", ["auto", "go", "ipu", "brute-force"])
def test_with_all_features_it_is_pca(shape, solver):
    data = make_data(*shape, seed=3)
    ours = small(3, shape[1], solver=solver).fit(data)
    pca = PCA(3, svd_solver="full").fit(data)
    # Vectors are as good as rounding over the gap to the next variance, some percent here.
    np.testing.assert_allclose(ours.components_, pca.components_, atol=1e-11)
    np.testing.assert_allclose(ours.explained_variance_, pca.explained_variance_, rtol=1e-12)
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-12
    )
    np.testing.assert_allclose(ours.mean_, pca.mean_, rtol=1e-12)
    Z = pca.transform(data)
    np.testing.assert_allclose(ours.transform(data), Z, atol=1e-10)
    np.testing.assert_allclose(ours.inverse_transform(Z), pca.inverse_transform(Z), atol=1e-10)


def test_on_its_features_it_is_pca(X):
    ours = small().fit(X)
    chosen = X[:, ours.get_support()]
    pca = PCA(2, svd_solver="full").fit(chosen)
    np.testing.assert_allclose(ours.components_[:, ours.get_support()], pca.components_, atol=1e-11)
    np.testing.assert_allclose(ours.transform(X), pca.transform(chosen), atol=1e-11)


# --- transform and back ----------------------------------------------------------------------


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_matrix])
def test_transform_by_hand(scale, layout, X):
    estimator = small(scale=scale).fit(X)
    fresh = make_data(25, 10, seed=8)
    divisors = X.std(axis=0, ddof=1) if scale else np.ones(10)
    by_hand = (fresh - X.mean(axis=0)) / divisors @ estimator.components_.T
    np.testing.assert_allclose(estimator.transform(layout(fresh)), by_hand, atol=1e-12)


@pytest.mark.parametrize("scale", [False, True])
def test_transform_and_fit_transform_agree(scale, X):
    np.testing.assert_array_equal(
        small(scale=scale).fit_transform(X), small(scale=scale).fit(X).transform(X)
    )


@pytest.mark.parametrize("scale", [False, True])
def test_scores_have_the_explained_variances_and_no_correlation(scale, X):
    estimator = small(scale=scale).fit(X)
    within = np.cov(estimator.transform(X).T)
    np.testing.assert_allclose(within, np.diag(estimator.explained_variance_), atol=1e-11)


@pytest.mark.parametrize("scale", [False, True])
def test_back_and_forth_changes_nothing(scale, X):
    estimator = small(scale=scale).fit(X)
    Z = make_data(25, 2, seed=9)
    np.testing.assert_allclose(estimator.transform(estimator.inverse_transform(Z)), Z, atol=1e-12)


@pytest.mark.parametrize("scale", [False, True])
def test_points_come_back_with_the_other_features_at_their_means(scale, X):
    estimator = small(scale=scale).fit(X)
    points = estimator.inverse_transform(estimator.transform(X))
    others = ~estimator.get_support()
    np.testing.assert_allclose(
        points[:, others], np.tile(X.mean(axis=0)[others], (60, 1)), rtol=RTOL
    )


@pytest.mark.parametrize("scale", [False, True])
def test_with_all_components_points_come_back_as_they_were(scale, X):
    estimator = small(10, 10, scale=scale).fit(X)
    np.testing.assert_allclose(estimator.inverse_transform(estimator.transform(X)), X, atol=1e-12)


def test_scaling_is_fitting_standardised_data(X):
    standardised = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    inside, before = small(scale=True).fit(X), small().fit(standardised)
    np.testing.assert_array_equal(inside.get_support(), before.get_support())
    np.testing.assert_allclose(inside.components_, before.components_, atol=1e-12)
    np.testing.assert_allclose(inside.explained_variance_, before.explained_variance_, rtol=RTOL)
    np.testing.assert_allclose(inside.transform(X), before.transform(standardised), atol=1e-12)


# --- score -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array, pd.DataFrame])
def test_score_of_other_data_by_hand(scale, layout, X):
    estimator = small(scale=scale).fit(X)
    fresh = make_data(35, 10, seed=21) + 3.0
    divisors = X.std(axis=0, ddof=1) if scale else np.ones(10)
    centred = (fresh - fresh.mean(axis=0)) / divisors
    explained = np.linalg.norm(centred @ estimator.components_.T) ** 2
    by_hand = explained / np.linalg.norm(centred) ** 2
    assert 0 < by_hand < 1
    if layout is pd.DataFrame:
        estimator.fit(pd.DataFrame(X))
    assert estimator.score(layout(fresh)) == pytest.approx(by_hand, rel=RTOL)


def test_score_of_a_precomputed_covariance(X):
    estimator = small(covariance="precomputed").fit(np.cov(X.T))
    other = np.cov(make_data(35, 10, seed=21).T)
    C = estimator.components_
    by_hand = np.trace(C @ other @ C.T) / np.trace(other)
    assert estimator.score(other) == pytest.approx(by_hand, rel=RTOL)


def test_more_features_explain_more(X):
    scores = [small(2, k, solver="brute-force").fit(X).score(X) for k in (2, 4, 6, 8, 10)]
    assert np.all(np.diff(scores) > 0)


# --- the same answer from every kind of input ------------------------------------------------
#
# The data are whole numbers that every type below holds exactly, so all fits see the same
# numbers. Means are large: subtracting one in uint16 arithmetic would wrap around.


def whole_numbers():
    """Whole numbers that fill the upper half of uint16: 32 000 to 65 000, n × d = 50 × 10."""
    data = make_data(50, 10, seed=5)
    low, high = data.min(axis=0), data.max(axis=0)
    spread = np.linspace(33_000, 9_000, 10)
    return np.round(32_000 + (data - low) / (high - low) * spread)


def in_memmap(data, tmp_path):
    file = np.memmap(tmp_path / "data", dtype=np.float64, mode="w+", shape=data.shape)
    file[:] = data
    file.flush()
    return np.memmap(tmp_path / "data", dtype=np.float64, mode="r", shape=data.shape)


def read_only(data):
    data = data.copy()
    data.flags.writeable = False
    return data


def strided(data):
    wide = np.full((2 * data.shape[0], 3 * data.shape[1]), -1.0)
    wide[::2, 1::3] = data
    return wide[::2, 1::3]


def with_duplicates_and_zeros(data):
    """A CSR matrix that stores each entry as two halves, out of order, and some zeros."""
    rows, columns = (index.ravel() for index in np.indices(data.shape))
    order = np.random.default_rng(0).permutation(2 * data.size)
    halves = np.concatenate([data.ravel() / 2, data.ravel() / 2])[order]
    rows, columns = np.tile(rows, 2)[order], np.tile(columns, 2)[order]
    by_row = np.argsort(rows, kind="stable")
    pointers = np.append(0, np.cumsum(np.bincount(rows)))
    matrix = scipy.sparse.csr_array(data.shape)
    matrix.data, matrix.indices, matrix.indptr = halves[by_row], columns[by_row], pointers
    matrix.has_canonical_format = matrix.has_sorted_indices = False
    return matrix


INPUTS = {
    "fortran": lambda data, _: np.asfortranarray(data),
    "float32": lambda data, _: data.astype(np.float32),
    "float32 fortran": lambda data, _: np.asfortranarray(data.astype(np.float32)),
    "uint16": lambda data, _: data.astype(np.uint16),
    "uint16 fortran": lambda data, _: np.asfortranarray(data.astype(np.uint16)),
    "int32": lambda data, _: data.astype(np.int32),
    "uint64": lambda data, _: data.astype(np.uint64),
    "objects": lambda data, _: data.astype(object),
    "longdouble": lambda data, _: data.astype(np.longdouble),
    "big-endian float64": lambda data, _: data.astype(">f8"),
    "big-endian float32": lambda data, _: data.astype(">f4"),
    "big-endian uint16": lambda data, _: data.astype(">u2"),
    "lists": lambda data, _: data.tolist(),
    "read-only": lambda data, _: read_only(data),
    "read-only fortran": lambda data, _: read_only(np.asfortranarray(data)),
    "memmap": in_memmap,
    "strided": lambda data, _: strided(data),
    "backwards": lambda data, _: data[::-1, ::-1].copy()[::-1, ::-1],
    "pandas": lambda data, _: pd.DataFrame(data, columns=NAMES),
    "pandas uint16": lambda data, _: pd.DataFrame(data.astype(np.uint16), columns=NAMES),
    "pandas nullable": lambda data, _: pd.DataFrame(data, columns=NAMES).astype("UInt16"),
    "pandas mixed": lambda data, _: pd.DataFrame(data, columns=NAMES).astype({"gene3": "int64"}),
    "polars": lambda data, _: pl.DataFrame(data, schema=NAMES),
    "polars uint16": lambda data, _: pl.DataFrame(data.astype(np.uint16), schema=NAMES),
    "csr array": lambda data, _: scipy.sparse.csr_array(data),
    "csc array": lambda data, _: scipy.sparse.csc_array(data),
    "csr matrix": lambda data, _: scipy.sparse.csr_matrix(data),
    "csc matrix": lambda data, _: scipy.sparse.csc_matrix(data),
    "coo array": lambda data, _: scipy.sparse.coo_array(data),
    "csr float32": lambda data, _: scipy.sparse.csr_array(data.astype(np.float32)),
    "csr uint16": lambda data, _: scipy.sparse.csr_array(data.astype(np.uint16)),
    "csc uint16": lambda data, _: scipy.sparse.csc_array(data.astype(np.uint16)),
    "csr with duplicates": lambda data, _: with_duplicates_and_zeros(data),
}


@pytest.mark.parametrize("scale", [False, True], ids=["covariance", "correlation"])
@pytest.mark.parametrize("kind", INPUTS)
def test_same_answer_from_every_kind_of_input(kind, scale, tmp_path):
    data = whole_numbers()
    given = INPUTS[kind](data, tmp_path)
    A = np.corrcoef(data.T) if scale else np.cov(data.T)
    value, support = best_support(A, 2, 4)
    budget = {"n_restarts": 4, "n_kicks": 0}
    estimator = small(solver="auto", solver_options=budget, scale=scale).fit(given)
    reference = small(solver="brute-force", scale=scale).fit(data)

    np.testing.assert_array_equal(estimator.get_support(indices=True), support)
    # Means are some ten times the spreads, which costs two of the sixteen digits at most.
    assert estimator.objective_ == pytest.approx(value, rel=1e-11)
    single = estimator.components_.dtype == np.float32
    digits = np.finfo(estimator.components_.dtype).eps
    np.testing.assert_allclose(
        estimator.components_, reference.components_, atol=1e-10 + 2 * digits
    )
    np.testing.assert_allclose(estimator.mean_, data.mean(axis=0), rtol=RTOL)
    assert estimator.score(given) == pytest.approx(
        value / np.trace(A), rel=1e-6 if single else 1e-11
    )
    # Subtracting the mean after the product loses digits of the raw numbers, as in PCA.
    size = np.abs(data / (data.std(axis=0, ddof=1) if scale else 1.0)).sum(axis=1).max()
    np.testing.assert_allclose(
        estimator.transform(given), reference.transform(data), atol=4 * digits * size + 1e-9
    )


@pytest.mark.parametrize("kind", INPUTS)
def test_the_input_is_left_as_it_was(kind, tmp_path):
    given = INPUTS[kind](whole_numbers(), tmp_path)
    untouched = deepcopy(given)
    estimator = small(scale=True).fit(given)
    estimator.transform(given)
    estimator.score(given)
    if scipy.sparse.issparse(given):
        parts = ["data"] + (["row", "col"] if given.format == "coo" else ["indices", "indptr"])
        for part in parts:
            np.testing.assert_array_equal(getattr(given, part), getattr(untouched, part))
    else:
        np.testing.assert_array_equal(np.asarray(given), np.asarray(untouched))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("frame", [False, True], ids=["array", "frame"])
def test_same_answer_from_the_precomputed_covariance(dtype, order, frame):
    data = whole_numbers()
    A = np.cov(data.T).astype(dtype, order=order)
    estimator = small(solver="auto", solver_options=SMALL_BUDGET, covariance="precomputed")
    estimator.fit(pd.DataFrame(A, columns=NAMES) if frame else A)
    value, support = best_support(np.cov(data.T), 2, 4)
    np.testing.assert_array_equal(estimator.get_support(indices=True), support)
    # The entries of A were rounded to its type.
    assert estimator.objective_ == pytest.approx(value, rel=4 * float(np.finfo(dtype).eps) + RTOL)
    assert estimator.components_.dtype == dtype
    reference = small(solver="brute-force").fit(data)
    np.testing.assert_allclose(
        estimator.components_, reference.components_, atol=20 * np.finfo(dtype).eps + 1e-10
    )
    if frame:
        assert list(estimator.selected_features_) == [NAMES[i] for i in support]
    # No means are known, so `transform` takes data that are centred.
    centred = data - data.mean(axis=0)
    given = pd.DataFrame(centred, columns=NAMES) if frame else centred
    size = np.abs(centred).sum(axis=1).max()
    np.testing.assert_allclose(
        estimator.transform(given),
        reference.transform(data),
        atol=20 * np.finfo(dtype).eps * size + 1e-7,
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, bool, ">i2"], ids=str)
@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_same_answer_from_small_integers_and_booleans(dtype, layout):
    rng = np.random.default_rng(2)
    top = {np.uint8: 256, np.int8: 128, bool: 2, ">i2": 30_000}[dtype]
    # Columns repeat parts of each other, so there is something to choose.
    data = rng.integers(0, top, (80, 9))
    mixed = rng.random((80, 9)) < 0.7
    data[:, 1:4] = np.where(mixed[:, 1:4], data[:, :1], data[:, 1:4])
    data[:, 5:7] = np.where(mixed[:, 5:7], data[:, 4:5], data[:, 5:7])
    value, support = best_support(np.cov(data.T), 2, 4)
    given = data.astype(dtype)
    if layout is not np.asarray:
        given = layout(given.astype(np.dtype(dtype).newbyteorder("=")))
    estimator = small(solver="auto", solver_options=SMALL_BUDGET).fit(given)
    np.testing.assert_array_equal(estimator.get_support(indices=True), support)
    assert estimator.objective_ == pytest.approx(value, rel=RTOL)


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_same_answer_on_wide_data(layout):
    data = make_data(12, 40, seed=4)
    data[np.abs(data) < 2] = 0.0
    A = np.cov(data.T)
    estimator = small(2, 5, solver="auto", solver_options=SMALL_BUDGET).fit(layout(data))
    precomputed = small(
        2, 5, solver="auto", solver_options=SMALL_BUDGET, covariance="precomputed"
    ).fit(A)
    np.testing.assert_array_equal(estimator.get_support(), precomputed.get_support())
    support = estimator.get_support(indices=True)
    value = np.linalg.eigvalsh(A[np.ix_(support, support)])[-2:].sum()
    assert estimator.objective_ == pytest.approx(value, rel=RTOL)
    assert precomputed.objective_ == pytest.approx(value, rel=RTOL)


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_large_mean_costs_no_more_digits_than_it_must(layout, solver):
    rng = np.random.default_rng(6)
    data = np.round(make_data(64, 8, seed=6) * 8)
    offset = 2.0**27 + rng.integers(0, 1000, 8)  # exact sums, so only the mean is rounded
    parameters = {"solver": solver, "random_state": 0}
    if solver == "auto":
        parameters["solver_options"] = SMALL_BUDGET
    here = small(2, 3, **parameters).fit(data)
    there = small(2, 3, **parameters).fit(layout(data + offset))
    np.testing.assert_array_equal(here.get_support(), there.get_support())
    # mean · eps / spread = 1e8 · 2e-16 / 8
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-8)


# --- float32 ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "layout", [np.asarray, np.asfortranarray, scipy.sparse.csr_array, scipy.sparse.csc_array]
)
@pytest.mark.parametrize(
    ("shape", "k"), [((60, 10), 4), ((20, 60), 5), ((20, 60), 40)], ids=["tall", "wide", "k > n"]
)
@pytest.mark.parametrize("scale", [False, True], ids=["covariance", "correlation"])
def test_float32_stays_but_the_objective_is_float64(layout, shape, k, scale):
    data = make_data(*shape, seed=13).astype(np.float32)
    estimator = small(2, k, scale=scale).fit(layout(data))
    assert estimator.components_.dtype == np.float32
    Z = estimator.transform(layout(data))
    assert Z.dtype == np.float32
    assert estimator.inverse_transform(Z).dtype == np.float32
    assert isinstance(estimator.objective_, float)
    assert estimator.explained_variance_.dtype == np.float64

    chosen = data[:, estimator.get_support()].astype(np.float64)
    A = np.corrcoef(chosen.T) if scale else np.cov(chosen.T)
    value = np.linalg.eigvalsh(A)[-2:].sum()
    # float32 has 7 digits: agreement to 11 shows that the sums were made in float64.
    assert estimator.objective_ == pytest.approx(value, rel=1e-11)


def test_float64_data_may_follow_a_float32_fit(X):
    estimator = small().fit(X.astype(np.float32))
    assert estimator.transform(X).dtype == np.float64


def test_float32_gives_the_answer_of_float64_to_its_accuracy():
    data = make_data(80, 10, seed=14)
    single = small(solver="auto", solver_options=SMALL_BUDGET).fit(data.astype(np.float32))
    double = small(solver="auto", solver_options=SMALL_BUDGET).fit(data)
    np.testing.assert_array_equal(single.get_support(), double.get_support())
    # Each entry is off by 6e-8 of itself, and entries are up to three times their spread.
    assert single.objective_ == pytest.approx(double.objective_, rel=1e-6)
    np.testing.assert_allclose(single.components_, double.components_, atol=1e-5)


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("factor", [1e25, 1e-25])
def test_float32_data_may_be_large_or_tiny(layout, factor):
    # Squares of these numbers do not fit into float32.
    data = (make_data(20, 30, seed=15) * factor).astype(np.float32)
    single = small(2, 5).fit(layout(data))
    double = small(2, 5).fit(layout(data.astype(np.float64)))
    np.testing.assert_array_equal(single.get_support(), double.get_support())
    assert single.objective_ == pytest.approx(double.objective_, rel=1e-6)


# --- how many features -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "k"),
    [
        (3, 3),
        (np.int64(3), 3),
        (0.3, 3),
        (0.39, 3),
        (np.float32(0.5), 5),
        (0.999, 9),
    ],
)
def test_number_or_share_of_features(given, k, X):
    estimator = small(2, given).fit(X)
    assert estimator.n_features_to_select_ == k
    assert estimator.get_support().sum() == k


def smallest_k(A, m, share, include=(), exclude=()):
    """Return the fewest features that keep a share of what plain PCA explains, by enumeration."""
    plain = np.linalg.eigvalsh(A)[-m:].sum()
    for k in range(max(m, len(include)), len(A) - len(exclude) + 1):
        if best_support(A, m, k, include, exclude)[0] >= share * plain * (1 - 1e-10):
            return k
    return len(A) - len(exclude)


@pytest.mark.parametrize("solver", ["brute-force", "auto"])
@pytest.mark.parametrize("n_components", [1, 2, 3])
@pytest.mark.parametrize("share", [0.2, 0.6, 0.8, 0.9, 0.97, 1.0])
def test_explained_share_gives_the_smallest_number_of_features(solver, n_components, share):
    data = make_data(40, 9, seed=16)
    parameters = {"solver_options": SMALL_BUDGET} if solver == "auto" else {}
    estimator = small(n_components, None, explained_share=share, solver=solver, **parameters)
    A = np.cov(data.T)
    k = smallest_k(A, n_components, share)
    assert estimator.fit(data).n_features_to_select_ == k
    value, support = best_support(A, n_components, k)
    assert estimator.objective_ == pytest.approx(value, rel=RTOL)
    np.testing.assert_array_equal(estimator.get_support(indices=True), support)


@pytest.mark.parametrize(
    ("n_features", "n_components", "limits", "expected"),
    [
        (60, 2, {}, 20),  # ten for each component
        (60, 5, {}, 30),  # no more than half
        (9, 1, {}, 4),
        (5, 4, {}, 4),  # but as many as components
        (5, 1, {"include": [0, 1, 2]}, 3),
        (60, 1, {"exclude": list(range(50))}, 5),
        (4, 2, {"exclude": [0, 1]}, 2),
    ],
)
def test_without_a_number_there_are_ten_for_each_component(
    n_features, n_components, limits, expected
):
    data = make_data(80, n_features, seed=3)
    estimator = small(n_components, None, solver="go", **limits).fit(data)
    assert estimator.n_features_to_select_ == estimator.get_support().sum() == expected


def test_explained_share_is_ignored_when_the_number_is_given(X):
    assert small(2, 4, explained_share=0.1).fit(X).n_features_to_select_ == 4


def test_a_share_of_one_needs_no_constant_columns(X):
    data = np.hstack([X, np.ones((60, 5))])
    assert small(2, None, explained_share=1.0).fit(data).n_features_to_select_ == 10


@pytest.mark.parametrize(
    ("include", "exclude"),
    [([9], []), ([8, 9, 7], []), ([], [0, 1]), ([9], [0]), ([9, 9, 9, 9, 9, 9], []),
     ([], [0, 0, 0, 0, 0, 0, 0, 0, 0])],
)  # fmt: skip
def test_explained_share_within_include_and_exclude(include, exclude, X):
    estimator = small(2, None, solver="brute-force", explained_share=0.6)
    estimator.set_params(include=include, exclude=exclude).fit(X)
    # Naming a feature twice says no more than naming it once.
    k = smallest_k(np.cov(X.T), 2, 0.6, set(include), set(exclude))
    assert estimator.n_features_to_select_ == k
    support = set(estimator.get_support(indices=True))
    assert set(include) <= support
    assert support.isdisjoint(exclude)


# --- include and exclude ---------------------------------------------------------------------

WANTED = [8, 9]  # the features with the least variance, which nobody would choose
FORMS = {
    "indices": lambda indices: indices,
    "tuple": tuple,
    "array": lambda indices: np.array(indices, dtype=np.uint8),
    "names": lambda indices: [NAMES[i] for i in indices],
    "array of names": lambda indices: np.array([NAMES[i] for i in indices]),
    "pandas index": lambda indices: pd.Index([NAMES[i] for i in indices]),
    "mask": lambda indices: [i in indices for i in range(10)],
    "array mask": lambda indices: np.isin(np.arange(10), indices),
    "repeated": lambda indices: [*indices, *indices],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_include_and_exclude_take_names_indices_and_masks(form, frame, X):
    data = frame(dict(zip(NAMES, X.T, strict=True)))
    favourites = list(small().fit(X).get_support(indices=True)[:2])
    assert not set(favourites) & set(WANTED)
    forms = {"include": FORMS[form](WANTED), "exclude": FORMS[form](favourites)}
    estimator = small(solver="brute-force", **forms).fit(data)
    value, support = best_support(np.cov(X.T), 2, 4, WANTED, favourites)
    np.testing.assert_array_equal(estimator.get_support(indices=True), support)
    assert estimator.objective_ == pytest.approx(value, rel=RTOL)


@pytest.mark.parametrize(("solver", "init"), STARTED)
def test_every_solver_honours_include_and_exclude(solver, init, X):
    estimator = small(include=WANTED, exclude=[0, 1], solver=solver, init=init).fit(X)
    support = set(estimator.get_support(indices=True))
    assert set(WANTED) <= support
    assert support.isdisjoint([0, 1])
    value, _ = best_support(np.cov(X.T), 2, 4, WANTED, [0, 1])
    assert estimator.objective_ <= value * (1 + RTOL)
    if solver in ("auto", "brute-force"):
        assert estimator.objective_ == pytest.approx(value, rel=RTOL)


@pytest.mark.parametrize("solver", SOLVERS)
def test_include_may_name_the_whole_choice_and_exclude_all_the_rest(solver, X):
    chosen = [1, 5, 8, 9]
    others = [0, 2, 3, 4, 6, 7]
    for parameters in ({"include": chosen}, {"exclude": others}):
        estimator = small(solver=solver, **parameters).fit(X)
        np.testing.assert_array_equal(estimator.get_support(indices=True), chosen)


@pytest.mark.parametrize("nothing", [None, [], np.zeros(10, dtype=bool), ()])
def test_an_empty_include_or_exclude_asks_for_nothing(nothing, X):
    plain = small().fit(X)
    asked = small(include=nothing, exclude=nothing).fit(X)
    np.testing.assert_array_equal(asked.components_, plain.components_)


# --- solvers, starts, budgets ----------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scale", [False, True])
def test_no_solver_beats_enumeration_and_auto_reaches_it(solver, scale, X):
    A = np.corrcoef(X.T) if scale else np.cov(X.T)
    value, support = best_support(A, 2, 4)
    estimator = small(solver=solver, scale=scale).fit(X)
    assert estimator.solver_ == solver
    assert estimator.objective_ <= value * (1 + RTOL)
    if solver in ("auto", "brute-force"):
        assert estimator.objective_ == pytest.approx(value, rel=RTOL)
        np.testing.assert_array_equal(estimator.get_support(indices=True), support)


def test_auto_is_the_default(X):
    estimator = FeatureSparsePCA(2, 4, random_state=0).fit(X)
    assert estimator.solver_ == "auto"
    assert estimator.status_ == "optimal"  # a bound has settled it on the way
    assert not hasattr(estimator, "certificate_")


def test_a_start_may_be_given(X):
    # From the span of two features, IPU first takes those that go with them.
    start = np.eye(10)[:, [8, 9]]
    estimator = small(init=start, solver_options={"max_iter": 0}).fit(X)
    A = np.cov(X.T)
    proxy = A[:, [8, 9]] @ np.linalg.inv(A[np.ix_([8, 9], [8, 9])]) @ A[[8, 9]]
    first = np.sort(np.argsort(-np.diag(proxy))[:4])
    np.testing.assert_array_equal(estimator.get_support(indices=True), first)
    assert estimator.status_ == "iteration limit"


def test_solver_options_reach_the_solver(X):
    start = np.random.default_rng(0).standard_normal((X.shape[1], 2))
    steps = [
        small(solver="ipu", init=start, solver_options={"max_iter": most}).fit(X).n_iter_
        for most in (0, 1, 20)
    ]
    assert steps[:2] == [0, 1]
    assert steps[2] >= 1


@pytest.mark.parametrize(("solver", "init"), STARTED)
def test_the_same_random_state_gives_the_same_answer(solver, init):
    data = make_data(50, 12, seed=17)
    first, second = (small(3, 5, solver=solver, init=init).fit(data) for _ in range(2))
    np.testing.assert_array_equal(first.components_, second.components_)
    np.testing.assert_array_equal(first.objective_history_, second.objective_history_)
    assert first.n_iter_ == second.n_iter_


def test_random_starts_depend_on_the_random_state():
    data = make_data(50, 30, seed=18)
    parameters = {"init": "random", "solver_options": {"max_iter": 0}}
    supports = {
        tuple(small(2, 5, random_state=seed, **parameters).fit(data).get_support(indices=True))
        for seed in range(10)
    }
    assert len(supports) > 1


def test_a_random_state_object_moves_on():
    data = make_data(50, 30, seed=18)
    parameters = {"init": "random", "solver_options": {"max_iter": 0}}

    def supports(state):
        fits = [small(2, 5, random_state=state, **parameters).fit(data) for _ in range(6)]
        return [tuple(fit.get_support(indices=True)) for fit in fits]

    first = supports(np.random.RandomState(3))
    assert len(set(first)) > 1
    assert first == supports(np.random.RandomState(3))


def test_the_global_random_state_is_left_alone(X):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    small(solver="auto", solver_options=SMALL_BUDGET, random_state=0).fit(X)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("n_features_to_select", [4, None])
@pytest.mark.parametrize("solver", ["auto", "ipu", "brute-force"])
def test_a_time_limit_ends_with_a_sound_answer(solver, n_features_to_select, X):
    estimator = small(2, n_features_to_select, solver=solver, time_limit=1e-9).fit(X)
    assert estimator.status_ == "time limit"
    C = estimator.components_
    np.testing.assert_allclose(C @ C.T, np.eye(2), atol=1e-13)
    assert np.trace(C @ np.cov(X.T) @ C.T) == pytest.approx(estimator.objective_, rel=RTOL)


def test_a_time_limit_that_is_not_reached_changes_nothing(X):
    free = small(solver="auto", solver_options=SMALL_BUDGET).fit(X)
    limited = small(solver="auto", solver_options=SMALL_BUDGET, time_limit=1000).fit(X)
    assert limited.status_ == free.status_ == "optimal"
    np.testing.assert_array_equal(free.components_, limited.components_)


# --- progress --------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_callback_sees_every_step(solver, X):
    seen = []
    estimator = small(solver=solver, callback=seen.append).fit(X)
    assert [progress.iteration for progress in seen] == list(range(1, len(seen) + 1))
    assert {progress.solver for progress in seen} == {solver}
    assert max(progress.objective for progress in seen) <= estimator.objective_ * (1 + RTOL)
    seconds = [progress.seconds for progress in seen]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize("n_features_to_select", [4, None])
@pytest.mark.parametrize("solver", ["auto", "ipu", "brute-force"])
def test_a_callback_that_returns_true_stops_the_fit(solver, n_features_to_select, X):
    seen = []

    def stop(progress):
        seen.append(progress)
        return True

    estimator = small(2, n_features_to_select, solver=solver, callback=stop).fit(X)
    assert estimator.status_ == "stopped by callback"
    assert len(seen) == 1  # it is not asked again
    C = estimator.components_
    np.testing.assert_allclose(C @ C.T, np.eye(2), atol=1e-13)
    assert np.trace(C @ np.cov(X.T) @ C.T) == pytest.approx(estimator.objective_, rel=RTOL)


@pytest.mark.parametrize("n_features_to_select", [4, None])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_keyboard_interrupt_returns_the_best_so_far(solver, n_features_to_select, X):
    calls = []

    def press_control_c(progress):
        calls.append(progress)
        if len(calls) == 1:
            raise KeyboardInterrupt

    estimator = small(2, n_features_to_select, solver=solver, callback=press_control_c)
    try:
        estimator.fit(X)
    except KeyboardInterrupt:  # would end the whole test session
        pytest.fail("the interrupt came through and the answer is lost")
    assert estimator.status_ == "interrupted"
    assert len(calls) == 1  # one key press is enough
    C = estimator.components_
    np.testing.assert_allclose(C @ C.T, np.eye(2), atol=1e-13)
    assert np.trace(C @ np.cov(X.T) @ C.T) == pytest.approx(estimator.objective_, rel=RTOL)


@pytest.mark.parametrize("solver", SOLVERS)
def test_verbose_writes_to_standard_error_only(solver, capfd, X):
    small(solver=solver, verbose=1).fit(X)
    out, err = capfd.readouterr()
    assert out == ""
    assert all(line.startswith("[kspan]") and solver in line for line in err.splitlines())
    assert len(err.splitlines()) >= 1


@pytest.mark.parametrize("n_features_to_select", [4, None])
def test_quiet_unless_asked(n_features_to_select, capfd, X):
    small(2, n_features_to_select, solver="auto", solver_options=SMALL_BUDGET).fit(X)
    assert capfd.readouterr() == ("", "")


def test_verbose_and_callback_together(capfd, X):
    seen = []
    small(verbose=True, callback=seen.append).fit(X)
    assert len(seen) == len(capfd.readouterr().err.splitlines())


# --- constant and duplicate columns ----------------------------------------------------------

# Constants whose mean is not exact; that of the last one is off by more than 1e-8.
CONSTANTS = np.array([0.0, 0.1, -3.3, 123456789.1])


def with_constants(n_samples=50):
    """Five features at 1, 3, 5, 7, 8 (one of them tiny), constants at 0, 2, 4, 6."""
    data = np.empty((n_samples, 9))
    data[:, [0, 2, 4, 6]] = CONSTANTS
    data[:, [1, 3, 5, 7, 8]] = make_data(n_samples, 5, seed=19)
    data[:, 7] *= 1e-3
    return data


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scale", [False, True], ids=["covariance", "correlation"])
@pytest.mark.parametrize(
    "layout",
    [
        np.asarray,
        np.asfortranarray,
        scipy.sparse.csr_array,
        scipy.sparse.csc_array,
        lambda data: data.astype(np.float32),
    ],
    ids=["C", "fortran", "csr", "csc", "float32"],
)
def test_constant_columns_come_last(solver, scale, layout):
    parameters = {"solver_options": SMALL_BUDGET} if solver == "auto" else {}
    data = layout(with_constants())
    informative = [1, 3, 5, 7, 8]
    for k in (3, 5, 7):
        estimator = small(2, k, solver=solver, scale=scale, **parameters).fit(data)
        support = set(estimator.get_support(indices=True))
        if k <= 5:
            assert support <= set(informative)
        else:  # there is nothing else left to choose
            assert set(informative) <= support
        # A constant that had to be chosen carries no weight beyond rounding.
        assert np.abs(estimator.components_[:, [0, 2, 4, 6]]).max() < 1e-13
        assert np.isfinite(estimator.transform(data)).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["data", "covariance"])
def test_a_constant_column_loses_a_tie(solver, kind):
    # Three orthogonal columns: with one component, the second feature adds nothing, no more
    # than the constant one does. Still it is the informative one that is taken.
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=float)
    data = np.column_stack([np.full(4, 7.0), 3 * signs[:, 0], signs[:, 1]])
    if kind == "data":
        estimator = small(1, 2, solver=solver).fit(data)
    else:
        estimator = small(1, 2, solver=solver, covariance="precomputed").fit(np.cov(data.T))
    np.testing.assert_array_equal(estimator.get_support(indices=True), [1, 2])


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_duplicate_is_not_taken_for_news(solver):
    # Four orthogonal columns with variances 9, 4, 1, 1 (times 8/7), the last a copy of the third.
    signs = np.array(
        [[1, 1, 1], [1, 1, -1], [1, -1, 1], [1, -1, -1],
         [-1, 1, 1], [-1, 1, -1], [-1, -1, 1], [-1, -1, -1]], dtype=float,
    )  # fmt: skip
    data = np.column_stack([signs[:, 2], signs[:, 2], 3 * signs[:, 0], 2 * signs[:, 1]])
    estimator = small(2, 2, solver=solver).fit(data)
    np.testing.assert_array_equal(estimator.get_support(indices=True), [2, 3])


@pytest.mark.parametrize("solver", SOLVERS)
def test_of_equal_columns_one_is_chosen(solver, X):
    data = X[:, [0, 1, 2, 0, 1, 2]]
    strongest = data[:, [int(np.argmax(X[:, :3].var(axis=0)))]]
    estimator = small(1, 1, solver=solver).fit(data)
    np.testing.assert_array_equal(data[:, estimator.get_support()], strongest)


@pytest.mark.parametrize("solver", ["auto", "brute-force"])
@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
def test_duplicates_do_not_stand_in_the_way_of_the_optimum(solver, layout, X):
    data = X[:, [0, 1, 2, 3, 4, 0, 1, 2, 0]]
    value, _ = best_support(np.cov(data.T), 2, 4)
    estimator = small(2, 4, solver=solver).fit(layout(data))
    assert estimator.objective_ == pytest.approx(value, rel=RTOL)
    C = estimator.components_
    np.testing.assert_allclose(C @ C.T, np.eye(2), atol=1e-13)
