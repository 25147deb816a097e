"""The split bound's solver: features inside are relaxed, the others cost their variance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan.progress import Monitor, Status
from kspan.proofs.check.bounds import Cones, split_bound
from kspan.proofs.check.known import KnownMatrix, KnownVariances
from kspan.proofs.search.proof import Proof
from kspan.proofs.search.tree_state import Budgets
from kspan.proofs.search.wide_search import choose_inside, prove_by_split
from tests.effort import examples
from tests.proofs.helpers import (
    all_values,
    any_of,
    choice_of,
    first_support,
    matrix_problem,
    random_psd,
)
from tests.proofs.test_relaxation import by_clarabel


def solved(problem, n_inside=9, *, support=None, n_iter=40, callback=None):
    """The proof that the split bound alone gives; `upper` and scores in the problem's units."""
    best = problem.refit(first_support(problem) if support is None else support)
    proof = Proof(problem, best, Monitor("test", callback), heuristic=Asked())
    prove_by_split(proof, Budgets(n_inside=n_inside, split_iter=n_iter))
    return proof


class Asked:
    """A heuristic that only remembers what it was told."""

    def __call__(self, problem, scores, choice, monitor):
        self.scores = scores
        return first_support(problem)


def test_choose_inside_takes_the_support_the_forced_and_the_largest():
    variances = np.array([1.0, 9.0, 8.0, 7.0, 6.0, 5.0])
    choice = choice_of(np.arange(6) == 5, 2, np.arange(6) != 1)
    inside = choose_inside(variances, 4, np.array([0, 5]), choice)
    np.testing.assert_array_equal(inside, [0, 2, 3, 5])
    # The support and the forced are in, however few are asked for; never what is not allowed.
    few = choose_inside(variances, 1, np.array([0, 5]), choice)
    np.testing.assert_array_equal(few, [0, 5])
    many = choose_inside(variances, 100, np.array([0, 5]), choice)
    np.testing.assert_array_equal(many, [0, 2, 3, 4, 5])


@examples(25)
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 3),
    more=st.integers(0, 3),
    size=st.integers(3, 9),
    constrained=st.booleans(),
)
def test_the_bound_holds_and_is_the_witness_s(seed, m, more, size, constrained):
    A = random_psd(np.random.default_rng(seed), 9, "gaussian")
    include, exclude = ([1], [4]) if constrained else ([], [])
    problem = matrix_problem(A, m, m + more, include, exclude)
    proof = solved(problem, size)
    best = all_values(A, m, m + more, include, exclude)[1].max()
    assert proof.upper >= best * (1 - 1e-12)
    assert proof.witness.evaluate(problem) == proof.upper
    assert proof.n_eigensolves > 0
    scores = proof.heuristic.scores
    assert scores.shape == (9,)
    assert not scores[exclude].any()
    assert (scores >= 0).all()
    assert (scores <= 1).all()


def test_with_all_features_inside_it_is_no_worse_than_the_relaxation():
    """The row cones only add constraints; 240 steps in float32 give 1e-3."""
    A = random_psd(np.random.default_rng(3), 10, "gaussian")
    A /= np.abs(A).max()
    proof = solved(matrix_problem(A, 2, 4), 10, n_iter=240)
    assert proof.upper <= by_clarabel(A, 2, 4) * (1 + 1e-3)
    assert proof.upper >= all_values(A, 2, 4)[1].max()


def test_the_cones_are_worth_something():
    A = random_psd(np.random.default_rng(3), 10, "gaussian")
    A /= np.abs(A).max()
    proof = solved(matrix_problem(A, 1, 4), 10, n_iter=240)
    witness = proof.witness
    plain = split_bound(
        KnownMatrix.exact(A / witness.scale), KnownVariances.exact(np.diagonal(A) / witness.scale),
        np.arange(10),
        witness.factor, Cones(), 1, any_of(10, 4),
    ).value  # fmt: skip
    assert proof.upper < plain * witness.scale * (1 - 1e-3)
    assert proof.upper < by_clarabel(A, 1, 4) * (1 - 1e-3)


def test_more_features_inside_are_better():
    A = random_psd(np.random.default_rng(0), 14, "gaussian")
    largest = np.sort(np.argsort(-np.diagonal(A))[:4])
    problem = matrix_problem(A, 2, 4)
    few, many = (solved(problem, n, support=largest, n_iter=200).upper for n in (5, 14))
    trace = np.sort(np.diagonal(A))[-4:].sum()
    assert many < few < trace * (1 + 1e-9)


def test_it_stops_when_it_meets_the_value():
    """A diagonal matrix: the relaxation is exact."""
    problem = matrix_problem(np.diag(np.arange(10.0, 0.0, -1.0)), 2, 2)
    proof = solved(problem, 10, support=np.array([0, 1]), n_iter=400)
    assert proof.upper == pytest.approx(19.0, rel=1e-6)


def test_it_stops_when_told_and_reports_on_the_way():
    A = random_psd(np.random.default_rng(3), 10, "gaussian")
    reports = []

    def callback(progress):
        reports.append(progress)
        return len(reports) == 2

    proof = solved(matrix_problem(A, 2, 4), 10, n_iter=400, callback=callback)
    assert proof.monitor.stopped is Status.STOPPED
    assert len(reports) == 2
    assert reports[1].upper <= reports[0].upper
    assert reports[1].upper == proof.upper
    assert reports[0].objective == proof.lower
    assert reports[0].n_features_left == 10


@pytest.mark.parametrize(("m", "k"), [(2, 2), (1, 1), (3, 6), (6, 6)])
def test_corners(m, k):
    """k = m, k = all features, m = all features: no warning, a true bound."""
    A = random_psd(np.random.default_rng(1), 6, "gaussian")
    proof = solved(matrix_problem(A, m, k), 6, n_iter=60)
    assert proof.upper >= all_values(A, m, k)[1].max() * (1 - 1e-12)
