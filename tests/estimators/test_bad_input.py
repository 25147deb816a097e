"""Every row of the table "Bad input" of the design: a clear message, and nothing lost."""

import re
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.fft
import scipy.sparse

from kspan import (
    FeatureSparsePCA,
    FeatureSparseSelector,
    StiefelSparsePCA,
    as_covariance,
    sparsity_path,
)

BOTH = [FeatureSparsePCA, FeatureSparseSelector]
SOLVERS = ["auto", "go", "ipu", "brute-force"]
NAMES = ["ash", "beech", "cedar", "dogwood", "elm", "fir"]


@pytest.fixture
def X():
    """30 samples of 6 correlated features."""
    rng = np.random.default_rng(41)
    return rng.standard_normal((30, 6)) @ rng.standard_normal((6, 6)) + np.arange(6)


@pytest.fixture
def A(X):
    """The covariance of X."""
    return np.cov(X.T)


def small(n_components=2, n_features_to_select=3, **parameters):
    return FeatureSparsePCA(
        n_components, n_features_to_select, **{"solver": "ipu", "random_state": 0, **parameters}
    )


def from_covariance(*numbers, **parameters):
    return small(*numbers, covariance="precomputed", **parameters)


# --- NaN or infinity: the first column (and its name) and how many there are -----------------

HOLES = {
    "one NaN": ([(3, 2, np.nan)], "1 NaN in 1 column(s)", 2),
    "NaN in two columns": ([(3, 5, np.nan), (0, 1, np.nan), (9, 1, np.nan)], "3 NaN in 2", 1),
    "infinity": ([(4, 4, np.inf)], "1 infinity", 4),
    "minus infinity": ([(4, 0, -np.inf)], "1 infinity", 0),
    "both infinities": ([(4, 3, np.inf), (5, 3, -np.inf)], "2 infinity", 3),
    "all kinds": ([(0, 5, np.nan), (1, 2, np.inf)], "1 NaN and 1 infinity (inf) in 2", 2),
    "first sample": ([(0, 0, np.nan)], "1 NaN in 1 column(s)", 0),
    "last sample": ([(29, 5, np.nan)], "1 NaN in 1 column(s)", 5),
}
LAYOUTS = {
    "array": np.asarray,
    "fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": scipy.sparse.csr_array,
    "csc": scipy.sparse.csc_matrix,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
}


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", HOLES)
def test_not_finite_data_names_column_and_count(case, layout, Estimator, X):
    holes, count, column = HOLES[case]
    for row, place, value in holes:
        X[row, place] = value
    name = f" ({NAMES[column]!r})" if layout in ("pandas", "polars") else ""
    with pytest.raises(ValueError, match="contains NaN or infinity") as error:
        Estimator(2, 3).fit(LAYOUTS[layout](X))
    assert count in str(error.value)
    assert f"column {column}{name}." in str(error.value)


def test_missing_values_of_frames_are_named(X):
    frame = pd.DataFrame(X, columns=NAMES).astype("Float64")
    frame.loc[4, "cedar"] = pd.NA
    with pytest.raises(ValueError, match=r"1 NaN in 1 column\(s\), .* column 2 \('cedar'\)"):
        small().fit(frame)
    columns = {name: X[:, i].tolist() for i, name in enumerate(NAMES)}
    columns["cedar"][4] = None
    with pytest.raises(ValueError, match=r"1 NaN in 1 column\(s\), .* column 2 \('cedar'\)"):
        small().fit(pl.DataFrame(columns))


@pytest.mark.parametrize("scale", [False, True])
def test_not_finite_data_to_score(scale, X):
    estimator = small(scale=scale).fit(pd.DataFrame(X, columns=NAMES))
    X[5, 3] = np.nan
    with pytest.raises(ValueError, match=r"1 NaN in 1 column\(s\), .* column 3 \('dogwood'\)"):
        estimator.score(pd.DataFrame(X, columns=NAMES))


@pytest.mark.parametrize("Estimator", BOTH)
def test_not_finite_data_to_transform(Estimator, X):
    estimator = Estimator(2, 3, solver="ipu").fit(X)
    X[5, 3] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        estimator.transform(X)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [(1, 3), (2, 2)], ids=["off the diagonal", "on the diagonal"])
