"""Component exchange: its scores by definition, that points are feasible, what it gets over."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance
from kspan.progress import Monitor
from kspan.solvers.rowsparse.exchange import _with_leaders, exchanged
from kspan.solvers.rowsparse.leaders import find_leaders


def leaders_of(problem):
    return find_leaders(problem, Monitor("auto"))


def exchanges(problem, candidate):
    return exchanged(problem, candidate, leaders_of(problem), Monitor("auto"))


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e100])
def test_scores_are_what_the_directions_explain(rng, scale):
    """diag(A V (V'AV)^-1 V'A) for V = two of three components and the unit vector of a leader."""
    A = np.corrcoef(rng.standard_normal((30, 12)), rowvar=False)
    problem = RowSparseProblem(as_covariance(scale * A, kind="covariance"), 3, 5)
    candidate = problem.refit(np.arange(5))
    leaders = leaders_of(problem)
    W = np.zeros((12, 3))
    W[:5] = candidate.weights
    kept = scale * A @ W[:, 1:] / np.sqrt(candidate.variances[1:])
    found = _with_leaders(problem, kept, leaders)
    assert len(found) == leaders.features.size
    values = problem.choice.best_sums(found)
    for leader, value, row in zip(leaders.features, values, found, strict=True):
        V = np.column_stack([W[:, 1:], np.eye(12)[leader]])
        scores = np.diag(A @ V @ np.linalg.inv(V.T @ A @ V) @ V.T @ A)
        assert row == pytest.approx(scale * scores, rel=1e-9)
        assert value == pytest.approx(scale * np.sort(scores)[-5:].sum(), rel=1e-9)
        assert problem.refit(problem.select(row)).objective >= value * (1 - 1e-12)


@given(
    seed=st.integers(0, 2**32 - 1), m=st.integers(1, 4), forced=st.booleans(),
    n_samples=st.integers(3, 20),
)  # fmt: skip
def test_exchanges_are_feasible_distinct_and_the_same_each_time(seed, m, forced, n_samples):
    X = np.random.default_rng(seed).standard_normal((n_samples, 9))
    limits = {"include": [3], "exclude": [0, 8]} if forced else {}
    problem = RowSparseProblem(as_covariance(X, scale=True), m, 4, **limits)
    candidate = problem.refit(np.array([1, 2, 3, 4]))
    found = exchanges(problem, candidate)
    assert found
    supports = [one.support.tobytes() for one in found]
    assert len({candidate.support.tobytes(), *supports}) == 1 + len(found)
    assert supports == [one.support.tobytes() for one in exchanges(problem, candidate)]
    assert all(problem.choice.objection(one.support) is None for one in found)


def test_a_group_takes_the_place_of_another(rng):
    """Three groups of five: the first two are chosen, the first and the third are the best."""
    factors = rng.standard_normal((300, 3))
    noise = np.repeat([0.1, 0.8, 0.4], 5)
    X = np.repeat(factors, 5, axis=1) + noise * rng.standard_normal((300, 15))
    problem = RowSparseProblem(as_covariance(X, scale=True), 2, 10)
    stuck = problem.refit(np.arange(10))
    best = max(exchanges(problem, stuck), key=lambda candidate: candidate.objective)
    np.testing.assert_array_equal(best.support, np.r_[0:5, 10:15])


def test_no_exchange_without_time(rng):
    problem = RowSparseProblem(as_covariance(rng.standard_normal((30, 6)), scale=True), 2, 3)
    leaders, candidate = leaders_of(problem), problem.refit(np.arange(3))
    assert exchanged(problem, candidate, leaders, Monitor("auto", deadline=1e-9)) == []
