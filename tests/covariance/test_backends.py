"""Every backend equals the dense covariance, computed here from the definition."""

import numpy as np
import pytest
import scipy.sparse as sp

import kspan.covariance.block_kernels as block_kernels
import kspan.covariance.data_covariance as data_covariance
import kspan.covariance.dense_data as dense_data
import kspan.covariance.sparse_data as sparse_data
import kspan.linalg.machine as machine
from kspan import as_covariance
from kspan.covariance import DenseCovariance
from kspan.covariance.data_covariance import FLOAT32_TOL
from kspan.covariance.dense_data import DenseDataCovariance
from kspan.covariance.sparse_data import SparseDataCovariance
from kspan.io import RowSource, rows
from kspan.linalg.machine import one_blas_thread
from tests.out_of_core import OUT_OF_CORE

SHAPES = {"tall": (60, 12), "square": (15, 15), "wide": (9, 40)}
BACKENDS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr array": sp.csr_array,
    "csc array": sp.csc_array,
    "csr matrix": sp.csr_matrix,
    "csc matrix": sp.csc_matrix,
    "coo matrix": sp.coo_matrix,
    **OUT_OF_CORE,
}


def sparse_numbers(rng, shape):
    """Mostly zeros, one constant column, one column of zeros, one without zeros."""
    X = np.where(rng.random(shape) < 0.3, rng.standard_normal(shape) + 2.0, 0.0)
    X[:, 0] = 0.1
    X[:, 1] = 0.0
    X[:, 2] = rng.standard_normal(shape[0]) + 50.0
    return X.astype(np.float32).astype(np.float64)  # so that float32 holds the same numbers


