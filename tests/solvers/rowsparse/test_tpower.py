import numpy as np
import pytest

from kspan import RowSparseProblem, as_covariance, solve
from tests.oracles import explained, random_covariance


def by_the_listing(A, k, n_iter=500):
    """Start at the feature of largest variance; multiply, cut, normalise."""
    x = np.zeros(len(A))
    x[np.argmax(np.diag(A))] = 1.0
    values = []
    for _ in range(n_iter):
        y = A @ x
        y[np.argsort(-np.abs(y), kind="stable")[k:]] = 0.0
        x = y / np.linalg.norm(y)
        values.append(x @ A @ x)
    return np.flatnonzero(x), values


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_listing(seed):
    A = random_covariance(np.random.default_rng(seed), 20)
    support, values = by_the_listing(A, 6)
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), 3, 6)
    solution = solve(problem, "tpower", max_iter=500)
    assert np.array_equal(solution.support, support)
    assert np.all(np.diff(solution.history[:-1]) >= -1e-12 * values[-1]), "monotone"
    np.testing.assert_allclose(solution.history[:-1], values[: solution.n_iter + 1], rtol=1e-8)
    assert solution.objective == pytest.approx(explained(A, support, 3), rel=1e-9)


@pytest.mark.slow
def test_coming_down_gradually_helps_on_average():
    gains = []
    for seed in range(30):
        A = random_covariance(np.random.default_rng(seed), 40)
        problem = RowSparseProblem(as_covariance(A, kind="covariance"), 1, 5)
        plain, gradual = (solve(problem, "tpower", gradual=g) for g in (False, True))
        gains.append(gradual.objective / plain.objective)
    assert np.mean(gains) > 1


def test_the_gradual_form_counts_all_its_steps(rng):
    told = []
    problem = RowSparseProblem(as_covariance(random_covariance(rng, 40), kind="covariance"), 1, 4)
    solution = solve(problem, "tpower", gradual=True, callback=told.append)
    assert len(solution.history) == len(told) == solution.n_iter + 4  # four stages, four starts
