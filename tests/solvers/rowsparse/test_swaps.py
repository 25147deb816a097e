import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance, solve
from kspan.progress import Monitor
from kspan.solvers.rowsparse.swaps import improve_by_swaps, rank_swaps
from tests.oracles import explained, random_covariance


def problem_of(A, m, k, **limits):
    return RowSparseProblem(as_covariance(A, kind="covariance"), m, k, **limits)


@given(
    st.integers(0, 10_000), st.integers(1, 4), st.integers(0, 3), st.sampled_from([1e-3, 1, 1e5])
)
def test_the_score_is_a_lower_bound_on_the_gain(seed, m, extra, scale):
    rng = np.random.default_rng(seed)
    d, k = 10, m + extra
    A = random_covariance(rng, d, int(rng.integers(1, d + 1))) * scale
    problem = problem_of(A, m, k)
    candidate = problem.refit(np.sort(rng.choice(d, k, replace=False)))
    rows = A[candidate.support]
    ranked = rank_swaps(problem, candidate, rows, n_trials=1000)
    assert ranked or k == d
    outside = np.setdiff1d(np.arange(d), candidate.support)
    largest = max(candidate.objective, A.diagonal()[outside].max(initial=0.0))
    unit = 2.0 ** np.floor(np.log2(largest)) if largest > 0 else 1.0
    for swap in ranked:
        trial = np.sort(np.append(candidate.support[candidate.support != swap.out], swap.into))
        exact = explained(A, trial, m) - candidate.objective
        assert swap.gain * unit <= exact + 1e-9 * np.trace(A)


def test_what_comes_in_may_be_far_larger_than_all_that_is_chosen():
    """A quotient that overflows would be a warning to the user."""
    A = np.diag([1e300, 2e-100, 2e-100])
    A[1, 2] = A[2, 1] = 1e-100
    assert solve(problem_of(A, 2, 2)).objective == 1e300
    problem = problem_of(A, 1, 2)
    best = rank_swaps(problem, problem.refit(np.array([1, 2])), A[[1, 2]], n_trials=1)[0]
    assert (best.into, np.isfinite(best.gain)) == (0, True)


def test_for_one_component_and_one_feature_the_score_is_exact():
    A = np.diag([3.0, 5.0, 4.0])
    problem = problem_of(A, 1, 1)
    candidate = problem.refit(np.array([0]))
    best = rank_swaps(problem, candidate, A[[0]], n_trials=1)[0]
    assert (best.out, best.into) == (0, 1)
    assert best.gain * 4.0 == pytest.approx(2.0)  # in units of 4, the power of two below 5


@pytest.mark.parametrize("seed", range(20))
def test_where_it_stops_no_single_swap_helps(seed):
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, 12)
    problem = problem_of(A, 2, 4, include=[1], exclude=[2])
    start = problem.refit(np.array([0, 1, 3, 4]))
    candidate, settled = improve_by_swaps(
        problem, start, max_sweeps=50, n_trials=1000, monitor=Monitor("test")
    )
    assert settled
    assert candidate.objective >= start.objective
    assert 1 in candidate.support
    assert 2 not in candidate.support
    for out in set(candidate.support.tolist()) - {1}:
        for into in set(range(12)) - set(candidate.support.tolist()) - {2}:
            trial = np.sort(np.append(candidate.support[candidate.support != out], into))
            assert explained(A, trial, 2) <= candidate.objective * (1 + 1e-9)


def test_nothing_to_swap():
    problem = problem_of(np.eye(3), 1, 3)
    candidate, settled = improve_by_swaps(
        problem, problem.refit(np.arange(3)), max_sweeps=3, monitor=Monitor("test")
    )
    assert settled
    assert candidate.support.tolist() == [0, 1, 2]
