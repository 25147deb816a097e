"""What is added to the eigenvalues of A before methods look at the leading ones."""

from fractions import Fraction

import numpy as np
import pytest

from kspan import NonnegativeProblem, RowSparseProblem, as_covariance, solve
from kspan.covariance import MaskedCovariance
from kspan.linalg.eigen import mean_of_rest
from kspan.problem import ElementSparseProblem
from kspan.solvers import IPU, SRT, Go, SignedSpannogram, Spannogram
from kspan.solvers.shifts import shift_of
from kspan.solvers.starts import low_rank_factor
from tests.oracles import covariance_of, random_covariance, spiked

NO_NUMBERS = [
    np.nan, np.inf, -np.inf, "noise", "0.5", "", None, True, 1j, [0.1], np.zeros(1), 10**400,
]  # fmt: skip


@pytest.mark.parametrize("method", [Go, Spannogram, SignedSpannogram])
@pytest.mark.parametrize("shift", NO_NUMBERS)
def test_what_is_no_shift_is_refused(method, shift):
    with pytest.raises(ValueError, match=r"^shift must be 'auto' or a finite number, got "):
        method(shift=shift)


@pytest.mark.parametrize("method", [IPU, SRT])
@pytest.mark.parametrize("shift", [*NO_NUMBERS, "auto", -0.1])
def test_methods_that_go_up_take_nothing_off(method, shift):
    with pytest.raises(ValueError, match=r"^shift must be a finite number, 0 or more, got "):
        method(shift=shift)


@pytest.mark.parametrize("shift", [0, -1, 0.5, np.float32(2), np.int64(-3), Fraction(1, 3)])
def test_numbers_of_any_kind(rng, shift):
    A = random_covariance(rng, 6)
    for problem, name in (
        (RowSparseProblem(covariance_of(A), 2, 3), "go"),
        (ElementSparseProblem(covariance_of(A), 1, 3), "spannogram"),
        (NonnegativeProblem(covariance_of(A), 1, 3), "spannogram"),
    ):
        as_float = solve(problem, name, shift=float(shift))
        assert solve(problem, name, shift=shift).objective == as_float.objective


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_the_mean_of_what_comes_after_the_leading_ones(rng, rank):
    A = random_covariance(rng, 9)
    values = np.linalg.eigvalsh(A)[::-1]
    assert shift_of(covariance_of(A), rank, "auto") == pytest.approx(-values[rank:].mean())


def test_constant_features_say_nothing_of_noise(rng):
    A = spiked(rng, 8, 2, 0.7)
    with_zeros = np.zeros((12, 12))
    with_zeros[2:10, 2:10] = A
    assert shift_of(covariance_of(with_zeros), 2, "auto") == pytest.approx(-0.7)
    part = MaskedCovariance(covariance_of(A), np.arange(8) > 2)
    assert shift_of(part, 2, "auto") == pytest.approx(-0.7)
    assert shift_of(part, 5, "auto") == shift_of(part, 20, "auto") == 0.0


def test_data_with_few_samples_counts_all_directions(rng):
    X = rng.standard_normal((6, 40))
    values = np.linalg.eigvalsh(np.cov(X, rowvar=False))[::-1]
    assert shift_of(as_covariance(X), 2, "auto") == pytest.approx(-values[2:].mean())


def test_it_costs_no_pass(rng):
    X = rng.standard_normal((50, 20))
    plain, shifted = as_covariance(X), as_covariance(X)
    solve(RowSparseProblem(plain, 2, 5), "go")
    solve(RowSparseProblem(shifted, 2, 5), "go", shift="auto")
    assert shifted.n_passes == plain.n_passes


def test_rounding_makes_no_noise_of_nothing(rng):
    for seed in range(50):
        A = random_covariance(np.random.default_rng(seed), 8, 3)
        values = np.linalg.eigvalsh(A)[::-1]
        for rank in (3, 4, 8):
            mean = mean_of_rest(values[:rank], np.diagonal(A))
            assert 0 <= mean <= 1e-13 * values[0]
            assert mean <= max(values[rank - 1], 0)
    assert mean_of_rest(np.array([2.0]), np.ones(4)) == pytest.approx(2 / 3)
    assert mean_of_rest(np.array([1.0]), np.ones(4)) == 1.0
    assert mean_of_rest(np.array([1.0]), np.full(4, 1.0 + 1e-15)) == 1.0  # no more than the last


@pytest.mark.parametrize("shift", ["auto", -2.0, -1e9])
def test_where_nothing_would_be_left_there_is_no_shift(shift):
    """Of the identity, and of what a number is larger than."""
    covariance = covariance_of(2.0 * np.eye(5))
    assert shift_of(covariance, 2, shift) == 0.0
    problem = RowSparseProblem(covariance, 2, 3)
    assert np.array_equal(solve(problem, "go", shift=shift).support, solve(problem, "go").support)


def test_a_factor_of_what_is_left(rng):
    A = spiked(rng, 10, 3, 1.3)
    V = low_rank_factor(covariance_of(A), 3, -1.3)
    np.testing.assert_allclose(V @ V.T, A - 1.3 * np.eye(10), atol=1e-12)
    assert low_rank_factor(covariance_of(A), 6, -1.3).shape == (10, 3)


@pytest.mark.parametrize("unit", [1e-130, 2.0**-40, 1e130])
def test_numbers_are_in_the_units_of_the_data(rng, unit):
    A = spiked(rng, 9, 2, 1.0)
    for kind, size in ((ElementSparseProblem, 4), (NonnegativeProblem, 4)):
        for shift in (-1.0, 0.4):
            plain = solve(kind(covariance_of(A), 2, size), "spannogram", rank=2, shift=shift)
            scaled = solve(
                kind(covariance_of(A * unit), 2, size), "spannogram", rank=2, shift=shift * unit
            )
            assert np.array_equal(plain.loadings != 0, scaled.loadings != 0)
            assert scaled.objective == pytest.approx(plain.objective * unit, rel=1e-9)
