"""`auto` under counts: against enumeration, against the named methods, in any case."""

from itertools import combinations, product

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from kspan import as_covariance, solve
from kspan.datasets import load_pitprops
from kspan.linalg.pattern_kernels import lone_overlap, normal_step, own_rows, raise_on_pattern
from kspan.problem import Patterns, StiefelProblem
from kspan.solvers.stiefel.pattern_moves import Guesses
from tests.oracles import random_covariance


def correlations(name):
    if name == "pitprops":
        return load_pitprops().covariance
    load = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}[name]
    X = load().data
    return np.corrcoef(X[:, X.std(axis=0) > 0], rowvar=False)


def counted(A, r, *counts, **rules):
    patterns = Patterns.of(len(A), r, *counts, **rules)
    return StiefelProblem(as_covariance(A, kind="covariance"), r, patterns=patterns)


def found(problem, solver="auto", **options):
    """The value tr(V'AV), after a look at the loadings."""
    V = solve(problem, solver, random_state=0, **options).loadings
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-10)
    assert problem.patterns.objection(V != 0) is None
    return float(np.sum(V * problem.covariance.matmat(V)))


# --- enumeration


def best_disjoint(A, patterns):
    """Every assignment of features to components, or to none."""
    d, r = len(A), patterns.n_components
    leading = {}
    for size in range(1, int(patterns.limits.max()) + 1):
        for S in combinations(range(d), size):
            leading[S] = np.linalg.eigvalsh(A[np.ix_(S, S)])[-1]
    best = 0.0
    for owner in product(range(r + 1), repeat=d):
        supports = [tuple(i for i in range(d) if owner[i] == t) for t in range(r)]
        counts = np.array([len(S) for S in supports])
        if counts.all() and (counts <= patterns.limits).all() and counts.sum() <= patterns.total:
            best = max(best, sum(leading[S] for S in supports))
    return best


@pytest.mark.parametrize(
    ("d", "r", "counts"),
    [(8, 2, (3,)), (8, 2, ([4, 2],)), (7, 3, (2,)), (7, 3, (None, 6)), (7, 2, ([2, 4], 5))],
)
@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_disjoint_supports_against_enumeration(d, r, counts, seed):
    A = random_covariance(np.random.default_rng(seed), d, 5)
    problem = counted(A, r, *counts, disjoint=True)
    assert found(problem) == pytest.approx(best_disjoint(A, problem.patterns), rel=1e-9)


def best_pair(A, sizes, rng, n_starts=6):
    """Two components: every pair of supports, from many random points of each."""
    S = A / np.linalg.eigvalsh(A)[-1]
    d, best = len(A), 0.0
    for first in combinations(range(d), sizes[0]):
        for second in combinations(range(d), sizes[1]):
            mask = np.zeros((d, 2), dtype=bool)
            mask[list(first), 0] = mask[list(second), 1] = True
            if lone_overlap(mask):  # an entry less: the pattern of smaller supports
                i = int(np.flatnonzero(mask.all(axis=1))[0])
                masks = []
                for t in range(2):
                    if mask[:, t].sum() > 1:
                        masks.append(mask.copy())
                        masks[-1][i, t] = False
            else:
                masks = [mask]
            for one in masks:
                for _ in range(n_starts):
                    U = rng.standard_normal((d, 2))
                    best = max(best, raise_on_pattern(S, U, one, 300, 1e-10, -1.0)[1])
    return best * np.linalg.eigvalsh(A)[-1]


@pytest.mark.parametrize(("d", "sizes"), [(6, (2, 2)), (6, (3, 3)), (6, (4, 2)), (5, (3, 4))])
@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_two_components_against_enumeration(d, sizes, seed):
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, d, 4)
    best = best_pair(A, sizes, rng)
    assert found(counted(A, 2, list(sizes))) == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("seed", range(2))
def test_a_total_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, 5, 4)
    best = max(best_pair(A, (k, 5 - k), rng, 4) for k in range(1, 5))
    assert found(counted(A, 2, None, 5)) == pytest.approx(best, rel=1e-7)


# --- named methods