def expected_covariance(X, scale, ddof):
    centred = X - X.mean(axis=0)
    A = centred.T @ centred / (X.shape[0] - ddof)
    A[[0, 1]] = A[:, [0, 1]] = 0.0
    if scale:
        deviations = np.sqrt(np.where(np.diag(A) > 0, np.diag(A), 1.0))
        A = A / np.outer(deviations, deviations)
    return A


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Data in files is read in several blocks, however small it is."""
    monkeypatch.setattr(RowSource, "block_bytes", 1500)
    monkeypatch.setattr(rows, "FEWEST_ROWS", 1)
    monkeypatch.setattr(block_kernels, "CACHE_BYTES", 700)
    monkeypatch.setattr(block_kernels, "FEWEST_PIECE_ROWS", 1)


# All files are read by one covariance: the routes that read them often are taken by one of them.
ROUTES = [
    (backend, route)
    for backend in BACKENDS
    for route in ("gram", "implicit", "lanczos first")
    if route == "gram" or backend == "npy" or backend not in OUT_OF_CORE
]


def take(route, monkeypatch):
    """Go with or without the small Gram matrix, whatever the size says."""
    if route == "implicit":
        monkeypatch.setattr(data_covariance, "GRAM_LIMIT", 0)
        monkeypatch.setattr(sparse_data, "SPARSE_GRAM_WORK", 0)
    if route == "lanczos first":
        monkeypatch.setattr(data_covariance, "GRAM_WORK", 0)
        monkeypatch.setattr(dense_data, "ORDER_A_PRODUCT", 1)
        monkeypatch.setattr(dense_data, "FEWEST_PRODUCTS", 0)


@pytest.mark.parametrize(("scale", "ddof"), [(False, 1), (True, 0)])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("backend", "route"), ROUTES)
def test_equals_the_dense_covariance(rng, backend, shape, scale, ddof, route, monkeypatch):
    take(route, monkeypatch)
    X = sparse_numbers(rng, SHAPES[shape])
    A = expected_covariance(X, scale, ddof)
    covariance = as_covariance(BACKENDS[backend](X), scale=scale, ddof=ddof)
    n, d = X.shape
    # Products in float32 are off by its rounding, times the mean over the spread.
    tol = (1e-3 if backend == "float32" else 1e-9) * max(1.0, A.max())
    W = rng.standard_normal((d, 3))
    support = np.array([2, 5, 7, 11])

    def check(covariance):
        np.testing.assert_allclose(covariance.diagonal(), np.diag(A), atol=tol)
        assert np.all(covariance.diagonal()[:2] == 0), "constant columns have no variance"
        np.testing.assert_allclose(covariance.matmat(W), A @ W, atol=10 * tol)
        np.testing.assert_allclose(
            covariance.matmat(W[support], support), A[:, support] @ W[support], atol=10 * tol
        )
        np.testing.assert_allclose(covariance.columns(support), A[:, support], atol=tol)
        np.testing.assert_allclose(
            covariance.submatrix(support), A[np.ix_(support, support)], atol=tol
        )
        inside = A[np.ix_(support, support)]
        along = covariance.variance_along(W[support], support)
        assert along == pytest.approx(np.trace(W[support].T @ inside @ W[support]), abs=100 * tol)
        np.testing.assert_allclose(
            covariance.products_within(support, lambda own: own / 3), A[:, support] @ inside / 3,
            atol=10 * tol * max(1.0, A.max()),
        )  # fmt: skip
        restricted = covariance.restrict(support)
        np.testing.assert_allclose(
            restricted.matmat(np.eye(4)), A[np.ix_(support, support)], atol=tol
        )
        on_support = covariance.leading(2, support).values
        exact = np.linalg.eigvalsh(A[np.ix_(support, support)])[::-1][:2]
        np.testing.assert_allclose(on_support, exact, atol=tol)

    check(covariance)
    pairs = covariance.leading(3)
    np.testing.assert_allclose(pairs.values, np.linalg.eigvalsh(A)[::-1][:3], atol=tol)
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(
        A @ pairs.vectors, pairs.vectors * pairs.values, atol=10 * tol + FLOAT32_TOL * A.max()
    )
    check(covariance)  # again: `leading` may have formed A and changed the route
    assert covariance.trace() == pytest.approx(np.trace(A), abs=d * tol)
    assert covariance.n_samples == n
    assert covariance.n_features == d


def test_more_components_than_samples(rng):
    X = rng.standard_normal((4, 10))
    pairs = as_covariance(X).leading(8)
    np.testing.assert_allclose(pairs.values[3:], 0, atol=1e-12)
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(8), atol=1e-10)


def test_a_given_scale_divides_the_columns(rng):
    X = rng.standard_normal((20, 4))
    divisors = np.array([1.0, 2.0, 4.0, 0.5])
    A = as_covariance(X, scale=divisors)
    np.testing.assert_allclose(A.matmat(np.eye(4)), np.cov(X / divisors, rowvar=False))
    np.testing.assert_allclose(A.diagonal(), np.var(X / divisors, axis=0, ddof=1))


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_a_large_mean_costs_few_digits(rng, convert):
    X = rng.standard_normal((300, 6))
    A = as_covariance(convert(X + 1e6)).submatrix(np.arange(6))
    # σ²(1 ± 1e-16·μ/σ) from centring first; X'X - nμμ' would be off by 1e-4.
    np.testing.assert_allclose(A, np.cov(X, rowvar=False), atol=1e-8)


def test_duplicate_entries_of_a_sparse_matrix_are_summed():
    X = sp.csr_array((np.array([1.0, 2.0, 5.0]), ([0, 0, 1], [0, 0, 1])), shape=(3, 2))
    doubled = sp.csr_array(
        (np.array([1.0, 2.0, 5.0]), np.array([0, 0, 1]), np.array([0, 2, 3, 3])), shape=(3, 2)
    )
    assert not doubled.has_canonical_format
    np.testing.assert_allclose(as_covariance(doubled).diagonal(), as_covariance(X).diagonal())
    assert doubled.nnz == 3, "the caller's matrix is left alone"


def test_input_is_never_changed(rng):
    for convert in (np.array, np.asfortranarray, sp.csr_array):
        X = convert(rng.standard_normal((8, 5)))
        before = X.copy()
        covariance = as_covariance(X, scale=True)
        covariance.leading(2)
        covariance.submatrix(np.array([0, 3]))
        assert abs(X - before).max() == 0


def test_wide_data_never_makes_a_square_of_features(rng, monkeypatch):
    """Every array that leading, matmat and submatrix allocate is far below d×d."""
    import tracemalloc

    X = rng.standard_normal((20, 3000))
    covariance = as_covariance(X)
    tracemalloc.start()
    covariance.leading(3)
    covariance.matmat(rng.standard_normal((3000, 3)))
    covariance.submatrix(np.arange(30))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000 * 3000 * 8 / 20


def test_sparse_data_is_never_densified(rng):
    import tracemalloc

    X = sp.random_array((4000, 5000), density=0.002, rng=rng, format="csr")
    tracemalloc.start()
    covariance = as_covariance(X)
    covariance.leading(3)
    covariance.submatrix(np.arange(30))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4000 * 5000 * 8 / 10


def test_passes_are_counted(rng):
    covariance = as_covariance(rng.standard_normal((9, 30)))
    assert covariance.n_passes == 1  # means and variances
    covariance.matmat(np.ones((30, 1)))
    assert covariance.n_passes == 2  # X and X' at once
    covariance.matmat(np.ones((30, 9)))
    assert covariance.n_passes == 4  # X and X'
    covariance.leading(2)
    assert covariance.n_passes == 6  # the Gram matrix, and X' once
    covariance.leading(2)
    assert covariance.n_passes == 6  # kept
    support = np.array([2, 5, 7])
    covariance.submatrix(support)
    assert covariance.n_passes == 7  # the columns, which are kept
    covariance.submatrix(support)
    covariance.leading(1, support)
    assert covariance.n_passes == 7
    covariance.matmat(np.ones((3, 1)), support)
    assert covariance.n_passes == 8  # X'
    covariance.products_within(support, lambda A: A)
    assert covariance.n_passes == 9  # X'
    covariance.submatrix(support[:2])
    covariance.submatrix(support)
    assert covariance.n_passes == 11  # only the last ones are kept
    tall = as_covariance(rng.standard_normal((30, 9)))
    tall.leading(2)
    tall.matmat(np.ones((9, 1)))
    tall.submatrix(np.arange(3))
    assert tall.n_passes == 2  # once A is formed the data is not read again


def structured(rng, n, d):
    return rng.standard_normal((n, 4)) @ rng.standard_normal((4, d)) + rng.standard_normal((n, d))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(150, 400), (400, 150)])
def test_lanczos_comes_first_on_large_data_with_gaps(rng, monkeypatch, shape, weighted, order):
    take("lanczos first", monkeypatch)
    X = np.asarray(structured(rng, *shape) + rng.standard_normal(shape[1]), order=order)
    weights = rng.integers(1, 4, shape[0]).astype(float) if weighted else None
    covariance = as_covariance(X, sample_weight=weights)
    pairs = covariance.leading(3)
    assert covariance.n_grams == 0
    A = np.cov(X, rowvar=False, fweights=None if weights is None else weights.astype(int))
    values, vectors = np.linalg.eigh(A)
    np.testing.assert_allclose(pairs.values, values[:-4:-1], rtol=1e-12)
    assert np.linalg.norm(A @ pairs.vectors - pairs.vectors * pairs.values, axis=0).max() <= (
        1.1e-8 * values[-1]
    )
    np.testing.assert_allclose(np.abs(np.sum(pairs.vectors * vectors[:, :-4:-1], axis=0)), 1)


@pytest.mark.parametrize("shape", [(300, 700), (700, 300)])
def test_lanczos_gives_up_early_on_noise(rng, monkeypatch, shape):
    take("lanczos first", monkeypatch)
    monkeypatch.setattr(dense_data, "ORDER_A_PRODUCT", 5)  # 60 products
    X = rng.standard_normal(shape)
    covariance = as_covariance(X)
    pairs = covariance.leading(3)
    assert covariance.n_grams == 1
    assert covariance.n_passes <= 1 + 20 + 2  # moments; a third of the products; XX', X'
    np.testing.assert_allclose(
        pairs.values, np.linalg.eigvalsh(np.cov(X, rowvar=False))[:-4:-1], rtol=1e-12
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_means_are_taken_out_first(rng, monkeypatch, dtype):
    """Products with X subtract them afterwards, which costs digits: not a way for such data."""
    take("lanczos first", monkeypatch)
    X = (structured(rng, 80, 200) + 1e3).astype(dtype)
    covariance = as_covariance(X)
    pairs = covariance.leading(2)
    assert covariance.n_grams == 1
    values = np.linalg.eigvalsh(np.cov(X.astype(np.float64), rowvar=False))
    np.testing.assert_allclose(pairs.values, values[:-3:-1], rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("p", [1, 3, 5])
def test_products_in_shares_are_the_same_on_any_number_of_threads(
    rng, monkeypatch, dtype, order, p
):
    monkeypatch.setattr(block_kernels, "SHARED_BYTES", 1 << 14)
    X = np.asarray(rng.standard_normal((1200, 300)) + 1.0, dtype=dtype, order=order)
    W, Z = rng.standard_normal((300, p)), rng.standard_normal((1200, p))
    found = []
    for n_threads in (1, 2):
        monkeypatch.setattr(machine, "_blas_threads", lambda n=n_threads: n)
        monkeypatch.setattr(machine, "available_cores", lambda n=n_threads: n)
        A = as_covariance(X)
        with one_blas_thread():
            found.append((A.mean, A.diagonal(), A.matmat(W), A.scores(W), A.back(Z)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    centred = X - X.mean(axis=0, dtype=np.float64)
    expected = centred.T @ (centred @ W) / 1199
    tol = 1e-10 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(found[0][2], expected, rtol=tol, atol=tol)


def test_kinds_and_types(rng):
    X = rng.standard_normal((5, 3))
    assert isinstance(as_covariance(X), DenseDataCovariance)
    assert isinstance(as_covariance(sp.csr_array(X)), SparseDataCovariance)
    A = as_covariance(X.T @ X, kind="covariance")
    assert isinstance(A, DenseCovariance)
    assert as_covariance(A) is A
    assert as_covariance(X.astype(np.float32)).dtype == np.float32
    assert as_covariance(X.astype(">f4")).dtype == np.float32
    assert as_covariance(X.astype(">f8")).dtype == np.float64
    assert as_covariance((X * 10).astype(np.int16)).dtype == np.float64


def test_unsigned_integers_do_not_overflow():
    X = np.array([[0, 65535], [65535, 0], [1, 65535]], dtype=np.uint16)
    np.testing.assert_allclose(
        as_covariance(X).submatrix(np.arange(2)), np.cov(X.astype(float), rowvar=False)
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_the_fingerprint_is_that_of_the_numbers(rng, shape):
    """The same however the numbers are stored; another one for any other numbers."""
    X = sparse_numbers(rng, SHAPES[shape])
    prints = {name: as_covariance(form(X)).fingerprint() for name, form in BACKENDS.items()}
    assert len(set(prints.values())) == 1, prints
    one = prints["dense"]
    changed = X.copy()
    changed[3, 4] = np.nextafter(changed[3, 4], np.inf)
    for other in (changed, X[::-1], X[:, ::-1], X[:-1], X[:, :-1], np.vstack([X, X[:1]])):
        assert as_covariance(other).fingerprint() != one
    zeros = sp.csr_array(X)
    zeros.data[:2] = 0.0  # stored, but zero
    assert as_covariance(zeros).fingerprint() == as_covariance(zeros.toarray()).fingerprint()
