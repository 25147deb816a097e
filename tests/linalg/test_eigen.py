import numpy as np
import pytest
import scipy.linalg

from kspan.linalg.eigen import (
    RESIDUAL_TOL,
    lanczos,
    lapack,
    leading_dense,
    leading_stack,
    leading_values,
    power_of_two,
)
from kspan.linalg.projections import project_fantope
from kspan.linalg.tracking import EigenTracker
from tests.oracles import random_covariance


def with_spectrum(rng, values, size):
    """A matrix with the given leading eigenvalues; the last one fills the rest."""
    Q = np.linalg.qr(rng.standard_normal((size, len(values))))[0]
    return values[-1] * np.eye(size) + (Q * (np.array(values) - values[-1])) @ Q.T


def assert_leading(A, pairs, m, tol):
    exact = np.linalg.eigvalsh(A)[::-1]
    assert pairs.values == pytest.approx(exact[:m], abs=tol * exact[0])
    assert np.all(np.diff(pairs.values) <= tol * exact[0])
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(m), atol=1e-10)
    residuals = np.linalg.norm(A @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
    assert np.all(residuals <= np.maximum(pairs.residuals * 1.01, 1e-10 * exact[0]))


@pytest.mark.parametrize("m", [1, 3, 12])
@pytest.mark.parametrize("block", [1, 2, 5])
def test_lanczos_reaches_its_tolerance_without_a_gap(rng, m, block):
    A = random_covariance(rng, 300, 400)
    pairs = lanczos(lambda W: A @ W, 300, m, block=block)
    assert np.all(pairs.residuals <= RESIDUAL_TOL * pairs.values[0])
    assert_leading(A, pairs, m, 1e-9)


@pytest.mark.parametrize("m", [1, 2, 3, 5, 10])
@pytest.mark.parametrize(
    "spectrum",
    [
        (160, 80, 40, 20, 10, 5, 2, 1),
        (100, 100, 4, 1),
        (100, 100, 100, 100, 1),
        (300, 180, 60, 0),
        (1, 1),
        (5, 5, 3, 3, 2, 2, 1),
    ],
)
@pytest.mark.parametrize("block", [1, 8])
def test_lanczos_finds_multiple_eigenvalues(rng, spectrum, m, block):
    A = with_spectrum(rng, [float(value) for value in spectrum], 250)
    assert_leading(A, lanczos(lambda W: A @ W, 250, m, block=block), m, 1e-8)


def test_lanczos_sees_a_negative_eigenvalue(rng):
    A = with_spectrum(rng, [10.0, 5.0, -2.0, 1.0], 200)
    smallest = lanczos(lambda W: A @ W, 200, 2).smallest
    assert smallest == pytest.approx(-2.0, abs=1e-6)


def test_lanczos_stops_at_the_limit_and_admits_it(rng):
    A = random_covariance(rng, 400, 500)
    pairs = lanczos(lambda W: A @ W, 400, 3, max_products=20)
    assert pairs.residuals.max() > RESIDUAL_TOL * pairs.values[0]


def test_lanczos_when_almost_all_pairs_are_wanted(rng):
    A = random_covariance(rng, 12)
    assert_leading(A, lanczos(lambda W: A @ W, 12, 11), 11, 1e-9)


@pytest.mark.parametrize("size", [1, 2, 40, 700])
def test_leading_dense_on_both_sides_of_the_limit(rng, size):
    A = random_covariance(rng, size)
    assert_leading(A, leading_dense(A, min(3, size)), min(3, size), 1e-8)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_lapack_at_any_scale(rng, scale):
    A = random_covariance(rng, 8)
    np.testing.assert_allclose(lapack(A * scale, 3).values / scale, lapack(A, 3).values, rtol=1e-12)


def test_power_of_two():
    assert power_of_two(5.0) == 4.0
    assert power_of_two(0.0) == 1.0
    assert power_of_two(np.inf) == 1.0


def test_a_stack_is_solved_like_its_members(rng):
    F = rng.standard_normal((5, 6, 6))
    stack = F @ F.swapaxes(1, 2)
    for scale in (1e-200, 1.0, 1e200):
        values, vectors = leading_stack(stack * scale, 2)
        for matrix, some, basis in zip(stack, values, vectors, strict=True):
            np.testing.assert_allclose(some, np.linalg.eigvalsh(matrix)[:-3:-1] * scale, rtol=1e-10)
            np.testing.assert_allclose(basis.T @ basis, np.eye(2), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1.0, 1e200])
def test_values_alone_are_those_of_the_pairs(rng, scale):
    F = rng.standard_normal((5, 6, 3))
    stack = np.concatenate([F @ F.swapaxes(1, 2), [np.eye(6)], [np.zeros((6, 6))]])
    for m in (1, 2, 6):
        values = leading_values(stack * scale, m)
        assert values.shape == (7, m)
        assert (np.diff(values, axis=1) <= 0).all()
        for matrix, some in zip(stack * scale, values, strict=True):
            unit = power_of_two(scale)
            wanted = np.linalg.eigvalsh(matrix / unit)[: -m - 1 : -1] * unit
            np.testing.assert_allclose(some, wanted, rtol=1e-12, atol=1e-13 * scale + 5e-324)
    assert leading_values(stack[:0], 2).shape == (0, 2)


@pytest.mark.parametrize("breaks", ["not", "short", "error"])
def test_clusters_that_lapack_loses_members_of(monkeypatch, breaks):
    """For a few pairs from a cluster, LAPACK returned 8 of 10 on such a matrix, and no error."""
    real = scipy.linalg.eigh

    def broken(*arguments, **options):
        if "subset_by_index" not in options:
            return real(*arguments, **options)
        if breaks == "error":
            raise scipy.linalg.LinAlgError
        values, vectors = real(*arguments, **options)
        return values[2:], vectors[:, 2:]

    if breaks != "not":
        monkeypatch.setattr(scipy.linalg, "eigh", broken)
    for seed in range(8):
        factor = np.random.default_rng(seed).standard_normal((50, 7)) * 0.2
        M = np.eye(50) + (factor * [5, 3, 2, 1, 0.5, 0.3, 0.1]) @ factor.T
        pairs = lapack(M, 10)
        assert pairs.vectors.shape == (50, 10)
        np.testing.assert_allclose(pairs.values, np.linalg.eigvalsh(M)[:-11:-1], rtol=1e-12)
        assert np.trace(
            project_fantope(M, 10, EigenTracker(largest=True, rank=11))
        ) == pytest.approx(10)
