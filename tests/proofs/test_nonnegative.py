"""Certificates of one nonnegative component: never wrong, and tight where they should be."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import (
    Certificate,
    CertificateError,
    NonnegativeProblem,
    RowSparseProblem,
    as_covariance,
    certify,
    solve,
    verify,
)
from kspan.covariance.derived import MaskedCovariance
from kspan.linalg.nonnegative import (
    best_on_support,
    climb_support,
    complete_signs,
)
from kspan.linalg.rounding import unit_scale
from kspan.problem.solution import LoadingsSolution
from kspan.progress import Status
from kspan.proofs.check.bounds import Cones, dual_bound, split_bound
from kspan.proofs.check.known import KnownMatrix, KnownVariances
from kspan.proofs.check.net_bound import NetWitness
from kspan.proofs.check.tree import TreeWitness
from kspan.proofs.check.witnesses import DualWitness
from kspan.proofs.search.closed_forms import net_witnesses
from kspan.proofs.search.cone_relaxation import ConeRelaxation
from kspan.proofs.search.tree_state import Budgets
from tests.effort import examples
from tests.oracles import nonnegative_optimum
from tests.proofs.helpers import any_of, prove

KINDS = ("gaussian", "integers", "negative", "duplicates", "low rank", "positive")


def random_matrix(rng, d, kind):
    F = rng.standard_normal((d, d))
    if kind == "integers":
        F = rng.integers(-2, 3, (d, d)).astype(float)
    elif kind == "low rank":
        F = rng.standard_normal((d, min(2, d)))
    elif kind == "duplicates":
        F = F[rng.integers(0, max(d // 2, 1), d)]
    elif kind == "positive":
        F = np.abs(F)
    A = F @ F.T
    if kind == "negative":  # all features work against each other
        A = np.diag(np.full(d, float(d))) - np.ones((d, d))
    return A


@st.composite
def matrices(draw, max_d=7):
    d = draw(st.integers(1, max_d))
    k = draw(st.integers(1, d))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    A = random_matrix(rng, d, draw(st.sampled_from(KINDS)))
    A[0, 0] += not A.any()  # not all zero
    return A, k, rng


def problem_of(A, k):
    return NonnegativeProblem(as_covariance(A, kind="covariance"), 1, k)


def thoughtless(problem):
    """A feasible point that nobody thought about: the first feature that varies."""
    x = np.zeros((problem.n_features, 1))
    x[int(np.argmax(problem.covariance.diagonal() > 0))] = 1.0
    variance = problem.covariance.diagonal()[x[:, 0] > 0]
    return LoadingsSolution(x, variance, "none", Status.COMPLETED, np.array([]), 0)


# --- the pieces


@examples(100)
@given(matrices())
def test_dual_bound_of_any_cones(drawn):
    A, k, rng = drawn
    d, size = len(A), float(np.trace(A))
    cones = Cones(
        rng.standard_normal((d, d)) * size * rng.random(),
        rng.uniform(-0.2, 1.0, d) * size,
        rng.random((d, d)) * size * rng.random() * (rng.random((d, d)) < 0.5),
    )
    factor = rng.standard_normal((d, rng.integers(0, d + 1))) * np.sqrt(size / d) * rng.random()
    bound = dual_bound(KnownMatrix.exact(A), factor, 1, any_of(d, k, at_most=True), cones)
    assert bound.value >= nonnegative_optimum(A, k) * (1 - 1e-12)


@examples(100)
@given(matrices())
def test_split_bound_of_any_witness(drawn):
    """Some features relaxed with P ≥ 0, the others at their variance."""
    A, k, rng = drawn
    d, size = len(A), float(np.trace(A))
    inside = np.flatnonzero(rng.random(d) < 0.6)
    t = inside.size
    factor = rng.standard_normal((t, t)) * np.sqrt(size / d) * rng.random()
    cones = Cones(signs=rng.random((t, t)) * size * rng.random())
    known, choice = KnownMatrix.exact(A).on(inside), any_of(d, k, at_most=True)
    value = split_bound(
        known, KnownVariances.exact(np.diagonal(A)), inside, factor, cones, 1, choice
    ).value
    assert value >= nonnegative_optimum(A, k) * (1 - 1e-12)


def test_negative_multipliers_are_refused():
    N = np.zeros((3, 3))
    N[0, 1] = -0.1
    with pytest.raises(FloatingPointError, match="negative"):
        dual_bound(KnownMatrix.exact(np.eye(3)), np.zeros((3, 0)), 1, any_of(3, 2), Cones(signs=N))


@examples(100)
@given(matrices())
def test_climbing_never_falls_and_ends_at_a_leading_eigenvector(drawn):
    A, _, rng = drawn
    x = rng.random(len(A))
    top, value = climb_support(A, x)
    assert value >= x @ A @ x / (x @ x) * (1 - 1e-12) - 1e-12
    assert (top >= 0).all()
    assert np.linalg.norm(top) == pytest.approx(1.0)
    S = np.flatnonzero(top)
    assert value == pytest.approx(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1], abs=1e-8)


def test_one_sign_is_found_on_a_support():
    A = np.array([[2.0, 1.0], [1.0, 2.0]])
    x, value = best_on_support(A)
    np.testing.assert_allclose(x, np.sqrt([0.5, 0.5]))
    assert value == pytest.approx(3.0)
    x, value = best_on_support(np.array([[2.0, -1.0], [-1.0, 1.0]]))
    np.testing.assert_array_equal(x, [1.0, 0.0])
    assert value == 2.0


def test_completed_signs_prove_an_optimum_from_a_rough_multiplier():
    """Without a limit that binds: λ is an eigenvalue of A + N, to the last digit."""
    rng = np.random.default_rng(0)
    A = random_matrix(rng, 12, "gaussian")
    best = nonnegative_optimum(A, 12)
    relax = ConeRelaxation(A / 20, 1, any_of(12, 12), nonnegative=True)
    for _ in range(20):
        relax.step()
    factor, cones = relax.witness()
    rough = dual_bound(KnownMatrix.exact(A / 20), factor, 1, any_of(12, 12), cones).value * 20
    assert rough > best * (1 + 1e-7)
    x = max((climb_support(A, rng.random(12)) for _ in range(50)), key=lambda found: found[1])[0]
    N = complete_signs(A, x, 20 * cones.signs)
    assert (N >= 0).all()
    np.testing.assert_allclose((A + N) @ x, best * x, atol=1e-10 * best)
    assert np.linalg.eigvalsh(A + N)[-1] == pytest.approx(best, rel=1e-12)


def test_the_relaxation_agrees_with_cvxpy():
    """P ≥ 0, P ⪯ Diag(z) and the row cones, solved by Clarabel."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(5)
    A = random_matrix(rng, 8, "gaussian")
    A /= np.abs(A).max()
    k, d = 3, 8
    P, z = cp.Variable((d, d), symmetric=True), cp.Variable(d)
    constraints = [P >> 0, cp.trace(P) == 1, cp.diag(z) - P >> 0, z >= 0, z <= 1, cp.sum(z) == k]
    constraints += [P >= 0]
    phi = cp.Variable((d, d), nonneg=True)
    for i in range(d):
        others, left = [j for j in range(d) if j != i], z[i] - P[i, i]
        constraints += [phi[i, j] <= left for j in others]
        constraints.append(cp.sum(phi[i, others]) <= (k - 1) * left)
        constraints.append(sum(cp.quad_over_lin(P[i, j], phi[i, j]) for j in others) <= P[i, i])
    value = cp.Problem(cp.Maximize(cp.trace(A @ P)), constraints).solve(solver=cp.CLARABEL)
    relax = ConeRelaxation(A, 1, any_of(d, k), nonnegative=True)
    best = np.inf
    for i in range(1, 401):
        relax.step()
        if i % 20 == 0:
            factor, cones = relax.witness()
            best = min(
                best,
                dual_bound(
                    KnownMatrix.exact(A), factor, 1, any_of(d, k, at_most=True), cones
                ).value,
            )
    assert best >= value * (1 - 1e-6)
    assert best <= value * (1 + 1e-3)


