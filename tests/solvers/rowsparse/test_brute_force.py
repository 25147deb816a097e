import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance, solve
from tests.oracles import best_by_enumeration, draw_problem, random_covariance


@given(st.integers(0, 10_000), st.data())
def test_equals_one_support_at_a_time(seed, data):
    A, problem = draw_problem(data, seed, max_features=8)
    m, k = problem.n_components, problem.n_features_to_select
    include, exclude = set(problem.include.tolist()), set(problem.exclude.tolist())
    solution = solve(problem, "brute-force")
    expected = best_by_enumeration(A, m, k, include, exclude)
    assert solution.objective == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert include <= set(solution.support.tolist())
    assert not exclude & set(solution.support.tolist())
    assert solution.status.value == "completed"


def test_too_many_supports_are_refused(rng):
    problem = RowSparseProblem(as_covariance(np.eye(100), kind="covariance"), 1, 10)
    with pytest.raises(ValueError, match=r"17,310,309,456,440 supports.*max_supports"):
        solve(problem, "brute-force")


def test_a_callback_stops_it(rng):
    A = random_covariance(rng, 20)
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), 1, 6)
    solution = solve(problem, "brute-force", callback=lambda progress: True)
    assert solution.status.value == "stopped by callback"
    assert len(solution.history) == 1
