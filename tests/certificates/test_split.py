"""The split bound's solver: features inside are relaxed, the others cost their variance."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kspan.certificates.bounds import split_bound
from kspan.certificates.outcome import Outcome
from kspan.certificates.split import choose_inside, solve_split
from kspan.certificates.witness import Cones
from kspan.progress import Monitor, Status
from tests.certificates.helpers import all_values, random_psd
from tests.certificates.test_relaxation import by_clarabel


def solved(A, m, k, inside, *, forced=None, allowed=None, **asked):
    d = len(A)
    given = {"lower": 0.0, "target": 0.0, "max_iter": 40, "monitor": Monitor("test")}
    outcome = Outcome()
    solve_split(
        A[np.ix_(inside, inside)], np.diagonal(A).copy(), m, k,
        scale=1.0, inside=inside, n_samples=0, outcome=outcome,
        forced=np.zeros(d, bool) if forced is None else forced,
        allowed=np.ones(d, bool) if allowed is None else allowed, **{**given, **asked},
    )  # fmt: skip
    return outcome


def test_choose_inside_takes_the_support_the_forced_and_the_largest():
    variances = np.array([1.0, 9.0, 8.0, 7.0, 6.0, 5.0])
    forced, allowed = np.zeros(6, bool), np.ones(6, bool)
    forced[5] = True
    allowed[1] = False
    inside = choose_inside(variances, 4, np.array([0, 5]), forced, allowed)
    np.testing.assert_array_equal(inside, [0, 2, 3, 5])
    # The support and the forced are in, however few are asked for; never what is not allowed.
    np.testing.assert_array_equal(
        choose_inside(variances, 1, np.array([0, 5]), forced, allowed), [0, 5]
    )
    np.testing.assert_array_equal(
        choose_inside(variances, 100, np.array([0, 5]), forced, allowed), [0, 2, 3, 4, 5]
    )


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 3),
    more=st.integers(0, 3),
    size=st.integers(3, 9),
    constrained=st.booleans(),
)
def test_the_bound_holds_and_is_the_witness_s(seed, m, more, size, constrained):
    rng = np.random.default_rng(seed)
    A = random_psd(rng, 9, "gaussian") / 20
    k = m + more
    forced, allowed = np.zeros(9, bool), np.ones(9, bool)
    if constrained:
        forced[1], allowed[4] = True, False
    support = np.array([1, 0, 2, 3, 5, 6][:k])
    inside = choose_inside(np.diagonal(A), size, support, forced, allowed)
    outcome = solved(A, m, k, inside, forced=forced, allowed=allowed)
    best = all_values(A, m, k, np.flatnonzero(forced), np.flatnonzero(~allowed))[1].max()
    assert outcome.upper >= best * (1 - 1e-12)
    A_inside = A[np.ix_(inside, inside)]
    again = split_bound(A_inside, np.diagonal(A), m, k, outcome.witness, forced, allowed)
    assert again == outcome.upper
    assert outcome.n_eigensolves > 0
    assert outcome.scores.shape == (9,)
    assert not outcome.scores[~allowed].any()
    assert (outcome.scores >= 0).all()
    assert (outcome.scores <= 1).all()


def test_with_all_features_inside_it_is_no_worse_than_the_relaxation():
    """The row cones only add constraints; 400 steps in float32 give 1e-3."""
    A = random_psd(np.random.default_rng(3), 10, "gaussian")
    A /= np.abs(A).max()
    outcome = solved(A, 2, 4, np.arange(10), max_iter=240)
    assert outcome.upper <= by_clarabel(A, 2, 4) * (1 + 1e-3)
    assert outcome.upper >= all_values(A, 2, 4)[1].max()


def test_the_cones_are_worth_something():
    A = random_psd(np.random.default_rng(3), 10, "gaussian")
    A /= np.abs(A).max()
    every = np.ones(10, bool)
    outcome = solved(A, 1, 4, np.arange(10), max_iter=240)
    without = replace(outcome.witness, cones=Cones(np.zeros((10, 10)), np.zeros(10)))
    plain = split_bound(A, np.diagonal(A), 1, 4, without, ~every, every)
    assert outcome.upper < plain * (1 - 1e-3)
    assert outcome.upper < by_clarabel(A, 1, 4) * (1 - 1e-3)


def test_more_features_inside_are_better():
    rng = np.random.default_rng(0)
    A = random_psd(rng, 14, "gaussian") / 30
    order = np.argsort(-np.diagonal(A))
    few, many = (solved(A, 2, 4, np.sort(order[:size]), max_iter=200).upper for size in (5, 14))
    trace = np.sort(np.diagonal(A))[-4:].sum()
    assert many < few < trace * (1 + 1e-9)


def test_it_stops_at_the_target():
    A = random_psd(np.random.default_rng(3), 10, "gaussian") / 20
    long = solved(A, 2, 4, np.arange(10), max_iter=200)
    target = long.upper * 1.05
    short = solved(A, 2, 4, np.arange(10), max_iter=200, target=target)
    assert long.upper <= short.upper <= target
    assert short.n_eigensolves < long.n_eigensolves


def test_it_stops_when_told_and_reports_on_the_way():
    A = random_psd(np.random.default_rng(3), 10, "gaussian") / 20
    reports = []

    def callback(progress):
        reports.append(progress)
        return len(reports) == 2

    monitor = Monitor("test", callback)
    outcome = solved(A, 2, 4, np.arange(10), max_iter=400, monitor=monitor, lower=0.1)
    assert monitor.stopped is Status.STOPPED
    assert len(reports) == 2
    assert reports[1].upper <= reports[0].upper
    assert reports[1].upper == outcome.upper
    assert reports[0].objective == 0.1
    assert reports[0].n_features_left == 10


@pytest.mark.parametrize(("m", "k"), [(2, 2), (1, 1), (3, 6), (6, 6)])
def test_corners(m, k):
    """k = m, k = all features, m = all features: no warning, a true bound."""
    A = random_psd(np.random.default_rng(1), 6, "gaussian") / 20
    outcome = solved(A, m, k, np.arange(6), max_iter=60)
    assert outcome.upper >= all_values(A, m, k)[1].max() * (1 - 1e-12)