# --- whole certificates


@examples(45)
@given(matrices(), st.sampled_from(["fast", "tight", "exact"]))
def test_every_certificate_holds_the_optimum(drawn, level):
    A, k, _ = drawn
    problem = problem_of(A, k)
    best = nonnegative_optimum(A, k)
    certificate = certify(problem, thoughtless(problem), level)
    assert certificate.lower <= best * (1 + 1e-9)
    assert certificate.upper >= best * (1 - 1e-9)
    assert certificate.problem == "nonnegative"
    assert certificate.confidence == 1.0
    lower, upper = verify(problem, certificate)
    assert lower == pytest.approx(certificate.lower, rel=1e-9)
    assert upper <= certificate.upper * (1 + 1e-9)
    if certificate.status.value == "optimal":
        assert certificate.lower == pytest.approx(best, rel=2e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [2, 4, 9])
def test_exact_proves_the_optimum(seed, k):
    A = random_matrix(np.random.default_rng(seed), 9, "gaussian")
    problem = problem_of(A, k)
    certificate = certify(problem, solve(problem, random_state=0), "exact")
    assert certificate.status.value == "optimal"
    assert certificate.lower == pytest.approx(nonnegative_optimum(A, k), rel=2e-6)
    x = np.zeros(9)
    x[certificate.support] = certificate.weights[:, 0]
    assert (x >= 0).all()
    assert x @ A @ x == pytest.approx(certificate.lower)
    verify(problem, certificate)


