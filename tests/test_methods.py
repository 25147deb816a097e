import numpy as np
import pytest

from kspan import RowSparseProblem, as_covariance, solve
from kspan.methods import ROW_SPARSE
from tests.oracles import random_covariance


@pytest.fixture
def problem(rng):
    return RowSparseProblem(as_covariance(random_covariance(rng, 10), kind="covariance"), 2, 4)


@pytest.mark.parametrize("solver", ROW_SPARSE)
def test_every_method_answers_alike(problem, solver):
    solution = solve(problem, solver, random_state=0)
    A = problem.covariance.A
    W = solution.loadings
    assert solution.solver == solver
    assert solution.support.size == 4
    assert np.array_equal(np.flatnonzero(W.any(axis=1)), solution.support)
    np.testing.assert_allclose(W.T @ W, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(W.T @ A @ W, np.diag(solution.explained_variance), atol=1e-10)
    assert np.all(np.diff(solution.explained_variance) <= 0)
    assert solution.objective == pytest.approx(max(solution.history), rel=1e-10)


@pytest.mark.parametrize("solver", ROW_SPARSE)
def test_every_method_calls_back(problem, solver):
    told = []
    solve(problem, solver, random_state=0, callback=told.append)
    assert told
    expected = {"auto", "exact"} if solver == "exact" else {solver}
    assert {progress.solver for progress in told} == expected


@pytest.mark.parametrize("solver", ["auto", "ipu", "brute-force"])
def test_time_limits_are_kept(problem, solver):
    solution = solve(problem, solver, random_state=0, time_limit=1e-9)
    assert solution.status.value == "time limit"
    assert solution.objective > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"solver": "magic"}, r"solver must be one of \['auto'"),
        ({"init": "warm"}, r"init must be one of \['low-rank', 'random'\]"),
        ({"solver": "go", "max_iter": 3}, "'go' has no option 'max_iter'; it takes.*'refine'"),
        ({"time_limit": 0}, "time_limit must be positive"),
    ],
)
def test_wrong_arguments(problem, arguments, message):
    with pytest.raises(ValueError, match=message):
        solve(problem, **arguments)


@pytest.mark.parametrize("random_state", [3, np.random.default_rng(3), np.random.RandomState(3)])
def test_any_random_state(problem, random_state):
    assert solve(problem, "ipu", init="random", random_state=random_state).objective > 0
