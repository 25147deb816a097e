"""Auto: at least as good as every other method, component by component, and as the enumeration."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
import scipy.linalg
from sklearn.datasets import load_breast_cancer, load_wine

from kspan import as_covariance, solve
from kspan.covariance.chunked import ChunkedCovariance
from kspan.datasets import load_pitprops
from kspan.problem import ElementSparseProblem
from kspan.progress import Monitor, Status
from kspan.solvers import TPowerDeflated
from kspan.solvers.elementsparse.element_auto import ElementAuto
from kspan.solvers.one_by_one import DEFLATIONS, Component, Deflation, OneByOneMethod
from kspan.solvers.registry import methods_for
from tests.oracles import best_by_enumeration, random_covariance
from tests.out_of_core import npy

DATA = {
    "pitprops": lambda: np.asarray(load_pitprops().covariance),
    "wine": lambda: np.corrcoef(load_wine().data.T),
    "breast cancer": lambda: np.corrcoef(load_breast_cancer().data.T),
}
OTHERS = [
    method
    for name, method in methods_for(ElementSparseProblem).items()
    if name not in ("auto", "exact")
]


def after(A, loadings, kind):
    """What is left of a matrix."""
    left = Deflation(as_covariance(A, kind="covariance"), kind)
    for x in loadings.T:
        left.remove(x)
    return left


@pytest.mark.parametrize("kind", DEFLATIONS)
@pytest.mark.parametrize(
    "name", ["pitprops", "wine", pytest.param("breast cancer", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("k", [*(pytest.param(k, marks=pytest.mark.slow) for k in (2, 4)), 7])
def test_no_other_method_finds_a_better_component(name, kind, k):
    A, m = DATA[name](), 3
    problem = ElementSparseProblem(as_covariance(A, kind="covariance"), m, k)
    solution = solve(problem, "auto", deflation=kind, random_state=0)
    for j, x in enumerate(solution.loadings.T):
        left = after(A, solution.loadings[:, :j], kind)
        if not left.current.diagonal().any():
            break  # all features are removed
        for method in OTHERS:
            if issubclass(method, OneByOneMethod):
                rng = np.random.default_rng(0)
                found = method().next_component(problem, left, 1.0, Monitor(method.name), rng)
                assert left.value(found.vector) <= left.value(x) * (1 + 1e-9), method.name


@cache
def one_component(name, k):
    """A problem about one component, and the answer of auto."""
    covariance = as_covariance(DATA[name](), kind="covariance")
    problem = ElementSparseProblem(covariance, 1, k)
    return problem, solve(problem, random_state=3)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("method", [method.name for method in OTHERS])
def test_no_other_method_is_better_for_one_component(name, method):
    """Those that find all components together too, and those that draw random numbers."""
    for k in (2, 3, 5, 8):
        problem, auto = one_component(name, k)
        other = solve(problem, method, random_state=3)
        assert other.objective <= auto.objective * (1 + 1e-9)


class Lazy(ElementAuto):
    """A search of its own that finds nothing."""

    name = "lazy"

    def find(self, left, problem, start, monitor, rng):
        x = np.zeros(left.n_features)
        x[np.argmin(left.diagonal())] = 1.0
        return Component(x, [0.0], 1, Status.COMPLETED)


@pytest.mark.parametrize("kind", DEFLATIONS)
def test_other_methods_are_heard_and_their_answer_is_improved(kind):
    better = 0
    for seed in range(6, 12):
        A = random_covariance(np.random.default_rng(seed), 20, 10)
        problem = ElementSparseProblem(as_covariance(A, kind="covariance"), 2, 4)
        found = solve(problem, Lazy(deflation=kind), random_state=0).loadings
        left = after(A, found[:, :1], kind)
        values = [
            left.value(
                method().next_component(
                    problem, left, 1.0, Monitor("test"), np.random.default_rng(0)
                ).vector
            )
            for method in OTHERS
            if issubclass(method, OneByOneMethod)
        ]  # fmt: skip
        assert left.value(found[:, 1]) >= max(values) * (1 - 1e-9)
        better += left.value(found[:, 1]) > max(values) * (1 + 1e-6)
    assert better > 0 or kind == "generalized"  # a quotient is not climbed by swaps


def quotient_by_enumeration(left, k):
    """The largest x'Ax / x'Bx over all supports, B the projector away from what was taken out."""
    d = left.current.n_features
    A, B = left.current.submatrix(np.arange(d)), np.eye(d) - left.taken @ left.taken.T
    best = 0.0
    for S in combinations(range(d), k):
        block = np.ix_(S, S)
        values, vectors = np.linalg.eigh(B[block])
        kept = values > 1e-9  # where B vanishes, so does A
        root = vectors[:, kept] / np.sqrt(values[kept])
        best = max(best, float(scipy.linalg.eigvalsh(root.T @ A[block] @ root)[-1]))
    return best


@pytest.mark.parametrize("kind", DEFLATIONS)
@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 6))]
)
def test_it_finds_the_enumerated_optimum_of_small_problems(kind, seed):
    A = random_covariance(np.random.default_rng(seed), 8)
    problem = ElementSparseProblem(as_covariance(A, kind="covariance"), 3, 3)
    solution = solve(problem, deflation=kind, random_state=0)
    assert solution.status in (Status.COMPLETED, Status.CONVERGED)
    for j, x in enumerate(solution.loadings.T):
        left = after(A, solution.loadings[:, :j], kind)
        if kind == "generalized":
            best = quotient_by_enumeration(left, 3)
        else:
            best = best_by_enumeration(left.current.submatrix(np.arange(8)), 1, 3)
        assert left.value(x) == pytest.approx(best, rel=1e-7)


def test_it_is_the_default(rng):
    problem = ElementSparseProblem(as_covariance(rng.standard_normal((30, 9))), 2, 3)
    assert solve(problem, random_state=0).solver == "auto"
    one, other = (solve(problem, random_state=4).loadings for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_reports_carry_its_name_and_never_fall(rng):
    told = []
    A = random_covariance(rng, 20)
    problem = ElementSparseProblem(as_covariance(A, kind="covariance"), 1, 4)
    solution = solve(problem, random_state=0, callback=told.append)
    assert {progress.solver for progress in told} == {"auto"}
    values = [progress.objective for progress in told]
    assert values[-1] == pytest.approx(solution.objective)
    assert max(values) <= solution.objective * (1 + 1e-9)


def test_an_interrupt_among_the_other_methods_keeps_what_was_found(rng, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    A = random_covariance(rng, 12)
    problem = ElementSparseProblem(as_covariance(A, kind="covariance"), 2, 4)
    monkeypatch.setattr(TPowerDeflated, "find", interrupt)
    solution = solve(problem, random_state=0)
    assert solution.status is Status.INTERRUPTED
    x = solution.loadings[:, 0]
    assert x @ A @ x == pytest.approx(best_by_enumeration(A, 1, 4), rel=1e-7)


def test_data_on_disk_is_read_a_few_times(rng, monkeypatch):
    monkeypatch.setattr(ChunkedCovariance, "reads_are_costly", True)
    X = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 300))
    covariance = as_covariance(npy(X + 0.1 * rng.standard_normal(X.shape)))
    monkeypatch.setattr(covariance, "prepare", lambda: None)
    solution = solve(ElementSparseProblem(covariance, 2, 5), random_state=0)
    assert (np.count_nonzero(solution.loadings, axis=0) == 5).all()
    assert covariance.n_passes <= 2 * 6 + 6
