import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance, solve
from kspan.progress import Monitor
from kspan.solvers.rowsparse.ipu import PROXY, proxy_diagonal
from kspan.solvers.rowsparse.row_scores import from_subspaces, step
from kspan.solvers.starts import random_subspace
from tests.oracles import best_by_enumeration, random_covariance


def problem_of(A, m, k, **limits):
    return RowSparseProblem(as_covariance(A, kind="covariance"), m, k, **limits)


def assert_never_decreases(history):
    # Rounding of k×k eigenvalues is the only slack.
    assert np.all(np.diff(history) >= -1e-12 * history[-1])


def test_monotone_on_a_thousand_matrices():
    """Theorem 5.5, on full-rank and rank-deficient matrices, from both kinds of start."""
    moved = 0
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(3, 40))
        k = int(rng.integers(1, d + 1))
        m = int(rng.integers(1, k + 1))
        A = random_covariance(rng, d, int(rng.integers(1, d + 1)))
        init = "random" if seed % 2 else "low-rank"
        solution = solve(problem_of(A, m, k), "ipu", init=init, random_state=seed)
        assert_never_decreases(solution.history)
        moved += solution.history[-1] > solution.history[0]
    assert moved > 150, "many of these runs have something to improve"


def test_steps_follow_the_definition(rng):
    """P = AW(W'AW)^†W'A formed in full, against the diagonal that IPU computes."""
    A = random_covariance(rng, 15)
    W = random_subspace(15, 3, rng)
    P = A @ W @ np.linalg.pinv(W.T @ A @ W) @ W.T @ A
    chosen = np.sort(np.argsort(-np.diag(P), kind="stable")[:6])
    first = from_subspaces(problem_of(A, 3, 6), PROXY, [W], Monitor("x"))[0]
    assert np.array_equal(first.support, chosen)

    W = np.zeros((15, 3))
    W[first.support] = first.weights
    P = A @ W @ np.linalg.pinv(W.T @ A @ W) @ W.T @ A
    np.testing.assert_allclose(proxy_diagonal(A @ W, first.variances), np.diag(P), rtol=1e-9)
    second = step(problem_of(A, 3, 6), PROXY, [first], Monitor("x"))[0]
    assert np.array_equal(second.support, np.sort(np.argsort(-np.diag(P), kind="stable")[:6]))


@given(st.integers(0, 10_000))
def test_scores_equal_those_of_the_orthogonal_iteration_form(seed):
    """Appendix: row norms of A^{1/2} qf(A^{1/2} W) are the same scores."""
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, 9)
    values, vectors = np.linalg.eigh(A)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    W = random_subspace(9, 2, rng)
    Q = np.linalg.qr(root @ W)[0]
    G = W.T @ A @ W
    ritz, rotation = np.linalg.eigh(G)
    scores = proxy_diagonal(A @ W @ rotation, ritz)
    np.testing.assert_allclose(scores, np.sum((root @ Q) ** 2, axis=1), rtol=1e-6)


def test_a_batch_moves_like_its_members_alone(rng):
    A = random_covariance(rng, 20)
    problem = problem_of(A, 2, 5)
    subspaces = [random_subspace(20, 2, rng) for _ in range(6)]
    starts = from_subspaces(problem, PROXY, subspaces, Monitor("x"))
    together = step(problem, PROXY, starts, Monitor("x"))
    for start, moved in zip(starts, together, strict=True):
        alone = step(problem, PROXY, [start], Monitor("x"))[0]
        assert np.array_equal(alone.support, moved.support)


@pytest.mark.parametrize("init", ["low-rank", "random"])
def test_the_shift_is_applied_without_forming_it(rng, init):
    A = random_covariance(rng, 14)
    options = {"init": init, "random_state": 3}
    shifted = solve(problem_of(A + 2.0 * np.eye(14), 3, 6), "ipu", **options)
    ours = solve(problem_of(A, 3, 6), "ipu", shift=2.0, **options)
    assert np.array_equal(ours.support, shifted.support)
    np.testing.assert_allclose(ours.history, shifted.history - 3 * 2.0, rtol=1e-9)


def test_it_stops_when_the_support_repeats(rng):
    solution = solve(problem_of(random_covariance(rng, 30), 3, 8), "ipu")
    assert solution.status.value == "converged"
    assert len(solution.history) == solution.n_iter + 1
    assert solution.history[-1] == solution.history[-2] == solution.objective


def test_the_iteration_limit_is_admitted(rng):
    A = random_covariance(rng, 60)
    solution = solve(problem_of(A, 2, 20), "ipu", init="random", random_state=0, max_iter=1)
    assert solution.status.value == "iteration limit"
    assert "max_iter" in solution.status.advice


def test_a_start_of_ones_own(rng):
    A = random_covariance(rng, 10)
    best = solve(problem_of(A, 2, 4), "brute-force")
    solution = solve(problem_of(A, 2, 4), "ipu", init=best.loadings * 3.0)
    assert solution.objective == pytest.approx(best.objective, rel=1e-12)


@pytest.mark.parametrize(
    ("init", "message"),
    [
        (np.ones((9, 2)), r"init must have shape.*\(10, 2\), got \(9, 2\)"),
        (np.ones((10, 2)), "linearly independent"),
        (np.zeros((10, 2)), "linearly independent"),
        (np.full((10, 2), np.nan), "NaN"),
    ],
)
def test_bad_starts(rng, init, message):
    with pytest.raises(ValueError, match=message):
        solve(problem_of(random_covariance(rng, 10), 2, 4), "ipu", init=init)


def test_include_and_exclude_are_honoured(rng):
    A = random_covariance(rng, 12)
    for seed in range(10):
        solution = solve(
            problem_of(A, 2, 4, include=[3], exclude=[0, 7]),
            "ipu", init="random", random_state=seed,
        )  # fmt: skip
        assert 3 in solution.support
        assert not {0, 7} & set(solution.support.tolist())
        assert_never_decreases(solution.history)
        best = best_by_enumeration(A, 2, 4, [3], [0, 7])
        assert solution.objective <= best * (1 + 1e-12)