@pytest.mark.parametrize("frame", [False, True], ids=["array", "frame"])
def test_not_finite_covariance_names_column_and_count(value, where, frame, A):
    i, j = where
    A[i, j] = A[j, i] = value
    count = 1 if i == j else 2
    given = pd.DataFrame(A, columns=NAMES) if frame else A
    with pytest.raises(ValueError, match=r"(?i)contains NaN or infinity") as error:
        from_covariance().fit(given)
    message = str(error.value)
    assert re.search(rf"\b{count}\b", message)
    assert f"column {i}" in message
    if frame:
        assert repr(NAMES[i]) in message


# --- k and m: the allowed range --------------------------------------------------------------


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("m", "k", "message"),
    [
        (2, 7, "n_features_to_select=7 must be between n_components=2 and n_features=6"),
        (3, 2, "n_features_to_select=2 must be between n_components=3 and n_features=6"),
        (3, 0.4, "n_features_to_select=2 must be between n_components=3 and n_features=6"),
        (2, 0.1, "n_features_to_select=0 must be between n_components=2 and n_features=6"),
        (7, 7, "n_components=7 must be between 1 and n_features=6"),
        (7, None, "n_components=7 must be between 1 and n_features=6"),
    ],
)
def test_numbers_out_of_range(m, k, message, solver, Estimator, X):
    with pytest.raises(ValueError, match=message):
        Estimator(m, k, solver=solver).fit(X)


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize("k", [0, -1, 0.0, -0.5, 1.0, 1.5, np.nan, "3", [3], {}])
def test_number_of_features_of_the_wrong_kind(k, Estimator, X):
    allowed = r"None, an int in the range \[1, inf\) or a float in the range \(0.0, 1.0\)"
    with pytest.raises(ValueError, match=f"'n_features_to_select' .* must be {allowed}"):
        Estimator(2, k).fit(X)


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize("m", [0, -1, 1.0, 1.5, -0.5, "2", None, [2]])
def test_number_of_components_of_the_wrong_kind(m, Estimator, X):
    with pytest.raises(ValueError, match=r"'n_components' .* an int in the range \[1, inf\)"):
        Estimator(m, 3).fit(X)


@pytest.mark.parametrize("flag", [True, False])
def test_a_boolean_is_not_a_number(flag, X):
    with pytest.raises(ValueError, match="n_components"):
        small(flag, 3).fit(X)
    with pytest.raises(ValueError, match="n_features_to_select"):
        small(1, flag).fit(X)


@pytest.mark.parametrize(
    ("parameter", "value", "allowed"),
    [
        ("explained_share", 0, r"a float in the range \(0.0, 1.0\]"),
        ("explained_share", 1.01, r"a float in the range \(0.0, 1.0\]"),
        ("explained_share", "most", r"a float in the range \(0.0, 1.0\]"),
        ("solver", "magic", "a str among .*'brute-force'"),
        ("solver", None, "a str among .*'brute-force'"),
        ("init", "high-rank", "a str among .*'low-rank'"),
        ("init", 3, "a str among .*'low-rank'"),
        ("include", "ash", "None or an array-like"),
        ("exclude", 3, "None or an array-like"),
        ("scale", "yes", "an instance of 'bool'"),
        ("covariance", "empirical", "None or a str among {'precomputed'}"),
        ("certify", "maybe", "a str among .*'tight'"),
        ("solver_options", [1], "None or an instance of '.*Mapping'"),
        ("time_limit", 0, r"None or a float in the range \(0.0, inf\)"),
        ("time_limit", -1.0, r"None or a float in the range \(0.0, inf\)"),
        ("callback", "print", "None or a callable"),
        ("verbose", "loud", "'verbose' parameter"),
        ("random_state", "seed", "an int in the range"),
    ],
)
def test_parameters_of_the_wrong_kind(parameter, value, allowed, X):
    with pytest.raises(ValueError, match=f"'{parameter}' parameter") as error:
        small(**{parameter: value}).fit(X)
    assert re.search(allowed, str(error.value))


