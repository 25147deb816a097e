import numpy as np
import pytest

from kspan import RowSparseProblem, as_covariance, solve
from kspan.solvers.registry import methods_for
from kspan.solvers.starts import STARTS

ROW_SPARSE = list(methods_for(RowSparseProblem))


@pytest.fixture
def X(rng):
    return rng.standard_normal((60, 10)) @ rng.standard_normal((10, 10))


@pytest.fixture
def problem(X):
    return RowSparseProblem(as_covariance(X), 2, 4)


@pytest.mark.parametrize("solver", ROW_SPARSE)
def test_every_method_answers_alike(problem, X, solver):
    solution = solve(problem, solver, random_state=0)
    A = np.cov(X, rowvar=False)
    W = solution.loadings
    assert solution.solver == solver
    assert solution.support.size == 4
    assert np.array_equal(np.flatnonzero(W.any(axis=1)), solution.support)
    np.testing.assert_allclose(W.T @ W, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(W.T @ A @ W, np.diag(solution.explained_variance), atol=1e-10)
    assert np.all(np.diff(solution.explained_variance) <= 0)
    # FPS is the point at its last λ; all others return the best they have seen.
    reached = solution.history if solver == "fps" else [max(solution.history)]
    assert np.isclose(solution.objective, reached, rtol=1e-10, atol=0).any()


@pytest.mark.parametrize("solver", ROW_SPARSE)
@pytest.mark.parametrize("scale", [2.0**-432, 1.0, 2.0**432])
def test_every_method_honours_what_is_forced_and_forbidden(X, solver, scale):
    """At any scale, with a constant and a duplicate column: the same features.

    The scales are powers of two: others round, and one of two equal columns would win by that.
    """
    X = np.hstack([X, np.full((60, 1), 3.0), X[:, :1]])
    limits = {"include": [3], "exclude": [1, 5]}
    problem = RowSparseProblem(as_covariance(X * scale), 2, 4, **limits)
    solution = solve(problem, solver, random_state=0)
    assert 3 in solution.support
    assert not {1, 5, 10} & set(solution.support)
    assert np.isfinite(solution.history).all()
    plain = solve(RowSparseProblem(as_covariance(X), 2, 4, **limits), solver, random_state=0)
    assert np.array_equal(plain.support, solution.support)
    assert solution.objective == pytest.approx(plain.objective * scale**2, rel=1e-9)


@pytest.mark.parametrize("solver", ROW_SPARSE)
@pytest.mark.parametrize(("m", "k"), [(1, 1), (3, 3), (2, 10), (10, 10)])
def test_every_method_at_the_corners(X, solver, m, k):
    solution = solve(RowSparseProblem(as_covariance(X), m, k), solver, random_state=0)
    assert solution.weights.shape == (k, m)
    if k == 10:  # all features: plain PCA, but for encoders that optimise something else
        best = np.linalg.eigvalsh(np.cov(X, rowvar=False))[-m:].sum()
        assert solution.objective <= best * (1 + 1e-9)
        if m == 10 or solver not in ("cssp", "fps", "streaming-srt"):
            assert solution.objective == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("solver", ["ipu", "soap", "srt", "tpower"])
@pytest.mark.parametrize("init", STARTS)
def test_every_iterative_method_takes_every_start(problem, solver, init):
    """And a start changes only the way, not what is counted."""
    solution = solve(problem, solver, init=init, random_state=0)
    assert 0 < solution.objective <= solve(problem, "brute-force").objective * (1 + 1e-12)


@pytest.mark.parametrize("solver", ["ipu", "soap", "srt", "tpower"])
def test_more_random_starts_are_never_worse(problem, solver):
    few, many = (
        solve(problem, solver, init="random", n_restarts=n, random_state=0) for n in (1, 20)
    )
    if solver == "tpower":  # what it maximises is the first component
        few, many = (max(s.history[:-1]) for s in (few, many))
        assert many >= few
    else:
        assert many.objective >= few.objective * (1 - 1e-12)
    with pytest.raises(ValueError, match="n_restarts must be a whole number, 1 or more"):
        solve(problem, solver, init="random", n_restarts=0)


@pytest.mark.parametrize("solver", ROW_SPARSE)
def test_every_method_calls_back(problem, solver):
    told = []
    solve(problem, solver, random_state=0, callback=told.append)
    assert told
    assert {progress.solver for progress in told} == {solver}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"solver": "magic"}, r"solver must be one of \['auto'.*\] or a method, got 'magic'"),
        ({"init": "warm"}, r"init must be one of \['low-rank', 'convex', 'variance', 'random'\]"),
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


def test_what_is_no_problem():
    with pytest.raises(TypeError, match="solve needs a problem such as RowSparseProblem, got 3"):
        solve(3)