def test_exact_searches_where_the_relaxation_is_not_enough():
    rng = np.random.default_rng(3)
    found = []
    for _ in range(4):
        A = random_matrix(rng, 12, "gaussian")
        problem = problem_of(A, 4)
        certificate = certify(problem, thoughtless(problem), "exact")
        assert certificate.lower == pytest.approx(nonnegative_optimum(A, 4), rel=2e-6)
        assert certificate.status.value == "optimal"
        verify(problem, certificate)
        found.append(certificate.n_nodes)
    assert isinstance(certificate.witness, TreeWitness)
    assert max(found) > 1


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scales(scale):
    A = random_matrix(np.random.default_rng(0), 6, "gaussian")
    plain, scaled = problem_of(A, 3), problem_of(A * scale, 3)
    first = certify(plain, solve(plain, random_state=0), "exact")
    other = certify(scaled, solve(scaled, random_state=0), "exact")
    assert other.lower / scale == pytest.approx(first.lower)
    assert other.upper / scale == pytest.approx(first.upper, rel=1e-5)
    verify(scaled, other)


def test_features_taken_out_are_never_used():
    A = random_matrix(np.random.default_rng(1), 8, "positive")
    keep = np.ones(8, bool)
    keep[[0, 3]] = False
    covariance = MaskedCovariance(as_covariance(A, kind="covariance"), keep)
    problem = NonnegativeProblem(covariance, 1, 4)
    certificate = certify(problem, solve(problem, random_state=0), "exact")
    assert not np.isin([0, 3], certificate.support).any()
    assert certificate.lower == pytest.approx(nonnegative_optimum(A, 4, keep), rel=2e-6)
    verify(problem, certificate)


def test_wide_data():
    """More features than are relaxed as a whole: the sample-space bound and the split bound."""
    rng = np.random.default_rng(0)
    for n in (6, 60):
        X = rng.standard_normal((n, 30)) * np.linspace(2, 0.2, 30)
        problem = NonnegativeProblem(as_covariance(X), 1, 4)
        support = solve(problem, random_state=0).support
        budgets = Budgets(dense_limit=10, n_inside=20, split_iter=200)
        certificate = prove(problem, "tight", support, budgets=budgets)
        assert certificate.method == ("sample space" if n == 6 else "split")
        assert certificate.gap < 0.5
        assert certificate.upper >= nonnegative_optimum(np.cov(X.T), 3)
        verify(problem, certificate)


