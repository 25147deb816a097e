"""The driver with finders of our own, the search for a penalty, and what all methods share."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from kspan import as_covariance
from kspan.covariance.unit import UnitCovariance
from kspan.problem import ElementSparseProblem
from kspan.progress import Monitor, Status
from kspan.solvers.elementsparse.components import (
    Component,
    Trial,
    bisect_penalty,
    by_deflation,
    fill_empty,
    worst,
)
from kspan.solvers.elementsparse.deflation import DEFLATIONS
from kspan.solvers.elementsparse.gpower import gpower, gpower_block
from kspan.solvers.elementsparse.grqi import grqi
from kspan.solvers.elementsparse.ipm import ipm
from kspan.solvers.elementsparse.tpower import tpower_deflated
from tests.oracles import best_by_enumeration, random_covariance


def seeded(method, **options):
    """A method that gets the same random numbers in every call."""
    return lambda problem, **more: method(problem, rng=np.random.default_rng(0), **options, **more)


BY_DEFLATION = {
    "tpower": seeded(tpower_deflated),
    "gpower-l0": partial(gpower, norm="l0"),
    "gpower-l1": partial(gpower, norm="l1"),
    "grqi": grqi,
    "ipm": ipm,
}
METHODS = BY_DEFLATION | {
    "gpower-l0-block": seeded(gpower_block, norm="l0"),
    "gpower-l1-block": seeded(gpower_block, norm="l1"),
}


def problem_of(A, m, k):
    return ElementSparseProblem(as_covariance(A, kind="covariance"), m, k)


def exact(k):
    """A finder that looks at every support of size k."""

    def find(covariance, start, monitor):
        d = covariance.n_features
        M = covariance.matmat(np.eye(d))
        best = max(combinations(range(d), k), key=lambda S: np.linalg.eigvalsh(M[np.ix_(S, S)])[-1])
        values, vectors = np.linalg.eigh(M[np.ix_(best, best)])
        x = np.zeros(d)
        x[list(best)] = vectors[:, -1]
        monitor.report(values[-1])
        return Component(x, [values[-1]], 1, Status.CONVERGED)

    return find


# --- the driver


@pytest.mark.parametrize("kind", DEFLATIONS)
def test_it_asks_for_one_component_after_the_other(rng, kind):
    """Against the textbook deflation, written out with full matrices."""
    A = random_covariance(rng, 6)
    solution = by_deflation(problem_of(A, 2, 3), exact(3), name="mine", deflation=kind)
    x, y = solution.loadings.T
    P = np.eye(6) - np.outer(x, x)
    left = {
        "schur": A - A @ np.outer(x, x) @ A / (x @ A @ x),
        "hotelling": A - (x @ A @ x) * np.outer(x, x),
        "remove": A * np.outer(x == 0, x == 0),
    }.get(kind, P @ A @ P)
    assert x @ A @ x == pytest.approx(best_by_enumeration(A, 1, 3))
    if kind != "generalized":
        assert y @ left @ y == pytest.approx(best_by_enumeration(left, 1, 3))
        np.testing.assert_allclose(solution.history, [x @ A @ x, y @ left @ y])
        assert solution.n_iter == 2
    else:  # the best quotient over all supports; on that of x, B is a projector

        def largest(S):
            pair = [left[np.ix_(S, S)]]
            if set(S) != set(np.flatnonzero(x)):
                pair.append(P[np.ix_(S, S)])
            return scipy.linalg.eigh(*pair, eigvals_only=True)[-1]

        expected = max(map(largest, combinations(range(6), 3)))
        assert y @ left @ y / (y @ P @ y) == pytest.approx(expected, rel=1e-6)
    assert (solution.solver, solution.status) == ("mine", Status.CONVERGED)


def test_the_worst_status_counts(rng):
    statuses = iter([Status.CONVERGED, Status.MAX_ITER, Status.CONVERGED])

    def find(covariance, start, monitor):
        x = np.zeros(5)
        x[np.argmax(covariance.diagonal())] = 1.0
        return Component(x, [1.0], 1, next(statuses))

    A = random_covariance(rng, 5)
    solution = by_deflation(problem_of(A, 3, 1), find, name="x", deflation="schur")
    assert solution.status is Status.MAX_ITER
    assert worst([Status.TIME_LIMIT, Status.INTERRUPTED, Status.MAX_ITER]) is Status.INTERRUPTED


def test_a_keyboard_interrupt_keeps_the_components_found(rng):
    A = random_covariance(rng, 7)
    calls = []

    def find(covariance, start, monitor):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return exact(2)(covariance, start, monitor)

    solution = by_deflation(problem_of(A, 4, 2), find, name="x", deflation="projection")
    whole = by_deflation(problem_of(A, 4, 2), exact(2), name="x", deflation="projection")
    assert solution.status is Status.INTERRUPTED
    np.testing.assert_array_equal(solution.loadings[:, :2], whole.loadings[:, :2])
    np.testing.assert_array_equal(np.count_nonzero(solution.loadings[:, 2:], axis=0), [1, 1])
    assert len(solution.history) == 2


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_a_callback_is_told_in_the_users_scale_and_stops(rng, scale):
    A = random_covariance(rng, 6)
    told = []

    def stop_at_two(progress):
        told.append(progress.objective)
        return len(told) == 2

    solution = by_deflation(
        problem_of(A * scale, 4, 2), exact(2), name="x", deflation="schur", callback=stop_at_two
    )
    assert solution.status is Status.STOPPED
    assert told[0] == pytest.approx(best_by_enumeration(A, 1, 2) * scale)
    np.testing.assert_allclose(solution.history, told)
    np.testing.assert_array_equal(np.count_nonzero(solution.loadings, axis=0), [2, 2, 1, 1])


def test_columns_that_are_missing_are_features_of_their_own():
    Z = np.zeros((5, 4))
    Z[[0, 3], 0] = 0.6, 0.8
    filled = fill_empty(Z, np.array([9.0, 1.0, 3.0, 8.0, 3.0]))
    np.testing.assert_array_equal(filled[:, 0], Z[:, 0])
    np.testing.assert_array_equal(np.argmax(filled[:, 1:], axis=0), [2, 4, 1])
    assert np.count_nonzero(filled) == 5
    all_used = fill_empty(np.column_stack([np.ones(3), np.zeros(3)]), np.array([1.0, 3.0, 2.0]))
    np.testing.assert_array_equal(all_used[:, 1], [0, 1, 0])


def test_a_unit_covariance_is_the_covariance_divided(rng):
    A = random_covariance(rng, 6) * 1e150
    unit = UnitCovariance(as_covariance(A, kind="covariance"))
    S = np.array([0, 2, 5])
    B = A / unit.unit
    assert 1 <= unit.diagonal().max() < 2
    np.testing.assert_allclose(unit.matmat(np.eye(6)), B)
    np.testing.assert_allclose(unit.columns(S), B[:, S])
    np.testing.assert_allclose(unit.submatrix(S), B[np.ix_(S, S)])
    np.testing.assert_allclose(unit.submatrices(S[None])[0], B[np.ix_(S, S)])
    np.testing.assert_allclose(unit.restrict(S).matmat(np.eye(3)), B[np.ix_(S, S)])
    np.testing.assert_allclose(unit.leading(2).values, np.linalg.eigvalsh(B)[:-3:-1])
    assert unit.n_passes == unit.base.n_passes > 0


# --- the search for a penalty


def attempts(counts_of, d=10):
    """Trials whose numbers of features are a function of the penalty."""

    def attempt(penalties):
        Z = np.zeros((d, len(penalties)))
        for j, count in enumerate(counts_of(penalty) for penalty in penalties):
            Z[:count, j] = np.arange(count, 0, -1)
        return Trial(Z, Z, 1, True)

    return attempt


@pytest.mark.parametrize(("k", "at_least", "expected"), [(4, True, 4), (7, True, 9), (7, False, 4)])
def test_bisection_finds_k_or_its_neighbour_on_the_side_asked_for(k, at_least, expected):
    steps = {9: 0.31, 4: 0.62, 1: 1.0}

    def counts_of(penalty):
        return next(count for count, until in steps.items() if penalty < until)

    search = bisect_penalty(
        attempts(counts_of), as_covariance(np.eye(10), kind="covariance"), k, 1,
        at_least=at_least, width=1e-6, monitor=Monitor("x"),
    )  # fmt: skip
    assert search.trial.n_features.tolist() == [expected]
    assert len(search.history) == search.n_iter
    cut = search.trial.cut(k)[:, 0]
    assert np.flatnonzero(cut).tolist() == list(range(min(k, expected)))
    assert np.linalg.norm(cut) == pytest.approx(1)


def test_every_column_has_a_penalty_of_its_own():
    seen = []

    def attempt(penalties):
        seen.append(penalties)
        Z = np.zeros((10, 2))
        Z[: int(10 * (1 - penalties[0])), 0] = 1
        Z[: int(10 * (1 - penalties[1]) ** 2), 1] = 1
        return Trial(Z, Z, 1, True)

    search = bisect_penalty(
        attempt, as_covariance(np.eye(10), kind="covariance"), 3, 2,
        at_least=True, width=1e-6, monitor=Monitor("x"),
    )  # fmt: skip
    assert search.trial.n_features.tolist() == [3, 3]
    assert seen[-1][0] != seen[-1][1]


@pytest.mark.parametrize("failing", [1, 3])
def test_an_interrupt_in_the_search_keeps_the_nearest_trial(failing):
    calls = []

    def attempt(penalties):
        calls.append(1)
        if len(calls) == failing:
            raise KeyboardInterrupt
        return attempts(lambda penalty: 9)(penalties)

    monitor = Monitor("x")
    search = partial(
        bisect_penalty, attempt, as_covariance(np.eye(10), kind="covariance"), 4, 1,
        at_least=True, width=1e-6, monitor=monitor,
    )  # fmt: skip
    if failing == 1:
        with pytest.raises(KeyboardInterrupt):
            search()
    else:
        assert search().status is monitor.stopped is Status.INTERRUPTED


# --- all methods


@pytest.mark.parametrize("name", METHODS)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_never_above_the_optimum_and_what_it_says_is_true(name, seed, data):
    d = data.draw(st.integers(2, 7))
    k, m = data.draw(st.integers(1, d)), data.draw(st.integers(1, d))
    A = random_covariance(np.random.default_rng(seed), d, data.draw(st.integers(1, d)))
    solution = METHODS[name](problem_of(A, m, k))
    Z = solution.loadings
    assert solution.solver == name
    assert Z.shape == (d, m)
    assert (np.count_nonzero(Z, axis=0) <= k).all()
    np.testing.assert_allclose(np.linalg.norm(Z, axis=0), 1.0)
    variances = np.einsum("ij,ij->j", Z, A @ Z)
    assert variances.max() <= best_by_enumeration(A, 1, k) * (1 + 1e-9)
    # Adjusted variances add up to what the scores explain together.
    size = np.abs(A).max()
    root = np.linalg.cholesky(A + 1e-13 * size * np.eye(d)).T
    R = np.linalg.qr(root @ Z, mode="r")
    np.testing.assert_allclose(solution.explained_variance, np.diag(R) ** 2, atol=1e-5 * size)
    assert np.isfinite(solution.history).all()
    if m == 1:  # those that may fall return the best they have seen
        reached = max(solution.history) if name in ("grqi", "tpower") else solution.history[-1]
        assert solution.objective == pytest.approx(reached, rel=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_it_often_finds_the_best_support(name):
    """From its one start, each is within 2% of the optimum on average, the worst within 30%."""
    shares = []
    for seed in range(25):
        X = np.random.default_rng(seed).standard_normal((20, 9)) * np.linspace(1, 2, 9)
        A = X.T @ X
        shares.append(METHODS[name](problem_of(A, 1, 3)).objective / best_by_enumeration(A, 1, 3))
    assert np.mean(shares) > 0.98
    assert min(shares) > 0.7
    assert np.mean(np.array(shares) > 1 - 1e-5) > 0.5


@pytest.mark.parametrize("name", METHODS)
def test_wide_sparse_and_given_covariances_give_the_same(rng, name):
    X = rng.standard_normal((12, 20)) * (rng.uniform(size=(12, 20)) < 0.6)
    covariances = [
        as_covariance(np.cov(X, rowvar=False), kind="covariance"),
        as_covariance(X),
        as_covariance(scipy.sparse.csr_array(X)),
    ]
    answers = [METHODS[name](ElementSparseProblem(c, 2, 5)) for c in covariances]
    for other in answers[1:]:
        np.testing.assert_allclose(np.abs(other.loadings), np.abs(answers[0].loadings), atol=1e-6)
        assert other.objective == pytest.approx(answers[0].objective, rel=1e-8)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("scale", [1e-130, 1e130])
def test_huge_and_tiny_scales(rng, name, scale):
    """With a constant and a duplicate column: the same features, and never the constant one."""
    X = rng.standard_normal((15, 6)) @ rng.standard_normal((6, 6))
    X = np.hstack([np.full((15, 1), 3.0), X, X[:, :1]])
    plain, scaled = (
        METHODS[name](ElementSparseProblem(as_covariance(data), 2, 3)) for data in (X, X * scale)
    )
    np.testing.assert_allclose(np.abs(scaled.loadings), np.abs(plain.loadings), atol=1e-7)
    assert not scaled.loadings[0].any()
    assert scaled.objective == pytest.approx(plain.objective * scale**2, rel=1e-9)
    np.testing.assert_allclose(scaled.history, plain.history * scale**2, rtol=1e-7)


@pytest.mark.parametrize("name", METHODS)
def test_rank_one(rng, name):
    v = rng.uniform(1, 2, 8) * rng.choice([-1, 1], 8)
    solution = METHODS[name](problem_of(np.outer(v, v), 1, 3))
    best = np.sort(v**2)[-3:].sum()
    assert solution.objective == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("k", [1, 2, 6])
def test_more_components_than_the_rank(rng, name, k):
    A = random_covariance(rng, 6, 2)
    solution = METHODS[name](problem_of(A, 5, k))
    np.testing.assert_allclose(np.linalg.norm(solution.loadings, axis=0), 1.0)
    assert solution.objective <= np.trace(A) * (1 + 1e-9)
    if k == 6:  # two components take everything, and say so
        assert solution.explained_variance[:2].sum() == pytest.approx(np.trace(A), rel=1e-3)
        np.testing.assert_allclose(solution.explained_variance[2:], 0, atol=1e-9 * np.trace(A))


@pytest.mark.parametrize("name", METHODS)
def test_one_feature_each_is_the_largest_variances_of_uncorrelated_ones(name):
    solution = METHODS[name](problem_of(np.diag([1.0, 4.0, 2.0, 3.0]), 3, 1))
    np.testing.assert_array_equal(np.sort(np.argmax(np.abs(solution.loadings), axis=0)), [1, 2, 3])
    assert solution.objective == pytest.approx(9.0)


@pytest.mark.parametrize("name", METHODS)
def test_all_features_is_pca(rng, name):
    values = np.array([9.0, 5.0, 2.0, 0.5, 0.2, 0.1])
    U = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    solution = METHODS[name](problem_of((U * values) @ U.T, 2, 6))
    # A block is filled to its tolerance only.
    tol = 1e-3 if name.endswith("block") else 1e-6
    np.testing.assert_allclose(solution.explained_variance, values[:2], rtol=tol)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_ties(name, k):
    """All features alike: any k of them are best, whatever the threshold does."""
    A = 0.5 * np.eye(6) + 0.5
    solution = METHODS[name](problem_of(A, 1, k))
    assert solution.objective == pytest.approx(0.5 + 0.5 * k)
    identity = METHODS[name](problem_of(np.eye(4), 2, k))
    np.testing.assert_allclose(identity.explained_variance, 1.0)


@pytest.mark.parametrize("name", METHODS)
def test_duplicate_columns(rng, name):
    """A pair that only comes together is cut to one when k asks for that."""
    X = rng.standard_normal((20, 3)) * [3.0, 2.0, 1.0]
    X = X[:, [0, 0, 1, 1, 2]]
    one, three = (METHODS[name](ElementSparseProblem(as_covariance(X), 1, k)) for k in (1, 3))
    assert one.objective == pytest.approx(X.var(axis=0, ddof=1).max())
    assert np.count_nonzero(three.loadings) == 3
    assert three.loadings[:2].all()


@pytest.mark.parametrize("name", ["gpower-l0", "gpower-l1", "ipm"])
def test_a_constant_feature_is_the_last_to_be_added(name):
    """The start is correlated with no other; two features that have variance come before it."""
    A = np.diag([0.0, 3.0, 2.0, 2.0])
    A[2, 3] = A[3, 2] = 1.9
    assert METHODS[name](problem_of(A, 1, 3)).objective == pytest.approx(3.9)


@pytest.mark.parametrize("name", METHODS)
def test_time_limits_are_kept(rng, name):
    A = random_covariance(rng, 10)
    solution = METHODS[name](problem_of(A, 3, 4), time_limit=1e-9)
    assert solution.status is Status.TIME_LIMIT
    assert solution.objective > 0
    assert (np.count_nonzero(solution.loadings, axis=0) <= 4).all()


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("at", [1, 4])
def test_an_interrupt_leaves_an_answer(rng, name, at):
    told = []

    def interrupt(progress):
        told.append(progress.solver)
        if len(told) == at:
            raise KeyboardInterrupt

    A = random_covariance(rng, 12)
    solution = METHODS[name](problem_of(A, 3, 4), callback=interrupt)
    assert set(told) == {name}
    if len(told) >= at:
        assert solution.status is Status.INTERRUPTED
    np.testing.assert_allclose(np.linalg.norm(solution.loadings, axis=0), 1.0)


@pytest.mark.parametrize("name", BY_DEFLATION)
@pytest.mark.parametrize("kind", DEFLATIONS)
def test_every_method_takes_every_deflation(rng, name, kind):
    A = random_covariance(rng, 9)
    solution = BY_DEFLATION[name](problem_of(A, 3, 3), deflation=kind)
    assert (np.count_nonzero(solution.loadings, axis=0) == 3).all()
    assert 0.4 * np.linalg.eigvalsh(A)[-3:].sum() < solution.objective
    assert solution.objective <= np.linalg.eigvalsh(A)[-3:].sum() * (1 + 1e-9)