@pytest.mark.parametrize(
    ("solver", "options", "message"),
    [
        ("ipu", {"n_kicks": 3}, r"'ipu' has no option 'n_kicks'; it takes .*'max_iter'"),
        ("auto", {"restarts": 3}, "'auto' has no option 'restarts'; it takes .*'n_restarts'"),
        ("brute-force", {"max_supports": 5}, "try 20 supports; the limit is max_supports=5"),
    ],
)
def test_options_that_the_solver_does_not_take(solver, options, message, X):
    with pytest.raises(ValueError, match=message):
        small(solver=solver, solver_options=options).fit(X)


@pytest.mark.parametrize("solver", ["auto", "ipu"])
@pytest.mark.parametrize(
    ("init", "message"),
    [
        (np.ones((5, 2)), r"shape \(n_features, n_components\)=\(6, 2\), got \(5, 2\)"),
        (np.ones(6), r"shape \(n_features, n_components\)=\(6, 2\), got \(6,\)"),
        (np.full((6, 2), np.nan), "init contains NaN or infinity"),
        (np.ones((6, 2)), "init must have linearly independent columns"),
        (np.zeros((6, 2)), "init must have linearly independent columns"),
    ],
)
def test_starts_that_are_none(solver, init, message, X):
    with pytest.raises(ValueError, match=message):
        small(solver=solver, init=init).fit(X)


# --- include and exclude ---------------------------------------------------------------------


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"include": [4, 1], "exclude": [0, 4]}, "include and exclude both name feature 4"),
        ({"include": [True] + 5 * [False], "exclude": [0]}, "both name feature 0"),
        ({"include": [6]}, "include must hold indices from 0 to 5"),
        ({"exclude": [-1]}, "exclude must hold indices from 0 to 5"),
        ({"include": [True, False]}, r"include is a mask of shape \(2,\), .* n_features=6"),
        ({"exclude": np.ones(7, dtype=bool)}, r"exclude is a mask of shape \(7,\), .*=6"),
        ({"include": ["ash"]}, "include names features, but the data has no feature names"),
        ({"exclude": [1.0]}, "exclude must hold feature names, feature indices or a mask"),
        ({"include": [1, None]}, "include must hold feature names, feature indices or a mask"),
        ({"include": [[0, 1]]}, "include must"),
        ({"exclude": [0, 1, 2, 3, 4]}, "exclude leaves 1 feature"),
        ({"exclude": range(6)}, "exclude leaves 0 feature"),
        ({"exclude": np.ones(6, dtype=bool)}, "exclude leaves 0 feature"),
    ],
)
def test_include_and_exclude_that_cannot_be(parameters, message, k, Estimator, X):
    with pytest.raises(ValueError, match=message):
        Estimator(2, k, solver="ipu", **parameters).fit(X)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"include": [0, 1, 2, 3]}, "include names 4 features, more than .*_to_select=3"),
        ({"exclude": [0, 1, 2, 3]}, "exclude leaves 2 features, fewer than .*_to_select=3"),
    ],
)
def test_include_and_exclude_that_do_not_fit_the_number(parameters, message, solver, X):
    with pytest.raises(ValueError, match=message):
        small(2, 3, solver=solver, **parameters).fit(X)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("parameter", ["include", "exclude"])
def test_names_that_the_data_does_not_have(frame, parameter, X):
    data = frame({name: X[:, i] for i, name in enumerate(NAMES)})
    with pytest.raises(ValueError, match=f"{parameter} names 'oak', which is not a feature"):
        small(**{parameter: ["ash", "oak"]}).fit(data)


def test_names_that_clash(X):
    data = pd.DataFrame(X, columns=NAMES)
    with pytest.raises(ValueError, match="include and exclude both name feature"):
        small(include=["elm", "fir"], exclude=["ash", "fir"]).fit(data)


# --- m above the rank: a warning, and the problem is solved ----------------------------------


def low_rank(rank, n_samples=30, n_features=6):
    rng = np.random.default_rng(43)
    factors = rng.standard_normal((n_samples, rank)) @ rng.standard_normal((rank, n_features))
    return factors + 1.0


