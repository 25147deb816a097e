"""NSPCA: every entry against a grid, every scan against the objective, answers against the rest."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from kspan import NonnegativeProblem, as_covariance, solve
from kspan.covariance.derived import UnitCovariance
from kspan.progress import Monitor, Status
from kspan.solvers.nonnegative import nspca as module
from kspan.solvers.nonnegative.nspca import NSPCA, _compiled_scan, _Descent, best_entry, raster_scan
from tests.effort import examples
from tests.oracles import assert_feasible, covariance_of, nonnegative_optimum, random_covariance


def problem_of(A, m, k):
    return NonnegativeProblem(covariance_of(A), m, k)


def run(problem, seed=0, **options):
    return solve(problem, "nspca", random_state=seed, **options)


def objective(A, U, alpha, beta):
    """What is maximised, from its definition."""
    apart = np.eye(U.shape[1]) - U.T @ U
    return np.trace(U.T @ A @ U) / 2 - alpha / 4 * np.sum(apart**2) - beta * U.sum()


# --- one entry


@given(st.floats(-5, 5), st.floats(-5, 5))
def test_the_best_entry_against_a_grid(p, q):
    def value(u):
        return u**4 / 4 + p * u**2 / 2 + q * u

    u = best_entry(p, q)
    grid = np.linspace(0, 6, 60_001)
    assert u >= 0
    assert value(u) <= value(grid).min() + 1e-12
    assert value(u) >= value(grid).min() - 1e-6, "not below what is possible"


@given(st.floats(-30, 30), st.floats(-30, 30), st.booleans(), st.booleans())
def test_the_best_entry_at_any_scale(logp, logq, negative_p, negative_q):
    """It is zero or a root, and no worse than zero and the bounds of the root."""
    p = -(10.0**logp) if negative_p else 10.0**logp
    q = -(10.0**logq) if negative_q else 10.0**logq
    u = best_entry(p, q)
    if u > 0:
        assert abs(u**3 + p * u + q) <= 1e-12 * max(u**3, abs(p * u), abs(q))
        assert p * u + 3 * q <= 0
    else:
        assert q >= 0


@pytest.mark.parametrize(
    ("p", "q", "u"),
    [(-1.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, -8.0, 2.0), (1.0, 0.0, 0.0), (-3.0, 2.5, 0.0)],
)
def test_entries_by_hand(p, q, u):
    """The last has no root; and where the root is no better than zero, zero is taken."""
    assert best_entry(p, q) == pytest.approx(u)
    assert best_entry(-3.0, 1.9) == 0.0
    assert best_entry(-3.0, 1.0) == pytest.approx(np.sort(np.roots([1, 0, -3, 1]).real)[-1])


# --- one scan


@pytest.mark.parametrize("factored", [False, True])
@given(seed=st.integers(0, 10_000), data=st.data())
def test_a_scan_gains_what_it_says(factored, seed, data):
    """Interpreted and compiled, with A and with a factor of it; products are kept up to date."""
    rng = np.random.default_rng(seed)
    d, m = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 3))
    F = rng.standard_normal((d, 4))
    A = F @ F.T
    alpha, beta = data.draw(st.floats(0.1, 20)), data.draw(st.floats(0, 2))
    start = rng.random((d, m))
    rows = F if factored else A
    ends = []
    for scan in (raster_scan, _compiled_scan()):
        U = start.copy()
        products, gram = np.ascontiguousarray((rows.T @ U).T), U.T @ U
        gain = scan(rows, factored, A.diagonal().copy(), U, products, gram, alpha, beta)
        before, after = objective(A, start, alpha, beta), objective(A, U, alpha, beta)
        size = abs(before) + abs(after) + 1
        assert gain == pytest.approx(after - before, abs=1e-10 * size)
        assert gain >= 0
        assert (U >= 0).all()
        np.testing.assert_allclose(products, (rows.T @ U).T, atol=1e-9)
        np.testing.assert_allclose(gram, U.T @ U, atol=1e-9)
        ends.append(U)
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-9)


@examples(12)
@given(seed=st.integers(0, 10_000))
def test_no_single_entry_can_be_improved_at_the_end(seed):
    """By a grid for every entry."""
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, 4)
    options = NSPCA(alpha=2.0, max_iter=5000, tol=0.0)
    descent = _Descent(UnitCovariance(covariance_of(A)), options, Monitor("x"))
    unit = descent.covariance.unit
    beta = 0.1 * descent.largest
    U = descent.run(descent.start(rng.random((4, 2))), beta).loadings
    best = objective(A / unit, U, descent.alpha, beta)
    for i, j in np.ndindex(U.shape):
        for u in np.linspace(0, 2, 201):
            V = U.copy()
            V[i, j] = u
            assert objective(A / unit, V, descent.alpha, beta) <= best + 1e-7 * abs(best)


def test_constant_features_are_passed_over(rng):
    A = random_covariance(rng, 4)
    A[1], A[:, 1] = 0.0, 0.0
    U = np.full((4, 1), 0.5)
    raster_scan(A, False, A.diagonal().copy(), U, (A @ U).T.copy(), U.T @ U, 1.0, 0.0)
    assert U[1, 0] == 0.5


# --- the method


@pytest.mark.parametrize("cut", [False, True])
@given(seed=st.integers(0, 10_000), data=st.data())
def test_feasible_and_never_above_the_optimum(cut, seed, data):
    d = data.draw(st.integers(1, 8))
    k, m = data.draw(st.integers(1, d)), data.draw(st.integers(1, min(d, 3)))
    A = random_covariance(np.random.default_rng(seed), d, data.draw(st.integers(1, d)))
    solution = run(problem_of(A, m, k), seed, n_restarts=2, cut=cut)
    assert solution.solver == "nspca"
    assert_feasible(solution.loadings, k)
    variances = np.einsum("ij,ij->j", solution.loadings, A @ solution.loadings)
    assert variances.max() <= nonnegative_optimum(A, k) * (1 + 1e-9)
    assert np.all(np.diff(solution.history) >= 0)
    if m == 1:
        assert solution.objective == pytest.approx(solution.history[-1], rel=1e-9)


def test_without_a_penalty_one_component_is_nonnegative_pca(rng):
    """At any α: the direction of the maximiser does not depend on it."""
    A = random_covariance(rng, 10) ** 2
    for alpha in (0.1, 1.0, 10.0):
        solution = run(problem_of(A, 1, 10), alpha=alpha, tol=1e-12, max_iter=5000)
        assert solution.objective == pytest.approx(np.linalg.eigvalsh(A)[-1], rel=1e-6)


def test_a_larger_penalty_has_fewer_features(rng):
    A = random_covariance(rng, 30, 6) ** 2
    counts = [
        np.count_nonzero(run(problem_of(A, 1, 30), beta=beta).loadings)
        for beta in (0.0, 0.1, 0.2, 0.3, 10.0)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 30
    assert counts[-1] == 1, "nothing is left; a single feature is returned"


def test_a_large_alpha_keeps_components_apart(rng):
    A = random_covariance(rng, 12)
    solution = run(problem_of(A, 3, 12), alpha=1000.0, beta=0.0, max_iter=5000)
    assert solution.orthogonality_error < 0.01


def test_cutting_is_never_worse(rng):
    for m in (1, 3):
        problem = problem_of(random_covariance(rng, 30, 8), m, 5)
        assert run(problem).objective >= run(problem, cut=False).objective * (1 - 1e-9)


def test_a_fair_rival(rng):
    """Within 1% of the optimum on average, for one component of 3 of 9 features."""
    shares = []
    for seed in range(20):
        A = random_covariance(np.random.default_rng(seed), 9)
        found = run(problem_of(A, 1, 3), seed, n_restarts=10).objective
        shares.append(found / nonnegative_optimum(A, 3))
    assert np.mean(shares) > 0.99


def test_wide_and_sparse_data_and_a_covariance_give_the_same(rng):
    X = rng.standard_normal((12, 20)) * (rng.uniform(size=(12, 20)) < 0.6)
    kinds = [covariance_of(np.cov(X, rowvar=False)), as_covariance(X)]
    kinds.append(as_covariance(scipy.sparse.csr_array(X)))
    answers = [run(NonnegativeProblem(kind, 2, 5), tol=1e-9) for kind in kinds]
    for other in answers[1:]:
        np.testing.assert_allclose(other.loadings, answers[0].loadings, atol=1e-6)


def test_too_many_features_are_refused_unless_the_data_is_wide(rng, monkeypatch):
    monkeypatch.setattr(module, "COVARIANCE_LIMIT", 10)
    X = rng.standard_normal((8, 12))
    run(NonnegativeProblem(as_covariance(X), 1, 3))
    with pytest.raises(ValueError, match="n_features=12 is too many"):
        run(NonnegativeProblem(covariance_of(X.T @ X), 1, 3))


# --- cases by name


@pytest.mark.parametrize("scale", [1e-70, 1e70])
def test_huge_and_tiny_wide_data(rng, scale):
    X = rng.standard_normal((6, 15))
    plain, scaled = (run(NonnegativeProblem(as_covariance(X * s), 2, 3)) for s in (1.0, scale))
    np.testing.assert_allclose(scaled.loadings, plain.loadings, atol=1e-7)


# --- stopping


def test_it_stops_in_time_when_told_and_when_interrupted(rng):
    problem = problem_of(random_covariance(rng, 20), 3, 4)

    def interrupt(progress):
        if progress.iteration == 2:
            raise KeyboardInterrupt

    late = run(problem, time_limit=1e-9)
    told = run(problem, callback=lambda progress: True)
    interrupted = run(problem, callback=interrupt)
    for solution in (late, told, interrupted):
        assert_feasible(solution.loadings, 4)
    statuses = [solution.status for solution in (late, told, interrupted)]
    assert statuses == [Status.TIME_LIMIT, Status.STOPPED, Status.INTERRUPTED]


def test_an_interrupt_before_anything_is_found(rng, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(module._Descent, "start", interrupt)
    solution = run(problem_of(random_covariance(rng, 6), 2, 3))
    assert solution.status is Status.INTERRUPTED
    assert_feasible(solution.loadings, 1)


def test_too_few_scans_are_said_so(rng):
    problem = problem_of(random_covariance(rng, 20), 1, 4)
    assert run(problem, max_iter=1, tol=0.0, beta=0.1).status is Status.MAX_ITER


def test_the_callback_is_told_in_the_users_scale(rng):
    told = []
    A = random_covariance(rng, 8) * 1e6
    solution = run(problem_of(A, 1, 3), callback=lambda p: told.append(p.objective))
    assert max(told) == pytest.approx(solution.objective, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": float("inf")}, "alpha"),
        ({"beta": -1.0}, "beta"),
        ({"n_restarts": 0}, "n_restarts"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1.0}, "tol"),
    ],
)
def test_bad_options_say_so(rng, options, message):
    with pytest.raises(ValueError, match=message):
        run(problem_of(random_covariance(rng, 4), 1, 2), **options)
