"""The spannogram as a solver: the optimum at low rank, component by component."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import as_covariance, solve
from kspan.problem import NonnegativeProblem
from kspan.progress import Status
from kspan.solvers.nonnegative.nonnegative_spannogram import spannogram_component
from tests.oracles import KINDS, draw_rows, nonnegative_optimum, random_covariance, spiked

seeds = st.integers(0, 2**32 - 1)


def problem_of(A, k, m=1):
    return NonnegativeProblem(as_covariance(A, kind="covariance"), m, k)


def spannogram(problem, **options):
    return solve(problem, "spannogram", **options)


def part_of_rank(A, d):
    values, vectors = np.linalg.eigh(A)
    return (vectors[:, -d:] * np.maximum(values[-d:], 0)) @ vectors[:, -d:].T


@given(seeds, st.integers(2, 8), st.integers(1, 3), st.integers(1, 8), st.sampled_from(KINDS))
def test_optimal_when_the_covariance_has_low_rank(seed, n, d, k, kind):
    V = draw_rows(np.random.default_rng(seed), n, d, kind)
    if not V.any():
        return
    solution = spannogram(problem_of(V @ V.T, min(k, n)), rank=d)
    expected = nonnegative_optimum(V @ V.T, min(k, n))
    x = solution.loadings[:, 0]
    assert solution.objective == pytest.approx(expected, rel=1e-9)
    assert solution.status is Status.COMPLETED
    assert (x >= 0).all()
    assert np.count_nonzero(x) <= k
    assert np.linalg.norm(x) == pytest.approx(1)


@given(seeds, st.integers(1, 3), st.integers(1, 8))
def test_optimal_for_the_leading_part_and_near_for_all(seed, d, k):
    """x'A_d x is the optimum of A_d; x'Ax is at least OPT - λ_{d+1}, and is what is reported."""
    A = random_covariance(np.random.default_rng(seed), 8)
    solution = spannogram(problem_of(A, k), rank=d)
    x = solution.loadings[:, 0]
    low = part_of_rank(A, d)
    assert x @ low @ x == pytest.approx(nonnegative_optimum(low, k), rel=1e-9)
    assert solution.history.tolist() == pytest.approx([x @ A @ x])
    bound = nonnegative_optimum(A, k) - np.linalg.eigvalsh(A)[-d - 1]
    assert x @ A @ x >= bound * (1 - 1e-9)


def test_full_rank_is_the_optimum(rng):
    A = random_covariance(rng, 6)
    for k in range(1, 7):
        expected = nonnegative_optimum(A, k)
        assert spannogram(problem_of(A, k), rank=6).objective == pytest.approx(expected)


def test_a_rank_beyond_the_features(rng):
    A = random_covariance(rng, 4)
    assert spannogram(problem_of(A, 2), rank=9).objective == pytest.approx(
        nonnegative_optimum(A, 2)
    )


def test_components_share_no_features(rng):
    A = random_covariance(rng, 12)
    solution = spannogram(problem_of(A, 3, m=3), rank=3)
    assert ((solution.loadings > 0).sum(axis=1) <= 1).all()
    first = np.flatnonzero(solution.loadings[:, 0])
    rest = A.copy()
    rest[first], rest[:, first] = 0, 0
    y = solution.loadings[:, 1]
    low = part_of_rank(rest, 3)
    assert y @ low @ y == pytest.approx(nonnegative_optimum(low, 3))


@pytest.mark.parametrize("deflation", ["remove", "projection", "orthogonalized"])
def test_deflations(rng, deflation):
    A = random_covariance(rng, 9)
    solution = spannogram(problem_of(A, 3, m=3), rank=2, deflation=deflation)
    assert (solution.loadings >= 0).all()
    assert (np.count_nonzero(solution.loadings, axis=0) <= 3).all()
    assert solution.history.size == 3


def test_more_components_than_rank():
    solution = spannogram(problem_of(np.diag([3.0, 2.0, 0.0, 0.0]), 2, m=3), rank=3)
    np.testing.assert_allclose(solution.explained_variance, [3, 2, 0], atol=1e-12)


def test_too_many_vertices(rng):
    problem = problem_of(random_covariance(rng, 30), 5)
    with pytest.raises(ValueError, match=r"rank 3 of the 30 features .* has 4,495 vertices, about "
                       r"0 seconds .* max_vertices=1,000.*solver='net'"):  # fmt: skip
        spannogram(problem, eliminate=False, max_vertices=1000)
    with pytest.raises(ValueError, match="years"):
        spannogram(problem_of(random_covariance(rng, 200), 40), rank=10, eliminate=False)
    assert spannogram(problem, eliminate=False, max_vertices=None).status is Status.COMPLETED


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "rank must be a whole number, 1 or more"),
        ({"rank": 2.5}, "rank must be a whole number"),
        ({"max_vertices": 0}, "max_vertices must be a whole number"),
        ({"deflation": "schur"}, "deflation must be one of"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        spannogram(problem_of(np.eye(4), 2), **options)


class TestStopping:
    def test_callback(self, rng):
        told = []

        def callback(progress):
            told.append(progress)
            return len(told) == 2

        problem = problem_of(random_covariance(rng, 60), 20)
        solution = spannogram(problem, eliminate=False, callback=callback)
        assert solution.status is Status.STOPPED
        assert len(told) == 2
        assert told[0].solver == "spannogram"
        assert 0 < told[-1].objective <= solution.objective * (1 + 1e-12)

    def test_time_limit(self, rng):
        problem = problem_of(random_covariance(rng, 60), 20, m=2)
        solution = spannogram(problem, eliminate=False, time_limit=1e-9)
        assert solution.status is Status.TIME_LIMIT
        assert (np.count_nonzero(solution.loadings, axis=0) > 0).all()

    def test_keyboard(self, rng):
        def callback(progress):
            raise KeyboardInterrupt

        problem = problem_of(random_covariance(rng, 60), 20)
        solution = spannogram(problem, eliminate=False, callback=callback)
        assert solution.status is Status.INTERRUPTED
        assert solution.support.size == 20


def test_one_component_of_rows(rng):
    V = rng.standard_normal((9, 3))
    best = spannogram_component(V, 4)
    assert best.complete
    assert best.value == pytest.approx(nonnegative_optimum(V @ V.T, 4))
    with pytest.raises(ValueError, match="vertices"):
        spannogram_component(V, 4, eliminate=False, max_vertices=1)


def test_importing_the_solvers_does_not_import_the_compiler():
    code = (
        "import sys; import kspan.solvers.nonnegative.nonnegative_spannogram, "
        "kspan.solvers.elementsparse.signed_spannogram; print('numba' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


# --- noise taken off


@given(
    seeds, st.integers(2, 8), st.integers(0, 3), st.integers(1, 8), st.sampled_from(KINDS),
    st.sampled_from([1e-3, 1.0, 30.0]),
)  # fmt: skip
def test_optimal_for_noise_and_low_rank(seed, n, d, k, kind, noise):
    """σI + C with C of rank d or less; of noise alone all vectors have the same."""
    V = draw_rows(np.random.default_rng(seed), n, max(d, 1), kind) * (d > 0)
    A = V @ V.T + noise * np.eye(n)
    for shift in ("auto", -noise):
        solution = spannogram(problem_of(A, min(k, n)), rank=max(d, 1), shift=shift)
        expected = nonnegative_optimum(A, min(k, n))
        assert solution.objective == pytest.approx(expected, rel=1e-9)


def test_without_the_shift_optima_are_missed():
    missed = {0.0: 0, "auto": 0}
    for seed in range(60):
        A = spiked(np.random.default_rng(seed), 8, 2, 3.0)
        best = nonnegative_optimum(A, 4)
        for shift in missed:
            value = spannogram(problem_of(A, 4), rank=2, shift=shift).objective
            missed[shift] += value < best * (1 - 1e-9)
    assert missed["auto"] == 0
    assert missed[0.0] > 0


def test_every_component_when_features_are_removed(rng):
    A = spiked(rng, 12, 2, 1.0)
    solution = spannogram(problem_of(A, 3, m=3), rank=2, shift="auto")
    for j in range(3):
        rest = np.flatnonzero(~(solution.loadings[:, :j] > 0).any(axis=1))
        x = solution.loadings[:, j]
        expected = nonnegative_optimum(A[np.ix_(rest, rest)], 3)
        assert x @ A @ x == pytest.approx(expected, rel=1e-9)


@given(seeds, st.integers(1, 3), st.integers(1, 8))
def test_near_the_optimum_with_a_shift(seed, d, k):
    """What is lost is at most the spread of the eigenvalues beyond the d leading ones."""
    A = random_covariance(np.random.default_rng(seed), 8)
    values = np.linalg.eigvalsh(A)[::-1]
    best = nonnegative_optimum(A, k)
    solution = spannogram(problem_of(A, k), rank=d, shift="auto")
    assert best * (1 + 1e-9) >= solution.objective
    assert solution.objective >= best - (values[d] - values[-1]) - 1e-9 * values[0]


@pytest.mark.parametrize("shift", ["auto", -1.0, 3.0])
def test_reports_never_tell_more_than_there_is(rng, shift):
    told = []
    A = spiked(rng, 40, 5, 2.0)
    solution = spannogram(
        problem_of(A, 12), eliminate=False, shift=shift,
        callback=lambda progress: told.append(progress.objective),
    )  # fmt: skip
    assert len(told) > 1
    assert 0 < max(told) <= solution.objective * (1 + 1e-12)
