import numpy as np
import pytest

from kspan.covariance.block_kernels import CACHE_BLOCK_BYTES, block_slices, column_moments


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(2, 3), (1000, 400), (7, 200_000)])
def test_equal_to_two_passes(rng, order, shape):
    X = np.asarray(rng.standard_normal(shape) + 3.0, order=order)
    origin, found = column_moments(X)
    np.testing.assert_allclose(found.centre(origin)[0], X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.squares, ((X - X.mean(axis=0)) ** 2).sum(axis=0), rtol=1e-10)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_large_mean_costs_no_digits(rng, order):
    deviations = rng.standard_normal((20_000, 30))
    X = np.asarray(deviations + 1e8, order=order)
    exact = (X.astype(np.longdouble) - X.astype(np.longdouble).mean(axis=0)) ** 2
    squares = column_moments(X)[1].squares
    # The sum X'X - nμ² would have no correct digit here: μ²/σ² is 1e16.
    np.testing.assert_allclose(squares, exact.sum(axis=0).astype(float), rtol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("mean", [0.0, 0.1, -1e8, 1e300])
def test_equal_numbers_do_not_vary(order, mean):
    X = np.asarray(np.full((30_000, 7), mean), order=order)
    origin, found = column_moments(X)
    centre, rest = found.centre(origin)
    np.testing.assert_array_equal(centre, np.full(7, mean))
    assert not rest.any()
    assert not found.squares.any()


def test_the_mean_and_what_it_lacks(rng):
    """Two units in the last place of sd: half a unit of mean would be a quarter of that."""
    X = 1e9 + 2.0**-23 * rng.integers(-4, 5, (999, 4))
    X[0] += 3.0  # far from the others, and where all are measured from
    near = X.astype(np.longdouble) - X[0]
    origin, found = column_moments(X)
    mean, rest = found.centre(origin)
    lacking = ((X[0] - mean) + near.mean(axis=0)).astype(float)
    np.testing.assert_allclose(rest, lacking, atol=1e-17)
    squares = ((near - near.mean(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(found.squares, squares.astype(float), rtol=1e-12)


def test_squares_that_underflow_are_not_taken_for_nothing():
    X = np.zeros((5, 2))
    X[1, 0] = 1e-200
    assert (column_moments(X)[1].squares > 0).tolist() == [True, False]


def test_nan_and_infinity_show_up():
    X = np.ones((5, 3))
    X[2, 1] = np.nan
    X[0, 2] = np.inf
    squares = column_moments(X)[1].squares
    assert np.isfinite(squares).tolist() == [True, False, False]


def test_slices_cover_everything_once():
    for length in (1, 5, 1000):
        covered = [
            i for part in block_slices(length, CACHE_BLOCK_BYTES // 3) for i in range(length)[part]
        ]
        assert covered == list(range(length))
