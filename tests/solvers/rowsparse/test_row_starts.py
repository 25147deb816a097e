"""Starts from rows of |A|: that they are feasible, and what they find."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance, solve
from kspan.datasets import load_dataset
from kspan.progress import Monitor
from kspan.solvers.rowsparse.leaders import find_leaders
from kspan.solvers.rowsparse.row_starts import _unlike, row_starts


def correlations(X):
    return as_covariance(X, scale=True)


def starts(problem):
    return row_starts(problem, find_leaders(problem, Monitor("auto")))


@given(seed=st.integers(0, 2**32 - 1), m=st.integers(1, 3), forced=st.booleans())
def test_starts_are_feasible_and_the_same_each_time(seed, m, forced):
    X = np.random.default_rng(seed).standard_normal((20, 9))
    limits = {"include": [3], "exclude": [0, 8]} if forced else {}
    problem = RowSparseProblem(correlations(X), m, 4, **limits)
    found = starts(problem)
    assert found
    for one, again in zip(found, starts(problem), strict=True):
        assert problem.choice.objection(one.support) is None
        np.testing.assert_array_equal(one.support, again.support)
        assert one.objective == pytest.approx(problem.refit(one.support).objective, rel=1e-12)


def test_a_block_of_related_features_is_found(rng):
    """Ten of five hundred features share a factor that is weak beside the noise of all others."""
    X = rng.standard_normal((200, 500))
    X[:, 100:110] += 2 * rng.standard_normal((200, 1))
    problem = RowSparseProblem(correlations(X), 1, 10)
    best = max(starts(problem), key=lambda candidate: candidate.objective)
    np.testing.assert_array_equal(best.support, np.arange(100, 110))


def test_leaders_of_one_start_are_unlike():
    related = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.2], [0.1, 0.2, 1.0]])
    groups = [group.tolist() for group in _unlike(related, 2, 5)]
    assert groups == [[0, 2], [1, 2], [2, 0]]
    assert [len(group) for group in _unlike(related, 3, 1)] == [1, 1, 1]


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "m", "k", "reached"),
    [pytest.param("leukemia", 1, 30, 25.4565, marks=pytest.mark.slow), ("dlbcl", 1, 10, 9.9444)],
)
def test_standardised_genes(name, m, k, reached):
    """Without these starts 23.6959 and 9.8449."""
    X = load_dataset(name).X.astype(float)
    X = np.log(np.maximum(X, 20)) if name == "leukemia" else X
    problem = RowSparseProblem(correlations(X), m, k)
    assert solve(problem, random_state=0).objective >= reached
