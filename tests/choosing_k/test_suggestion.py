import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import suggest_k
from kspan.choosing_k import SparsityPath, Stability
from kspan.choosing_k.suggestion import find_knee, possible_knees


def path_with(objective, upper=None, full=None):
    objective = np.array(objective, dtype=float)
    upper = objective if upper is None else np.array(upper, dtype=float)
    k = np.arange(1, objective.size + 1)
    return SparsityPath(
        k=k, objective=objective, upper=upper, supports=[np.arange(n) for n in k], n_components=1,
        n_features=50, full=full or float(objective[-1]), total_variance=100.0, feature_names=None,
        solver="auto", status="completed", certificates=[], n_passes=1, seconds=0.0,
    )  # fmt: skip


def stability_at(k, value):
    return Stability(
        np.zeros(50), np.zeros((2, k), dtype=int), 0.5, value, 20, 1, k, 50, None, 0, "ipu",
        "completed", None,
    )  # fmt: skip


BENT = [0.0, 50.0, 80.0, 90.0, 94.0, 97.0, 99.0, 100.0]


def test_the_share_decides_by_default():
    suggestion = suggest_k(path_with(BENT), share=0.9)
    assert suggestion.k == suggestion.k_for_share == suggestion.at_least == 4
    assert suggestion.knee == 3
    assert suggestion.knee_is_certain
    assert "4 features keep 90.0%" in suggestion.reasons[0]
    assert "fewer cannot keep 90%" in suggestion.reasons[0]
    assert "bends most at 3 features" in suggestion.reasons[1]
    assert suggestion.reasons[-1] == (
        "Suggested: 4 features, because it is the smallest number that keeps 90%."
    )


def test_the_knee_decides_when_the_share_is_out_of_reach():
    suggestion = suggest_k(path_with(BENT, full=200.0), share=0.9)
    assert suggestion.k_for_share is None
    assert suggestion.k == suggestion.knee == 3
    assert "Even 8 features keep only 50.0%" in suggestion.reasons[0]
    assert "does not reach the share" in suggestion.reasons[-1]


def test_stability_decides_between_the_knee_and_the_share():
    measured = [
        stability_at(3, 0.6),
        stability_at(5, 0.9),
        stability_at(6, 0.4),
        stability_at(8, 1),
    ]
    suggestion = suggest_k(path_with(BENT), share=0.96, stability=measured)
    assert (suggestion.knee, suggestion.k_for_share) == (3, 6)
    assert suggestion.k == 5
    assert suggestion.k_most_stable == 8  # said, but it is outside
    assert "0.90 at 5" in suggestion.reasons[2]
    assert "most stable" in suggestion.reasons[-1]


def test_stability_elsewhere_changes_nothing():
    suggestion = suggest_k(path_with(BENT), share=0.9, stability=stability_at(8, 1.0))
    assert suggestion.k == 4


def test_a_wide_band_leaves_the_knee_open():
    upper = [40.0, 80.0, 90.0, 98.0, 99.0, 100.0, 100.0, 100.0]
    suggestion = suggest_k(path_with(BENT, upper), share=0.9)
    assert not suggestion.knee_is_certain
    assert suggestion.at_least == 3
    assert "fewer than 3 cannot" in suggestion.reasons[0]
    assert "may bend from" in suggestion.reasons[1]


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.3)), min_size=3, max_size=8),
    st.randoms(use_true_random=False),
)
def test_no_curve_in_the_band_has_a_knee_that_was_ruled_out(points, random):
    k = np.arange(1, len(points) + 1)
    lower = np.maximum.accumulate([point[0] for point in points])
    upper = np.maximum.accumulate(lower + [point[1] for point in points])
    possible = possible_knees(k, lower, upper, find_knee(k, lower))
    for _ in range(20):
        curve = lower + np.array([random.random() for _ in k]) * (upper - lower)
        if curve[-1] <= curve[0]:
            continue
        height = (curve - curve[0]) / (curve[-1] - curve[0]) - (k - 1) / (k[-1] - 1)
        assert possible[height >= height.max() - 1e-12].any()


@pytest.mark.parametrize("objective", [[1.0], [1.0, 2.0], [3.0, 3.0, 3.0]])
def test_curves_without_a_knee(objective):
    suggestion = suggest_k(path_with(objective))
    assert suggestion.knee == 1
