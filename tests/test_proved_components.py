"""Several components with features of their own, and a proof for each."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from kspan import (
    CertificateError,
    ElementSparsePCA,
    NonnegativeProblem,
    NonnegativeSparsePCA,
    as_covariance,
    certify,
    solve,
    verify,
)
from kspan.problem import ElementSparseProblem
from kspan.progress import Monitor, Status
from kspan.proofs.search.prover import ProofOptions
from kspan.solvers.one_by_one import POSITIVE_DEFLATIONS, PROVABLE_DEFLATIONS
from kspan.solvers.registry import as_method
from kspan.solving import component_problems, solve_with_proof
from tests.effort import examples
from tests.oracles import best_by_enumeration, nonnegative_optimum, random_covariance
from tests.out_of_core import npy


def solve_and_prove(
    problem, solver="auto", level="tight", *, random_state=0, callback=None, time_limit=None,
    checkpoint=None, **options,
):  # fmt: skip
    method = as_method(type(problem), solver, options)
    monitor = Monitor("test", callback, time_limit)
    rng = np.random.default_rng(random_state)
    return solve_with_proof(
        problem, method, level, monitor, rng, ProofOptions(checkpoint=checkpoint)
    )


@pytest.fixture
def problem(rng):
    F = rng.standard_normal((8, 8))
    return NonnegativeProblem(as_covariance(F @ F.T, kind="covariance"), 3, 2)


@pytest.mark.parametrize("deflation", POSITIVE_DEFLATIONS)
def test_every_component_is_proved_on_what_is_left(problem, deflation):
    solution, certificates = solve_and_prove(
        problem, level="exact", deflation=deflation, random_state=0
    )
    singles = component_problems(problem, solution.loadings, deflation)
    assert len(certificates) == len(singles) == 3
    for j, (single, certificate) in enumerate(zip(singles, certificates, strict=True)):
        verify(single, certificate)
        left = single.covariance.submatrix(np.arange(8))
        best = nonnegative_optimum(left, 2)
        assert certificate.status.value == "optimal"
        assert certificate.lower == pytest.approx(best, rel=2e-6)
        x = solution.loadings[:, j]
        assert (x >= 0).all()
        assert x @ left @ x == pytest.approx(best, rel=2e-6)


def test_removed_features_are_not_used_again(problem):
    solution, _ = solve_and_prove(problem, random_state=0)
    used = (solution.loadings > 0).sum(axis=1)
    assert used.max() == 1
    assert solution.orthogonality_error < 1e-12


def test_a_better_vector_found_by_the_proof_takes_its_place(problem):
    """EM without restarts and steps starts anywhere; the proof finds the optimum."""
    poor = solve(problem, "em", n_restarts=1, max_iter=1, random_state=3)
    solution, certificates = solve_and_prove(
        problem, "em", "exact", n_restarts=1, max_iter=1, random_state=3
    )
    best = nonnegative_optimum(problem.covariance.submatrix(np.arange(8)), 2)
    assert certificates[0].lower == pytest.approx(best, rel=2e-6)
    x, y = poor.loadings[:, 0], solution.loadings[:, 0]
    A = problem.covariance.submatrix(np.arange(8))
    assert y @ A @ y >= x @ A @ x
    assert y @ A @ y == pytest.approx(certificates[0].lower, rel=1e-12)


def test_more_components_than_features_left():
    """Three components of two features out of four: the last one has nothing left."""
    A = np.diag([4.0, 3.0, 2.0, 1.0]) + 0.1
    problem = NonnegativeProblem(as_covariance(A, kind="covariance"), 3, 2)
    solution, certificates = solve_and_prove(problem, level="exact", random_state=0)
    assert np.allclose(np.linalg.norm(solution.loadings, axis=0), 1.0)
    assert certificates[2].lower == certificates[2].upper == 0.0
    verify(component_problems(problem, solution.loadings)[2], certificates[2])


@pytest.fixture
def signed(problem):
    return ElementSparseProblem(problem.covariance, 3, 2)


@pytest.fixture(params=["nonnegative", "auto", "exact"])
def asked(request, problem, signed):
    """A problem, and a method that proves it or whose answer is proved."""
    return (problem, "auto") if request.param == "nonnegative" else (signed, request.param)


def test_told_to_stop_it_still_answers(asked):
    problem, solver = asked
    solution, certificates = solve_and_prove(problem, solver, callback=lambda _: True)
    assert solution.status is Status.STOPPED
    assert len(certificates) == 1
    assert np.allclose(np.linalg.norm(solution.loadings, axis=0), 1.0)
    if type(problem) is NonnegativeProblem:
        assert (solution.loadings >= 0).all()


def test_time_is_shared(asked):
    problem, solver = asked
    solution, certificates = solve_and_prove(problem, solver, level="exact", time_limit=1e-9)
    # A search for the optimum is over; others bound what they find anyway.
    assert len(certificates) == (1 if solver == "exact" else 3)
    assert solution.status is Status.TIME_LIMIT
    for single, certificate in zip(
        component_problems(problem, solution.loadings), certificates, strict=False
    ):
        verify(single, certificate)


def test_only_deflations_that_leave_something_positive(problem):
    with pytest.raises(ValueError, match="deflation must be one of"):
        solve_and_prove(problem, deflation="hotelling")
    with pytest.raises(ValueError, match="deflation must be one of"):
        component_problems(problem, np.eye(8)[:, :2], "schur")


def test_an_interrupt_during_a_proof_ends_it(asked):
    problem, solver = asked

    def interrupt(progress):
        if progress.upper is not None:
            raise KeyboardInterrupt

    solution, certificates = solve_and_prove(problem, solver, level="exact", callback=interrupt)
    assert solution.status is Status.INTERRUPTED
    assert len(certificates) == 1
    assert np.allclose(np.linalg.norm(solution.loadings, axis=0), 1.0)


def test_every_component_has_a_checkpoint_of_its_own(asked, tmp_path):
    problem, solver = asked
    path = tmp_path / "search.npz"
    for _ in range(2):
        _, certificates = solve_and_prove(problem, solver, level="exact", checkpoint=path)
        assert len(certificates) == 3
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "search.npz.1", "search.npz.2", "search.npz.3"
    ]  # fmt: skip


@pytest.mark.parametrize("solver", ["auto", "em", "net", "spannogram"])
def test_proving_changes_nothing_that_is_not_better(solver, rng):
    X = rng.standard_normal((40, 12)) @ rng.standard_normal((12, 12))
    plain, proved = (
        NonnegativeSparsePCA(3, 3, solver=solver, certify=level, random_state=0).fit(X)
        for level in (False, "fast")
    )
    assert len(proved.certificates_) == 3
    # Of the same features EM, nets and spannograms do not take the best loadings; the proof does.
    np.testing.assert_array_equal(plain.components_[0] > 0, proved.components_[0] > 0)
    first, better = (np.var(X @ pca.components_[0]) for pca in (plain, proved))
    assert better >= first * (1 - 1e-12)
    if solver == "auto":
        np.testing.assert_array_equal(plain.components_, proved.components_)


# --- loadings of either sign: the enumerated optimum of what is left, by the textbook


def left_by_definition(A, vectors, kind):
    """What a deflation leaves, with full matrices."""
    eye, Q = np.eye(len(A)), np.zeros((len(A), 0))
    for x in vectors:
        if kind == "schur":
            variance = x @ A @ x
            if variance > 1e-12 * np.abs(A).max():
                A = A - np.outer(A @ x, A @ x) / variance
            continue
        if kind == "remove":
            A = A * np.outer(x == 0, x == 0)
            continue
        q = x - Q @ (Q.T @ x)
        if kind == "orthogonalized":
            if np.linalg.norm(q) < 1e-7:
                continue
            q /= np.linalg.norm(q)
            Q = np.column_stack([Q, q])
        else:
            q = x
        A = (eye - np.outer(q, q)) @ A @ (eye - np.outer(q, q))
    return A


def assert_proved(A, k, solution, certificates, deflation, level="exact"):
    """Every certificate is about its component, holds, and has the optimum between its bounds."""
    covariance = as_covariance(A, kind="covariance")
    m = solution.loadings.shape[1]
    singles = component_problems(
        ElementSparseProblem(covariance, m, k), solution.loadings, deflation
    )
    assert len(certificates) == len(singles) == m
    size = np.abs(A).max()
    for j, (single, certificate) in enumerate(zip(singles, certificates, strict=True)):
        verify(single, certificate)
        left = left_by_definition(A, solution.loadings[:, :j].T, deflation)
        best, x = best_by_enumeration(left, 1, k), solution.loadings[:, j]
        # What is left is known to rounding of A, in the test too; Schur's divides by variances.
        slack = 1e-9 * size
        assert certificate.lower <= best + slack
        assert best <= certificate.upper + slack
        assert certificate.lower == pytest.approx(x @ left @ x, abs=slack)
        if level == "exact" and best > 1e-6 * size:
            assert certificate.status is Status.OPTIMAL
            assert certificate.lower == pytest.approx(best, rel=2e-6)


@pytest.mark.parametrize("deflation", PROVABLE_DEFLATIONS)
@examples(30)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_the_enumerated_optimum_is_between_the_bounds(deflation, seed, data):
    level = data.draw(st.sampled_from(["fast", "tight", "exact"]))
    d = data.draw(st.integers(2, 9))
    k, m = data.draw(st.integers(1, d)), data.draw(st.integers(1, min(d, 4)))
    A = random_covariance(np.random.default_rng(seed), d, data.draw(st.integers(1, d)))
    problem = ElementSparseProblem(as_covariance(A, kind="covariance"), m, k)
    solution, certificates = solve_and_prove(problem, level=level, deflation=deflation)
    assert_proved(A, k, solution, certificates, deflation, level)


def degenerate():
    rng = np.random.default_rng(5)
    B = rng.standard_normal((20, 4)) * [3.0, 2.0, 1.0, 1.0]
    copies = np.cov(B[:, [0, 0, 1, 1, 2, 3]].T)
    constant = np.zeros((6, 6))
    constant[1:5, 1:5] = np.cov(B.T)
    return {
        "ties": 0.5 * np.eye(6) + 0.5,
        "identity": np.eye(5),
        "copies": copies,
        "constant features": constant,
        "rank one": np.outer(np.arange(1.0, 6), np.arange(1.0, 6)),
        "huge": 1e120 * random_covariance(rng, 6),
        "tiny": 1e-120 * random_covariance(rng, 6),
        "unlike scales": np.outer(s := 10.0 ** np.arange(-3, 3), s) * np.corrcoef(
            rng.standard_normal((6, 12))
        ),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("k", "deflation"),
    [
        *((3, deflation) for deflation in PROVABLE_DEFLATIONS),
        (1, PROVABLE_DEFLATIONS[0]),
        *(pytest.param(1, other, marks=pytest.mark.slow) for other in PROVABLE_DEFLATIONS[1:]),
    ],
)
@pytest.mark.parametrize("case", degenerate())
def test_degenerate_matrices(deflation, case, k):
    A = degenerate()[case]
    problem = ElementSparseProblem(as_covariance(A, kind="covariance"), 3, k)
    solution, certificates = solve_and_prove(problem, level="exact", deflation=deflation)
    assert_proved(A, k, solution, certificates, deflation)


@pytest.mark.parametrize("deflation", PROVABLE_DEFLATIONS)
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, npy])
def test_certificates_hold_for_data_in_any_form(rng, deflation, form):
    X = rng.standard_normal((30, 9)) @ rng.standard_normal((9, 9)) + 100.0
    model = ElementSparsePCA(3, 3, deflation=deflation, certify="exact", random_state=0)
    model.fit(form(X))
    assert [c.status.value for c in model.certificates_] == ["optimal"] * 3
    for other in (np.asarray, scipy.sparse.csr_array, npy):
        problem = ElementSparseProblem(as_covariance(other(X)), 3, 3)
        singles = component_problems(problem, model.components_.T, deflation)
        for single, certificate in zip(singles, model.certificates_, strict=True):
            verify(single, certificate)
    changed = component_problems(problem, model.components_[::-1].T, deflation)[1]
    with pytest.raises(CertificateError):
        verify(changed, model.certificates_[1])


def test_a_better_component_found_by_the_proof_is_the_one_that_is_taken_out(rng):
    """TPower from one random start ends anywhere; the second component goes with the better one."""
    A = random_covariance(rng, 9)
    problem = ElementSparseProblem(as_covariance(A, kind="covariance"), 2, 3)
    options = {"init": "random", "max_iter": 1}
    poor = solve(problem, "tpower", random_state=1, **options).loadings[:, 0]
    assert poor @ A @ poor < 0.99 * best_by_enumeration(A, 1, 3)
    solution, certificates = solve_and_prove(problem, "tpower", "exact", random_state=1, **options)
    assert_proved(A, 3, solution, certificates, "projection")
    assert solution.solver == "tpower"


def test_the_exact_solver_proves_all_components(signed):
    solution = solve(signed, "exact", random_state=0)
    assert (solution.solver, solution.status) == ("exact", Status.OPTIMAL)
    A = signed.covariance.submatrix(np.arange(8))
    for j, x in enumerate(solution.loadings.T):
        left = left_by_definition(A, solution.loadings[:, :j].T, "projection")
        assert x @ left @ x == pytest.approx(best_by_enumeration(left, 1, 2), rel=2e-6)


@pytest.mark.parametrize("deflation", ["hotelling", "generalized"])
def test_what_cannot_be_proved_is_refused_with_the_reason(signed, deflation):
    message = rf"\['projection', 'schur', 'orthogonalized', 'remove'\].*got '{deflation}': what it"
    with pytest.raises(ValueError, match=message):
        solve_and_prove(signed, deflation=deflation)
    with pytest.raises(ValueError, match=message):
        solve(signed, "exact", deflation=deflation)
    with pytest.raises(ValueError, match=message):
        component_problems(signed, np.eye(8)[:, :2], deflation)
    single = ElementSparseProblem(signed.covariance, 1, 2)  # nothing is taken out
    _, (certificate,) = solve_and_prove(single, level="exact", deflation=deflation)
    assert certificate.status is Status.OPTIMAL
    verify(single, certificate)


def test_methods_that_find_all_together_are_proved_for_one_component_only(signed):
    for solver in ("matching", "gpower-l0-block", "gpower-l1-block"):
        with pytest.raises(ValueError, match="finds all components together; certify needs one"):
            solve_and_prove(signed, solver)
        single = ElementSparseProblem(signed.covariance, 1, 2)
        solution, (certificate,) = solve_and_prove(single, solver, "exact")
        A = signed.covariance.submatrix(np.arange(8))
        assert solution.objective == pytest.approx(best_by_enumeration(A, 1, 2), rel=2e-6)
        verify(single, certificate)


def test_certify_and_verify_take_a_single_component(signed):
    single = ElementSparseProblem(signed.covariance, 1, 2)
    certificate = certify(single, solve(single, random_state=0), level="exact")
    lower, upper = verify(single, certificate)
    best = best_by_enumeration(signed.covariance.submatrix(np.arange(8)), 1, 2)
    assert lower <= best * (1 + 1e-12) <= upper * (1 + 2e-12)
    assert certificate.status is Status.OPTIMAL
    with pytest.raises(ValueError, match=r"about one component: .*component_problems"):
        certify(signed, solve(signed, "tpower"))
    with pytest.raises(ValueError, match=r"about one component: .*component_problems"):
        verify(signed, certificate)
    with pytest.raises(ValueError, match="3 features, and 2 are allowed"):
        certify(single, solve(ElementSparseProblem(signed.covariance, 1, 3), "tpower"))


def test_a_penalty_of_ones_own_may_ask_for_too_many_features(signed):
    with pytest.raises(ValueError, match="features, and 2 are allowed"):
        solve_and_prove(signed, "gpower-l1", penalty=0.0)


def test_more_separate_components_than_features_left():
    A = np.diag([4.0, 3.0, 2.0, 1.0]) + 0.1
    problem = ElementSparseProblem(as_covariance(A, kind="covariance"), 3, 2)
    solution, certificates = solve_and_prove(problem, level="exact", deflation="remove")
    np.testing.assert_allclose(np.linalg.norm(solution.loadings, axis=0), 1.0)
    assert certificates[2].lower == 0.0
    assert certificates[2].upper <= 1e-12
    verify(component_problems(problem, solution.loadings, "remove")[2], certificates[2])


@pytest.mark.parametrize("n_jobs", [2])
def test_proofs_do_not_depend_on_who_works(signed, n_jobs):
    alone, together = (
        ElementSparsePCA(
            2, 2, covariance="precomputed", certify="exact", n_jobs=jobs, random_state=0
        ).fit(signed.covariance.submatrix(np.arange(8)))
        for jobs in (None, n_jobs)
    )
    assert [c.digest for c in alone.certificates_] == [c.digest for c in together.certificates_]


# --- what the fuzzer found: a deflation that leaves next to nothing beside what it took out

FOUND = {
    "level of what is removed": [
        [-9257.442592207492, -10196.064885649488, -99155.0641979977],
        [11975.254415047713, 13188.989381638505, 128254.41752143632],
        [-4147.737327674299, -4567.755652996421, -44415.64837183872],
        [-11169.453934312369, -12301.336816836816, -119624.80632184863],
    ],
    "no finite bound": [[-2e139, -3e-71, 3e-71], [3e139, 2e-71, 1e-71], [-5e140, -1e-71, -3e-71]],
    "out of range": [
        [5e55, 4e-111, 2e-111, 3e-112],
        [6e55, -1e-110, 8e-113, 1e-111],
        [-1e54, 6e-111, -8e-113, 1e-111],
    ],
}


@pytest.mark.filterwarnings("ignore:n_components=3 is above the rank")
@pytest.mark.parametrize("deflation", PROVABLE_DEFLATIONS)
@pytest.mark.parametrize("name", FOUND)
@pytest.mark.parametrize("level", ["fast", "tight", "exact"])
def test_ratios_beyond_all_digits(name, deflation, level):
    """Fitted on the matrix formed once, verified on one computed anew: both round differently."""
    X = np.array(FOUND[name])
    model = ElementSparsePCA(
        3, 1, solver="tpower", deflation=deflation, certify=level, random_state=0
    ).fit(X)
    problem = ElementSparseProblem(as_covariance(X), 3, 1)
    singles = component_problems(problem, model.components_.T, deflation)
    for single, certificate in zip(singles, model.certificates_, strict=True):
        verify(single, certificate)