def test_upper_at_other_numbers_of_features():
    A = random_matrix(np.random.default_rng(2), 9, "gaussian")
    problem = problem_of(A, 4)
    certificate = certify(problem, solve(problem, random_state=0), k_grid=(2, 6))
    for k in range(1, 10):
        assert certificate.upper_at(k) >= nonnegative_optimum(A, k) * (1 - 1e-9)
    verify(problem, certificate)


# --- interruptions, files, forgeries


def faces(seed=0, d=20, k=6):
    A = random_matrix(np.random.default_rng(seed), d, "gaussian")
    problem = problem_of(A, k)
    return problem, solve(problem, random_state=0)


def test_a_search_goes_on_from_its_checkpoint(tmp_path):
    problem, solution = faces()
    whole = certify(problem, solution, "exact")
    reports = []

    def stop(progress):
        reports.append(progress)
        return len(reports) == 3

    path = tmp_path / "search.npz"
    part = certify(problem, solution, "exact", checkpoint=path, callback=stop)
    assert part.status.value in ("stopped by callback", "optimal")
    verify(problem, part)
    rest = certify(problem, solution, "exact", checkpoint=path)
    assert rest.status.value == "optimal"
    assert rest.lower == pytest.approx(whole.lower)
    verify(problem, rest)
    other = NonnegativeProblem(problem.covariance, 1, 5)
    with pytest.raises(ValueError, match="another problem"):
        certify(other, solve(other, random_state=0), "exact", checkpoint=path)
    signed = RowSparseProblem(problem.covariance, 1, 6)
    with pytest.raises(ValueError, match="another problem"):
        certify(signed, solve(signed, random_state=0), "exact", checkpoint=path)


def test_files_keep_everything(tmp_path):
    problem, solution = faces()
    certificate = certify(problem, solution)
    certificate.save(tmp_path / "proof.npz")
    again = Certificate.load(tmp_path / "proof.npz")
    assert again.digest == certificate.digest
    verify(problem, again)


def forged(certificate, **changes):
    """Change fields and give it a digest that fits."""
    return replace(certificate, **changes, digest="")


def test_forgeries_are_found():
    problem, solution = faces(d=60, k=15)
    certificate = certify(problem, solution)
    assert certificate.gap > 1e-4
    x = certificate.weights
    for changes, message in (
        ({"upper": certificate.lower}, "upper"),
        ({"lower": certificate.upper}, "lower"),
        ({"weights": -x}, "nonnegative"),
        ({"weights": 2 * x}, "orthonormal"),
        ({"weights": x[1:]}, "fit"),
        ({"support": certificate.support[:0], "weights": x[:0]}, "size"),
        ({"problem": "row-sparse"}, "problem"),
    ):
        with pytest.raises(CertificateError, match=message):
            verify(problem, forged(certificate, **changes))


def test_multipliers_of_signs_prove_nothing_about_signed_problems():
    problem, solution = faces()
    certificate = certify(problem, solution)
    signed = RowSparseProblem(problem.covariance, 1, 6)
    best = solve(signed, random_state=0)
    stolen = forged(
        certificate, problem="row-sparse", choice=signed.choice, support=best.support,
        weights=best.weights,
        lower=best.objective, upper=max(certificate.upper, best.objective), path=[],
    )  # fmt: skip
    with pytest.raises(CertificateError, match="any sign"):
        verify(signed, stolen)


def test_what_certify_refuses():
    problem, solution = faces()
    with pytest.raises(ValueError, match="about one component"):
        certify(NonnegativeProblem(problem.covariance, 2, 6), solution)
    with pytest.raises(ValueError, match="negative loadings"):
        certify(problem, replace(solution, loadings=-solution.loadings))
    with pytest.raises(ValueError, match="other features"):
        certify(problem_of(np.eye(3), 2), solution)
    with pytest.raises(ValueError, match="level must be one of"):
        certify(problem, solution, "best")


