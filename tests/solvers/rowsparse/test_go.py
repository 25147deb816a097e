import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance, solve
from kspan.datasets import make_scheme
from tests.effort import examples
from tests.oracles import best_by_enumeration, random_covariance, spiked


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


# --- noise taken off


@examples(100)
@given(
    st.integers(0, 2**32 - 1), st.integers(3, 9), st.integers(1, 4), st.integers(1, 9),
    st.integers(0, 4), st.sampled_from([0.0, 1e-3, 1.0, 30.0]),
)  # fmt: skip
def test_optimal_for_noise_and_a_rank_up_to_m(seed, d, m, k, rank, noise):
    """Remark 4.4, also with a lower rank than m, without noise, and without a signal."""
    if rank + noise == 0:
        return
    m, k = min(m, d), min(max(k, m), d)
    rng = np.random.default_rng(seed)
    A = spiked(rng, d, min(rank, m), noise)
    limits = {"include": [int(rng.integers(d))], "exclude": []}
    if k < d - 1:
        limits["exclude"] = [(limits["include"][0] + 1) % d]
    best = best_by_enumeration(A, m, k, **limits)
    for shift in ("auto", -noise):
        for refine in (True, False):
            problem = problem_of(A, m, k, **limits)
            value = solve(problem, "go", shift=shift, refine=refine).objective
            assert value == pytest.approx(best, rel=1e-9)


def test_without_the_shift_spiked_optima_are_missed():
    """What Remark 4.4 is good for."""
    missed = {0.0: 0, "auto": 0}
    for seed in range(60):
        A = spiked(np.random.default_rng(seed), 9, 2, 3.0)
        best = best_by_enumeration(A, 2, 4)
        for shift in missed:
            value = solve(problem_of(A, 2, 4), "go", shift=shift).objective
            missed[shift] += value < best * (1 - 1e-9)
    assert missed["auto"] == 0
    assert missed[0.0] > 0


@examples(100)
@given(
    st.integers(0, 2**32 - 1), st.integers(2, 8), st.integers(1, 4), st.integers(1, 8),
    st.floats(0, 30),
)  # fmt: skip
def test_loss_with_any_shift(seed, d, m, k, noise):
    """The bound in the docstring, for the automatic σ and for any other."""
    m, k = min(m, d), min(max(k, m), d)
    A = random_covariance(np.random.default_rng(seed), d)
    values = np.linalg.eigvalsh(A)[::-1]
    best = best_by_enumeration(A, m, k)
    for shift, sigma in (("auto", values[m:].mean() if m < d else 0.0), (-noise, noise)):
        if sigma >= values[0]:
            continue
        value = solve(problem_of(A, m, k), "go", shift=shift, refine=False).objective
        loss = np.maximum(values[m : 2 * m] - sigma, 0).sum()
        loss += np.maximum(sigma - values[d - m :], 0).sum()
        loss += np.maximum(sigma - values[:m], 0).sum()
        assert value >= best - loss - 1e-12 * values[0]


@pytest.mark.parametrize("unit", [1e-250, 1e-12, 1e12, 1e250])
def test_the_automatic_shift_has_no_scale(rng, unit):
    A = spiked(rng, 10, 2, 1.5)
    plain, scaled = (solve(problem_of(B, 2, 4), "go", shift="auto") for B in (A, A * unit))
    assert np.array_equal(plain.support, scaled.support)
    assert scaled.objective == pytest.approx(plain.objective * unit, rel=1e-9)


def test_the_shift_of_large_matrices_comes_from_few_eigenpairs(rng):
    """Where Lanczos finds the leading pairs, and the trace the rest; with ties by the dozen."""
    d, m, k = 600, 3, 40
    F = np.round(3 * rng.standard_normal((d, m)))
    A = F @ F.T + 5.0 * np.eye(d)
    answer = solve(problem_of(A, m, k), "go", shift="auto")
    best = np.sort((F**2).sum(axis=1))[-k:].sum() + 5.0 * m
    assert answer.objective == pytest.approx(best, rel=1e-9)
