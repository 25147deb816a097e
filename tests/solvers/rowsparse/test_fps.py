import cvxpy as cp
import numpy as np
import pytest

from kspan import RowSparseProblem, as_covariance, solve
from kspan.linalg.projections import project_fantope
from kspan.progress import Monitor, Status
from kspan.solvers.rowsparse.fps import (
    FEATURE_LIMIT,
    FPS,
    _Relaxation,
    convex_candidate,
    fantope_admm,
    fantope_path,
)
from tests.oracles import random_covariance


def by_a_conic_solver(A, m, penalty):
    d = A.shape[0]
    H = cp.Variable((d, d), symmetric=True)
    objective = cp.Maximize(cp.trace(A @ H) - penalty * cp.sum(cp.abs(H)))
    task = cp.Problem(objective, [H >> 0, np.eye(d) - H >> 0, cp.trace(H) == m])
    return task.solve(solver=cp.CLARABEL)


@pytest.mark.parametrize(
    ("d", "m", "share"), [(6, 1, 0.3), (8, 2, 0.1), (12, 3, 0.5), (20, 2, 0.2), (5, 2, 0.0)]
)
def test_the_relaxation_against_a_conic_solver(d, m, share):
    A = random_covariance(np.random.default_rng(d), d) / d
    penalty = share * np.abs(A - np.diag(np.diag(A))).max()
    point = fantope_admm(A, m, penalty, max_iter=20_000, tol=1e-9)
    assert point.converged
    value = np.sum(A * point.Z) - penalty * np.abs(point.Z).sum()
    assert value == pytest.approx(by_a_conic_solver(A, m, penalty), rel=1e-6)
    eigenvalues = np.linalg.eigvalsh(point.Z)
    assert np.trace(point.Z) == pytest.approx(m, abs=1e-7)
    assert eigenvalues[0] >= -1e-7
    assert eigenvalues[-1] <= 1 + 1e-7


def test_the_example_that_the_released_screening_loses():
    """S = [[10, 9.9, 0], [9.9, 10, 0], [0, 0, 9]], λ = 0.1, m = 2: the optimum is 28.6."""
    S = np.array([[10, 9.9, 0], [9.9, 10, 0], [0, 0, 9.0]])
    point = fantope_admm(S, 2, 0.1, max_iter=5000, tol=1e-9)
    value = np.sum(S * point.Z) - 0.1 * np.abs(point.Z).sum()
    assert value == pytest.approx(28.6, abs=1e-4)


def test_a_path_gives_what_each_penalty_gives_alone(rng):
    A = random_covariance(rng, 10) / 10
    for penalty, point in fantope_path(A, 2, 6, max_iter=5000, tol=1e-8):
        alone = fantope_admm(A, 2, penalty, max_iter=5000, tol=1e-8)
        np.testing.assert_allclose(point.Z, alone.Z, atol=1e-3)  # entries may be near ties
        ours, theirs = (np.sum(A * p.Z) - penalty * np.abs(p.Z).sum() for p in (point, alone))
        assert ours == pytest.approx(theirs, rel=1e-7)


def test_warm_starts_save_steps(rng):
    A = random_covariance(rng, 30) / 30
    path = fantope_path(A, 2, 20, max_iter=2000, tol=1e-5)
    cold = sum(fantope_admm(A, 2, p, max_iter=2000, tol=1e-5).n_iter for p, _ in path)
    assert sum(point.n_iter for _, point in path) < 0.9 * cold


def test_the_path_runs_from_few_features_to_many(rng):
    A = random_covariance(rng, 15)
    path = fantope_path(A, 2, 10)
    penalties = [penalty for penalty, _ in path]
    assert penalties == sorted(penalties, reverse=True)
    assert path[0][1].n_rows < path[-1][1].n_rows


@pytest.mark.parametrize("k", [3, 5, 9])
def test_the_penalty_found_gives_k_features(rng, k):
    A = random_covariance(rng, 15)
    covariance = as_covariance(A, kind="covariance")
    told = []
    problem = RowSparseProblem(covariance, 2, k)
    solution = solve(problem, "fps", callback=told.append)
    assert len(told) == len(solution.history) <= 20
    point = _Relaxation(problem, FPS(), Monitor("test")).bisect().point
    rows = set(np.flatnonzero(np.diagonal(point.Z)))
    assert k <= len(rows) <= k + 2
    assert set(solution.support) <= rows


def test_a_penalty_of_the_users_own(rng):
    A = random_covariance(rng, 10)
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), 2, 10)
    plain = solve(problem, "fps", penalty=0.0, max_iter=2000, tol=1e-8)
    assert plain.objective == pytest.approx(np.linalg.eigvalsh(A)[-2:].sum(), rel=1e-6)
    with pytest.raises(ValueError, match="penalty must not be negative"):
        solve(problem, "fps", penalty=-1.0)


