"""Degenerate cases once, over all methods."""

import numpy as np
import pytest

from kspan import NonnegativeProblem, RowSparseProblem, as_covariance, solve
from kspan.problem import ElementSparseProblem, StiefelProblem
from kspan.solvers.registry import methods_for
from tests.oracles import best_by_enumeration, nonnegative_optimum

KINDS = (RowSparseProblem, ElementSparseProblem, StiefelProblem, NonnegativeProblem)
EVERY = [(kind, name) for kind in KINDS for name in methods_for(kind)]
EVERY = [case for case in EVERY if case != (StiefelProblem, "exact")]  # it needs counts
BY_FEATURES = [(kind, name) for kind, name in EVERY if kind is not StiefelProblem]
every_method = pytest.mark.parametrize(
    ("kind", "name"), EVERY, ids=lambda value: getattr(value, "__name__", value)
)
every_method_by_features = pytest.mark.parametrize(
    ("kind", "name"), BY_FEATURES, ids=lambda value: getattr(value, "__name__", value)
)


def made(kind, X, m, k):
    """A problem about data; of the penalised ones the k decides on α."""
    covariance = as_covariance(X)
    if kind is StiefelProblem:
        largest = StiefelProblem(covariance, m, 0.0).largest_alpha
        return StiefelProblem(covariance, m, largest * (1 - k / X.shape[1]) / 4)
    return kind(covariance, m, k)


def run(kind, name, X, m, k, **options):
    if name == "two-stage":
        options = {"n_features_to_select": max(m, k), **options}
    return solve(made(kind, X, m, k), name, random_state=0, **options)


def with_covariance(A):
    """Data with that covariance, up to rounding."""
    values, vectors = np.linalg.eigh(np.asarray(A, dtype=float))
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    d = len(root)
    Q = np.linalg.qr(np.hstack([np.ones((2 * d + 2, 1)), np.eye(2 * d + 2, d)]))[0][:, 1:]
    return Q @ root * np.sqrt(2 * d + 1)


def assert_answers(kind, solution, m, k):
    """Whatever the case: the right shape, unit columns, at most k features, numbers."""
    W = solution.loadings
    assert W.shape[1] == m
    np.testing.assert_allclose(np.linalg.norm(W, axis=0), 1.0, rtol=1e-9)
    assert np.isfinite(solution.explained_variance).all()
    assert np.isfinite(solution.history).all()
    if kind is RowSparseProblem:
        assert solution.support.size == k
        np.testing.assert_allclose(W.T @ W, np.eye(m), atol=1e-9)
    elif kind is not StiefelProblem:
        assert (np.count_nonzero(W, axis=0) <= k).all()
    if kind is NonnegativeProblem:
        assert (W >= 0).all()


CASES = {
    "ties": np.eye(6),
    "all alike": 0.5 * np.eye(6) + 0.5,
    "rank one": np.ones((6, 6)),
    "rank one of both signs": np.outer([3.0, -2, 2, 1, -1, 0.5], [3.0, -2, 2, 1, -1, 0.5]),
    "constant features": np.diag([3.0, 2.0, 1.0, 0.0, 0.0, 0.0]),
    "duplicates": np.kron(np.eye(2), np.ones((3, 3))),
    "negative correlations": np.diag(np.arange(2.0, 8.0)) - 0.3,
}


@every_method
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("m", "k"), [(1, 1), pytest.param(1, 3, marks=pytest.mark.slow), (2, 2), (2, 6), (3, 2)]
)
def test_an_answer_in_any_case(kind, name, case, m, k):
    if (name == "matching" and m * k > 6) or (kind is RowSparseProblem and m > k):
        return
    X = with_covariance(CASES[case])
    if case == "constant features":
        X[:, 3:] = 7.0
    solution = run(kind, name, X, m, k)
    assert_answers(kind, solution, m, k)
    assert solution.objective <= np.linalg.eigvalsh(CASES[case])[-m:].sum() * (1 + 1e-7)


@every_method
@pytest.mark.parametrize("scale", [1e-130, 1e130])
def test_huge_and_tiny_scales(rng, kind, name, scale):
    """With a constant and a duplicate column: the same features, and never the constant one."""
    X = rng.standard_normal((15, 6)) @ rng.standard_normal((6, 6))
    X = np.hstack([np.full((15, 1), 3.0), X, X[:, :1]])
    plain, scaled = (run(kind, name, data, 2, 3) for data in (X, X * scale))
    np.testing.assert_allclose(np.abs(scaled.loadings), np.abs(plain.loadings), atol=1e-6)
    assert not scaled.loadings[0].any()
    assert scaled.objective == pytest.approx(plain.objective * scale**2, rel=1e-7)
    assert max(scaled.history) == pytest.approx(max(plain.history) * scale**2, rel=1e-6)


@every_method_by_features
def test_rank_one_is_exact(rng, kind, name):
    """The k largest entries of the vector; of one sign, if none may be negative."""
    v = rng.uniform(1, 2, 8) * rng.choice([-1, 1], 8)
    options = {"fps": {"refine": True}, "em": {"n_restarts": 20}}.get(name, {})
    if name == "nspca":
        options = {"n_restarts": 20, "tol": 1e-10}
    # The best features, and the loadings on them, but for methods that aim at something else.
    solution = run(kind, name, np.outer(rng.standard_normal(20), v), 1, 3, **options)
    A = np.cov(np.outer(np.arange(20.0), v), rowvar=False)
    best = best_by_enumeration(A, 1, 3) / A.trace()
    if kind is NonnegativeProblem:
        best = nonnegative_optimum(A, 3) / A.trace()
    W = solution.loadings
    share = (v @ W[:, 0]) ** 2 / (v @ v)
    assert share == pytest.approx(best, rel=1e-5)


@every_method_by_features
def test_all_features_of_one_component_are_plain_pca(rng, kind, name):
    """Of data whose leading eigenvector is positive."""
    X = np.abs(rng.standard_normal((40, 5))) * np.arange(1, 6) + 4 * rng.standard_normal((40, 1))
    options = {"em": {"tol": 1e-12, "max_iter": 2000}, "nspca": {"tol": 1e-12}, "net": {"rank": 1}}
    solution = run(kind, name, X, 1, 5, **options.get(name, {}))
    best = np.linalg.eigvalsh(np.cov(X, rowvar=False))[-1]
    tol = {"streaming-srt": 0.1, "fps": 0.03, "gpower-l1-block": 1e-4}.get(name, 1e-6)
    assert solution.objective <= best * (1 + 1e-9)
    assert solution.objective == pytest.approx(best, rel=tol)


@every_method_by_features
def test_constant_features_come_last(rng, kind, name):
    X = rng.standard_normal((30, 6)) + rng.standard_normal((30, 1))
    X[:, :2] = 5.0
    solution = run(kind, name, X, 1, 4)
    assert not solution.loadings[:2].any()


@every_method
def test_a_single_feature(kind, name):
    X = np.arange(5.0)[:, None]
    solution = run(kind, name, X, 1, 1)
    np.testing.assert_allclose(np.abs(solution.loadings), [[1.0]])
    assert solution.objective == pytest.approx(2.5)


@every_method_by_features
@pytest.mark.parametrize("m", [4, 6])
def test_more_components_than_the_rank(rng, kind, name, m):
    X = rng.standard_normal((20, 2)) @ rng.standard_normal((2, 6))
    k = 1 if name == "matching" else 6
    solution = run(kind, name, X, m, k)
    assert_answers(kind, solution, m, k)
    assert solution.objective <= np.trace(np.cov(X, rowvar=False)) * (1 + 1e-9)
