"""GPower against the paper's iteration in the sample space, with X written out."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

from kspan import as_covariance, solve
from kspan.problem import ElementSparseProblem
from kspan.progress import Status
from kspan.solvers.elementsparse.gpower import penalised, polar_products, threshold
from tests.oracles import random_covariance

NORMS = ("l0", "l1")


def gpower(problem, norm="l1", **options):
    return solve(problem, f"gpower-{norm}", **options)


def gpower_block(problem, norm="l1", rng=None, **options):
    return solve(problem, f"gpower-{norm}-block", random_state=rng, **options)


def in_sample_space(X, P, gamma, mu, norm):
    """The objective and its gradient at P, from the definitions, column by column."""
    value, gradient = 0.0, np.zeros_like(P)
    for j in range(P.shape[1]):
        for a in X.T:
            product = mu[j] * (a @ P[:, j])
            if norm == "l1" and abs(product) > gamma[j]:
                value += (abs(product) - gamma[j]) ** 2
                gradient[:, j] += 2 * mu[j] * (abs(product) - gamma[j]) * np.sign(product) * a
            elif norm == "l0" and product**2 > gamma[j]:
                value += product**2 - gamma[j]
                gradient[:, j] += 2 * mu[j] * product * a
    return value, gradient


def orthonormal(M):
    Q, R = np.linalg.qr(M)
    return Q * np.sign(np.diag(R))


def penalties(X, mu, rho, norm):
    largest = np.linalg.norm(X, axis=0).max()
    return rho * mu * largest if norm == "l1" else rho * (mu * largest) ** 2


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("m", "rho"), [(1, 0.3), (1, 0.7), (3, 0.05), (3, 0.3)])
@given(seed=st.integers(0, 10_000))
def test_the_same_iterates_as_in_the_sample_space(norm, m, rho, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 9))
    mu = rng.uniform(0.5, 1.0, m) if m > 1 else np.ones(1)
    gamma = penalties(X, mu, rho, norm)
    covariance = as_covariance(X.T @ X, kind="covariance")
    W = np.eye(9)[:, np.argsort(-np.linalg.norm(X, axis=0))[:m]]
    P = orthonormal(X @ W)
    Y = polar_products(covariance, W, start=True)
    for _ in range(8):
        np.testing.assert_allclose(Y, X.T @ P, atol=1e-8)
        value, G = in_sample_space(X, P, gamma, mu, norm)
        assert penalised(Y * mu, gamma, norm) == pytest.approx(value, rel=1e-9, abs=1e-12)
        if np.linalg.svd(G, compute_uv=False)[-1] < 1e-6:
            break  # there is more than one polar factor
        P = scipy.linalg.polar(G)[0]
        Y = polar_products(covariance, threshold(Y * mu, gamma, norm) * mu)


@pytest.mark.parametrize("norm", NORMS)
@given(seed=st.integers(0, 10_000))
def test_the_gradient_by_differences(norm, seed):
    """What is multiplied by X is half the gradient of the objective."""
    rng = np.random.default_rng(seed)
    X, P = rng.standard_normal((7, 6)), rng.standard_normal((7, 2))
    mu, gamma = np.array([1.0, 0.6]), np.array([0.7, 0.4])
    direction = rng.standard_normal((7, 2))

    def value(t):
        return penalised(X.T @ (P + t * direction) * mu, gamma, norm)

    products = X.T @ P * mu
    edge = np.abs(products) - (gamma if norm == "l1" else np.sqrt(gamma))
    if np.abs(edge).min() < 1e-3:
        return  # l0 has a kink there
    G = 2 * X @ (threshold(products, gamma, norm) * mu)
    difference = (value(1e-6) - value(-1e-6)) / 2e-6
    assert np.sum(G * direction) == pytest.approx(difference, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("norm", NORMS)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_the_objective_never_decreases(norm, seed, data):
    """Of any rank, also below the number of units."""
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, 8, data.draw(st.integers(1, 8)))
    m = data.draw(st.integers(1, 4))
    mu, rho = rng.uniform(0.3, 1.0, m), rng.uniform(0, 0.9, m)
    top = A.diagonal().max()
    gamma = rho * mu * np.sqrt(top) if norm == "l1" else rho * mu**2 * top
    covariance = as_covariance(A, kind="covariance")
    Y = polar_products(covariance, rng.standard_normal((8, m)), start=True)
    values = []
    for _ in range(15):
        values.append(penalised(Y * mu, gamma, norm))
        Y = polar_products(covariance, threshold(Y * mu, gamma, norm) * mu)
    assert (np.diff(values) >= -1e-9 * max(values)).all()


def test_products_of_scores_of_lower_rank(rng):
    """With dependent columns P is a partial isometry on their span; zero columns stay zero."""
    X = rng.standard_normal((5, 6))
    T = rng.standard_normal((6, 2)) @ np.array([[1.0, 2.0, 0.0], [0.0, 1e-9, 0.0]])
    T[:, 1] = 2 * T[:, 0]
    left, _, right = np.linalg.svd(X @ T)
    expected = X.T @ np.outer(left[:, 0], right[0])
    actual = polar_products(as_covariance(X.T @ X, kind="covariance"), T)
    np.testing.assert_allclose(actual, expected, atol=1e-8)


def test_columns_of_very_different_length_keep_their_direction(rng):
    X = rng.standard_normal((9, 7))
    T = rng.standard_normal((7, 2)) * [1.0, 1e-7]
    P = scipy.linalg.polar(X @ T)[0]
    actual = polar_products(as_covariance(X.T @ X, kind="covariance"), T)
    np.testing.assert_allclose(actual, X.T @ P, atol=1e-6)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("rho", [0.0, 0.1, 0.4, 0.8])
def test_a_penalty_of_ones_own(rng, norm, rho):
    """The pattern of the paper's Algorithms 2 and 3, filled with the leading eigenvector."""
    X = rng.standard_normal((15, 8)) * np.linspace(1, 2, 8)
    gamma = penalties(X, np.ones(1), rho, norm)
    x = X[:, [np.argmax(np.linalg.norm(X, axis=0))]]
    x = x / np.linalg.norm(x)
    for _ in range(400):
        G = in_sample_space(X, x, gamma, np.ones(1), norm)[1]
        x = G / np.linalg.norm(G)
    pattern = np.flatnonzero(threshold(X.T @ x, gamma, norm))
    A = X.T @ X
    problem = ElementSparseProblem(as_covariance(A, kind="covariance"), 1, 2)
    solution = gpower(problem, norm=norm, penalty=rho, tol=1e-12)
    np.testing.assert_array_equal(solution.support, pattern)
    expected = np.linalg.eigvalsh(A[np.ix_(pattern, pattern)])[-1]
    assert solution.objective == pytest.approx(expected)
    block = gpower_block(
        problem, norm=norm, penalty=rho, tol=1e-12, init="variance", rng=np.random.default_rng()
    )
    np.testing.assert_array_equal(block.support, pattern)
    assert block.objective == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("norm", NORMS)