@pytest.mark.filterwarnings("ignore:.*near copies")
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "layout",
    [
        np.asarray,
        scipy.sparse.csr_array,
        lambda X: X.astype(np.float32),
        lambda X: pd.DataFrame(X, columns=NAMES),
    ],
    ids=["array", "csr", "float32", "frame"],
)
@pytest.mark.parametrize("rank", [1, 2])
def test_more_components_than_the_rank_is_a_warning(solver, layout, rank):
    data = layout(low_rank(rank))
    options = {"n_restarts": 4, "n_kicks": 1} if solver == "auto" else {}
    estimator = small(4, 5, solver=solver, solver_options=options)
    message = f"n_components=4 is above the rank of the covariance, which is {rank}"
    with pytest.warns(UserWarning, match=message):
        estimator.fit(data)
    C = estimator.components_
    single = C.dtype == np.float32
    np.testing.assert_allclose(C @ C.T, np.eye(4), atol=1e-6 if single else 1e-12)
    assert estimator.get_support().sum() == 5
    # What is left beyond the rank is rounding: of float32 data, the data themselves.
    variances = estimator.explained_variance_
    assert np.all(variances[rank:] <= (1e-12 if single else 1e-13) * variances[0])
    assert np.all(variances[:rank] > 1e-3 * variances[0])


def test_rank_of_a_covariance():
    with pytest.warns(UserWarning, match="rank of the covariance, which is 2"):
        estimator = from_covariance(3, 4).fit(np.cov(low_rank(2).T))
    assert estimator.explained_variance_[1] > 0


def test_rank_of_few_samples():
    rng = np.random.default_rng(44)
    data = rng.standard_normal((4, 20))  # centred: rank 3
    with pytest.warns(UserWarning, match="n_components=5 is above the rank .* which is 3"):
        estimator = small(5, 8).fit(data)
    np.testing.assert_allclose(
        estimator.components_ @ estimator.components_.T, np.eye(5), atol=1e-12
    )


@pytest.mark.filterwarnings("ignore:.*near copies")
def test_rank_of_duplicates(X):
    with pytest.warns(UserWarning, match="rank of the covariance, which is 1"):
        small(2, 3).fit(X[:, [0, 0, 0, 0]])


def test_rank_when_the_share_decides():
    with pytest.warns(UserWarning, match="rank of the covariance, which is 2"):
        estimator = small(3, None).fit(low_rank(2))
    assert estimator.n_features_to_select_ >= 3


def test_the_warning_points_at_the_line_that_called_fit():
    with pytest.warns(UserWarning, match="above the rank") as caught:
        small(3, 4).fit(low_rank(2))
    assert Path(caught[0].filename) == Path(__file__)


def test_no_warning_within_the_rank():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(3, 4).fit(low_rank(3))


# --- no variance -----------------------------------------------------------------------------


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize(
    "data",
    [
        np.zeros((8, 4)),
        np.zeros((8, 4), dtype=np.float32),
        np.zeros((8, 4), dtype=np.uint8),
        np.zeros((3, 9)),
        np.tile([0.1, -3.3, 1e8, 123456789.1], (11, 1)),
        scipy.sparse.csr_array((8, 4)),
        scipy.sparse.csc_array((8, 4)),
        scipy.sparse.csr_array(np.tile([0.1, 0.0, -3.3, 7.0], (11, 1))),
        pd.DataFrame(np.zeros((8, 4))),
    ],
    ids=[
        "zeros",
        "float32 zeros",
        "uint8 zeros",
        "wide zeros",
        "constants",
        "csr zeros",
        "csc zeros",
        "csr constants",
        "frame zeros",
    ],
)
def test_data_without_variance(data, scale, Estimator):
    with pytest.raises(ValueError, match="All features are constant: there is no variance"):
        Estimator(2, 3, scale=scale).fit(data)


def test_covariance_without_variance():
    with pytest.raises(ValueError, match="All features are constant: there is no variance"):
        from_covariance().fit(np.zeros((4, 4)))


def test_score_of_data_without_variance(X):
    with pytest.raises(ValueError, match="All features are constant: there is no variance"):
        small().fit(X).score(np.ones((5, 6)))


# --- covariances -----------------------------------------------------------------------------


