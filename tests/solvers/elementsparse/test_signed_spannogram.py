"""The signed spannogram against enumeration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import as_covariance, solve
from kspan.problem import ElementSparseProblem
from kspan.progress import Status
from kspan.solvers.one_by_one import DEFLATIONS
from kspan.solvers.starts import beyond_rank, low_rank_factor
from tests.oracles import (
    KINDS,
    best_by_enumeration,
    draw_rows,
    explained,
    random_covariance,
    spiked,
)

seeds = st.integers(0, 2**32 - 1)


def problem_of(A, k, m=1):
    return ElementSparseProblem(as_covariance(A, kind="covariance"), m, k)


def signed_spannogram(problem, **options):
    return solve(problem, "spannogram", **options)


@given(
    seeds,
    st.integers(2, 8),
    st.integers(1, 3),
    st.integers(1, 8),
    st.sampled_from(KINDS),
    st.booleans(),
)
def test_optimal_when_the_covariance_has_low_rank(seed, n, d, k, kind, eliminate):
    V = draw_rows(np.random.default_rng(seed), n, d, kind)
    if not V.any():
        return
    k = min(k, n)
    solution = signed_spannogram(problem_of(V @ V.T, k), rank=d, eliminate=eliminate)
    assert solution.objective == pytest.approx(best_by_enumeration(V @ V.T, 1, k), rel=1e-9)
    assert solution.status is Status.COMPLETED
    assert np.count_nonzero(solution.loadings) <= k


@given(seeds, st.integers(1, 3), st.integers(1, 8))
def test_no_support_of_a_direction_is_better(seed, d, k):
    """Scores are of A itself, not of its part of rank d."""
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, 8)
    solution = signed_spannogram(problem_of(A, k), rank=d)
    covariance = as_covariance(A, kind="covariance")
    V, tail = low_rank_factor(covariance, d), beyond_rank(covariance, d)
    best = max(
        explained(A, np.argsort(-np.abs(V @ c))[:k], 1) for c in rng.standard_normal((200, d))
    )
    optimum = best_by_enumeration(A, 1, k)
    assert best * (1 - 1e-9) <= solution.objective <= optimum * (1 + 1e-9)
    assert solution.objective >= optimum - tail * (1 + 1e-9)


@given(seeds, st.integers(2, 3), st.integers(1, 12))
def test_leaving_features_out_changes_nothing(seed, d, k):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((12, 12)) * rng.uniform(0, 1, (12, 1)) ** 3
    with_all, without = (
        signed_spannogram(problem_of(F @ F.T, k), rank=d, eliminate=eliminate)
        for eliminate in (False, True)
    )
    assert without.objective == pytest.approx(with_all.objective, rel=1e-9)


def test_one_choice_at_a_vertex_loses_little(rng):
    for _ in range(20):
        F = rng.standard_normal((14, 2))
        exact, simple = (
            signed_spannogram(problem_of(F @ F.T, 7), exact=exact) for exact in (True, False)
        )
        assert 0.8 * exact.objective <= simple.objective <= exact.objective * (1 + 1e-12)


def test_bad_supports_need_no_eigenvector(rng):
    """At low rank the bound passes over almost all supports; without it there are hundreds."""
    F = rng.standard_normal((40, 2)) * [3, 1]
    solution = signed_spannogram(problem_of(F @ F.T, 10))
    assert solution.n_iter < 50


@pytest.mark.parametrize("deflation", DEFLATIONS)
def test_deflations(rng, deflation):
    A = random_covariance(rng, 9)
    solution = signed_spannogram(problem_of(A, 3, m=3), deflation=deflation)
    assert (np.count_nonzero(solution.loadings, axis=0) == 3).all()
    assert solution.explained_variance.sum() <= np.linalg.eigvalsh(A)[-3:].sum() * (1 + 1e-9)


def test_the_second_component_is_the_first_of_what_is_left(rng):
    A = random_covariance(rng, 8)
    x = signed_spannogram(problem_of(A, 3), rank=2).loadings[:, 0]
    P = np.eye(8) - np.outer(x, x)
    alone = signed_spannogram(problem_of(P @ A @ P, 3), rank=2).loadings[:, 0]
    both = signed_spannogram(problem_of(A, 3, m=2), rank=2).loadings
    np.testing.assert_allclose(np.abs(both[:, 1]), np.abs(alone), atol=1e-9)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_named_cases(k):
    """One feature, all features, the identity, rank one, duplicates, a constant feature."""
    v = np.array([3.0, -2.0, 2.0, 1.0, 0.0])
    for A in (np.eye(5), np.outer(v, v), np.ones((5, 5)), np.diag([1.0, 1.0, 2.0, 2.0, 0.0])):
        solution = signed_spannogram(problem_of(A, k), rank=3)
        assert solution.objective == pytest.approx(best_by_enumeration(A, 1, k))


def test_stopping(rng):
    told = []

    def callback(progress):
        told.append(progress.objective)
        return True

    problem = problem_of(random_covariance(rng, 40), 10, m=2)
    solution = signed_spannogram(problem, rank=3, callback=callback)
    assert solution.status is Status.STOPPED
    assert len(told) == 1

    def interrupt(progress):
        raise KeyboardInterrupt

    solution = signed_spannogram(problem, rank=3, callback=interrupt)
    assert solution.status is Status.INTERRUPTED
    assert np.count_nonzero(solution.loadings[:, 0]) == 10
    assert signed_spannogram(problem, rank=3, time_limit=1e-9).status is Status.TIME_LIMIT


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "rank must be a whole number, 1 or more"),
        ({"max_vertices": -1}, "max_vertices must be a whole number"),
        ({"deflation": "none"}, "deflation must be one of"),
        ({"max_vertices": 3, "rank": 3}, "vertices, about 0 seconds on one core; the limit is"),
    ],
)
def test_wrong_options(rng, options, message):
    with pytest.raises(ValueError, match=message):
        signed_spannogram(problem_of(random_covariance(rng, 8), 3), **options)


# --- noise taken off


@given(
    seeds, st.integers(2, 8), st.integers(0, 3), st.integers(1, 8), st.sampled_from(KINDS),
    st.sampled_from([1e-3, 1.0, 30.0]),
)  # fmt: skip
def test_optimal_for_noise_and_low_rank(seed, n, d, k, kind, noise):
    """σI + C with C of rank d or less; of noise alone all supports have the same."""
    V = draw_rows(np.random.default_rng(seed), n, max(d, 1), kind) * (d > 0)
    A = V @ V.T + noise * np.eye(n)
    for shift in ("auto", -noise):
        solution = signed_spannogram(problem_of(A, min(k, n)), rank=max(d, 1), shift=shift)
        expected = best_by_enumeration(A, 1, min(k, n))
        assert solution.objective == pytest.approx(expected, rel=1e-9)


@given(seeds, st.integers(1, 3), st.integers(1, 8), st.floats(-20, 20))
def test_a_shift_loses_no_support_of_a_direction(seed, d, k, shift):
    """What is passed over without an eigenvector is not above the best of the spannogram."""
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, 8)
    values, vectors = np.linalg.eigh(A)
    above = np.maximum(values[-d:] + shift, 0)
    if not above.any():
        return
    V = vectors[:, -d:] * np.sqrt(above)
    solution = signed_spannogram(problem_of(A, k), rank=d, shift=shift)
    best = max(
        explained(A, np.argsort(-np.abs(V @ c))[:k], 1) for c in rng.standard_normal((200, d))
    )
    assert solution.objective >= best * (1 - 1e-9)


@given(seeds, st.integers(1, 3), st.integers(1, 8))
def test_near_the_optimum_with_a_shift(seed, d, k):
    """What is lost is at most the spread of the eigenvalues beyond the d leading ones."""
    A = random_covariance(np.random.default_rng(seed), 8)
    values = np.linalg.eigvalsh(A)[::-1]
    best = best_by_enumeration(A, 1, k)
    solution = signed_spannogram(problem_of(A, k), rank=d, shift="auto")
    assert best * (1 + 1e-9) >= solution.objective
    assert solution.objective >= best - (values[d] - values[-1]) - 1e-9 * values[0]


def test_every_component_when_features_are_removed(rng):
    A = spiked(rng, 11, 2, 1.0)
    solution = signed_spannogram(problem_of(A, 3, m=3), rank=2, shift="auto", deflation="remove")
    for j in range(3):
        rest = np.flatnonzero(~(solution.loadings[:, :j] != 0).any(axis=1))
        x = solution.loadings[:, j]
        expected = best_by_enumeration(A[np.ix_(rest, rest)], 1, 3)
        assert x @ A @ x == pytest.approx(expected, rel=1e-9)


def test_few_eigenvectors_where_noise_is_taken_off(rng):
    """Without the shift noise is in the bound, and most supports of large ones need theirs."""
    A = spiked(rng, 60, 2, 4.0)
    plain, shifted = (signed_spannogram(problem_of(A, 12), shift=s) for s in (0.0, "auto"))
    assert shifted.objective >= plain.objective * (1 - 1e-12)
    assert shifted.n_iter < 50