@pytest.mark.parametrize(
    "name", ["pitprops", "wine", "breast cancer", pytest.param("digits", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("r", "k"), [(2, 5), pytest.param(3, 4, marks=pytest.mark.slow)])
def test_at_least_as_good_as_every_named_method(name, r, k):
    A = correlations(name)
    problem = counted(A, r, k)
    best = found(problem)
    for solver in ("sadmm", "admm"):
        assert found(problem, solver) <= best * (1 + 1e-9)
    stages = found(problem, "two-stage", n_features_to_select=min(r * k, len(A)))
    assert stages <= best * (1 + 1e-9)
    apart = found(counted(A, r, k, disjoint=True))
    assert apart <= best * (1 + 1e-9)
    one_by_one = solve(
        counted(A, r, k, disjoint=True), "deflation", deflation="remove", random_state=0
    ).loadings
    assert np.trace(one_by_one.T @ A @ one_by_one) <= apart * (1 + 1e-9)


@pytest.mark.parametrize(
    ("name", "r", "k", "value"),
    [  # the best of many long runs
        ("pitprops", 2, 5, 5.710358), ("pitprops", 3, 7, 8.225074), ("wine", 3, 3, 6.443801),
        ("wine", 3, 5, 7.978070), ("breast cancer", 2, 8, 13.297170),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (
            ("pitprops", 3, 5, 7.711292), ("wine", 3, 8, 8.498900),
            ("breast cancer", 3, 5, 13.512748),
        )),
    ],
)  # fmt: skip
def test_the_best_that_is_known(name, r, k, value):
    assert found(counted(correlations(name), r, k)) >= value - 1e-6


# --- what an answer is


def test_the_same_seed_gives_the_same_answer():
    problem = counted(correlations("wine"), 2, [5, 3])
    first, second = (solve(problem, random_state=3) for _ in range(2))
    assert np.array_equal(first.loadings, second.loadings)
    assert np.array_equal(first.history, second.history)


def test_limits_are_in_the_given_order_and_alike_components_by_variance():
    A = correlations("wine")
    values = set()
    for limits in ((5, 2, 2), (2, 5, 2), (2, 2, 5)):
        V = solve(counted(A, 3, list(limits)), random_state=0).loadings
        assert (np.count_nonzero(V, axis=0) <= limits).all()
        variances = np.diag(V.T @ A @ V)
        alike = variances[np.array(limits) == 2]
        assert alike[0] >= alike[1]
        values.add(round(float(variances.sum()), 6))
    assert len(values) == 1


def test_more_freedom_is_never_worse():
    A = correlations("wine")
    apart, free = found(counted(A, 2, 4, disjoint=True)), found(counted(A, 2, 4))
    total = found(counted(A, 2, None, 8))
    more = found(counted(A, 2, 5))
    assert apart <= free * (1 + 1e-9)
    assert free <= min(total, more) * (1 + 1e-9)


def test_many_features_go_by_way_of_candidates(rng):
    """Planted components among many features that are noise; the answer is the planted one."""
    d, k = 700, 6
    V = np.zeros((d, 2))
    V[10 : 10 + k, 0] = V[500 : 500 + k, 1] = 1 / np.sqrt(k)
    X = rng.standard_normal((300, d)) + 4 * (rng.standard_normal((300, 2)) * [2, 1.5]) @ V.T
    covariance = as_covariance(X)
    patterns = Patterns.of(d, 2, k)
    solution = solve(StiefelProblem(covariance, 2, patterns=patterns), random_state=0)
    assert np.array_equal(solution.loadings != 0, V != 0)


CASES = {
    "ties": np.eye(6),
    "all alike": 0.5 * np.eye(6) + 0.5,
    "rank one": np.ones((6, 6)),
    "zero variance": np.diag([3.0, 2.0, 1.0, 0.0, 0.0, 0.0]),
    "copies": np.kron(np.eye(2), np.ones((3, 3))),
    "huge": 1e250 * np.diag(np.arange(1.0, 7.0)),
    "tiny": 1e-250 * (np.diag(np.arange(1.0, 7.0)) + 0.5),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize(
    ("r", "counts"),
    [(1, (1,)), (2, (1,)), (2, (6,)), (6, (6,)), (3, (None, 18)),
     *(pytest.param(*rest, marks=pytest.mark.slow)
       for rest in ((6, (1,)), (2, (None, 2)), (3, (2,)), (3, ([1, 2, 3],)), (4, (3, 5))))],
)  # fmt: skip
def test_an_answer_in_any_case(case, disjoint, r, counts):
    A = CASES[case]
    value = found(counted(A, r, *counts, disjoint=disjoint), n_kicks=5)
    assert value <= np.linalg.eigvalsh(A)[-r:].sum() * (1 + 1e-9)
    assert value >= np.sort(np.diag(A))[-r:].sum() * (1 - 1e-9)  # single features


@pytest.mark.parametrize("counts", [[1, 3, 3], [1, 1, 3], [2, 1, 3]])
def test_as_many_components_as_features(rng, counts):
    """Then a feature that two of them share may be the only one that either has."""
    A = random_covariance(rng, 3)
    assert found(counted(A, 3, counts)) == pytest.approx(np.trace(A), rel=1e-9)


def test_all_features_are_plain_pca(rng):
    A = random_covariance(rng, 7)
    assert found(counted(A, 3, 7)) == pytest.approx(np.linalg.eigvalsh(A)[-3:].sum(), rel=1e-8)
    assert found(counted(A, 7, 7)) == pytest.approx(np.trace(A), rel=1e-9)


def test_time_limits_and_interrupts(rng):
    problem = counted(random_covariance(rng, 20), 3, 6)

    def press(progress):
        if progress.iteration == 2:
            raise KeyboardInterrupt

    for rule, status in (
        ({"time_limit": 1e-9}, "time limit"),
        ({"callback": press}, "interrupted"),
    ):
        solution = solve(problem, **rule)
        assert solution.status.value == status
        assert solution.orthogonality_error <= 1e-10
        assert problem.patterns.objection(solution.loadings != 0) is None


@pytest.mark.parametrize("disjoint", [False, True])
def test_the_answer_does_not_depend_on_threads(rng, disjoint):
    A = random_covariance(rng, 90)
    problem = counted(A, 3, 25, disjoint=disjoint)
    one, two = (
        solve(problem, n_restarts=1, n_kicks=2, n_improved=2, n_jobs=n_jobs, random_state=0)
        for n_jobs in (None, 2)
    )
    np.testing.assert_array_equal(one.loadings, two.loadings)
    np.testing.assert_array_equal(one.history, two.history)


# --- its parts


def test_a_normal_step_changes_the_gram_matrix_as_wanted(rng):
    V = np.linalg.qr(rng.standard_normal((12, 3)))[0]
    mask = rng.uniform(size=(12, 3)) < 0.8
    V = np.where(mask, V, 0.0)
    wanted = np.array([[0.1, 0.02, 0.0], [0.02, -0.1, 0.03], [0.0, 0.03, 0.05]])
    step = normal_step(V, *own_rows(mask), wanted)
    np.testing.assert_allclose(V.T @ step + step.T @ V, wanted, atol=1e-8)
    assert not step[~mask].any()


@pytest.mark.parametrize("rules", [{}, {"disjoint": True}])
@pytest.mark.parametrize("counts", [(3,), ([4, 3, 2],), (None, 8)])
def test_every_move_leads_to_a_feasible_pattern(rng, rules, counts):
    A = random_covariance(rng, 9)
    patterns = Patterns.of(9, 3, *counts, **rules)
    mask = patterns.select(rng.uniform(size=(9, 3)))
    mask[np.argmax(mask[:, 0]), 0] = mask[:, 0].sum() == 1  # room for one more
    U = np.linalg.qr(rng.standard_normal((9, 3)))[0] * mask
    guesses = Guesses(A, U, mask, patterns)
    for moves in (guesses.single(10_000), guesses.between(10_000), guesses.double(10_000)):
        for move in moves.best(10_000):
            trial = mask.copy()
            for i, t in move[:4].reshape(2, 2):
                if i >= 0:
                    assert trial[i, t]
                    trial[i, t] = False
            for i, t in move[4:].reshape(2, 2):
                if i >= 0:
                    assert not trial[i, t]
                    trial[i, t] = True
            assert patterns.objection(trial) is None