def with_eigenvalues(values):
    """A symmetric matrix with the given eigenvalues, each spread over all features."""
    Q = scipy.fft.dct(np.eye(len(values)), norm="ortho")  # orthogonal, no zeros
    A = (Q * np.asarray(values)) @ Q.T
    return (A + A.T) / 2


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (1, 6)])
def test_covariance_not_square(shape, Estimator):
    message = f"A covariance must be square, got shape {shape}"
    with pytest.raises(ValueError, match=re.escape(message)):
        Estimator(2, 3, covariance="precomputed").fit(np.ones(shape))


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize("size", [6, 1100])
@pytest.mark.parametrize("asymmetry", [0.5, 1e-4])
def test_covariance_not_symmetric(asymmetry, size, Estimator):
    A = with_eigenvalues(np.linspace(1, 3, size))
    A[0, size - 1] += asymmetry
    with pytest.raises(ValueError, match="not symmetric: .* is " + f"{asymmetry:.3g}"):
        Estimator(2, 3, covariance="precomputed").fit(A)


def test_a_whole_triangle_left_out_is_not_symmetric(A):
    with pytest.raises(ValueError, match="not symmetric"):
        from_covariance().fit(np.triu(A))


def measured(error):
    """The number in a message about eigenvalues."""
    return float(re.search(r"eigenvalue (?:of|is) (-[\d.e+-]*\d)", str(error.value))[1])


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize("smallest", [-5.0, -0.5, -1e-3, -1e-6])
def test_covariance_not_psd_with_the_smallest_eigenvalue(smallest, Estimator):
    A = with_eigenvalues([smallest, 0.5, 1, 2, 3, 4])
    with pytest.raises(ValueError, match="not positive semidefinite") as error:
        Estimator(2, 3, covariance="precomputed", psd="raise").fit(A)
    assert measured(error) == pytest.approx(smallest, rel=5e-3)  # three digits are printed


def test_a_variance_below_zero_is_named():
    with pytest.raises(ValueError, match="variance of column 1 is -1, below zero"):
        from_covariance(1, 2).fit(np.diag([3.0, -1.0, 5.0]))


def test_the_smallest_eigenvalue_is_not_just_a_diagonal_entry():
    A = np.array([[0.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 5.0]])
    with pytest.raises(ValueError, match="not positive semidefinite") as error:
        from_covariance(1, 2).fit(A)
    assert measured(error) == pytest.approx(1 - np.sqrt(5), rel=5e-3)


LARGE = 1100  # above 1024 the check is made during the fit


@cache
def large_covariance(smallest):
    """A matrix with a positive diagonal and one negative eigenvalue among positive ones."""
    A = with_eigenvalues(np.append(np.linspace(4, 0.5, LARGE - 1), smallest))
    assert A.diagonal().min() > 0
    A.flags.writeable = False
    return A


LARGE_FITS = {
    "auto": {"solver": "auto", "solver_options": {"n_restarts": 2, "n_kicks": 0}},
    "go": {"solver": "go"},
    "ipu": {"solver": "ipu"},
    "ipu, random start": {"solver": "ipu", "init": "random"},
    "ipu, given start": {"solver": "ipu", "init": np.eye(LARGE)[:, :2]},
    "brute force": {"solver": "brute-force", "n_components": 1, "n_features_to_select": 1},
    "many components": {"solver": "go", "n_components": 300, "n_features_to_select": 301},
    "explained share": {
        "solver": "ipu",
        "n_features_to_select": None,
        "explained_share": 0.01,
    },
}


@pytest.mark.parametrize("fit", LARGE_FITS)
@pytest.mark.parametrize("smallest", [-5.0, -0.05])
def test_large_covariance_not_psd(fit, smallest):
    with pytest.raises(ValueError, match="not positive semidefinite") as error:
        from_covariance(**LARGE_FITS[fit], psd="raise").fit(large_covariance(smallest))
    # A number that the smallest eigenvalue does not exceed, and a witness that A is not PSD.
    assert smallest * 1.005 <= measured(error) < 0


@pytest.mark.parametrize("size", [6, LARGE])
def test_negative_eigenvalues_of_rounding_size_are_let_pass(size):
    values = np.linspace(0.0, 4, size)
    values[0] = -1e-14
    estimator = from_covariance().fit(with_eigenvalues(values))
    assert estimator.objective_ > 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_covariance_of_few_samples_is_let_pass(dtype):
    data = np.random.default_rng(46).standard_normal((10, 40)).astype(dtype)
    A = np.cov(data.T, dtype=dtype)
    assert np.linalg.eigvalsh(A)[0] < 0  # by rounding
    assert from_covariance().fit(A).objective_ > 0


