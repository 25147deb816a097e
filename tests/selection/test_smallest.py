from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan.progress import Status
from kspan.selection import smallest_support


def find(values, target, guesses=None):
    """Run the search on a table of objectives for k = 1..n."""
    asked = []

    def at(table):
        def solve(k):
            asked.append(k)
            return SimpleNamespace(objective=table[k - 1], status=Status.COMPLETED)

        return solve

    k, solution = smallest_support(
        lambda k: k,
        lower=1,
        upper=len(values),
        target=target,
        guess_with=at(guesses or values),
        solve_with=at(values),
    )
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
