"""Missing values: the mean in their place equals filling them in by hand; pairs equal pandas."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import kspan.covariance.convert as convert
from kspan import FeatureSparsePCA, as_covariance, sparsity_path
from kspan.io import RowSource, rows
from tests.covariance.test_backends import BACKENDS
from tests.covariance.test_weights import agree
from tests.out_of_core import OUT_OF_CORE

KINDS = {
    **BACKENDS,
    "dask": lambda X: da.from_array(X, chunks=(7, -1)),
    "sparse dask": lambda X: da.from_array(X, chunks=(7, -1)).map_blocks(sp.csr_array),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(RowSource, "block_bytes", 1500)
    monkeypatch.setattr(rows, "FEWEST_ROWS", 1)


def with_holes(rng, shape, share=0.1, mean=3.0):
    X = rng.standard_normal((shape[0], 3)) @ rng.standard_normal((3, shape[1]))
    X = X + rng.standard_normal(shape) + mean
    X[rng.random(shape) < 0.2] = 0.0
    X[:, 1] = 0.1  # constant, but for what is missing
    X = X.astype(np.float32).astype(np.float64)  # so that float32 holds the same numbers
    X[rng.random(shape) < share] = np.nan
    X[0, 0] = X[3, 1] = np.nan  # the row that others are measured from
    return X


def filled_by_hand(X, weights=None):
    there = ~np.isnan(X)
    w = np.ones(len(X)) if weights is None else weights
    mean = np.where(there, X, 0.0).T @ w / (there.T @ w)
    return np.where(there, X, mean)


# All files are read by one covariance: it is enough if one of them is not scaled.
@pytest.mark.parametrize(
    ("kind", "scale"),
    [(kind, True) for kind in KINDS]
    + [(kind, False) for kind in KINDS if kind == "npy" or kind not in OUT_OF_CORE],
)
def test_the_mean_equals_filling_by_hand(rng, kind, scale):
    X = with_holes(rng, (40, 9))
    weights = rng.integers(0, 4, 40).astype(float)
    for given_weights in (None, weights):
        how = {"scale": scale, "sample_weight": given_weights}
        expected = as_covariance(filled_by_hand(X, given_weights), **how)
        found = as_covariance(KINDS[kind](X), missing="mean", **how)
        agree(found, expected, rng)
        assert found.diagonal()[1] == 0, "equal numbers are constant, whatever is missing"
        assert found.n_passes >= 4  # until the holes are found, twice for means, and once filled
        assert found.missing.count == np.isnan(X).sum()
        assert found.missing.share == pytest.approx(np.isnan(X).mean())
        assert found.dtype == (np.float32 if kind == "float32" else np.float64)


def test_large_data_is_filled_as_it_is_read(rng, monkeypatch):
    X = with_holes(rng, (60, 8))
    copied = as_covariance(X, missing="mean")
    monkeypatch.setattr(convert, "COPY_BYTES", 0)
    in_blocks = as_covariance(X, missing="mean")
    assert type(in_blocks) is not type(copied)
    agree(in_blocks, copied, rng)
    assert in_blocks.fingerprint() == copied.fingerprint()
    dense = in_blocks.densified()
    assert dense.fingerprint() == copied.fingerprint()
    assert dense.missing.count == copied.missing.count


def test_a_large_mean_costs_few_digits(rng):
    X = with_holes(rng, (60, 6), mean=0.0)
    A = as_covariance(X, missing="mean").submatrix(np.arange(6))
    far = as_covariance(X + 1e6, missing="mean").submatrix(np.arange(6))
    np.testing.assert_allclose(far, A, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_the_fingerprint_is_that_of_the_data_with_its_holes(rng, kind):
    X = with_holes(rng, (40, 9))
    found = as_covariance(KINDS[kind](X), missing="mean").fingerprint()
    minus = np.where(np.isnan(X), -np.nan, X)  # another way to write it
    assert found == as_covariance(minus, missing="mean").fingerprint()
    assert found != as_covariance(filled_by_hand(X)).fingerprint()
    with warnings.catch_warnings(action="ignore"):  # it lacks positive semidefiniteness
        assert found == as_covariance(KINDS[kind](X), missing="pairwise").fingerprint()


@pytest.mark.filterwarnings("ignore:The covariance is not positive")
@pytest.mark.parametrize("kind", KINDS)
def test_pairs_equal_those_of_pandas(rng, kind):
    X = with_holes(rng, (30, 7), 0.2)
    expected = pd.DataFrame(X).cov().to_numpy()
    A = as_covariance(KINDS[kind](X), missing="pairwise")
    tol = 1e-12 * np.abs(expected).max()
    np.testing.assert_allclose(A.submatrix(np.arange(7)), expected, atol=tol)
    assert (np.abs(A.submatrix(np.arange(7)) - expected)
            <= np.sqrt(np.outer(A.entry_errors(), A.entry_errors()))).all()  # fmt: skip
    assert A.n_samples == 30
    assert A.kind == "data"
    assert A.missing.rule == "pairwise"
    scaled = as_covariance(KINDS[kind](X), missing="pairwise", scale=True)
    deviations = np.sqrt(np.where(np.diag(expected) > 0, np.diag(expected), 1.0))
    np.testing.assert_allclose(
        scaled.submatrix(np.arange(7)), expected / np.outer(deviations, deviations), atol=1e-12
    )


@pytest.mark.filterwarnings("ignore:The covariance is not positive")
@given(data=st.data())
def test_weighted_pairs_repeat_rows(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    X = rng.standard_normal((14, 4))
    X[rng.random((14, 4)) < 0.2] = np.nan
    X[:3] = rng.standard_normal((3, 4))  # rows that all pairs have
    weights = np.append([1, 1, 1], rng.integers(0, 4, 11))
    expected = pd.DataFrame(np.repeat(X, weights, axis=0)).cov().to_numpy()
    for form in (np.asarray, sp.csr_array):
        A = as_covariance(form(X), missing="pairwise", sample_weight=weights)
        np.testing.assert_allclose(A.submatrix(np.arange(4)), expected, atol=1e-12)


@pytest.mark.parametrize("rule", ["mean", "pairwise"])
def test_nothing_missing_is_nothing_done(rng, rule):
    for form in (np.asarray, sp.csr_array, KINDS["npy"]):
        X = form(rng.standard_normal((20, 5)))
        plain, found = as_covariance(X), as_covariance(X, missing=rule)
        assert type(found) is type(plain)
        assert found.missing is None
        assert found.n_passes == plain.n_passes
        np.testing.assert_array_equal(found.diagonal(), plain.diagonal())


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, KINDS["npy"], KINDS["dask"]])
@pytest.mark.parametrize("rule", ["mean", "pairwise"])
def test_what_cannot_be_filled_is_named(rng, rule, form):
    X = rng.standard_normal((9, 4))
    X[0, 0] = np.nan
    for empty, broken in ((0, np.inf), (9, np.nan), (8, np.nan)):
        Y = X.copy()
        Y[: empty or 1, 2] = broken
        message = "contains infinity: 1 in 1" if broken == np.inf else r"1 column\(s\) with fewer"
        with pytest.raises(ValueError, match=rf"{message}.*column 2 \('c'\)"):
            as_covariance(form(Y), missing=rule, feature_names=list("abcd"))


def test_pairs_without_common_rows_are_named(rng):
    X = rng.standard_normal((8, 3))
    X[:5, 0] = X[4:, 1] = np.nan
    with pytest.raises(ValueError, match=r"have both column 0 \('a'\) and column 1 \('b'\)"):
        as_covariance(X, missing="pairwise", feature_names=list("abc"))


def test_pairs_of_many_features_are_refused(rng):
    X = rng.standard_normal((4, 3001))
    X[1, 1] = np.nan
    with pytest.raises(ValueError, match=r"needs a matrix of 3001 x 3001: .* missing='mean'"):
        as_covariance(X, missing="pairwise")
    assert as_covariance(X, missing="mean").missing.count == 1


def test_rules_are_checked(rng):
    X = with_holes(rng, (9, 4))
    made = as_covariance(X, missing="mean")
    with pytest.raises(ValueError, match="was built with missing='mean': say the same"):
        FeatureSparsePCA(1, 2).fit(made)
    with pytest.raises(ValueError, match="was built with missing='mean': say the same"):
        sparsity_path(made, 1)
    assert FeatureSparsePCA(1, 2, missing="mean", random_state=0).fit(made).objective_ > 0
    with pytest.raises(ValueError, match="missing must be 'raise' or 'mean' or 'pairwise'"):
        as_covariance(X, missing="median")
    with pytest.raises(ValueError, match="contains NaN"):
        as_covariance(X)
    with pytest.raises(ValueError, match="contains NaN"):
        as_covariance(np.array([[1.0, np.nan], [np.nan, 1.0]]), "covariance", missing="mean")


def test_masked_values_and_those_of_pandas_are_missing(rng):
    X = with_holes(rng, (20, 4))
    expected = as_covariance(X, missing="mean")
    masked = np.ma.masked_invalid(X)
    nullable = pd.DataFrame(X).convert_dtypes(convert_integer=False)
    assert str(nullable.dtypes.iloc[0]) == "Float64"
    for form in (masked, nullable, pd.DataFrame(X)):
        found = as_covariance(form, missing="mean")
        np.testing.assert_allclose(found.diagonal(), expected.diagonal())
        assert found.missing.count == expected.missing.count
        with pytest.raises(ValueError, match=r"NaN|masked"):
            as_covariance(form)
    counts = np.ma.masked_array([[1, 2], [3, 4], [5, 6]], mask=[[0, 0], [0, 1], [0, 0]])
    np.testing.assert_array_equal(as_covariance(counts, missing="mean").mean, [3, 4])
