"""A row of weight 2 is a row that is there twice, on every kind of data; weight 0 leaves it out."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import kspan.covariance.data_covariance as data_covariance
from kspan import as_covariance
from kspan.covariance.streamed import RowStream
from kspan.io import RowSource, rows
from tests.covariance.test_backends import BACKENDS, SHAPES, sparse_numbers

KINDS = {
    **BACKENDS,
    "dask": lambda X: da.from_array(X, chunks=(4, -1)),
    "sparse dask": lambda X: da.from_array(X, chunks=(4, -1)).map_blocks(sp.csr_array),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(RowSource, "block_bytes", 1500)
    monkeypatch.setattr(rows, "FEWEST_ROWS", 1)


def agree(weighted, repeated, rng, tol=1e-9):
    """Everything that a covariance says is the same."""
    d, S = weighted.n_features, np.array([2, 3, 5])
    size = max(1.0, float(repeated.diagonal().max()))

    def same(found, expected, tol=tol):
        np.testing.assert_allclose(found, expected, atol=tol * size, rtol=tol)

    same(weighted.mean, repeated.mean)
    same(weighted.scale, repeated.scale)
    W = rng.standard_normal((d, 3))
    same(weighted.leading(2).values, repeated.leading(2).values)
    for one in (weighted, as_fresh(weighted)):
        same(one.diagonal(), repeated.diagonal())
        same(one.matmat(W), repeated.matmat(W), 10 * tol)
        same(one.matmat(W[S], S), repeated.matmat(W[S], S), 10 * tol)
        same(one.precise_product(W), repeated.precise_product(W), 10 * tol)
        same(one.submatrix(S), repeated.submatrix(S))
        same(one.columns(S), repeated.columns(S), 10 * tol)
        same(one.leading(2, S).values, repeated.leading(2, S).values)
        same(one.densified().submatrix(S), repeated.submatrix(S))
        if (factor := one.sample_factor()) is not None:
            same(factor.T @ factor, repeated.submatrix(np.arange(d)))
    if weighted.sketch is not None:
        columns, image = weighted.sketch
        same(image, repeated.matmat(columns), 100 * tol)


def as_fresh(covariance):
    """The same, but A is not formed."""
    covariance._gram = None
    return covariance


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_weights_repeat_rows(rng, kind, shape):
    scale = shape != "square"
    X = sparse_numbers(rng, SHAPES[shape])
    weights = rng.integers(0, 4, len(X))
    weights[0] = 0  # not the row to measure from
    repeated = as_covariance(np.repeat(X, weights, axis=0), scale=scale)
    weighted = as_covariance(KINDS[kind](X), scale=scale, sample_weight=weights)
    assert weighted.n_samples == len(X)
    agree(weighted, repeated, rng, 1e-5 if kind == "float32" else 1e-9)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, sp.csc_array])
@given(data=st.data())
def test_any_weights_repeat_rows(convert, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, d = data.draw(st.integers(2, 12)), data.draw(st.integers(6, 9))
    X = np.where(rng.random((n, d)) < 0.6, rng.standard_normal((n, d)), 0.0)
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    repeated = np.repeat(X, weights, axis=0)
    if len(repeated) < 2:
        with pytest.raises(ValueError, match=r"weights (sum to 1|must contain)"):
            as_covariance(convert(X), sample_weight=weights)
    elif not np.ptp(repeated, axis=0).any():
        with pytest.raises(ValueError, match="All features are constant"):
            as_covariance(convert(X), sample_weight=weights)
    else:
        agree(as_covariance(convert(X), sample_weight=weights), as_covariance(repeated), rng)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_lanczos_on_the_samples_is_weighted(rng, convert, monkeypatch):
    X = rng.standard_normal((9, 40))
    weights = rng.integers(1, 4, 9)
    expected = as_covariance(np.repeat(X, weights, axis=0)).leading(3)
    monkeypatch.setattr(data_covariance, "GRAM_LIMIT", 0)
    monkeypatch.setattr("kspan.covariance.sparse_data.SPARSE_GRAM_WORK", 0)
    found = as_covariance(convert(X), sample_weight=weights).leading(3)
    np.testing.assert_allclose(found.values, expected.values)
    np.testing.assert_allclose(np.abs(found.vectors.T @ expected.vectors), np.eye(3), atol=1e-6)


def test_weights_need_not_be_whole(rng):
    X, weights = rng.standard_normal((30, 5)), rng.random(30) * 3
    A = as_covariance(X, sample_weight=weights)
    mean = weights @ X / weights.sum()
    expected = (X - mean).T @ np.diag(weights) @ (X - mean) / (weights.sum() - 1)
    np.testing.assert_allclose(A.submatrix(np.arange(5)), expected)
    np.testing.assert_allclose(A.scores(np.eye(5)), X - mean)  # samples as they are


def test_a_row_far_away_that_does_not_count_costs_no_digits(rng):
    X = rng.standard_normal((40, 4))
    far = np.vstack([np.full(4, 1e12), X])
    weights = np.append(0.0, np.ones(40))
    for form in (np.asarray, sp.csr_array, KINDS["npy"], KINDS["dask"]):
        found = as_covariance(form(far), sample_weight=weights).submatrix(np.arange(4))
        np.testing.assert_allclose(found, np.cov(X, rowvar=False), rtol=1e-12, atol=1e-13)


def test_zeros_that_hardly_count_cost_no_digits(rng):
    """Of a sparse column, what is left of the weights after those of its entries is rounding."""
    X = np.vstack([np.zeros((2, 3)), 1000 + rng.standard_normal((40, 3))])
    weights = np.append([1e-9, 1e-9], rng.random(40) + 0.5)
    dense = as_covariance(X, sample_weight=weights).diagonal()
    sparse = as_covariance(sp.csr_array(X), sample_weight=weights).diagonal()
    np.testing.assert_allclose(sparse, dense, rtol=1e-11)


def test_blocks_of_rows_have_their_weights(rng):
    X, weights = rng.standard_normal((12, 4)), rng.integers(1, 4, 12)
    for form in (np.asarray, KINDS["npy"]):
        A = as_covariance(form(X), sample_weight=weights)
        blocks = [block.matmat(np.eye(4)) for block in A.row_blocks(6)]
        for found, places in zip(blocks, (slice(6), slice(6, 12)), strict=True):
            Z, w = X[places] - A.mean, weights[places]
            np.testing.assert_allclose(found, (Z.T * w) @ Z / w.sum())


@pytest.mark.parametrize("exact", [True, False])
def test_a_stream_is_weighted(rng, exact, monkeypatch):
    if not exact:
        monkeypatch.setattr("kspan.covariance.streamed.EXACT_LIMIT", 0)
    X, weights = rng.standard_normal((30, 5)), rng.integers(0, 3, 30)
    weights[:10] = 0  # a block that does not count
    stream = RowStream(5)
    for start in range(0, 30, 10):
        stream.add(X[start : start + 10], weights[start : start + 10].astype(float))
    expected = np.cov(np.repeat(X, weights, axis=0), rowvar=False)
    np.testing.assert_allclose(stream.covariance(scale=False).submatrix(np.arange(5)), expected)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(4), r"sample_weight.shape == \(4,\), expected \(5,\)!"),
        (np.ones((5, 1)), "must be 1D array or scalar, got 2D array"),
        ([1, 1, 1, 1, np.nan], "Input sample_weight contains NaN"),
        ([1, 1, 1, 1, np.inf], "Input sample_weight contains infinity"),
        ([1, 1, 1, 1, -1], "Negative values in data passed to `sample_weight`"),
        (np.zeros(5), "at least one non-zero number"),
        (np.full(5, 0.2), "sum to 1, .* multiply them by a constant"),
        (np.full(5, 1e308), "sum of the sample weights overflows"),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, KINDS["npy"]])
def test_wrong_weights_are_refused(rng, form, weights, message):
    with pytest.raises(ValueError, match=message) as refused:
        as_covariance(form(rng.standard_normal((5, 3))), sample_weight=weights)
    assert "\n" not in str(refused.value)


def test_a_covariance_has_no_rows_to_weigh(rng):
    A = np.cov(rng.standard_normal((9, 3)), rowvar=False)
    for X in (A, as_covariance(A, kind="covariance")):
        with pytest.raises(ValueError, match="sample_weight needs data"):
            as_covariance(X, kind="covariance", sample_weight=np.ones(3))


def test_one_weight_for_all_and_what_is_given_stays_as_it_is(rng):
    X, weights = rng.standard_normal((8, 3)), np.arange(1.0, 9.0)
    before = weights.copy()
    A = as_covariance(X, sample_weight=weights)
    digest = A.weights_digest
    weights[:] = 1.0
    np.testing.assert_array_equal(A.weights.values, before)
    assert digest == as_covariance(X, sample_weight=before).weights_digest
    assert as_covariance(X).weights_digest is None
    twice = as_covariance(np.repeat(X, 2, axis=0)).diagonal()
    np.testing.assert_allclose(as_covariance(X, sample_weight=2).diagonal(), twice)


def test_weights_cost_no_pass(rng):
    for form in (np.asarray, sp.csr_array, KINDS["npy"]):
        X = form(rng.standard_normal((20, 6)))
        plain, weighted = as_covariance(X), as_covariance(X, sample_weight=np.ones(20))
        assert weighted.n_passes == plain.n_passes
        np.testing.assert_allclose(weighted.diagonal(), plain.diagonal())
