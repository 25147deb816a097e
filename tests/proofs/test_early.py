"""A look from above while a search goes on: what it calls settled is, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kspan.solving as solving
from kspan import FeatureSparsePCA, FitRecord, RowSparseProblem, as_covariance, solve
from kspan.problem import Outlook, RuledChoice
from kspan.progress import Monitor, Status
from kspan.proofs import CertificateError
from kspan.proofs.search.early import LARGEST, look_early
from kspan.solvers.rowsparse.moves import polish
from kspan.solving import is_settled
from tests.effort import examples
from tests.proofs.helpers import (
    ROUNDING,
    all_values,
    first_support,
    matrix_problem,
    optimum,
    psd_problems,
    random_psd,
)
from tests.ruled import choice_of, rules, supports

# What "settled" and "optimal" promise: nothing is better by more than this share.
OPTIMAL = 1.01e-6


def looked(problem, support, monitor=None):
    """A look at a problem from a support."""
    best = problem.refit(np.sort(support))
    return look_early(problem, best, heuristic=polish, monitor=monitor or Monitor("test"))


def assert_true_outlook(outlook, problem, best):
    """The point is feasible, the bound holds, and what is settled is the optimum."""
    assert problem.choice.objection(outlook.best.support) is None
    assert outlook.best.objective <= best * (1 + ROUNDING)
    assert outlook.upper >= best * (1 - ROUNDING)
    if outlook.is_settled:
        assert outlook.best.objective >= best * (1 - OPTIMAL)


def two_groups():
    """Two groups of three alike features: half of the supports of three are twice as good."""
    return np.kron(np.diag([2.0, 1.0]), np.full((3, 3), 0.9) + 0.1 * np.eye(3))


@examples(120)
@given(psd_problems(max_d=10), st.integers(0, 2**32 - 1))
def test_what_is_called_settled_is_the_optimum(drawn, seed):
    A, problem = drawn
    best, _ = optimum(problem, A)
    choice, rng = problem.choice, np.random.default_rng(seed)
    start = choice.select(np.where(choice.allowed, rng.random(choice.n_features), 0.0))
    outlook = looked(problem, start)
    assert_true_outlook(outlook, problem, best)
    assert outlook.best.objective >= problem.refit(start).objective * (1 - ROUNDING)


@examples(80)
@given(rules(), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_rules_are_kept_by_what_is_settled(asked, m, seed):
    choice = choice_of({**asked, "least": m})
    every = [S for S in supports({**asked, "least": m}) if S.size >= m]
    if choice is None or not every:
        return
    A = random_psd(np.random.default_rng(seed), asked["n_features"], "ties")
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), m, choice)
    best = max(np.linalg.eigvalsh(A[np.ix_(S, S)])[-m:].sum() for S in every)
    assert_true_outlook(looked(problem, every[seed % len(every)]), problem, best)
    solution = solve(problem, random_state=seed, n_restarts=4, n_kicks=1)
    assert isinstance(problem.choice, RuledChoice)
    assert problem.choice.objection(solution.support) is None
    if solution.status is Status.OPTIMAL:
        assert solution.objective >= best * (1 - OPTIMAL) - ROUNDING


@examples(80)
@given(psd_problems(max_d=9), st.integers(0, 99))
def test_optimal_is_what_enumeration_finds(drawn, seed):
    A, problem = drawn
    best, _ = optimum(problem, A)
    solution = solve(problem, random_state=seed, n_restarts=4, n_kicks=1)
    assert solution.objective <= best * (1 + ROUNDING)
    if solution.status is Status.OPTIMAL:
        assert solution.objective >= best * (1 - OPTIMAL)
    anew = problem.changed(covariance=as_covariance(A, kind="covariance"))
    again = solve(anew, random_state=seed, n_restarts=4, n_kicks=1)
    np.testing.assert_array_equal(again.support, solution.support)
    np.testing.assert_array_equal(again.history, solution.history)
    assert again.status is solution.status


@examples(60)
@given(psd_problems(max_d=9))
def test_a_support_is_called_optimal_if_it_is(drawn):
    """From any support: the best ones are proved, and those that are worse never are."""
    A, problem = drawn
    best, tied = optimum(problem, A)
    found, values = all_values(
        A, problem.n_components, problem.choice.size, problem.include, problem.exclude
    )
    for support, value in zip(found[:4], values[:4], strict=True):
        if is_settled(problem, support):
            assert value >= best * (1 - OPTIMAL)
    assert isinstance(is_settled(problem, tied[0]), bool)


def test_small_problems_are_settled_and_led():
    A = two_groups()
    outlook = looked(matrix_problem(A, 1, 3), np.array([3, 4, 5]))
    assert outlook.is_settled
    assert outlook.is_led
    np.testing.assert_array_equal(outlook.best.support, [0, 1, 2])
    assert outlook.best.objective <= outlook.upper <= outlook.best.objective * (1 + OPTIMAL)


def test_larger_ones_get_closed_forms_only(rng):
    problem = RowSparseProblem(as_covariance(rng.standard_normal((300, LARGEST + 1))), 2, 8)
    outlook = looked(problem, np.arange(8))
    assert not outlook.is_led
    assert not outlook.is_settled
    np.testing.assert_array_equal(outlook.best.support, np.arange(8))
    few = problem.changed(choice=problem.choice.settled(removed=[100]))
    assert looked(few, np.arange(8)).is_led


def test_it_is_asked_once_and_takes_no_random_numbers(monkeypatch):
    """A look that says nothing, and none at all, leave the rest of the search as it is."""
    A = random_psd(np.random.default_rng(5), 30, "gaussian")
    problem = matrix_problem(A, 2, 6)
    asked = []

    def says_nothing(problem, best, *, heuristic, monitor):
        asked.append(best)
        return replace(
            look_early(problem, best, heuristic=heuristic, monitor=monitor),
            best=best, is_settled=False, is_led=False,
        )  # fmt: skip

    monkeypatch.setattr(solving, "look_early", says_nothing)
    with_look = solve(problem, random_state=3)
    assert len(asked) == 1
    method = solving.as_method(RowSparseProblem, "auto", {})
    alone = method.run(problem, Monitor("auto"), np.random.default_rng(3))
    np.testing.assert_array_equal(alone.support, with_look.support)
    assert alone.status is with_look.status is Status.COMPLETED
    assert alone.objective == with_look.objective


@pytest.mark.parametrize("is_settled", [False, True])
def test_the_point_that_a_look_finds_is_taken(monkeypatch, is_settled):
    """The search ends there if nothing is better, and begins there otherwise."""
    A = random_psd(np.random.default_rng(1), 12, "gaussian")
    problem = matrix_problem(A, 2, 4)
    budget = {"n_restarts": 0, "n_kicks": 0, "max_sweeps": 0, "max_iter": 0}
    best, alike = optimum(problem, A)

    def look(problem, before, **others):
        assert before.objective < best * (1 - 1e-6)  # else this test says nothing
        return Outlook(problem.refit(alike[0]), best, is_settled=is_settled, is_led=True)

    monkeypatch.setattr(solving, "look_early", look)
    solution = solve(problem, random_state=0, **budget)
    np.testing.assert_array_equal(solution.support, alike[0])
    assert solution.status is (Status.OPTIMAL if is_settled else Status.COMPLETED)


@pytest.mark.parametrize("stops", [KeyboardInterrupt, None], ids=["interrupt", "time"])
def test_what_stops_a_look_leaves_a_good_answer(monkeypatch, stops):
    """An interrupt, and time that is up, in the middle of a look."""
    A = random_psd(np.random.default_rng(8), 40, "gaussian")
    problem = matrix_problem(A, 2, 6)
    first = solve(problem, "ipu").objective

    def stopping(*args):
        if stops is not None:
            raise stops
        monitors[0].deadline.__init__(1e-9)
        return polish(*args)

    monitors = []

    def look(problem, best, *, heuristic, monitor):
        monitors.append(monitor)
        return look_early(problem, best, heuristic=stopping, monitor=monitor)

    monkeypatch.setattr(solving, "look_early", look)
    solution = solve(problem, random_state=0)
    assert len(monitors) == 1
    assert solution.status is (Status.TIME_LIMIT if stops is None else Status.INTERRUPTED)
    assert solution.objective >= first * (1 - ROUNDING)
    assert solution.objective == pytest.approx(problem.refit(solution.support).objective, rel=1e-12)


# --- records


@pytest.fixture(scope="module")
def settled():
    """A fit of few features that a look has settled, its record and its data."""
    X = np.random.default_rng(2).standard_normal((60, 8)) * np.linspace(3, 1, 8)
    X[:, 1] += X[:, 0]
    estimator = FeatureSparsePCA(2, 3, certify=False, random_state=0).fit(X)
    assert estimator.status_ == "optimal"
    return X, FitRecord.from_estimator(estimator, X)


def test_an_honest_optimal_without_certificate_is_accepted(settled):
    X, record = settled
    assert (record.certificates, record.status) == ([], "optimal")
    record.verify(X)


def with_another_feature(record, X):
    """The record of a fit of X with a support of which one feature is exchanged for a worse one."""
    support = np.sort(record.support)
    problem = RowSparseProblem(as_covariance(X), 2, 3)
    best = problem.refit(support).objective
    for out in support:
        for into in np.setdiff1d(np.arange(8), support):
            other = np.append(np.setdiff1d(support, out), into)
            if 0.5 * best < problem.refit(np.sort(other)).objective < 0.99 * best:
                fit = FeatureSparsePCA(
                    2, 3, certify=False, random_state=0, include=other.tolist()
                ).fit(X)
                free = FitRecord.from_estimator(fit, X)
                return replace(free, parameters=record.parameters)
    raise AssertionError("no exchange makes it worse")


def test_a_false_optimal_is_refused(settled):
    X, record = settled
    worse = with_another_feature(record, X)
    replace(worse, status="completed").verify(X)
    with pytest.raises(CertificateError, match="not so easily proved"):
        replace(worse, status="optimal").verify(X)
    with pytest.raises(CertificateError, match="no certificate says so"):
        replace(record, status="bounded").verify(X)


def test_a_fit_that_asked_for_a_proof_needs_its_certificate(settled):
    X, record = settled
    asked = {**record.parameters, "certify": "tight"}
    with pytest.raises(CertificateError, match="no certificate says so"):
        replace(record, parameters=asked).verify(X)


def test_first_supports_are_feasible():
    """What the tests above start from."""
    problem = matrix_problem(np.eye(4), 1, 2, [3], [0])
    assert problem.choice.objection(first_support(problem)) is None