def test_covariance_with_scale(A):
    with pytest.raises(ValueError, match="scale=True needs data, not covariance='precomputed'"):
        from_covariance(scale=True).fit(A)


def test_sparse_covariance(A):
    with pytest.raises(TypeError, match="Sparse data was passed"):
        from_covariance().fit(scipy.sparse.csr_array(A))


@pytest.mark.parametrize("bad", ["asymmetric", "not psd", "not square"])
def test_score_looks_at_its_covariance_too(bad, A):
    estimator = from_covariance().fit(A)
    other, message = {
        "asymmetric": (np.triu(A), "not symmetric"),
        "not psd": (-A, "not positive semidefinite"),
        "not square": (A[:4], "must be square"),
    }[bad]
    with pytest.raises(ValueError, match=message):
        estimator.score(other)


# --- scikit-learn's wording ------------------------------------------------------------------


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.ones((1, 4)), r"1 sample\(s\) \(shape=\(1, 4\)\) while a minimum of 2 is required"),
        (scipy.sparse.csr_array(np.ones((1, 4))), r"1 sample\(s\) .* a minimum of 2 is required"),
        (pd.DataFrame(np.ones((1, 4))), r"1 sample\(s\) .* a minimum of 2 is required"),
        (np.empty((0, 4)), r"0 sample\(s\) \(shape=\(0, 4\)\) while a minimum of 2 is required"),
        (np.empty((4, 0)), r"0 feature\(s\) \(shape=\(4, 0\)\) while a minimum of 1 is required"),
        ([], "Expected 2D array, got 1D array instead"),
        (np.ones(4), "Expected 2D array, got 1D array instead"),
        (np.ones((2, 3, 4)), "Found array with dim 3"),
        (3.0, "Expected 2D array, got scalar array instead"),
        (np.ones((5, 4)) + 1j, "Complex data not supported"),
        (scipy.sparse.csr_array(np.ones((5, 4)) + 1j), "Complex data not supported"),
        (np.array([["a", "b"], ["c", "d"]]), "could not convert string to float"),
        (np.array([["a", 1], ["c", 2]], dtype=object), "could not convert string to float: 'a'"),
        (pd.DataFrame({"u": ["x", "y"], "v": [1, 2]}), "could not convert string to float: 'x'"),
        (pl.DataFrame({"u": ["x", "y"], "v": [1, 2]}), "could not convert string to float: 'x'"),
    ],
    ids=[
        "one sample",
        "one sparse sample",
        "one sample in a frame",
        "no samples",
        "no features",
        "nothing",
        "one dimension",
        "three dimensions",
        "number",
        "complex",
        "sparse complex",
        "strings",
        "objects",
        "pandas text",
        "polars text",
    ],
)
def test_data_that_are_none(data, message, Estimator):
    with pytest.raises(ValueError, match=message):
        Estimator(1, 2).fit(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.eye(4) + 0j, "Complex data not supported"),
        (np.empty((0, 0)), r"0 sample\(s\) \(shape=\(0, 0\)\)"),
        (np.array([["a", "b"], ["b", "a"]]), "could not convert string to float"),
        (np.ones(4), "Expected 2D array, got 1D array instead"),
    ],
    ids=["complex", "nothing", "strings", "one dimension"],
)
def test_covariances_that_are_none(data, message):
    with pytest.raises(ValueError, match=message):
        from_covariance(1, 2).fit(data)


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize("method", ["transform", "score"])
@pytest.mark.parametrize("n_features", [4, 7])
def test_another_number_of_features(n_features, method, Estimator, X):
    estimator = Estimator(2, 3, solver="ipu").fit(X)
    name = Estimator.__name__
    message = f"X has {n_features} features, but {name} is expecting 6 features as input"
    with pytest.raises(ValueError, match=message):
        getattr(estimator, method)(np.ones((5, n_features)))


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize("width", [1, 6])
def test_another_number_of_columns_to_take_back(width, Estimator, X):
    estimator = Estimator(2, 3, solver="ipu").fit(X)
    with pytest.raises(ValueError, match=r"mismatch|different shape|expecting"):
        estimator.inverse_transform(np.ones((5, width)))