def test_a_block_with_a_penalty_and_weights_of_ones_own(rng, norm):
    X = rng.standard_normal((15, 8)) * np.linspace(1, 2, 8)
    mu, W = np.array([1.0, 0.4]), rng.standard_normal((8, 2))
    gamma = penalties(X, mu, 0.15, norm)
    P = orthonormal(X @ W)
    for _ in range(300):
        P = scipy.linalg.polar(in_sample_space(X, P, gamma, mu, norm)[1])[0]
    pattern = threshold(X.T @ P * mu, gamma, norm) != 0
    assert 0 < pattern.sum() < 16
    problem = ElementSparseProblem(as_covariance(X.T @ X, kind="covariance"), 2, 2)
    solution = gpower_block(
        problem, norm=norm, penalty=0.15, weights=mu, init=W, tol=1e-12, rng=rng
    )
    np.testing.assert_array_equal(solution.loadings != 0, pattern)


def test_where_l0_comes_to_rest_it_needs_no_filling(rng):
    """A stationary point is an eigenvector of A on its own features."""
    A = random_covariance(rng, 8)
    covariance = as_covariance(A, kind="covariance")
    gamma = np.array([0.1 * A.diagonal().max()])
    Y = polar_products(covariance, np.eye(8)[:, [np.argmax(A.diagonal())]], start=True)
    for _ in range(2000):
        Y = polar_products(covariance, threshold(Y, gamma, "l0"))
    z = threshold(Y, gamma, "l0")[:, 0]
    inside = np.flatnonzero(z)
    assert 1 < inside.size < 8
    z = z[inside] / np.linalg.norm(z)
    M = A[np.ix_(inside, inside)]
    np.testing.assert_allclose(M @ z, (z @ M @ z) * z, atol=1e-8 * np.abs(A).max())


