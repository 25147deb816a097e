"""Joint, by cardinality, deflated and two-stage: what comes out, against independent answers."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from kspan import as_covariance, solve
from kspan.problem import Patterns, StiefelProblem
from kspan.solvers.stiefel import sadmm, stiefel_auto
from tests.oracles import random_covariance


def problem_of(A, r, share, penalty="l1"):
    covariance = as_covariance(A, kind="covariance")
    largest = StiefelProblem(covariance, r, 0.0, penalty).largest_alpha
    return StiefelProblem(covariance, r, share * largest, penalty)


def counted(A, r, *counts, **rules):
    """The problem with counts; see `Patterns.of`."""
    patterns = Patterns.of(len(A), r, *counts, **rules)
    return StiefelProblem(as_covariance(A, kind="covariance"), r, patterns=patterns)


def objective(A, V, problem):
    size = np.abs(V).sum() if problem.penalty == "l1" else np.linalg.norm(V, axis=1).sum()
    return -0.5 * np.trace(V.T @ A @ V) + problem.alpha * size


def best_of_many_starts(A, alpha, rng, n_starts=100):
    """One component by the simplest ascent, v ← soft(Av, α) / ‖·‖, from many starts."""
    best = np.inf
    for i in range(n_starts):
        v = np.eye(len(A))[i % len(A)] if i < len(A) else rng.standard_normal(len(A))
        for _ in range(500):
            w = A @ v
            w = np.sign(w) * np.maximum(np.abs(w) - alpha, 0)
            if not w.any():
                break
            v = w / np.linalg.norm(w)
        best = min(best, -0.5 * v @ A @ v + alpha * np.abs(v).sum())
    return best


@pytest.mark.parametrize("solver", ["auto", "sadmm", "admm"])
@pytest.mark.parametrize("penalty", ["l1", "l21"])
def test_loadings_are_orthonormal_and_truly_sparse(rng, solver, penalty):
    A = random_covariance(rng, 20)
    problem = problem_of(A, 3, 0.2, penalty)
    solution = solve(problem, solver, random_state=0)
    V = solution.loadings
    np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-10)
    assert solution.orthogonality_error <= 1e-10
    assert 0 < np.count_nonzero(V) < V.size
    if penalty == "l21":
        rows = V.any(axis=1)
        assert rows.sum() < 20
        assert V[rows].all()
    variances = np.diag(np.linalg.cholesky(V.T @ A @ V)) ** 2
    np.testing.assert_allclose(solution.explained_variance, variances, rtol=1e-8)
    assert np.all(np.diff(np.diag(V.T @ A @ V)) <= 1e-9)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))]
)
@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.8])
def test_one_component_against_many_starts_of_a_simple_ascent(seed, share):
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, 15, 6)
    problem = problem_of(A, 1, share)
    solution = solve(problem, "sadmm", random_state=0)
    best = best_of_many_starts(A, problem.alpha, rng)
    reached = objective(A, solution.loadings, problem)
    scale = 0.5 * np.linalg.eigvalsh(A)[-1]
    assert reached <= best + 0.03 * scale


def test_without_a_penalty_it_is_pca(rng):
    A = random_covariance(rng, 12)
    solution = solve(problem_of(A, 3, 0.0), "sadmm", random_state=0)
    assert solution.objective == pytest.approx(np.linalg.eigvalsh(A)[-3:].sum(), rel=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_from_the_largest_alpha_on_one_component_is_one_feature(seed):
    """The proof in `largest_alpha`, tried on random matrices by many starts."""
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, 8, int(rng.integers(1, 9)))
    alpha = problem_of(A, 1, 1.0).alpha
    single = -0.5 * np.diag(A).max() + alpha
    assert best_of_many_starts(A, alpha, rng) >= single - 1e-9 * alpha


def test_more_than_the_largest_alpha_is_an_error_that_names_it(rng):
    A = random_covariance(rng, 6)
    covariance = as_covariance(A, kind="covariance")
    largest = StiefelProblem(covariance, 2, 0.0).largest_alpha
    with pytest.raises(ValueError, match=f"The largest useful alpha is {largest:.6g}"):
        StiefelProblem(covariance, 2, 1.01 * largest)
    solution = solve(StiefelProblem(covariance, 2, largest), "sadmm", random_state=0)
    assert np.count_nonzero(solution.loadings, axis=0).tolist() == [1, 1]


@pytest.mark.parametrize("solver", ["auto", "sadmm", "admm", "deflation"])
@pytest.mark.parametrize(("r", "k"), [(1, 1), (1, 5), (2, 3), (3, 4), (2, 8), (4, 4), (3, 2)])
def test_at_most_k_features_in_each_component(rng, solver, r, k):
    A = random_covariance(rng, 8)
    V = solve(counted(A, r, k), solver, random_state=0).loadings
    assert (np.count_nonzero(V, axis=0) <= k).all()
    if solver != "deflation":
        np.testing.assert_allclose(V.T @ V, np.eye(r), atol=1e-10)


def test_one_component_with_k_features_against_enumeration():
    shares = []
    for seed in range(10):
        A = random_covariance(np.random.default_rng(seed), 10, 4)
        best = max(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1] for S in combinations(range(10), 4))
        solution = solve(counted(A, 1, 4), "sadmm", random_state=0)
        shares.append(solution.objective / best)
        assert solution.objective <= best * (1 + 1e-9)
        found = solve(counted(A, 1, 4), random_state=0)
        assert found.objective == pytest.approx(best, rel=1e-9)
    assert np.mean(shares) > 0.9
    assert min(shares) > 0.7


@pytest.mark.parametrize("solver", ["auto", "sadmm", "admm", "deflation", "two-stage"])
def test_a_total_and_disjoint_supports(rng, solver):
    A = random_covariance(rng, 12)
    options = {"two-stage": {"n_features_to_select": 9}}.get(solver, {})
    V = solve(counted(A, 3, None, 8), solver, random_state=0, **options).loadings
    assert 3 <= np.count_nonzero(V) <= 8
    if solver == "deflation":
        with pytest.raises(ValueError, match="Disjoint supports need deflation='remove'"):
            solve(counted(A, 3, 3, disjoint=True), solver)
        options = {"deflation": "remove"}
    V = solve(counted(A, 3, [4, 2, 3], disjoint=True), solver, random_state=0, **options).loadings
    assert (np.count_nonzero(V, axis=0) <= [4, 2, 3]).all()
    assert (np.count_nonzero(V, axis=1) <= 1).all()
    np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-10)


def test_two_stages_choose_by_weighted_loadings_and_fit_on_them(rng):
    A = random_covariance(rng, 15)
    problem = problem_of(A, 2, 0.1)
    solution = solve(problem, "two-stage", random_state=0, n_features_to_select=6)
    support = solution.support
    assert support.size == 6
    best = np.linalg.eigvalsh(A[np.ix_(support, support)])[-2:].sum()
    assert solution.objective == pytest.approx(best, rel=1e-9)
    # Without a penalty stage I is PCA, and the scores can be written down.
    free = problem_of(A, 2, 0.0)
    values, vectors = np.linalg.eigh(A)
    scores = np.abs(vectors[:, -2:]) @ np.sqrt(values[-2:])
    expected = np.sort(np.argsort(-scores)[:6])
    chosen = solve(free, "two-stage", init="svd", random_state=0, n_features_to_select=6).support
    assert np.array_equal(chosen, expected)


def test_two_stages_with_few_features_each(rng):
    A = random_covariance(rng, 15)
    solution = solve(counted(A, 2, 4), "two-stage", random_state=0, n_features_to_select=8)
    assert (np.count_nonzero(solution.loadings, axis=0) <= 4).all()
    assert solution.support.size <= 8
    with pytest.raises(ValueError, match="n_features_to_select=16 must be at most n_features=15"):
        solve(problem_of(A, 2, 0.1), "two-stage", n_features_to_select=16)


def test_deflation_takes_what_is_left(rng):
    """With all features and no penalty the deflated components are the principal ones."""
    values = np.array([9.0, 5.0, 2.0, 0.5, 0.2, 0.1])
    U = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    A = (U * values) @ U.T
    solution = solve(problem_of(A, 3, 0.0), "deflation", random_state=0)
    np.testing.assert_allclose(solution.explained_variance, values[:3], rtol=1e-4)


@pytest.mark.parametrize("init", ["auto", "svd", "varimax", "coordinate", "random"])
def test_every_start(rng, init):
    problem = problem_of(random_covariance(rng, 12), 2, 0.1)
    solution = solve(problem, "auto", init=init, random_state=0)
    assert solution.orthogonality_error <= 1e-10
    if init != "auto":
        named = solve(problem, "sadmm", init=init, random_state=0)
        assert named.orthogonality_error <= 1e-10
    with pytest.raises(ValueError, match="init must be one of"):
        solve(problem, "sadmm", init="low-rank")


@pytest.mark.parametrize("form", ["sparse", "wide"])
def test_data_is_never_turned_into_a_covariance(rng, form, monkeypatch):
    """The same answer from sparse and wide data; no d×d matrix of it is asked for."""
    n, d = 30, 80
    X = rng.standard_normal((n, 4)) @ rng.standard_normal((4, d)) + 0.3 * rng.standard_normal(
        (n, d)
    )
    X[np.abs(X) < 0.5] = 0.0
    covariance = as_covariance(sp.csr_array(X) if form == "sparse" else X)
    alpha = 0.3 * StiefelProblem(covariance, 2, 0.0).largest_alpha
    dense = as_covariance(np.cov(X, rowvar=False), kind="covariance")
    reference = solve(StiefelProblem(dense, 2, alpha), "sadmm", random_state=0)
    largest = []
    original = type(covariance).submatrix

    def submatrix(self, support):
        largest.append(len(support))
        return original(self, support)

    monkeypatch.setattr(type(covariance), "submatrix", submatrix)
    solution = solve(StiefelProblem(covariance, 2, alpha), "sadmm", random_state=0)
    np.testing.assert_allclose(np.abs(solution.loadings), np.abs(reference.loadings), atol=1e-5)
    assert max(largest, default=0) < d


def test_time_limits_and_interrupts(rng):
    problem = problem_of(random_covariance(rng, 30), 2, 0.1)
    for solver in ("sadmm", "two-stage", "deflation"):
        options = {"n_features_to_select": 9} if solver == "two-stage" else {}
        solution = solve(problem, solver, time_limit=1e-9, **options)
        assert solution.status.value == "time limit", solver
        assert np.isfinite(solution.explained_variance).all()

        def press(progress):
            if progress.iteration == 2:
                raise KeyboardInterrupt

        solution = solve(problem, solver, callback=press, **options)
        assert solution.status.value == "interrupted", solver


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0.1), "n_components must be an integer between 1 and n_features=5"),
        ((2, -1.0), "alpha must be a finite number, 0 or more"),
        ((2, np.nan), "alpha must be a finite number, 0 or more"),
        ((2, 0.1, "l0"), "penalty must be 'l1' or 'l21'"),
    ],
)
def test_the_problem_checks_its_numbers(arguments, message):
    with pytest.raises(ValueError, match=message):
        StiefelProblem(as_covariance(np.eye(5), kind="covariance"), *arguments)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("penalty", ["l1", "l21"])
def test_components_stay_orthonormal_up_to_the_largest_alpha(seed, penalty):
    """There the pattern may have fewer features than there are components."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(4, 12))
    X = rng.standard_normal((20, d)) @ np.diag(rng.uniform(0.5, 5, d))
    A = np.cov(X, rowvar=False)
    for share in (0.5, 0.9, 1.0):
        solution = solve(problem_of(A, 3, share, penalty), "sadmm", random_state=0)
        assert solution.orthogonality_error <= 1e-10
        assert solution.loadings.any(axis=0).all()


