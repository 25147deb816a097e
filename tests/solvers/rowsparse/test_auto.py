import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_wine

from benchmarks.certificates import any_width
from kspan import RowSparseProblem, as_covariance, solve
from kspan.datasets import load_dataset, load_pitprops, make_scheme
from kspan.progress import Status
from tests.effort import examples
from tests.oracles import best_by_enumeration, draw_problem, random_covariance

# Optima by enumeration, k = 3..12.
PITPROPS = {
    1: [2.47533135, 2.93747895, 3.40615495, 3.77095955, 3.99618964, 4.06860733, 4.13864691,
        4.17263766, 4.20827595, 4.21824519],
    2: [2.95682783, 3.83859727, 4.39104607, 4.93619130, 5.43927919, 5.86213963, 6.13107286,
        6.37354158, 6.50361793, 6.55567889],
    3: [3.0, 3.95884296, 4.91041804, 5.75803224, 6.38762961, 6.93736185, 7.39340980,
        7.82849018, 8.15787338, 8.41159935],
}  # fmt: skip
WINE = {
    (1, 5): 3.43977842, (2, 5): 4.30406287, (3, 5): 4.68967905,
    (1, 10): 4.59429324, (2, 10): 6.59793656, (3, 10): 7.65918350,
}  # fmt: skip


@pytest.mark.parametrize("m", [1, 2, 3])
def test_pitprops_reference_values(m):
    A = as_covariance(load_pitprops().covariance, kind="covariance")
    for k, expected in enumerate(PITPROPS[m], start=3):
        value = solve(RowSparseProblem(A, m, k), random_state=0).objective
        assert value == pytest.approx(expected, abs=1e-6), k


@pytest.mark.parametrize(("m", "k"), WINE)
def test_wine_reference_values(m, k):
    A = as_covariance(np.corrcoef(load_wine().data, rowvar=False), kind="covariance")
    value = solve(RowSparseProblem(A, m, k), random_state=0).objective
    assert value == pytest.approx(WINE[m, k], abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_breast_cancer_where_ipu_alone_is_stuck(seed):
    X = as_covariance(load_breast_cancer().data, scale=True, ddof=0)
    problem = RowSparseProblem(X, 1, 5)
    assert solve(problem, "ipu").objective == pytest.approx(4.295, abs=5e-4)
    assert solve(problem, random_state=seed).objective == pytest.approx(4.904776, abs=1e-6)


@pytest.mark.real_data
@pytest.mark.parametrize("seed", range(3))
def test_nus_wide_where_ipu_alone_is_stuck(seed):
    problem = RowSparseProblem(as_covariance(load_dataset("nus_wide").X, ddof=0), 1, 10)
    assert solve(problem, "ipu").objective == pytest.approx(0.604, abs=5e-4)
    assert solve(problem, random_state=seed).objective >= 0.819


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("m", "k", "proved"), [(2, 10, 8125.265966), (3, 10, 8481.875792), (2, 20, 11868.012095)]
)
def test_lymphoma_reaches_the_proved_optima(m, k, proved):
    A = as_covariance(load_dataset("lymphoma").covariance, kind="covariance")
    value = solve(RowSparseProblem(A, m, k), random_state=0).objective
    assert value == pytest.approx(proved, rel=1e-9)


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "m", "k"), [("lymphoma", 3, 10), ("nus_wide", 3, 10)])
def test_standardised_data_reaches_the_best_known(name, m, k):
    problem = RowSparseProblem(any_width.load(name), m, k)
    best = any_width.known_best(name, m, k)
    assert best > 0
    assert solve(problem, random_state=0).objective >= best * (1 - 1e-9)


def related_columns(kind, rng, d=12):
    """Return data with weakly related columns, near copies of a few, or exact ones."""
    X = rng.standard_normal((40, d))
    if kind == "weak":
        return X
    groups = X[:, np.append(np.arange(4), rng.integers(0, 4, d - 4))]
    return groups if kind == "copies" else groups + 0.3 * rng.standard_normal((40, d))


@pytest.mark.parametrize("kind", ["weak", "near copies", "copies"])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_small_correlations_are_solved(kind, m):
    """The optimum in every one of six cases."""
    for seed in range(3):
        X = related_columns(kind, np.random.default_rng(seed))
        for k in (4, 6):
            problem = RowSparseProblem(as_covariance(X, scale=True), m, k)
            best = solve(problem, "brute-force").objective
            found = solve(problem, random_state=0).objective
            assert found == pytest.approx(best, rel=1e-9), (seed, k)


def test_exchanges_stop_in_time_and_honour_the_choice(rng):
    X = rng.standard_normal((60, 8))[:, rng.integers(0, 8, 300)] + rng.standard_normal((60, 300))
    limits = {"include": [7, 250], "exclude": list(range(100, 200))}
    problem = RowSparseProblem(as_covariance(X, scale=True), 3, 12, **limits)
    whole = solve(problem, random_state=1)
    assert problem.choice.objection(whole.support) is None
    assert np.array_equal(whole.support, solve(problem, random_state=1).support)
    short = solve(problem, random_state=1, time_limit=0.02)
    assert short.status is Status.TIME_LIMIT
    assert problem.choice.objection(short.support) is None
    assert short.objective <= whole.objective


@examples(40)
@given(st.integers(0, 10_000), st.data())
def test_between_the_named_methods_and_the_optimum(seed, data):
    A, problem = draw_problem(data, seed, max_features=9)
    m, k = problem.n_components, problem.n_features_to_select
    include, exclude = set(problem.include.tolist()), set(problem.exclude.tolist())
    budget = {"n_restarts": 6, "n_kicks": 2}
    solution = solve(problem, random_state=seed, **budget)
    slack = 1e-10 * np.trace(A)
    assert solution.objective <= best_by_enumeration(A, m, k, include, exclude) + slack
    assert solution.objective >= solve(problem, "go").objective - slack
    assert solution.objective >= solve(problem, "ipu").objective - slack
    assert include <= set(solution.support.tolist())
    assert not exclude & set(solution.support.tolist())
    assert np.all(np.diff(solution.history) >= -slack)


@pytest.mark.parametrize("scheme", "ABCDEF")
def test_the_papers_schemes_are_solved(scheme):
    """d = 20, m = 3, k = 7: the optimum in every one of four draws."""
    for seed in range(4):
        problem = RowSparseProblem(
            as_covariance(make_scheme(scheme, random_state=seed), kind="covariance"), 3, 7
        )
        best = solve(problem, "brute-force").objective
        assert solve(problem, random_state=0).objective == pytest.approx(best, rel=1e-9)


def test_the_same_seed_gives_the_same_answer(rng):
    problem = RowSparseProblem(as_covariance(rng.standard_normal((40, 60))), 2, 8)
    first, second = (solve(problem, random_state=7) for _ in range(2))
    assert np.array_equal(first.support, second.support)
    assert np.array_equal(first.history, second.history)
    assert first.n_iter == second.n_iter


def test_a_start_of_ones_own_is_used(rng):
    A = random_covariance(rng, 14)
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), 2, 5)
    best = solve(problem, "brute-force")
    solution = solve(problem, init=best.loadings, n_restarts=0, n_kicks=0, max_sweeps=0)
    assert solution.objective == pytest.approx(best.objective, rel=1e-12)
