"""Noise that is alike in all features, and a few directions: closed forms prove the optimum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import certify, solve, verify
from kspan.datasets import make_scheme
from tests.effort import examples
from tests.oracles import best_by_enumeration, random_covariance, spiked
from tests.proofs.helpers import KINDS, matrix_problem, random_psd


def draw_spiked(seed):
    """A matrix with noise and at most m directions, m and k."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(4, 13))
    m = int(rng.integers(1, 4))
    k = int(rng.integers(m, d + 1))
    rank = m if seed % 3 else int(rng.integers(0, m + 1))
    return spiked(rng, d, rank, float(10 ** rng.uniform(-2, 1.5))), m, k


def test_go_is_proved_optimal_on_every_spiked_covariance():
    """Remark 4.4 as certificates: 200 of 200, at the level that costs next to nothing."""
    for seed in range(200):
        A, m, k = draw_spiked(seed)
        problem = matrix_problem(A, m, k)
        certificate = certify(problem, solve(problem, "go", shift="auto"), level="fast")
        assert certificate.status.value == "optimal", seed
        assert certificate.gap <= 1e-9
        if seed < 40:
            best = best_by_enumeration(A, m, k)
            assert certificate.lower <= best * (1 + 1e-12)
            assert certificate.upper >= best * (1 - 1e-12)
            verify(problem, certificate)


@pytest.mark.parametrize("unit", [1e-130, 1e130])
def test_also_with_features_that_must_and_must_not_be_chosen(rng, unit):
    for _ in range(10):
        A = spiked(rng, 9, 2, 2.0) * unit
        problem = matrix_problem(A, 2, 4, include=[1], exclude=[0, 5])
        certificate = certify(problem, solve(problem, "go", shift="auto"), level="fast")
        assert certificate.status.value == "optimal"


def test_also_of_large_matrices(rng):
    """Leading eigenpairs by Lanczos, and noise in so many directions that it finds few of them."""
    A = spiked(rng, 500, 3, 2.0)
    problem = matrix_problem(A, 3, 30)
    certificate = certify(problem, solve(problem, "go", shift="auto"), level="fast")
    assert certificate.status.value == "optimal"


def bound_with(A, m, k, sigma):
    """What `kspan.solvers.rowsparse.go` says of any A and σ, from all eigenvalues."""
    values, vectors = np.linalg.eigh(A)
    values, vectors = values[::-1], vectors[:, ::-1]
    above = np.maximum(values[:m] - sigma, 0)
    best = np.sort(vectors[:, :m] ** 2 @ above)[-k:].sum()
    rest = np.concatenate([np.minimum(values[:m] - sigma, 0), values[m:] - sigma])
    bound = m * sigma + best + np.sort(rest)[-m:].sum()
    assert bound <= m * sigma + best + np.maximum(values[m : 2 * m] - sigma, 0).sum() + 1e-9 * bound
    return bound


@examples(100)
@given(
    st.integers(0, 2**32 - 1), st.integers(2, 9), st.integers(1, 4), st.integers(1, 9),
    st.sampled_from([kind for kind in KINDS if kind not in ("tiny", "huge")]),
)  # fmt: skip
def test_the_certificate_is_never_above_what_is_stated(seed, d, m, k, kind):
    """With the automatic σ, with λ_{m+1}, with none and with those of the grid."""
    m, k = min(m, d), min(max(k, m), d)
    A = random_psd(np.random.default_rng(seed), d, kind)
    problem = matrix_problem(A, m, k)
    certificate = certify(problem, solve(problem, "go", shift="auto"), level="fast")
    values, best = np.linalg.eigvalsh(A)[::-1], best_by_enumeration(A, m, k)
    varies = np.count_nonzero(np.diagonal(A) > 0)
    mean = values[m:].sum() / (varies - m) if varies > m else 0.0
    for sigma in (mean, *values[m : m + 1], *np.linspace(0, values[m - 1], 13), values[0]):
        stated = bound_with(A, m, k, max(sigma, 0.0))
        assert stated >= best * (1 - 1e-9)
        if certificate.status.value != "optimal":  # then the trace was enough
            assert certificate.upper <= stated * (1 + 1e-9)
    assert certificate.upper >= best * (1 - 1e-9)


def test_nearly_spiked_is_nearly_proved(rng):
    """The gap is at most what the eigenvalues beyond the m leading ones differ by."""
    for size in (1e-6, 1e-3, 1e-1):
        A = spiked(rng, 10, 2, 2.0) + size * random_covariance(rng, 10) / 10
        values = np.linalg.eigvalsh(A)[::-1]
        problem = matrix_problem(A, 2, 4)
        certificate = certify(problem, solve(problem, "go", shift="auto"), level="fast")
        spread = 2 * (values[2] - values[-1])
        assert certificate.upper - certificate.lower <= spread + 1e-9 * values[0]


def test_schemes_with_m_directions_of_signal():
    """A and B of the FSPCA paper: three large eigenvalues, and ones."""
    for scheme in "AB":
        for seed in range(10):
            A = make_scheme(scheme, random_state=seed)
            problem = matrix_problem(A, 3, 7)
            certificate = certify(problem, solve(problem, "go", shift="auto"), level="fast")
            assert certificate.status.value == "optimal"
