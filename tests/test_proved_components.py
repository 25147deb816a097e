"""Several nonnegative components with a proof for each."""

import numpy as np
import pytest

from kspan import NonnegativeProblem, NonnegativeSparsePCA, as_covariance, solve, verify
from kspan.progress import Monitor, Status
from kspan.proofs.search.prover import ProofOptions
from kspan.solvers.one_by_one import POSITIVE_DEFLATIONS
from kspan.solvers.registry import as_method
from kspan.solving import component_problems, solve_with_proof
from tests.oracles import nonnegative_optimum


def solve_and_prove(
    problem, solver="auto", level="tight", *, random_state=0, callback=None, time_limit=None,
    checkpoint=None, **options,
):  # fmt: skip
    method = as_method(NonnegativeProblem, solver, options)
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


def test_told_to_stop_it_still_answers(problem):
    solution, certificates = solve_and_prove(problem, random_state=0, callback=lambda _: True)
    assert solution.status is Status.STOPPED
    assert len(certificates) == 1
    assert np.allclose(np.linalg.norm(solution.loadings, axis=0), 1.0)
    assert (solution.loadings >= 0).all()


def test_time_is_shared(problem):
    solution, certificates = solve_and_prove(problem, level="exact", time_limit=1e-9)
    assert len(certificates) == 3
    assert solution.status is Status.TIME_LIMIT
    for single, certificate in zip(
        component_problems(problem, solution.loadings), certificates, strict=True
    ):
        verify(single, certificate)


def test_only_deflations_that_leave_something_positive(problem):
    with pytest.raises(ValueError, match="deflation must be one of"):
        solve_and_prove(problem, deflation="hotelling")
    with pytest.raises(ValueError, match="deflation must be one of"):
        component_problems(problem, np.eye(8)[:, :2], "schur")


def test_an_interrupt_during_a_proof_ends_it(problem):
    def interrupt(progress):
        if progress.upper is not None:
            raise KeyboardInterrupt

    solution, certificates = solve_and_prove(
        problem, level="exact", callback=interrupt, random_state=0
    )
    assert solution.status is Status.INTERRUPTED
    assert len(certificates) == 1
    assert np.allclose(np.linalg.norm(solution.loadings, axis=0), 1.0)


def test_every_component_has_a_checkpoint_of_its_own(problem, tmp_path):
    path = tmp_path / "search.npz"
    for _ in range(2):
        _, certificates = solve_and_prove(problem, level="exact", random_state=0, checkpoint=path)
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
