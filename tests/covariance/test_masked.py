"""A masked covariance equals D A D, formed here."""

import numpy as np
import pytest

from kspan import as_covariance
from kspan.covariance.masked import MaskedCovariance


@pytest.fixture(params=["matrix", "tall data", "wide data"])
def pair(request, rng):
    """A covariance with features 1, 4 and 5 taken out, and the matrix it stands for."""
    n = 5 if request.param == "wide data" else 40
    X = rng.standard_normal((n, 9)) @ rng.standard_normal((9, 9))
    A = np.cov(X.T)
    base = as_covariance(A, kind="covariance") if request.param == "matrix" else as_covariance(X)
    keep = np.ones(9, bool)
    keep[[1, 4, 5]] = False
    return MaskedCovariance(base, keep), A * keep * keep[:, None]


def test_equals_the_matrix(pair, rng):
    masked, A = pair
    W = rng.standard_normal((9, 3))
    S = np.array([1, 2, 5, 8])
    np.testing.assert_allclose(masked.diagonal(), np.diagonal(A), atol=1e-12)
    np.testing.assert_allclose(masked.matmat(W), A @ W, atol=1e-10)
    np.testing.assert_allclose(masked.matmat(W[S], S), A[:, S] @ W[S], atol=1e-10)
    np.testing.assert_allclose(masked.submatrix(S), A[np.ix_(S, S)], atol=1e-12)
    np.testing.assert_allclose(masked.submatrices(S[None])[0], A[np.ix_(S, S)], atol=1e-12)
    np.testing.assert_allclose(masked.columns(S), A[:, S], atol=1e-12)
    np.testing.assert_allclose(masked.restrict(S).submatrix(np.arange(4)), A[np.ix_(S, S)])
    assert masked.trace() == pytest.approx(np.trace(A))
    if masked.is_wide:
        X = masked.sample_factor()
        np.testing.assert_allclose(X.T @ X, A, atol=1e-10)
    else:
        assert masked.sample_factor() is None


@pytest.mark.parametrize("m", [1, 3, 6, 9])
def test_eigenpairs(pair, m):
    masked, A = pair
    pairs = masked.leading(m)
    values = np.sort(np.linalg.eigvalsh(A))[::-1][:m]
    np.testing.assert_allclose(pairs.values, values, atol=1e-8 * values[0])
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(m), atol=1e-8)
    np.testing.assert_allclose(A @ pairs.vectors, pairs.vectors * pairs.values, atol=1e-6)
    assert not pairs.vectors[[1, 4, 5], : min(m, 6)].any()


def test_masks_add_up(pair):
    masked, A = pair
    keep = np.ones(9, bool)
    keep[0] = False
    twice = MaskedCovariance(masked, keep)
    assert not isinstance(twice.base, MaskedCovariance)
    np.testing.assert_allclose(twice.diagonal(), np.diagonal(A) * keep, atol=1e-12)


def test_passes_are_those_of_the_data(rng):
    base = as_covariance(rng.standard_normal((30, 5)))
    masked = MaskedCovariance(base, np.ones(5, bool))
    before = masked.n_passes
    base.n_passes += 2
    assert masked.n_passes == before + 2


def test_nothing_left():
    masked = MaskedCovariance(as_covariance(np.eye(3), kind="covariance"), np.zeros(3, bool))
    pairs = masked.leading(2)
    np.testing.assert_array_equal(pairs.values, [0.0, 0.0])
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(2))
