"""Features that tell all others: what they tell, and what methods find, by regression."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from kspan import RepresentProblem, as_covariance, solve
from tests.effort import examples
from tests.ruled import choice_of, keeps, rules, supports
from tests.telling import best_told, told, told_by_regression


@pytest.fixture
def X():
    rng = np.random.default_rng(3)
    return rng.standard_normal((25, 3)) @ rng.standard_normal((3, 7)) + rng.standard_normal((25, 7))


FORMS = {
    "dense": lambda X: as_covariance(X),
    "sparse": lambda X: as_covariance(scipy.sparse.csr_array(X)),
    "precomputed": lambda X: as_covariance(np.cov(X.T), kind="covariance"),
    "weighted": lambda X: as_covariance(X, sample_weight=np.ones(len(X))),
    "scaled": lambda X: as_covariance(X * np.arange(1, 8), scale=np.arange(1.0, 8)),
}


@pytest.mark.parametrize("ridge", [0.0, 1e-5, 0.3])
@pytest.mark.parametrize("form", FORMS)
def test_the_objective_is_that_of_a_regression(X, form, ridge):
    covariance = FORMS[form](X)
    for m, support in ((1, [2]), (1, [0, 3]), (2, [1, 2, 6]), (3, [0, 4, 5]), (2, range(7))):
        support = np.array(support)
        # What may not be chosen is to be told all the same.
        out = np.setdiff1d(np.arange(7), support)[:1]
        problem = RepresentProblem(covariance, m, support.size, exclude=out, ridge=ridge)
        point = problem.refit(support)
        wanted = told_by_regression(X, support, m, ridge)
        assert point.objective == pytest.approx(wanted, rel=1e-9)
        claimed = problem.claimed_value(support, point.weights)
        assert type(claimed) is float
        assert wanted * (1 - 1e-9) <= claimed <= wanted * (1 + 1e-14)


@pytest.mark.parametrize("ridge", [0.0, 1e-5, 0.3])
def test_wide_data(ridge):
    X = np.random.default_rng(4).standard_normal((6, 20))
    problem = RepresentProblem(as_covariance(X), 2, 3, ridge=ridge)
    assert problem.covariance.is_wide
    support = np.array([3, 7, 19])
    wanted = told_by_regression(X, support, 2, ridge)
    assert problem.refit(support).objective == pytest.approx(wanted, rel=1e-9)


def test_weights_that_are_repetitions(X):
    weights = np.arange(25) % 3
    problem = RepresentProblem(as_covariance(X, sample_weight=weights), 2, 3, ridge=0.1)
    support = np.array([0, 2, 5])
    wanted = told_by_regression(np.repeat(X, weights, axis=0), support, 2, 0.1)
    assert problem.refit(support).objective == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 1e-5, 1e3])
def test_what_is_claimed_is_never_above_the_truth(ridge):
    rng = np.random.default_rng(5)
    for _ in range(30):
        X = rng.standard_normal((12, 5)) * 10.0 ** rng.uniform(-3, 3, 5)
        problem = RepresentProblem(as_covariance(X), 2, 3, ridge=ridge)
        support = np.sort(rng.permutation(5)[:3])
        wanted = told_by_regression(X, support, 2, ridge)
        W = rng.standard_normal((3, 2)) * 10.0 ** rng.uniform(-3, 3)
        assert problem.claimed_value(support, W) <= wanted * (1 + 1e-10)
        # By the formula: the scores explain no more than their own regression.
        W = problem.refit(support).weights + 1e-3 * W
        assert problem.claimed_value(support, W) <= wanted * (1 + 1e-10)


@pytest.mark.parametrize(
    "weights",
    [
        np.ones((3, 1)), np.ones((2, 2)), np.ones(6), np.ones((3, 2), dtype=int),
        np.ones((3, 2), dtype=np.float32), np.full((3, 2), np.nan), np.full((3, 2), 1e200),
        [[1.0, 1.0]] * 3, np.ones((3, 2), dtype=complex),
    ],
)  # fmt: skip
def test_weights_that_do_not_fit(X, weights):
    problem = RepresentProblem(as_covariance(X), 2, 3)
    with pytest.raises(ValueError, match="weights"):
        problem.claimed_value(np.array([0, 1, 2]), weights)


@pytest.mark.parametrize("ridge", [-1.0, np.nan, np.inf, True, "much"])
def test_a_ridge_that_makes_no_sense(X, ridge):
    with pytest.raises(ValueError, match="ridge must be a number"):
        RepresentProblem(as_covariance(X), 1, 2, ridge=ridge)


# --- methods


def accident(kind, rng, n=14, d=7):
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 2)) @ rng.standard_normal((2, d))
    if kind == "copies":
        X = X[:, rng.integers(0, 4, d)]
    elif kind == "near copies":
        X = X[:, rng.integers(0, 4, d)] + 1e-7 * X
    elif kind == "zero variance":
        X[:, [0, 3]] = 0.1
    elif kind == "rank one":
        X = np.outer(X[:, 0], rng.uniform(0.5, 2, d))
    elif kind == "rank two":
        X = rng.standard_normal((n, 2)) @ rng.standard_normal((2, d))
    elif kind == "wide":
        X = X[:4]
    elif kind == "ties":
        X = rng.integers(-1, 2, (n, d)).astype(float)
        X[0] = np.arange(d)
    elif kind == "huge":
        X = X * 1e150
    elif kind == "tiny":
        X = X * 1e-60
    elif kind == "mixed":
        X = X * 10.0 ** rng.integers(-6, 7, d)
    return X


ACCIDENTS = (
    "plain", "copies", "near copies", "zero variance", "rank one", "rank two", "wide", "ties",
    "huge", "tiny", "mixed",
)  # fmt: skip


@pytest.mark.parametrize("kind", ACCIDENTS)
def test_no_method_is_above_the_optimum_and_auto_and_exact_reach_it(kind):
    rng = np.random.default_rng(6)
    X = accident(kind, rng)
    size = np.abs(X).max()
    A = np.cov((X / size).T)
    covariance = as_covariance(X)
    for m, k in ((1, 1), (1, 3), (2, 3), (3, 3), (2, 7), (7, 7)):
        problem = RepresentProblem(covariance, m, k)
        best = best_told(A, m, k, problem.ridge)
        for method in ("forward", "auto", "exact"):
            solution = solve(problem, method, random_state=0)
            assert solution.support.size == k
            assert solution.objective / size / size <= best * (1 + 1e-9)
            if method != "forward":
                assert solution.objective / size / size >= best * (1 - 1e-6), (m, k, method)
        assert solution.status.value == "optimal", (m, k)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_without_a_ridge_exact_is_proved_where_features_are_independent(X, m):
    problem = RepresentProblem(as_covariance(X), m, 3, ridge=0.0)
    solution = solve(problem, "exact", random_state=0)
    best = max(told_by_regression(X, list(S), m) for S in combinations(range(7), 3))
    assert solution.objective == pytest.approx(best, rel=1e-9)
    assert solution.status.value == "optimal"


@examples(40)
@given(st.integers(1, 3).flatmap(lambda m: rules(most=7, least=m)), st.integers(0, 10_000))
def test_rules_are_kept_and_exact_is_the_optimum(asked, seed):
    choice, every = choice_of(asked), supports(asked)
    if choice is None:
        return
    rng = np.random.default_rng(seed)
    X = accident(ACCIDENTS[seed % len(ACCIDENTS)], rng, d=max(asked["n_features"], 4))
    X = X[:, : asked["n_features"]]
    if not np.ptp(X, axis=0).any():
        return
    size, m = np.abs(X).max(), asked["least"]
    problem = RepresentProblem(as_covariance(X), m, choice)
    A = np.atleast_2d(np.cov((X / size).T))
    best = max(told(A, S, m, problem.ridge) for S in every)
    for method in ("forward", "auto", "exact"):
        solution = solve(problem, method, random_state=0)
        assert keeps(asked, solution.support.tolist()), method
        assert solution.objective / size / size <= best * (1 + 1e-8) + 1e-9 * np.trace(A)
    assert solution.objective / size / size >= best * (1 - 1e-6) - 1e-9 * np.trace(A)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ACCIDENTS)
def test_twelve_features(kind):
    X = accident(kind, np.random.default_rng(8), n=30, d=12)
    size = np.abs(X).max()
    for m, k in ((2, 4), (4, 4), (3, 6)):
        problem = RepresentProblem(as_covariance(X), m, k)
        best = best_told(np.cov((X / size).T), m, k, problem.ridge)
        found = solve(problem, "exact", random_state=0)
        assert found.objective / size / size == pytest.approx(best, rel=1e-6)
        assert found.status.value == "optimal"
