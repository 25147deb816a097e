"""What two papers guarantee from the eigenvalues alone: their formulas, and that they hold."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from kspan import NonnegativeProblem, as_covariance, solve
from kspan.datasets import make_scheme
from kspan.proofs import fspca_epsilon, nspca_rho
from tests.effort import examples
from tests.oracles import (
    best_by_enumeration,
    covariance_of,
    nonnegative_optimum,
    random_covariance,
)
from tests.proofs.helpers import KINDS, matrix_problem, random_psd

SCHEMES = [
    (scheme, eigenspace)
    for scheme in "ABCDEF"
    for eigenspace in ("uniform-svd", "uniform-qr", "haar")
    if scheme in "ABCD" or eigenspace == "haar"
]
seeds = st.integers(0, 2**32 - 1)

# Eigenvalues of these small matrices are known to this share of the largest.
CLOSE = 1e-11


def epsilon_as_printed(values, m, k):
    """Theorem 5.1 word for word, from eigenvalues in descending order."""
    d, rank = len(values), sum(value > 1e-12 * values[0] for value in values)
    r = min(rank, 2 * m)
    g1 = sum(values[m:r]) / sum(values[:m])
    g2 = sum(values[m:r]) / sum(values)
    kappa = values[0] / values[-1] if rank == d else np.inf
    return min(d * g1 / k, d * g2 / m, 1 - 1 / kappa, 1 - k / d)


def rho_as_printed(values, k, d):
    """Equation 4 word for word."""
    n = len(values)
    beyond = values[d] if d < n else 0
    return max(k / (2 * n), 1 / (1 + 2 * n / k * (beyond / values[0])))


@pytest.mark.parametrize(("scheme", "eigenspace"), SCHEMES)
def test_the_formulas_of_the_papers(scheme, eigenspace):
    A = make_scheme(scheme, 12, eigenspace=eigenspace, random_state=1)
    values = np.linalg.eigvalsh(A)[::-1]
    for m in range(1, 13):
        for k in range(m, 13):
            epsilon = epsilon_as_printed(values, m, k)
            assert fspca_epsilon(A, m, k) == pytest.approx(epsilon, rel=CLOSE, abs=CLOSE)
            assert nspca_rho(A, k, m) == pytest.approx(rho_as_printed(values, k, m), rel=CLOSE)


@examples(100)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=8).filter(any), st.data())
def test_rounded_to_the_side_on_which_they_hold(variances, data):
    """Of diagonal matrices the formulas are fractions."""
    values = [Fraction(v) for v in sorted(variances, reverse=True)]
    d = len(values)
    m = data.draw(st.integers(1, d))
    k = data.draw(st.integers(m, d))
    A = np.diag([float(v) for v in variances])
    tail = sum(values[m : 2 * m])
    terms = [1 - values[-1] / values[0], 1 - Fraction(k, d)]
    terms += [d * tail / (k * sum(values[:m])), d * tail / (m * sum(values))]
    epsilon = fspca_epsilon(A, m, k)
    assert min(terms) <= Fraction(epsilon) <= min(terms) + Fraction(1, 10**11)
    beyond = values[m] if m < d else 0
    share = max(Fraction(k, 2 * d), 1 / (1 + Fraction(2 * d, k) * beyond / values[0]))
    assert share - Fraction(1, 10**11) <= Fraction(nspca_rho(A, k, m)) <= share


# --- they hold


def assert_epsilon_holds(A, m, k, solvers):
    problem, best = matrix_problem(A, m, k), best_by_enumeration(A, m, k)
    epsilon = fspca_epsilon(A, m, k)
    assert 0 <= epsilon <= 1
    for solver, options in solvers:
        value = solve(problem, solver, random_state=0, **options).objective
        assert value >= (1 - epsilon) * best * (1 - 1e-12)


@pytest.mark.parametrize(("scheme", "eigenspace"), SCHEMES)
def test_go_and_what_starts_from_it_keep_epsilon(scheme, eigenspace):
    """Theorem 5.1 and Corollary 5.6, by enumeration."""
    solvers = [("go", {"refine": False}), ("go", {}), ("ipu", {}), ("auto", {})]
    for seed in range(3):
        A = make_scheme(scheme, 9, eigenspace=eigenspace, random_state=seed)
        for m, k in ((1, 2), (1, 6), (2, 4), (3, 3), (3, 7), (6, 8)):
            assert_epsilon_holds(A, m, k, solvers)


@pytest.mark.parametrize(("scheme", "eigenspace"), SCHEMES)
def test_the_spannogram_and_the_net_keep_rho(scheme, eigenspace):
    """Theorems 1 and 2, by enumeration; of ranks for which the net is certain."""
    for seed in range(3):
        A = make_scheme(scheme, 8, eigenspace=eigenspace, random_state=seed)
        for k in (1, 3, 6, 8):
            best = nonnegative_optimum(A, k)
            problem = NonnegativeProblem(covariance_of(A), 1, k)
            for rank in (1, 2, 3):
                rho = nspca_rho(A, k, rank)
                assert 0 < rho <= 1
                value = solve(problem, "spannogram", rank=rank).objective
                assert value >= rho * best * (1 - 1e-12)
                if rank < 3:
                    net = solve(problem, "net", rank=rank, epsilon=0.2, random_state=0)
                    assert net.objective >= 0.8 * rho * best * (1 - 1e-12)


@examples(80)
@given(seeds, st.integers(1, 8), st.integers(1, 8), st.integers(1, 8), st.sampled_from(KINDS))
def test_they_hold_on_matrices_that_have_broken_proofs(seed, d, m, k, kind):
    """Ties, repeated eigenvalues, low rank, copies, huge and tiny and mixed scales."""
    m, k = min(m, d), min(max(k, m), d)
    A = random_psd(np.random.default_rng(seed), d, kind)
    assert_epsilon_holds(A, m, k, [("go", {"refine": False}), ("ipu", {})])
    best = nonnegative_optimum(A / A.max(), k) * A.max()
    value = solve(
        NonnegativeProblem(covariance_of(A), 1, k), "spannogram", rank=min(m, 3)
    ).objective
    assert value >= nspca_rho(A, k, min(m, 3)) * best * (1 - 1e-9)


# --- where they are sharp, and where they say nothing


def test_nothing_is_lost_at_low_rank_and_of_all_features(rng):
    A = random_covariance(rng, 9, 3)
    for k in range(3, 10):
        assert fspca_epsilon(A, 3, k) <= CLOSE
        assert nspca_rho(A, k, 3) >= 1 - CLOSE
    full = random_covariance(rng, 6)
    assert fspca_epsilon(full, 2, 6) <= CLOSE
    assert fspca_epsilon(np.eye(5), 2, 3) <= CLOSE  # κ = 1
    assert nspca_rho(full, 2, 6) >= 1 - CLOSE
    assert nspca_rho(full, 2, 60) >= 1 - CLOSE
    assert fspca_epsilon(np.array([[3.0]]), 1, 1) <= CLOSE


def test_a_rank_below_m_and_constant_features(rng):
    A = random_covariance(rng, 7, 2)
    A[3], A[:, 3] = 0.0, 0.0
    assert fspca_epsilon(A, 4, 5) <= CLOSE
    values = np.linalg.eigvalsh(A)[::-1]
    assert fspca_epsilon(A, 1, 3) == pytest.approx(epsilon_as_printed(values, 1, 3), rel=CLOSE)


@pytest.mark.parametrize("unit", [1e-150, 1e-20, 1e20, 1e150])
def test_no_scale(rng, unit):
    A = random_covariance(rng, 8)
    assert fspca_epsilon(A * unit, 2, 4) == pytest.approx(fspca_epsilon(A, 2, 4), rel=CLOSE)
    assert nspca_rho(A * unit, 4, 2) == pytest.approx(nspca_rho(A, 4, 2), rel=CLOSE)


# --- data of all kinds


@pytest.mark.parametrize("n", [12, 60])
def test_the_same_of_data_and_of_its_covariance(rng, n):
    """Of wide data only a matrix of the samples is made."""
    X = rng.standard_normal((n, 4)) @ rng.standard_normal((4, 30)) + rng.standard_normal((n, 30))
    X[np.abs(X) < 0.5] = 0.0
    A = np.cov(X, rowvar=False)
    expected = fspca_epsilon(A, 3, 25), nspca_rho(A, 25, 3)
    for data in (X, scipy.sparse.csr_array(X), np.asfortranarray(X), X.astype(np.float32)):
        covariance = as_covariance(data)
        tol = 1e-4 if data.dtype == np.float32 else 1e-9
        assert fspca_epsilon(covariance, 3, 25) == pytest.approx(expected[0], rel=tol)
        assert nspca_rho(covariance, 25, 3) == pytest.approx(expected[1], rel=tol)
    assert nspca_rho(A, 25) == expected[1]  # the rank that the spannogram has by default


def test_correlations(rng):
    X = rng.standard_normal((40, 9)) @ rng.standard_normal((9, 9))
    covariance = as_covariance(X, scale=True)
    values = np.linalg.eigvalsh(np.corrcoef(X, rowvar=False))[::-1]
    assert fspca_epsilon(covariance, 2, 8) == pytest.approx(epsilon_as_printed(values, 2, 8))


# --- refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda A: fspca_epsilon(A, 3, 2), "n_features_to_select=2 must be between"),
        (lambda A: fspca_epsilon(A, 0, 2), "n_components=0 must be between"),
        (lambda A: fspca_epsilon(A, 1, 7), "n_features_to_select=7 must be between"),
        (lambda A: fspca_epsilon(A, 1.5, 3), "n_components"),
        (lambda A: fspca_epsilon(A[:3], 1, 2), "square"),
        (lambda A: nspca_rho(A, 0), "n_nonzero_coefs must be an integer between 1"),
        (lambda A: nspca_rho(A, 7), "n_nonzero_coefs must be an integer between 1"),
        (lambda A: nspca_rho(A, 3, 0), "rank must be a whole number, 1 or more"),
        (lambda A: nspca_rho(A, 3, 1.5), "rank must be a whole number, 1 or more"),
    ],
)
def test_wrong_numbers(rng, call, message):
    with pytest.raises(ValueError, match=message):
        call(random_covariance(rng, 6))


def test_matrices_that_lack_positive_semidefiniteness(rng):
    """Beyond rounding there is no guarantee; a float32 matrix lacks it by rounding."""
    A = random_covariance(rng, 8, 3)
    few_digits = np.round(A, 1)
    assert np.linalg.eigvalsh(few_digits)[0] < -1e-3
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        covariance = as_covariance(few_digits, kind="covariance")
    for call in (lambda: fspca_epsilon(covariance, 2, 4), lambda: nspca_rho(covariance, 4)):
        with pytest.raises(ValueError, match="guarantee is for positive semidefinite covariances"):
            call()
    rounded = A.astype(np.float32)
    rounded = as_covariance((rounded + rounded.T) / 2, kind="covariance")
    assert fspca_epsilon(rounded, 3, 4) <= 1e-4


def test_too_many_features_and_samples():
    rows = scipy.sparse.random_array((5200, 5100), density=1e-4, rng=np.random.default_rng(0))
    covariance = as_covariance(scipy.sparse.csr_array(rows))
    for call in (lambda: fspca_epsilon(covariance, 2, 4), lambda: nspca_rho(covariance, 4)):
        with pytest.raises(ValueError, match="5,100 features are out of reach"):
            call()
