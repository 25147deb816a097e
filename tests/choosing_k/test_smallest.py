from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance, solve
from kspan.choosing_k.smallest import READABLE, QuickSolver, readable_size, smallest_support
from kspan.problem import Choice, RuledChoice
from kspan.progress import Monitor, Status
from tests.oracles import random_covariance


def find(values, target, guesses=None):
    """Run the search on a table of objectives for k = 1..n."""
    asked = []
    covariance = as_covariance(np.eye(len(values)), kind="covariance")

    def at(table):
        def solve(problem):
            asked.append(problem.choice.size)
            value = table[problem.choice.size - 1]
            return SimpleNamespace(objective=value, status=Status.COMPLETED)

        return solve

    problem, solution = smallest_support(
        RowSparseProblem(covariance, 1, 1), target=target, guess_with=at(guesses or values),
        solve_with=at(values),
    )  # fmt: skip
    k = problem.choice.size
    assert solution.objective == values[k - 1]
    return k, asked


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=40),
    st.lists(st.floats(0, 1), min_size=40, max_size=40),
    st.floats(0, 1),
)
def test_smallest_of_a_rising_curve(values, guesses, target):
    values = sorted(values)
    expected = next((k for k, v in enumerate(values, 1) if v >= target), len(values))
    assert find(values, target)[0] == expected
    assert find(values, target, sorted(guesses)[: len(values)])[0] == expected


@pytest.mark.parametrize("answer", [1, 2, 37, 500, 1000])
def test_few_solves(answer):
    k, asked = find([float(k >= answer) for k in range(1, 1001)], 1.0)
    assert k == answer
    assert len(asked) <= 30


def test_quick_solver_starts_from_the_nearest_number(rng):
    covariance = as_covariance(random_covariance(rng, 12), kind="covariance")
    quick = QuickSolver(Monitor("guess"))
    for k in (4, 5, 9, 6, 4):
        problem = RowSparseProblem(covariance, 2, k, include=[3], exclude=[7])
        solution = quick(problem)
        assert solution.support.size == k
        assert 3 in solution.support
        assert 7 not in solution.support
        assert solution.objective >= solve(problem, "ipu").objective * (1 - 1e-12)


def test_quick_solver_reads_a_large_file_once(tmp_path, monkeypatch):
    monkeypatch.setattr("kspan.covariance.data_covariance.GRAM_WORK", 1.0)
    data = np.random.default_rng(0)
    X = data.standard_normal((50, 3)) @ data.standard_normal((3, 1100)) + data.random((50, 1100))
    np.save(tmp_path / "rows.npy", X)
    covariance = as_covariance(tmp_path / "rows.npy")
    quick = QuickSolver(Monitor("guess"))
    quick(RowSparseProblem(covariance, 2, 2, include=[5], exclude=[0]))
    passes = covariance.n_passes
    assert passes <= 7
    for k in (4, 8, 16):
        problem = RowSparseProblem(covariance, 2, k, include=[5], exclude=[0])
        solution = quick(problem)
        assert covariance.n_passes == passes
        assert 5 in solution.support
        assert 0 not in solution.support
        A = np.cov(X[:, solution.support], rowvar=False)
        assert solution.objective == pytest.approx(np.linalg.eigvalsh(A)[-2:].sum(), rel=1e-9)


def test_an_interrupt_while_guessing_gives_what_is_there(rng, monkeypatch):
    covariance = as_covariance(random_covariance(rng, 6), kind="covariance")

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("kspan.choosing_k.smallest.run_rule", interrupt)
    problem, solution = smallest_support(
        RowSparseProblem(covariance, 1, 1), target=1e9,
        guess_with=QuickSolver(Monitor("guess")), solve_with=solve,
    )  # fmt: skip
    assert solution.status is Status.INTERRUPTED
    assert solution.support.size == problem.n_features_to_select


@given(st.data(), st.integers(1, 60), st.integers(1, 4))
def test_a_readable_size_is_possible_and_at_most_half(data, d, m):
    m = min(m, d)
    include = data.draw(st.sets(st.integers(0, d - 1), max_size=min(d, 6)))
    exclude = data.draw(st.sets(st.integers(0, d - 1), max_size=6)) - include
    fewest = max(m, len(include))
    if d - len(exclude) < fewest:
        exclude = set()
    choice = Choice.of(d, fewest, sorted(include), sorted(exclude))
    size = readable_size(choice, m)
    assert type(size) is int
    Choice.of(d, size, sorted(include), sorted(exclude))  # raises if there is no such support
    assert m <= size
    n_allowed = d - len(exclude)
    assert size == max(min(READABLE * m, n_allowed // 2), fewest)


@pytest.mark.parametrize(
    ("d", "m", "include", "exclude", "size"),
    [
        (1000, 1, 0, 0, 10), (1000, 3, 0, 0, 30), (13, 2, 0, 0, 6), (4, 3, 0, 0, 3),
        (100, 1, 15, 0, 15), (100, 2, 0, 70, 15), (2, 2, 0, 0, 2), (1, 1, 0, 0, 1),
    ],
)  # fmt: skip
def test_readable_sizes(d, m, include, exclude, size):
    out = range(d - exclude, d)
    choice = Choice.of(d, max(m, include), list(range(include)), list(out))
    assert readable_size(choice, m) == size


def test_rules_leave_fewer_features_to_read():
    """Three groups, one feature of each."""
    groups = ["a", "b", "c"] * 20
    choice = RuledChoice.of(60, None, groups=groups, max_per_group=1, least=1)
    assert readable_size(choice.resized(1), 1) == choice.most_features == 3
