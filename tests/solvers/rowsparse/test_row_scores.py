"""SOAP, SRT and IPU written out from their listings, against the one view they share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance, solve
from kspan.datasets import make_scheme
from kspan.progress import Monitor
from kspan.solvers.rowsparse.ipu import PROXY
from kspan.solvers.rowsparse.row_scores import from_subspaces, step
from kspan.solvers.rowsparse.soap import LEVERAGE
from kspan.solvers.rowsparse.srt import LENGTH
from kspan.solvers.starts import random_subspace
from tests.oracles import best_by_enumeration, random_covariance

RULES = {"soap": LEVERAGE, "srt": LENGTH, "ipu": PROXY}


def problem_of(A, m, k, **limits):
    return RowSparseProblem(as_covariance(A, kind="covariance"), m, k, **limits)


def by_the_listing(name, A, W, k):
    """One step of each method as its paper prints it, with dense matrices."""
    B = A @ W
    if name == "srt":
        scores, rows = np.linalg.norm(B, axis=1), B
    elif name == "soap":
        rows = np.linalg.qr(B)[0]
        scores = np.linalg.norm(rows, axis=1)
    else:
        P = B @ np.linalg.pinv(W.T @ B) @ B.T
        scores = np.diag(P)
    support = np.sort(np.argsort(-scores, kind="stable")[:k])
    new = np.zeros_like(W)
    if name == "ipu":
        inside = np.linalg.eigh(A[np.ix_(support, support)])[1]
        new[support] = inside[:, -W.shape[1] :]
    else:
        new[support] = np.linalg.qr(rows[support])[0]
    return support, new


@pytest.mark.parametrize("name", RULES)
@given(seed=st.integers(0, 10_000), d=st.integers(4, 14), data=st.data())
def test_steps_are_those_of_the_listing(name, seed, d, data):
    k = data.draw(st.integers(2, d))
    m = data.draw(st.integers(1, min(k, 4)))
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, d)
    problem = problem_of(A, m, k)
    W = random_subspace(d, m, rng)
    candidate = from_subspaces(problem, RULES[name], [W], Monitor("x"))[0]
    for _ in range(3):
        support, W = by_the_listing(name, A, W, k)
        assert np.array_equal(candidate.support, support)
        full = np.zeros((d, m))
        full[candidate.support] = candidate.weights
        np.testing.assert_allclose(full @ full.T, W @ W.T, atol=1e-7)
        assert candidate.objective == pytest.approx(np.trace(W.T @ A @ W), rel=1e-9)
        candidate = step(problem, RULES[name], [candidate], Monitor("x"))[0]


@given(seed=st.integers(0, 10_000))
def test_the_scores_are_one_quadratic_form(seed):
    """Row i of B = AW scores b_i M b_i', with M = I, (W'A²W)^{-1} and (W'AW)^{-1}."""
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, 9) + 0.1 * np.eye(9)
    W = random_subspace(9, 3, rng)
    values, rotation = np.linalg.eigh(W.T @ A @ W)
    B = A @ W @ rotation
    forms = {
        "srt": np.eye(3),
        "soap": np.linalg.inv(B.T @ B),
        "ipu": np.linalg.inv(np.diag(values)),
    }
    for name, M in forms.items():
        expected = np.einsum("ij,jl,il->i", B, M, B)
        scores = RULES[name].score(B, values)
        ours = scores if name == "ipu" else scores**2
        # SRT's lengths are relative to the largest entry.
        np.testing.assert_allclose(ours / ours.max(), expected / expected.max(), rtol=1e-6)


@pytest.mark.parametrize("name", ["soap", "srt"])
def test_they_fall_and_return_the_best_they_passed(name):
    fell = 0
    for seed in range(40):
        A = make_scheme("A", random_state=seed)
        solution = solve(problem_of(A, 3, 7), name, init="random", random_state=seed)
        fell += bool((np.diff(solution.history) < -1e-9 * solution.objective).any())
        assert solution.objective == pytest.approx(solution.history.max(), rel=1e-12)
        W = solution.loadings
        assert np.trace(W.T @ A @ W) == pytest.approx(solution.objective, rel=1e-9)
    assert fell >= 5, "neither is an ascent method"


@pytest.mark.parametrize("name", ["ipu", "soap", "srt"])
@pytest.mark.parametrize("shift", [-1.0, np.nan, np.inf])
def test_a_shift_must_be_a_number(rng, name, shift):
    with pytest.raises(ValueError, match="shift must be a finite number, 0 or more"):
        solve(problem_of(random_covariance(rng, 6), 1, 2), name, shift=shift)


@pytest.mark.parametrize("name", ["ipu", "soap", "srt", "tpower"])
def test_restarts_without_random_starts_are_refused(rng, name):
    with pytest.raises(ValueError, match="n_restarts needs init='random'"):
        solve(problem_of(random_covariance(rng, 6), 1, 2), name, init="variance", n_restarts=5)


def test_an_interrupt_during_the_start_leaves_gos_solution(rng, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("kspan.solvers.rowsparse.row_scores.convex_candidate", interrupted)
    problem = problem_of(random_covariance(rng, 8), 2, 4)
    solution = solve(problem, "soap", init="convex")
    assert solution.status.value == "interrupted"
    assert solution.objective == pytest.approx(solve(problem, "go").objective)


@pytest.mark.parametrize("name", ["soap", "srt"])
def test_the_shift_is_applied_without_forming_it(rng, name):
    A = random_covariance(rng, 18)
    options = {"init": "random", "random_state": 3}
    shifted = solve(problem_of(A + 2.0 * np.eye(18), 3, 6), name, **options)
    ours = solve(problem_of(A, 3, 6), name, shift=2.0, **options)
    assert np.array_equal(ours.support, shifted.support)
    np.testing.assert_allclose(ours.history, shifted.history - 3 * 2.0, rtol=1e-9)


@pytest.mark.parametrize("name", RULES)
def test_one_component_on_all_features_is_the_power_method(rng, name):
    A = random_covariance(rng, 12)
    solution = solve(problem_of(A, 1, 12), name, init="random", random_state=0, max_iter=2000)
    assert solution.objective == pytest.approx(np.linalg.eigvalsh(A)[-1], rel=1e-9)


def test_a_gap_makes_them_all_agree_with_enumeration(rng):
    """Two strong factors on four features each, little noise: every method finds them."""
    d, loadings = 12, np.zeros((12, 2))
    loadings[:4, 0], loadings[4:8, 1] = 3.0, 2.0
    A = loadings @ loadings.T + 0.01 * random_covariance(rng, d) / d
    best = best_by_enumeration(A, 2, 8)
    for name in ("ipu", "soap", "srt", "fps", "cssp"):
        options = {"refine": True} if name in ("fps", "cssp") else {}
        solution = solve(problem_of(A, 2, 8), name, random_state=0, **options)
        assert solution.support.tolist() == list(range(8)), name
        # SOAP and SRT stop within 1e-6 of a subspace that is stationary for A itself.
        assert solution.objective == pytest.approx(best, rel=1e-6), name
