"""IPM against the paper's iteration with X written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import as_covariance, solve
from kspan.problem import ElementSparseProblem
from kspan.progress import Monitor, Status
from kspan.solvers.elementsparse.ipm import fill_up, ipm_step, ratio
from tests.oracles import explained, random_covariance


def ipm(problem, **options):
    return solve(problem, "ipm", **options)


def quotient(X, f, gamma):
    above = (1 - gamma) * np.linalg.norm(f) + gamma * np.abs(f).sum()
    return above / np.linalg.norm(X @ f)


def by_the_listing(X, f, gamma, n_steps):
    """Yield the iterates of the paper: scale, soft threshold of λX'Xf."""
    f = f / np.linalg.norm(X @ f)
    for _ in range(n_steps):
        yield f
        product = quotient(X, f, gamma) * (X.T @ (X @ f))
        g = np.sign(product) * np.maximum(np.abs(product) - gamma, 0)
        if not g.any():
            return
        f = g / np.linalg.norm(X @ g)


@pytest.mark.parametrize("gamma", [0.0, 0.2, 0.5, 0.9])
@given(seed=st.integers(0, 10_000))
def test_the_listing_and_lambda_never_increases(gamma, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6, 8)) * rng.uniform(0.5, 2, 8)
    A = X.T @ X
    covariance = as_covariance(A, kind="covariance")
    start = rng.standard_normal(8)
    f, product = start / np.sqrt(start @ A @ start), A @ start / np.sqrt(start @ A @ start)
    values = []
    for expected in by_the_listing(X, start, gamma, 12):
        np.testing.assert_allclose(f, expected, atol=1e-8)
        np.testing.assert_allclose(product, A @ f, atol=1e-8)
        assert ratio(f, gamma) == pytest.approx(quotient(X, f, gamma))
        values.append(ratio(f, gamma))
        f, product = ipm_step(covariance, f, product, gamma)
    assert (np.diff(values) <= 1e-10 * values[0]).all()


@given(seed=st.integers(0, 10_000))
def test_a_step_solves_its_inner_problem(seed):
    """No direction has a smaller (1-γ)‖u‖ + γ‖u‖₁ - λ<u, X'Xf> over the unit ball."""
    rng = np.random.default_rng(seed)
    A, gamma = random_covariance(rng, 6), rng.uniform(0.05, 0.6)
    f = rng.standard_normal(6)
    f /= np.sqrt(f @ A @ f)
    covariance = as_covariance(A, kind="covariance")
    moved = ipm_step(covariance, f, A @ f, gamma)[0]
    if not moved.any():
        return

    def inner(u):
        u = u / np.linalg.norm(u)
        return ratio(u, gamma) - ratio(f, gamma) * (u @ A @ f)

    others = rng.standard_normal((80, 6))
    near = moved / np.linalg.norm(moved) + 0.05 * rng.standard_normal((80, 6))
    assert all(inner(moved) <= inner(u) + 1e-12 for u in [*others, *near, f])


def test_zero_when_nothing_passes():
    covariance = as_covariance(np.eye(3), kind="covariance")
    f = np.array([1.0, 0.0, 0.0])
    moved, product = ipm_step(covariance, f, f, 1.0)
    assert not moved.any()
    assert not product.any()


def test_scores_are_taken_out_of_the_data(rng):
    """Schur deflation of A is X - tt'X: the second component is the first one of that data."""
    X = rng.standard_normal((15, 9))
    X -= X.mean(axis=0)
    two = ipm(ElementSparseProblem(as_covariance(X), 2, 4))
    t = X @ two.loadings[:, 0]
    t /= np.linalg.norm(t)
    one = ipm(ElementSparseProblem(as_covariance(X - np.outer(t, t @ X)), 1, 4))
    np.testing.assert_allclose(np.abs(one.loadings[:, 0]), np.abs(two.loadings[:, 1]), atol=1e-7)
    # What the second score adds to the first is its variance in the deflated data.
    assert one.objective == pytest.approx(two.explained_variance[1])


def test_it_ends_with_the_best_vector_on_its_features(rng):
    for k in range(1, 9):
        A = random_covariance(rng, 8)
        solution = ipm(ElementSparseProblem(as_covariance(A, kind="covariance"), 1, k))
        assert solution.support.size == k
        assert solution.objective == pytest.approx(explained(A, solution.support, 1))


def test_missing_features_are_those_that_correlate_most_with_the_score(rng):
    A = random_covariance(rng, 9)
    support = np.array([4])
    for size in range(2, 6):
        _, vectors = np.linalg.eigh(A[np.ix_(support, support)])
        gains = np.abs(A[:, support] @ vectors[:, -1])
        gains[support] = -1
        support = np.sort(np.append(support, np.argmax(gains)))
        x, variance = fill_up(
            as_covariance(A, kind="covariance"), np.array([4]), size, Monitor("x")
        )
        np.testing.assert_array_equal(np.flatnonzero(x), support)
        assert variance == pytest.approx(explained(A, support, 1))


def test_many_missing_features_come_in_rounds(rng):
    A = random_covariance(rng, 120)
    x, variance = fill_up(as_covariance(A, kind="covariance"), np.array([3]), 100, Monitor("x"))
    assert np.count_nonzero(x) == 100
    assert x[3] != 0
    assert variance == pytest.approx(x @ A @ x)


def test_k_that_no_gamma_has_is_grown_into():
    """Three equal features come together or not at all; two are asked for."""
    A = np.diag([0.5, 0.5, 0.5, 0.5, 0.1])
    A[:4, :4] += 1.0
    solution = ipm(ElementSparseProblem(as_covariance(A, kind="covariance"), 1, 2))
    assert np.count_nonzero(solution.loadings) == 2
    assert solution.objective == pytest.approx(2.5)


def test_the_iteration_limit_is_told(rng):
    problem = ElementSparseProblem(
        as_covariance(random_covariance(rng, 9), kind="covariance"), 1, 5
    )
    assert ipm(problem, tol=0, max_iter=1).status is Status.MAX_ITER
    assert ipm(problem).status is Status.CONVERGED


@pytest.mark.parametrize(
    ("options", "message"),
    [({"tol": -1.0}, "tol must not be negative"), ({"max_iter": 0}, "max_iter must be")],
)
def test_wrong_options(options, message):
    problem = ElementSparseProblem(as_covariance(np.eye(4), kind="covariance"), 2, 2)
    with pytest.raises(ValueError, match=message):
        ipm(problem, **options)
