"""Starts from rows of |A|: what their proof says, that they are feasible, what they find."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance, solve
from kspan.datasets import load_dataset
from kspan.progress import Monitor
from kspan.solvers.rowsparse import row_starts as module
from kspan.solvers.rowsparse.row_starts import _row_sums, _unlike, row_starts
from tests.oracles import best_by_enumeration


def correlations(X):
    return as_covariance(X, scale=True)


def starts(problem):
    return row_starts(problem, Monitor("auto"))


@given(seed=st.integers(0, 2**32 - 1), d=st.integers(2, 8), data=st.data())
def test_no_support_explains_more_than_the_row_of_its_leader(seed, d, data):
    k = data.draw(st.integers(1, d))
    X = np.random.default_rng(seed).standard_normal((10, d))
    problem = RowSparseProblem(correlations(X), 1, k)
    sums = _row_sums(problem, np.arange(d), Monitor("auto"))
    A = np.abs(np.corrcoef(X, rowvar=False))
    np.testing.assert_allclose(sums, np.sort(A, axis=1)[:, d - k :].sum(axis=1))
    best = best_by_enumeration(problem.covariance.submatrix(np.arange(d)), 1, k)
    assert best <= sums.max() * (1 + 1e-12)


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


def test_variances_that_differ_lead_the_way_themselves(rng):
    X = rng.standard_normal((30, 40)) * np.geomspace(1, 100, 40)
    assert starts(RowSparseProblem(as_covariance(X), 1, 5)) == []
    assert starts(RowSparseProblem(correlations(X), 1, 5))


def test_nothing_to_choose_and_no_time(rng):
    covariance = correlations(rng.standard_normal((30, 6)))
    assert starts(RowSparseProblem(covariance, 1, 2, include=[0, 1])) == []
    monitor = Monitor("auto", deadline=1e-9)
    assert row_starts(RowSparseProblem(covariance, 1, 2), monitor) == []


def test_of_many_features_some_rows_are_looked_at(rng, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS_READ", 50)
    X = rng.standard_normal((200, 500))
    X[:, 100:130] += 2 * rng.standard_normal((200, 1))
    problem = RowSparseProblem(correlations(X), 1, 10)
    best = max(starts(problem), key=lambda candidate: candidate.objective)
    assert np.isin(best.support, np.arange(100, 130)).all()


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
