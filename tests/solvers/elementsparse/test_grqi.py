"""GRQI against the paper's listing with full matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import as_covariance, solve
from kspan.problem import ElementSparseProblem
from kspan.progress import Status
from kspan.solvers.elementsparse import grqi as module
from kspan.solvers.elementsparse.grqi import newton_step
from tests.oracles import explained, random_covariance


def problem_of(A, m, k):
    return ElementSparseProblem(as_covariance(A, kind="covariance"), m, k)


def grqi(problem, **options):
    return solve(problem, "grqi", **options)


def cut(y, k):
    x = np.zeros_like(y)
    kept = np.argsort(-np.abs(y), kind="stable")[:k]
    x[kept] = y[kept]
    return x / np.linalg.norm(x)


def by_the_listing(A, k, n_power_steps, max_iter):
    """Return the variances of the iterates: (A_II - μI)⁻¹x_I, power step, k largest entries."""
    x = cut(A[:, np.argmax(np.linalg.norm(A, axis=0))], k)
    variances = [x @ A @ x]
    for step in range(max_iter):
        inside = np.flatnonzero(x)
        mu = x @ A @ x
        y = np.zeros_like(x)
        try:
            y[inside] = np.linalg.solve(
                A[np.ix_(inside, inside)] - mu * np.eye(inside.size), x[inside]
            )
        except np.linalg.LinAlgError:
            break  # x is an eigenvector to the last digit
        y /= np.linalg.norm(y)
        x = cut(A @ y if step < n_power_steps else y, k)
        variances.append(x @ A @ x)
        if len(variances) > 2 and abs(variances[-1] - variances[-2]) < 1e-9 * variances[-1]:
            break  # the inverse is all but singular
    return variances


@given(seed=st.integers(0, 10_000), data=st.data())
def test_the_listing(seed, data):
    A = random_covariance(np.random.default_rng(seed), 8)
    k = data.draw(st.integers(2, 8))
    n_power_steps = data.draw(st.sampled_from([0, 1, 2, 100]))
    expected = by_the_listing(A, k, n_power_steps, max_iter=6)
    solution = grqi(problem_of(A, 1, k), n_power_steps=n_power_steps, max_iter=6)
    common = min(len(expected), len(solution.history))
    np.testing.assert_allclose(solution.history[:common], expected[:common], rtol=1e-6)
    assert solution.objective == pytest.approx(max(solution.history))


@given(seed=st.integers(0, 10_000))
def test_the_newton_step_is_the_inverse(seed):
    rng = np.random.default_rng(seed)
    M = random_covariance(rng, 5)
    x = rng.standard_normal(5)
    x /= np.linalg.norm(x)
    expected = np.linalg.solve(M - (x @ M @ x) * np.eye(5), x)
    expected /= np.linalg.norm(expected)
    actual = newton_step(M, x)
    np.testing.assert_allclose(abs(actual @ expected), 1, rtol=1e-6)


@pytest.mark.parametrize("values", [[3.0, 2.0, 1.0, 0.5], [2.0, 2.0, 1.0, 1.0], [1.0] * 4])
def test_an_eigenvector_stays_even_of_a_multiple_eigenvalue(rng, values):
    U = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    M = (U * values) @ U.T
    np.testing.assert_allclose(newton_step(M, U[:, 0]), U[:, 0], atol=1e-6)


def test_without_power_steps_the_features_stay(rng):
    A = random_covariance(rng, 9)
    solution = grqi(problem_of(A, 1, 3), n_power_steps=0)
    start = cut(A[:, np.argmax(np.linalg.norm(A, axis=0))], 3)
    np.testing.assert_array_equal(solution.support, np.flatnonzero(start))
    # It ends at an eigenvector there, or has passed something better.
    inside = np.ix_(solution.support, solution.support)
    assert solution.history[-1] == pytest.approx(
        min(np.linalg.eigvalsh(A[inside]), key=lambda v: abs(v - solution.history[-1]))
    )


def test_refining_gives_the_best_vector_on_the_features(rng):
    for _ in range(20):
        A = random_covariance(rng, 8)
        plain, refined = (grqi(problem_of(A, 1, 3), refine=refine) for refine in (False, True))
        np.testing.assert_array_equal(plain.support, refined.support)
        assert refined.objective == pytest.approx(explained(A, refined.support, 1))
        assert refined.objective >= plain.objective * (1 - 1e-12)


def test_the_start_is_the_longest_column_or_for_many_features_that_of_largest_variance(
    rng, monkeypatch
):
    A = np.diag([1.0, 1.0, 1.0, 1.1])
    A[:3, :3] += 0.5
    monkeypatch.setattr(module, "COLUMN_BLOCK", 2)
    assert set(grqi(problem_of(A, 1, 2), max_iter=0).support) <= {0, 1, 2}
    assert 3 in grqi(problem_of(np.diag([1.0, 1.0, 1.0, 3.0]), 1, 2), max_iter=0).support
    A[3, 3] = 1.6
    monkeypatch.setattr(module, "COLUMN_LIMIT", 3)
    far = grqi(problem_of(A, 1, 2), max_iter=0)
    assert far.status is Status.MAX_ITER
    assert 3 in far.support


@pytest.mark.parametrize("option", ["n_power_steps", "max_iter"])
def test_wrong_options(option):
    with pytest.raises(ValueError, match=f"{option} must be a whole number"):
        grqi(problem_of(np.eye(3), 1, 2), **{option: -1})
