"""Eigenpairs of a masked covariance; `test_derived` has the rest."""

import numpy as np
import pytest

from kspan import as_covariance
from kspan.covariance import MaskedCovariance


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


@pytest.mark.parametrize("m", [1, 3, 6, 9])
def test_eigenpairs(pair, m):
    masked, A = pair
    pairs = masked.leading(m)
    values = np.sort(np.linalg.eigvalsh(A))[::-1][:m]
    np.testing.assert_allclose(pairs.values, values, atol=1e-8 * values[0])
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(m), atol=1e-8)
    np.testing.assert_allclose(A @ pairs.vectors, pairs.vectors * pairs.values, atol=1e-6)
    assert not pairs.vectors[[1, 4, 5], : min(m, 6)].any()


def test_nothing_left():
    masked = MaskedCovariance(as_covariance(np.eye(3), kind="covariance"), np.zeros(3, bool))
    pairs = masked.leading(2)
    np.testing.assert_array_equal(pairs.values, [0.0, 0.0])
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(2))
