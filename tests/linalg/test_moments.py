import numpy as np
import pytest

from kspan.covariance.block_kernels import CACHE_BLOCK_BYTES, block_slices, column_moments


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(2, 3), (1000, 400), (7, 200_000)])
def test_equal_to_two_passes(rng, order, shape):
    X = np.asarray(rng.standard_normal(shape) + 3.0, order=order)
    mean, squares = column_moments(X)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(squares, ((X - X.mean(axis=0)) ** 2).sum(axis=0), rtol=1e-10)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_large_mean_costs_no_digits(rng, order):
    deviations = rng.standard_normal((20_000, 30))
    X = np.asarray(deviations + 1e8, order=order)
    exact = (X.astype(np.longdouble) - X.astype(np.longdouble).mean(axis=0)) ** 2
    _, squares = column_moments(X)
    # The sum X'X - nμ² would have no correct digit here: μ²/σ² is 1e16.
    np.testing.assert_allclose(squares, exact.sum(axis=0).astype(float), rtol=1e-7)


def test_nan_and_infinity_show_up():
    X = np.ones((5, 3))
    X[2, 1] = np.nan
    X[0, 2] = np.inf
    _, squares = column_moments(X)
    assert np.isfinite(squares).tolist() == [True, False, False]


def test_slices_cover_everything_once():
    for length in (1, 5, 1000):
        covered = [
            i for part in block_slices(length, CACHE_BLOCK_BYTES // 3) for i in range(length)[part]
        ]
        assert covered == list(range(length))