def test_an_interrupt_keeps_the_last_point(rng):
    problem = RowSparseProblem(as_covariance(random_covariance(rng, 10), kind="covariance"), 2, 4)

    def interrupt(progress):
        if progress.iteration == 2:
            raise KeyboardInterrupt

    solution = solve(problem, "fps", callback=interrupt)
    assert solution.status.value == "interrupted"
    assert solution.support.size == 4


def test_too_many_features_are_refused_before_any_work():
    X = np.random.default_rng(0).standard_normal((3, FEATURE_LIMIT + 1))
    problem = RowSparseProblem(as_covariance(X), 1, 2)
    for options in ({"solver": "fps"}, {"solver": "ipu", "init": "convex"}):
        with pytest.raises(ValueError, match="limit is 4000 features"):
            solve(problem, **options)


def test_the_convex_start_is_the_relaxation_cut_to_k_rows(rng):
    A = random_covariance(rng, 12)
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), 2, 5)
    start = solve(problem, "soap", init="convex", max_iter=0)
    assert np.array_equal(start.support, solve(problem, "fps").support)
    assert start.objective == pytest.approx(solve(problem, "fps").objective, rel=1e-12)


def test_rows_of_the_relaxation_are_chosen_even_if_no_leading_eigenvector_has_them():
    """Two equal blocks, one component: Z has both, its leading eigenvector one of them."""
    A = np.zeros((12, 12))
    A[6:9, 6:9], A[9:, 9:] = 1.0, 0.9
    A += np.diag([1e-3] * 6 + [1.0] * 6)
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), 1, 6)
    assert set(solve(problem, "fps").support) >= {6, 7, 8}
    penalised = solve(problem, "fps", penalty=10.0)  # one row is left: the others by variance
    assert set(penalised.support) == {6, 7, 8, 9, 10, 11}


def test_the_time_limit_is_asked_for_in_every_step(rng):
    A = random_covariance(rng, 300)
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), 3, 30)
    for options in ({"solver": "fps"}, {"solver": "ipu", "init": "convex"}):
        solution = solve(problem, time_limit=1e-6, **options)
        assert solution.n_iter == 0, "and not only after a hundred of them"
        assert solution.status.value == "time limit"
        assert solution.support.size == 30


class Asked(Monitor):
    """Says that time is up when it is asked once more than so often."""

    def __init__(self, answers):
        super().__init__("test")
        self.answers = answers

    def out_of_time(self):
        self.answers -= 1
        if self.answers < 0:
            self.stopped = Status.TIME_LIMIT
        return self.stopped is not None


@pytest.mark.parametrize(
    ("answers", "n_solves", "n_steps"), [(0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 1, 1), (4, 2, 1)]
)
def test_no_eigensolve_begins_when_time_is_up(rng, monkeypatch, answers, n_solves, n_steps):
    """One of order 4000 takes seconds, and so does the rest of a step."""
    problem = RowSparseProblem(as_covariance(random_covariance(rng, 60), kind="covariance"), 2, 9)
    solves = []

    def project(*args):
        solves.append(args)
        return project_fantope(*args)

    monkeypatch.setattr("kspan.solvers.rowsparse.fps.project_fantope", project)
    solution = FPS().run(problem, Asked(answers), rng)
    assert (len(solves), solution.n_iter) == (n_solves, n_steps)
    assert solution.status is Status.TIME_LIMIT
    assert solution.objective >= solve(problem, "go").objective


def test_a_convex_start_without_time_is_the_low_rank_one(rng):
    problem = RowSparseProblem(as_covariance(random_covariance(rng, 60), kind="covariance"), 2, 9)
    monitor = Monitor("test")
    monitor.stopped = Status.TIME_LIMIT
    found = convex_candidate(problem, monitor)
    assert found.objective == solve(problem, "go").objective


def test_it_reads_the_data_once(rng):
    covariance = as_covariance(rng.standard_normal((20, 30)))
    before = covariance.n_passes
    solve(RowSparseProblem(covariance, 2, 5), "fps")
    assert covariance.n_passes - before == 1


@pytest.mark.parametrize("max_iter", [0, -3, 1.5])
def test_steps_must_be_a_count(rng, max_iter):
    problem = RowSparseProblem(as_covariance(random_covariance(rng, 5), kind="covariance"), 1, 2)
    with pytest.raises(ValueError, match="max_iter must be a whole number, 1 or more"):
        solve(problem, "fps", max_iter=max_iter)