def gammas(monkeypatch, module):
    """The γ of every loop that a module makes."""
    seen = []
    original = module.Joint

    def spy(problem, settings, monitor):
        seen.append(settings.gamma)
        return original(problem, settings, monitor)

    monkeypatch.setattr(module, "Joint", spy)
    return seen


def test_parameters_of_the_users_own_are_not_varied(rng, monkeypatch):
    seen = gammas(monkeypatch, stiefel_auto)
    problem = problem_of(random_covariance(rng, 12), 2, 0.1)
    solve(problem, "auto", random_state=0, gamma=0.7)
    assert set(seen) == {0.7}
    seen.clear()
    solve(problem, "auto", random_state=0)
    assert len(set(seen)) == 2, "by default two are tried"


def test_the_papers_method_is_one_run_from_one_start(rng, monkeypatch):
    """With one γ; the loop alone looks for loadings, which counts only cut and fit."""
    starts = []
    joint = sadmm.Joint
    original = joint.run_at

    def run_at(self, alpha, begin):
        starts.append(len(begin.V))
        return original(self, alpha, begin)

    def descend(*_, **__):
        raise AssertionError("nothing is added")

    monkeypatch.setattr(joint, "run_at", run_at)
    fit = joint.descend
    monkeypatch.setattr(joint, "descend", descend)
    seen = gammas(monkeypatch, sadmm)
    A = random_covariance(rng, 12)
    solve(problem_of(A, 2, 0.1), "sadmm", random_state=0)
    assert (seen, starts) == ([0.3], [1])
    monkeypatch.setattr(joint, "descend", fit)
    solve(counted(A, 2, 4), "sadmm", random_state=0)
    assert set(starts) == {1}
    assert set(seen) == {0.3}