@pytest.mark.parametrize("norm", NORMS)
def test_a_filled_block_is_where_the_alternation_rests(rng, norm):
    X = rng.standard_normal((20, 10))
    mu = np.array([1.0, 0.5, 0.2])
    problem = ElementSparseProblem(as_covariance(X.T @ X, kind="covariance"), 3, 4)
    solution = gpower_block(problem, norm=norm, weights=mu, rng=rng)
    Z = solution.loadings
    assert (np.count_nonzero(Z, axis=0) == 4).all()
    # l1: Z = X'PN on the pattern with unit columns. l0: with the columns as long as they come.
    T = Z * mu
    if norm == "l0":
        T = T * fixed_lengths(X, Z, mu) * mu
    again = np.where(Z != 0, X.T @ scipy.linalg.polar(X @ T)[0], 0.0)
    again /= np.linalg.norm(again, axis=0)
    np.testing.assert_allclose(again, Z, atol=2e-3)


def fixed_lengths(X, Z, mu):
    """The lengths that unit columns Z have in the iteration of l0: those of X'P on the pattern."""
    lengths = np.ones(Z.shape[1])
    for _ in range(200):
        P = scipy.linalg.polar(X @ (Z * lengths * mu**2))[0]
        lengths = np.linalg.norm(np.where(Z != 0, X.T @ P, 0.0), axis=0)
    return lengths


def test_features_are_added_when_no_penalty_leaves_enough():
    """Only two features are correlated with the start; a third one has to come from elsewhere."""
    A = np.diag([3.0, 2.0, 1.0, 1.0])
    A[0, 1] = A[1, 0] = 1.0
    for norm in NORMS:
        problem = ElementSparseProblem(as_covariance(A, kind="covariance"), 1, 3)
        solution = gpower(problem, norm=norm)
        assert solution.objective == pytest.approx(np.linalg.eigvalsh(A)[-1])
        assert set(np.flatnonzero(np.abs(solution.loadings[:, 0]) > 1e-9)) == {0, 1}


@pytest.mark.parametrize("init", ["low-rank", "variance", "random", "array"])
@pytest.mark.parametrize("norm", NORMS)
def test_every_start_of_a_block(rng, norm, init):
    A = random_covariance(rng, 9)
    problem = ElementSparseProblem(as_covariance(A, kind="covariance"), 3, 4)
    start = rng.standard_normal((9, 3)) if init == "array" else init
    solution = gpower_block(problem, norm=norm, init=start, rng=rng)
    most = np.linalg.eigvalsh(A)[-3:].sum()
    assert 0.6 * most < solution.objective <= most
    assert (np.count_nonzero(solution.loadings, axis=0) == 4).all()


def test_the_iteration_limit_is_told(rng):
    problem = ElementSparseProblem(
        as_covariance(random_covariance(rng, 9), kind="covariance"), 2, 4
    )
    assert gpower(problem, tol=0, max_iter=1).status is Status.MAX_ITER
    assert gpower_block(problem, tol=0, max_iter=1, rng=rng).status is Status.MAX_ITER
    assert gpower(problem, penalty=0.3, tol=0, max_iter=1).status is Status.MAX_ITER
    assert gpower(problem).status is Status.CONVERGED


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": 1.0}, "penalty must be at least 0 and below 1"),
        ({"penalty": float("nan")}, "penalty must be at least 0 and below 1"),
        ({"tol": -1.0}, "tol must not be negative"),
        ({"max_iter": 0}, "max_iter must be"),
    ],
)
def test_wrong_options(rng, options, message):
    problem = ElementSparseProblem(as_covariance(np.eye(4), kind="covariance"), 2, 2)
    with pytest.raises(ValueError, match=message):
        gpower(problem, **options)
    with pytest.raises(ValueError, match=message):
        gpower_block(problem, rng=rng, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": [1.0]}, "weights must be n_components=2 positive numbers"),
        ({"weights": [1.0, 0.0]}, "weights must be n_components=2 positive numbers"),
        (
            {"init": "convex"},
            r"init must be one of \['low-rank', 'variance', 'random'\]",
        ),
        ({"init": np.zeros((4, 3))}, r"init must be a finite array of shape \(4, 2\)"),
    ],
)
def test_wrong_options_of_a_block(rng, options, message):
    problem = ElementSparseProblem(as_covariance(np.eye(4), kind="covariance"), 2, 2)
    with pytest.raises(ValueError, match=message):
        gpower_block(problem, rng=rng, **options)