def test_one_sample_to_score(X):
    with pytest.raises(ValueError, match=r"1 sample\(s\) .* a minimum of 2 is required"):
        small().fit(X).score(X[:1])


def test_one_sample_to_transform_is_fine(X):
    assert small().fit(X).transform(X[:1]).shape == (1, 2)


@pytest.mark.parametrize("Estimator", BOTH)
def test_other_names_at_transform(Estimator, X):
    estimator = Estimator(2, 3, solver="ipu").fit(pd.DataFrame(X, columns=NAMES))
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.transform(pd.DataFrame(X, columns=NAMES[::-1]))


# --- nothing lost ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_features_to_select": 9}, "n_features_to_select=9"),
        ({"include": ["ash"]}, "include names features"),
        ({"certify": "maybe"}, "'certify' parameter"),
        ({"solver": "magic"}, "'solver' parameter"),
    ],
)
def test_a_refused_fit_leaves_no_half_fitted_estimator(parameters, message, X):
    estimator = small().set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        estimator.fit(X)
    assert not hasattr(estimator, "components_")


def test_an_estimator_may_be_used_after_a_refusal(X):
    broken = X.copy()
    broken[0, 0] = np.nan
    estimator = small()
    with pytest.raises(ValueError, match="1 NaN"):
        estimator.fit(broken)
    np.testing.assert_array_equal(estimator.fit(X).components_, small().fit(X).components_)


def test_a_share_that_exclude_puts_out_of_reach_is_a_warning():
    X = np.random.default_rng(0).standard_normal((30, 5)) * [9.0, 1.0, 1.0, 1.0, 1.0]
    with pytest.warns(UserWarning, match="4 features .* less than explained_share=0.9"):
        model = FeatureSparsePCA(2, explained_share=0.9, solver="ipu", exclude=[0]).fit(X)
    assert model.n_features_to_select_ == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"random_state": 1}, "'random_state' is a parameter of its own"),
        ({"n_restarts": -1}, "n_restarts must be a whole number, 0 or more"),
        ({"restarts": 3}, "'auto' has no option 'restarts'; it takes .*'n_restarts'"),
    ],
)
def test_wrong_solver_options(options, message):
    X = np.random.default_rng(0).standard_normal((30, 5))
    with pytest.raises(ValueError, match=message):
        FeatureSparsePCA(2, 3, solver_options=options).fit(X)


def test_coordinates_of_the_wrong_width():
    model = FeatureSparsePCA(2, 3, solver="ipu").fit(np.random.default_rng(0).random((9, 4)))
    with pytest.raises(
        ValueError, match=r"X has 3 columns, but FeatureSparsePCA is expecting .* 2 components"
    ):
        model.inverse_transform(np.ones((5, 3)))


# --- what only looks like numbers --------------------------------------------------------------


def everywhere(X):
    """All ways in for samples, as (name, call)."""
    fitted = small().fit(X)
    return {
        "fit": lambda data: small().fit(data),
        "partial_fit": lambda data: small().partial_fit(data),
        "transform": fitted.transform,
        "score": fitted.score,
        "as_covariance": as_covariance,
        "path": lambda data: sparsity_path(data, 1, ks=[2], certify=False),
        "stiefel": lambda data: StiefelSparsePCA(1, n_nonzero_coefs=2).fit(data),
    }


WAYS = ["fit", "partial_fit", "transform", "score", "as_covariance", "path", "stiefel"]


@pytest.mark.parametrize("way", WAYS)
def test_masked_values_are_refused(way, X):
    call = everywhere(X)[way]
    masked = np.ma.masked_array(X, mask=np.zeros(X.shape, dtype=bool))
    call(masked)  # nothing is hidden
    call(np.ma.masked_array(X))
    masked[4, 5] = masked[3, 2] = np.ma.masked
    with pytest.raises(ValueError, match=r"2 masked value\(s\) in 2 column\(s\), .* column 2\."):
        call(masked)


