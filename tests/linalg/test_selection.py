import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kspan.linalg.selection import top_k


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=30),
    st.integers(0, 35),
)
def test_same_as_a_stable_sort(values, k):
    scores = np.array(values, dtype=float)
    expected = np.sort(np.argsort(-scores, kind="stable")[: min(k, scores.size)])
    assert np.array_equal(top_k(scores, k), expected)


def test_infinite_scores_go_first_and_last():
    scores = np.array([-np.inf, 1.0, np.inf, 1.0, 2.0])
    assert top_k(scores, 3).tolist() == [1, 2, 4]
