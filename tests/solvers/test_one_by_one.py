"""The loop over components with a method of our own."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
import scipy.linalg

from kspan import as_covariance, solve
from kspan.covariance.derived import UnitCovariance
from kspan.problem import ElementSparseProblem
from kspan.progress import Status, worst
from kspan.solvers.loadings import fill_empty
from kspan.solvers.method import ElementSparseMethod
from kspan.solvers.one_by_one import DEFLATIONS, Component, OneByOneMethod
from tests.oracles import best_by_enumeration, random_covariance


def problem_of(A, m, k):
    return ElementSparseProblem(as_covariance(A, kind="covariance"), m, k)


@dataclass(frozen=True, eq=False)
class Mine(OneByOneMethod, ElementSparseMethod):
    """Looks at every support of size k."""

    name = "mine"
    summary = "all supports"

    def find(self, covariance, problem, start, monitor, rng):
        d, k = covariance.n_features, problem.n_nonzero_coefs
        M = covariance.matmat(np.eye(d))
        best = max(combinations(range(d), k), key=lambda S: np.linalg.eigvalsh(M[np.ix_(S, S)])[-1])
        values, vectors = np.linalg.eigh(M[np.ix_(best, best)])
        x = np.zeros(d)
        x[list(best)] = vectors[:, -1]
        monitor.report(values[-1])
        return Component(x, [values[-1]], 1, Status.CONVERGED)


@pytest.mark.parametrize("kind", DEFLATIONS)
def test_it_asks_for_one_component_after_the_other(rng, kind):
    """Against the textbook deflation, written out with full matrices."""
    A = random_covariance(rng, 6)
    solution = solve(problem_of(A, 2, 3), Mine(deflation=kind))
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

    class Varied(Mine):
        def find(self, covariance, problem, start, monitor, rng):
            x = np.zeros(5)
            x[np.argmax(covariance.diagonal())] = 1.0
            return Component(x, [1.0], 1, next(statuses))

    A = random_covariance(rng, 5)
    solution = solve(problem_of(A, 3, 1), Varied(deflation="schur"))
    assert solution.status is Status.MAX_ITER
    assert worst([Status.TIME_LIMIT, Status.INTERRUPTED, Status.MAX_ITER]) is Status.INTERRUPTED


def test_a_keyboard_interrupt_keeps_the_components_found(rng):
    A = random_covariance(rng, 7)
    calls = []

    class Interrupted(Mine):
        def find(self, *arguments):
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return super().find(*arguments)

    solution, whole = (solve(problem_of(A, 4, 2), method) for method in (Interrupted(), Mine()))
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

    problem = problem_of(A * scale, 4, 2)
    solution = solve(problem, Mine(deflation="schur"), callback=stop_at_two)
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
