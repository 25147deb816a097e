"""Leaders: what their proof says of rows of |A|, and when there are any."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance
from kspan.progress import Monitor
from kspan.solvers.rowsparse import leaders as module
from kspan.solvers.rowsparse.leaders import find_leaders, row_sums
from tests.oracles import best_by_enumeration


def correlations(X):
    return as_covariance(X, scale=True)


def leaders_of(problem):
    return find_leaders(problem, Monitor("auto"))


@given(seed=st.integers(0, 2**32 - 1), d=st.integers(2, 8), data=st.data())
def test_no_support_explains_more_than_the_row_of_its_leader(seed, d, data):
    k = data.draw(st.integers(1, d))
    X = np.random.default_rng(seed).standard_normal((10, d))
    problem = RowSparseProblem(correlations(X), 1, k)
    sums = row_sums(problem, np.arange(d), [d, k, 1], Monitor("auto"))
    A = np.sort(np.abs(np.corrcoef(X, rowvar=False)), axis=1)
    for found, size in zip(sums, (d, k, 1), strict=True):
        np.testing.assert_allclose(found, A[:, d - size :].sum(axis=1))
    best = best_by_enumeration(problem.covariance.submatrix(np.arange(d)), 1, k)
    assert best <= sums[1].max() * (1 + 1e-12)


@pytest.mark.parametrize("m", [1, 2])
def test_the_rows_are_those_of_the_leaders_and_no_leader_is_named_twice(rng, m):
    problem = RowSparseProblem(correlations(rng.standard_normal((30, 90))), m, 8, exclude=[5])
    leaders = leaders_of(problem)
    assert leaders.features.size == np.unique(leaders.features).size == module.N_LEADERS
    assert 5 not in leaders.features
    np.testing.assert_allclose(leaders.rows, problem.covariance.columns(leaders.features).T)


def test_several_components_have_leaders_of_small_groups(rng):
    """One group of forty features that are related, one of three that are more so."""
    X = rng.standard_normal((200, 100))
    X[:, :40] += 2 * rng.standard_normal((200, 1))
    X[:, 50:53] += 5 * rng.standard_normal((200, 1))
    one, two = (leaders_of(RowSparseProblem(correlations(X), m, 12)).features for m in (1, 2))
    assert not np.isin([50, 51, 52], one[:40]).any()
    assert np.isin([50, 51, 52], two[:9]).all()


def test_variances_that_differ_lead_the_way_themselves(rng):
    X = rng.standard_normal((30, 40)) * np.geomspace(1, 100, 40)
    assert leaders_of(RowSparseProblem(as_covariance(X), 1, 5)) is None
    assert leaders_of(RowSparseProblem(correlations(X), 1, 5)) is not None


def test_nothing_to_choose_and_no_time(rng):
    covariance = correlations(rng.standard_normal((30, 6)))
    assert leaders_of(RowSparseProblem(covariance, 1, 2, include=[0, 1])) is None
    monitor = Monitor("auto", deadline=1e-9)
    assert find_leaders(RowSparseProblem(covariance, 1, 2), monitor) is None


def test_of_many_features_some_rows_are_looked_at(rng, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS_READ", 50)
    X = rng.standard_normal((200, 500))
    X[:, 100:130] += 2 * rng.standard_normal((200, 1))
    leaders = leaders_of(RowSparseProblem(correlations(X), 1, 10))
    assert (leaders.features % 10 == 0).all()
    assert set(leaders.features[:3]) == {100, 110, 120}
