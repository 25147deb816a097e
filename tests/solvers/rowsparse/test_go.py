import numpy as np
import pytest

from kspan import RowSparseProblem, as_covariance, solve
from kspan.datasets import make_scheme
from tests.oracles import best_by_enumeration, random_covariance


def problem_of(A, m, k, **limits):
    return RowSparseProblem(as_covariance(A, kind="covariance"), m, k, **limits)


def test_optimal_in_all_draws_of_scheme_c():
    """Theorem 4.2, on the paper's own scheme: rank(A) = m = 3, d = 20, k = 7.

    At that rank a support explains all of its variance, so the best has the largest variances.
    """
    for seed in range(100):
        A = make_scheme("C", random_state=seed)
        problem = problem_of(A, 3, 7)
        best = np.sort(np.diag(A))[-7:].sum()
        if seed < 3:
            assert solve(problem, "brute-force").objective == pytest.approx(best, rel=1e-9)
        for refine in (True, False):
            value = solve(problem, "go", refine=refine).objective
            assert value == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_optimal_at_low_rank_with_include_and_exclude(seed):
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, 8, 2)
    limits = {"include": [1], "exclude": [0, 5]}
    value = solve(problem_of(A, 2, 4, **limits), "go").objective
    assert value == pytest.approx(best_by_enumeration(A, 2, 4, **limits), rel=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_both_readings_share_the_support_and_refitting_is_never_worse(seed):
    A = random_covariance(np.random.default_rng(seed), 12)
    refined = solve(problem_of(A, 3, 5), "go")
    proxy = solve(problem_of(A, 3, 5), "go", refine=False)
    assert np.array_equal(refined.support, proxy.support)
    assert refined.objective >= proxy.objective - 1e-12 * refined.objective

    # The reading of the paper, straight from its text.
    values, vectors = np.linalg.eigh(A)
    A_m = (vectors[:, -3:] * values[-3:]) @ vectors[:, -3:].T
    chosen = np.sort(np.argsort(-np.diag(A_m), kind="stable")[:5])
    V = np.linalg.eigh(A_m[np.ix_(chosen, chosen)])[1][:, -3:]
    assert np.array_equal(proxy.support, chosen)
    assert proxy.objective == pytest.approx(np.trace(V.T @ A[np.ix_(chosen, chosen)] @ V), rel=1e-9)


def test_the_shift_is_applied_without_forming_it(rng):
    A = random_covariance(rng, 12)
    shifted = solve(problem_of(A + 0.7 * np.eye(12), 3, 5), "go")
    ours = solve(problem_of(A, 3, 5), "go", shift=0.7)
    assert np.array_equal(ours.support, shifted.support)
    assert ours.objective == pytest.approx(shifted.objective - 3 * 0.7, rel=1e-9)
