import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance, solve
from kspan.problem.problems import STACK_LIMIT
from kspan.progress import Monitor
from kspan.solvers.rowsparse import swaps as swaps_module
from kspan.solvers.rowsparse.swaps import Swaps, improve_by_swaps, rank_swaps
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


def some_swaps(rng, support, n_features, count):
    """Exchanges of features of a support for others."""
    others = np.setdiff1d(np.arange(n_features), support)
    return Swaps(rng.choice(support, count), rng.choice(others, count), rng.random(count))


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(0, 8))
def test_a_swap_takes_one_feature_away_and_puts_another_there(seed, k, count):
    rng = np.random.default_rng(seed)
    support = np.sort(rng.choice(12, k, replace=False))
    swaps = some_swaps(rng, support, 12, count)
    assert len(swaps) == count
    before = support.copy()
    trials = swaps.applied(support)
    assert trials.shape == (count, k)
    for out, into, trial in zip(swaps.out, swaps.into, trials, strict=True):
        assert trial.tolist() == sorted({*support.tolist(), into} - {out})
    np.testing.assert_array_equal(support, before)


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(0, 8))
def test_swaps_that_another_support_admits(seed, k, count):
    """After some exchanges others make no sense any more; their order is kept."""
    rng = np.random.default_rng(seed)
    support, other = (np.sort(rng.choice(12, k, replace=False)) for _ in range(2))
    swaps = some_swaps(rng, support, 12, count)
    left = swaps.among(other)
    kept = [
        i for i in range(count)
        if swaps.out[i] in other.tolist() and swaps.into[i] not in other.tolist()
    ]  # fmt: skip
    for name in ("out", "into", "gain"):
        np.testing.assert_array_equal(getattr(left, name), getattr(swaps, name)[kept])
    assert len(swaps.among(support)) == count
    np.testing.assert_array_equal(swaps[1:3].gain, swaps.gain[1:3])


@pytest.mark.parametrize("m", [1, 2])
def test_large_supports_are_swapped_to_where_none_helps(m):
    """Tried a few at a time, and for one component told apart by Cholesky's decomposition."""
    rng = np.random.default_rng(3)
    k, d = STACK_LIMIT + 3, STACK_LIMIT + 15
    A = random_covariance(rng, d)
    problem = problem_of(A, m, k)
    start = problem.refit(np.sort(rng.choice(d, k, replace=False)))
    found, settled = improve_by_swaps(problem, start, max_sweeps=50, monitor=Monitor("test"))
    assert settled
    assert found.objective > start.objective
    assert found.objective == pytest.approx(explained(A, found.support, m), rel=1e-12)


@given(st.integers(0, 10_000), st.sampled_from([1e-3, 1.0, 1e6]))
def test_a_trial_that_is_given_up_does_not_help(seed, scale):
    """What Cholesky's decomposition says no to is below what is known; all others are computed."""
    rng = np.random.default_rng(seed)
    k = STACK_LIMIT + 2
    A = random_covariance(rng, k + 6) * scale
    places = np.array([np.sort(rng.choice(k + 6, k, replace=False)) for _ in range(4)])
    exact = np.array([explained(A, each, 1) for each in places])
    known = float(rng.uniform(0.98, 1.02) * np.median(exact))
    values = swaps_module._trial_values(A, places, 1, known)
    np.testing.assert_allclose(values[values > 0], exact[values > 0], rtol=1e-10)
    assert (exact[values == 0] <= known * (1 + 1e-10)).all()
    assert (values[exact > known * (1 + 1e-10)] > 0).all()