@pytest.mark.parametrize("way", WAYS)
def test_masked_values_in_lists_are_refused(way, X):
    """NumPy takes what the mask hides for the value."""
    call = everywhere(X)[way]
    masked = np.ma.masked_array(X, mask=np.zeros(X.shape, dtype=bool))
    call(list(masked))  # nothing is hidden
    masked[3, 2] = np.ma.masked
    for rows in (list(masked), tuple(masked), [list(row) for row in masked]):
        with pytest.raises(ValueError, match="list with masked values, the first in row 3"):
            call(rows)


def test_an_array_in_which_nothing_is_masked_gives_the_same(X):
    found = small().fit(np.ma.masked_array(X, mask=False)).components_
    np.testing.assert_array_equal(found, small().fit(X).components_)


def test_masked_covariances_and_coordinates_are_refused(A, X):
    with pytest.raises(ValueError, match="1 masked"):
        from_covariance().fit(np.ma.masked_array(A, mask=np.eye(6) * [0, 0, 1, 0, 0, 0]))
    hidden = np.ma.masked_array(np.ones((3, 2)), mask=[[0, 1], [0, 0], [0, 0]])
    with pytest.raises(ValueError, match="the first being column 1"):
        small().fit(X).inverse_transform(hidden)


def texts(X):
    return {
        "object array": np.where(np.arange(6) == 2, X.astype(str).astype(object), X),
        "string array": X.astype(str),
        "lists": X.astype(str).tolist(),
        "pandas text": pd.DataFrame(X, columns=NAMES).astype({"cedar": str}),
        "pandas object": pd.DataFrame(X, columns=NAMES).astype({"cedar": str}).astype(object),
        "pandas categories": pd.DataFrame(X, columns=NAMES)
        .astype({"cedar": str})
        .astype({"cedar": "category"}),
        "polars text": pl.DataFrame(X, schema=NAMES).with_columns(pl.col("cedar").cast(str)),
    }


@pytest.mark.parametrize("kind", texts(np.ones((1, 6))))
@pytest.mark.parametrize("way", WAYS)
def test_numbers_in_text_are_refused(way, kind, X):
    column = "column 0" if kind in ("string array", "lists") else "column 2"
    named = f"{column} ('cedar')" if kind.startswith(("pandas", "polars")) else column
    message = f"must be numeric: could not convert string to float: '.*', in {re.escape(named)}"
    if way == "transform" and kind.startswith(("pandas", "polars")):
        call = small().fit(pd.DataFrame(X, columns=NAMES)).transform
    else:
        call = everywhere(X)[way]
    with pytest.raises(ValueError, match=message):
        call(texts(X)[kind])


@pytest.mark.parametrize("dtype", ["Float64", "Int64", "boolean", "object", "category"])
def test_missing_values_of_every_type_name_their_column(dtype, X):
    frame = pd.DataFrame((X > 0).astype(int), columns=NAMES).astype("Int64")
    frame.loc[4, "cedar"] = pd.NA
    frame = frame.astype({"cedar": dtype})
    with pytest.raises(ValueError, match=r"contains NaN.* column 2 \('cedar'\)"):
        small().fit(frame)


def test_times_are_not_numbers(X):
    frame = pd.DataFrame(X, columns=NAMES)
    frame["cedar"] = pd.date_range("2020-01-01", periods=30)
    with pytest.raises((TypeError, ValueError), match=r"column 2 \('cedar'\)"):
        small().fit(frame)
    with pytest.raises(ValueError, match="column 0 holds times"):
        small().fit((X * 1e9).astype("datetime64[ns]"))


@pytest.mark.parametrize("form", ["objects", "nullable", "booleans", "polars", "sparse columns"])
def test_numbers_of_every_type_are_taken(form, X):
    whole = np.round(X)
    frame = pd.DataFrame(whole, columns=NAMES)
    data = {
        "objects": whole.astype(object),
        "nullable": frame.astype("Int64"),
        "booleans": pd.concat([frame > 0, frame], axis=1).set_axis(list("abcdefghijkl"), axis=1),
        "polars": pl.DataFrame(whole, schema=NAMES).with_columns(pl.col("fir") > 0),
        "sparse columns": frame.astype(pd.SparseDtype(float, 0)),
    }[form]
    assert small().fit(data).components_.shape[0] == 2