NEGATIVE = 5 * np.eye(5) - 1 + np.diag([1, 2, 3, 4, 5]) / 1000


@pytest.mark.parametrize("k", range(1, 6))
def test_features_that_all_work_against_each_other(k):
    """The iteration used to run away here, and the search to force more features than k."""
    problem = problem_of(NEGATIVE, k)
    certificate = certify(problem, solve(problem, random_state=0), "exact")
    assert certificate.status.value == "optimal"
    assert certificate.lower == pytest.approx(4.005)
    verify(problem, certificate)
    tight = certify(problem, solve(problem, random_state=0), "tight")
    fast = certify(problem, solve(problem, random_state=0), "fast")
    assert tight.upper <= fast.upper * (1 + 1e-12)


@examples(30)
@given(st.integers(0, 2**32 - 1))
def test_negatively_correlated_features(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 9))
    k = int(rng.integers(1, d + 1))
    A = -np.abs(random_matrix(rng, d, "gaussian"))
    np.fill_diagonal(A, -np.diagonal(A))
    A += max(1e-3 - np.linalg.eigvalsh(A)[0], 0.0) * np.eye(d)
    problem = problem_of(A, k)
    certificate = certify(problem, thoughtless(problem), "exact")
    best = nonnegative_optimum(A, k)
    assert certificate.lower <= best * (1 + 1e-9)
    assert certificate.upper >= best * (1 - 1e-9)
    verify(problem, certificate)


@pytest.mark.parametrize("dtype", ["i1", "i8", "c16", "f2", "f4"])
def test_witnesses_of_other_types_are_refused(dtype):
    """int8 squares wrap around, complex ones may be negative: neither makes a B that is PSD."""
    A = random_matrix(np.random.default_rng(0), 8, "gaussian")
    problem = problem_of(A, 4)
    weakest = int(np.argmin(np.diagonal(A)))
    witness = DualWitness(
        unit_scale(float(A.diagonal().max())), np.arange(8), (12 * np.eye(8)).astype(dtype)
    )
    forgery = forged(
        certify(problem, solve(problem, random_state=0), "fast"), support=np.array([weakest]),
        weights=np.ones((1, 1)), lower=A[weakest, weakest], upper=A[weakest, weakest],
        witness=witness,
    )  # fmt: skip
    with pytest.raises(CertificateError):
        verify(problem, forgery)


def test_the_net_stops_when_told_and_is_verified():
    problem, solution = faces()
    told = []
    certificate = certify(
        problem, solution, "net", callback=lambda progress: told.append(progress) or len(told) > 1
    )
    assert len(told) == 2
    verify(problem, certificate)
    whole = certify(problem, solution, "net", rank=3, epsilon=0.05)
    verify(problem, whole)
    if isinstance(whole.witness, NetWitness):
        assert whole.confidence < 1
        huge = replace(whole.witness, n_directions=10**9)
        with pytest.raises(CertificateError, match="too many"):
            verify(problem, forged(whole, witness=huge))


def test_the_bound_of_the_net_holds_as_often_as_it_says():
    """Coarse nets, so that chance has a chance: misses are allowed at the rate they state."""
    rng = np.random.default_rng(0)
    missed = expected = 0.0
    for trial in range(150):
        A = random_matrix(rng, 7, KINDS[trial % len(KINDS)])
        A[0, 0] += not A.any()
        problem = problem_of(A, int(rng.integers(1, 8)))
        best = nonnegative_optimum(A, problem.n_nonzero_coefs)
        for witness in net_witnesses(problem, 3, 0.2, Budgets()):
            witness = replace(witness, seed=trial)
            missed += witness.evaluate(problem) < best * (1 - 1e-9)
            expected += 1 - witness.confidence
    assert missed <= expected
