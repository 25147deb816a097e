"""The spannogram against an enumeration of all supports."""

from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan.linalg import spannogram_boxes as boxes_module
from kspan.linalg import spannogram_sweep as sweep_module
from kspan.linalg.low_rank_enumeration import enumerate_supports, prepare
from kspan.linalg.spannogram_boxes import Boxes, ascend, rule_out, selectable, starts
from kspan.linalg.spannogram_sweep import candidate_supports, unrank, vertex_count
from tests.effort import examples
from tests.oracles import KINDS, draw_rows, nonnegative_optimum

seeds = st.integers(0, 2**32 - 1)


def spannogram(V, k, *, eliminate=True, report=None, n_threads=None):
    task = prepare(V, k, eliminate=eliminate, report=report)
    return enumerate_supports(task, report=report, n_threads=n_threads)


def check(V, k, expected, **options):
    """The answer is a feasible vector, worth what it says, and optimal."""
    best = spannogram(V, k, **options)
    x = np.zeros(len(V))
    x[best.support] = best.weights
    assert best.complete
    assert 1 <= best.support.size <= k
    assert (best.weights > 0).all()
    assert np.linalg.norm(x) == pytest.approx(1, abs=1e-12)
    assert best.value == pytest.approx(float(np.sum((V.T @ x) ** 2)), rel=1e-12)
    assert best.value == pytest.approx(expected, rel=1e-9)
    return best


@examples(700)
@given(
    seeds,
    st.integers(1, 9),
    st.integers(1, 3),
    st.integers(1, 9),
    st.sampled_from(KINDS),
    st.sampled_from([1.0, 1e-150, 1e150]),
)
def test_it_equals_the_enumeration_of_all_supports(seed, n, d, k, kind, scale):
    k = min(k, n)
    V = draw_rows(np.random.default_rng(seed), n, d, kind)
    expected = nonnegative_optimum(V @ V.T, k) * scale**2
    check(scale * V, k, expected)
    check(scale * V, k, expected, eliminate=False)


@examples(150)
@given(seeds, st.integers(4, 8), st.integers(1, 8), st.sampled_from(KINDS), st.booleans())
def test_rank_four(seed, n, k, kind, eliminate):
    k = min(k, n)
    V = draw_rows(np.random.default_rng(seed), n, 4, kind)
    check(V, k, nonnegative_optimum(V @ V.T, k), eliminate=eliminate)


@pytest.mark.parametrize("eliminate", [True, False])
@pytest.mark.parametrize("d", [1, 2, 3])
class TestDegenerate:
    def test_one_feature(self, rng, d, eliminate):
        """k = 1: the longest row."""
        V = rng.standard_normal((12, d))
        lengths = np.linalg.norm(V, axis=1)
        best = check(V, 1, lengths.max() ** 2, eliminate=eliminate)
        assert best.support.tolist() == [lengths.argmax()]

    def test_all_features(self, rng, d, eliminate):
        V = rng.standard_normal((8, d))
        check(V, 8, nonnegative_optimum(V @ V.T, 8), eliminate=eliminate)

    def test_positive_rows_are_plain_pca(self, rng, d, eliminate):
        V = rng.uniform(0.5, 1, (12, d))
        check(V, 12, np.linalg.norm(V, 2) ** 2, eliminate=eliminate)

    def test_rank_one(self, rng, d, eliminate):
        """The k largest positive entries, or the k largest negative ones."""
        v = rng.standard_normal(12)
        up, down = np.sort(np.maximum(v, 0))[-3:], np.sort(np.maximum(-v, 0))[-3:]
        V = np.outer(v, rng.standard_normal(d))
        value = max(up @ up, down @ down) * np.sum(V[0] ** 2) / v[0] ** 2
        check(V, 3, value, eliminate=eliminate)

    def test_all_rows_negative(self, rng, d, eliminate):
        V = -rng.uniform(0.1, 1, (9, d))
        assert check(V, 4, spannogram(-V, 4).value, eliminate=eliminate).support.size == 4

    def test_a_zero_row_is_never_used(self, rng, d, eliminate):
        V = rng.uniform(0.1, 1, (9, d))
        V[4] = 0
        best = check(V, 9, np.linalg.norm(V, 2) ** 2, eliminate=eliminate)
        assert best.support.tolist() == [0, 1, 2, 3, 5, 6, 7, 8]

    def test_duplicates(self, rng, d, eliminate):
        V = np.repeat(rng.standard_normal((3, d)), 3, axis=0)
        for k in (1, 2, 4, 7, 9):
            check(V, k, nonnegative_optimum(V @ V.T, k), eliminate=eliminate)

    def test_nothing_at_all(self, d, eliminate):
        best = spannogram(np.zeros((4, d)), 2, eliminate=eliminate)
        assert (best.value, best.complete, best.weights.tolist()) == (0.0, True, [1.0])


@pytest.mark.parametrize("eliminate", [True, False])
def test_supports_with_some_of_the_rows_tied_at_zero(eliminate):
    """Algorithm 2 as printed keeps all rows tied at zero, and finds 22."""
    V = np.array([[-1.0, 2, -3], [3, -3, 2], [-3, -1, -1], [3, 1, 3]])
    best = check(V, 3, 32.593386622447824, eliminate=eliminate)
    assert best.support.tolist() == [1, 3]


def test_the_elimination_of_the_signed_problem_would_be_wrong_here():
    """Row 2 is shorter than the second largest size of any direction, and is needed."""
    assert spannogram(np.array([[1.0], [-1.0], [0.5]]), 2).support.tolist() == [0, 2]


@pytest.mark.parametrize(("n", "d", "k"), [(400, 2, 30), (90, 3, 20), (90, 3, 60), (25, 4, 8)])
def test_with_and_without_elimination(rng, n, d, k):
    V = rng.standard_normal((n, d))
    everything = spannogram(V, k, eliminate=False)
    fast = spannogram(V, k)
    assert fast.value == pytest.approx(everything.value, rel=1e-11)
    assert prepare(V, k).n_vertices < prepare(V, k, eliminate=False).n_vertices == comb(n + 1, d)


def test_many_features_at_rank_five(rng):
    """Elimination leaves next to nothing, and no climb from anywhere does better."""
    V = rng.standard_normal((2000, 5)) * [3, 2, 1, 1, 1]
    best = spannogram(V, 50)
    starts_everywhere = rng.standard_normal((200, 5))
    starts_everywhere /= np.linalg.norm(starts_everywhere, axis=1, keepdims=True)
    assert best.complete
    assert best.value >= ascend(V, starts_everywhere, 50)[0] * (1 - 1e-12)


@pytest.mark.parametrize("k", [20, 60, 120])
def test_many_ties(k):
    """Each of three directions 40 times: the optimum is known."""
    V = np.repeat(np.eye(3), 40, axis=0)
    for eliminate in (True, False):
        assert spannogram(V, k, eliminate=eliminate).value == pytest.approx(min(k, 40))


def test_a_circle_on_which_all_directions_are_equally_good():
    angles = 2 * np.pi * np.arange(60) / 60
    V = np.column_stack([np.cos(angles), np.sin(angles)])
    inside = V[np.argsort(-V[:, 0] - 1e-6 * V[:, 1])[:10]]
    for eliminate in (True, False):
        best = spannogram(V, 10, eliminate=eliminate)
        assert best.value == pytest.approx(np.linalg.norm(inside, 2) ** 2)


# --- rounds of the sweep


def test_threads_do_not_change_the_answer(rng):
    V = rng.standard_normal((80, 3))
    one, two = (spannogram(V, 20, eliminate=False, n_threads=n) for n in (1, 2))
    assert two.value == pytest.approx(one.value, rel=1e-12)
    np.testing.assert_array_equal(one.support, two.support)


def test_little_room_and_no_memory(rng, monkeypatch):
    """Supports that do not fit are found again, and may be solved twice."""
    V = rng.integers(-3, 4, (20, 3)).astype(float)
    expected = spannogram(V, 6, eliminate=False).value
    monkeypatch.setattr(sweep_module, "CAPACITY", 1)
    monkeypatch.setattr(sweep_module, "SEEN_BYTES", 0)
    assert spannogram(V, 6, eliminate=False).value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("n", "d"), [(6, 2), (6, 3), (5, 4)])
def test_all_supports_of_random_directions_are_found(rng, n, d):
    V = rng.standard_normal((n, d))
    for k in range(1, n + 1):
        found = {
            tuple(np.flatnonzero(support))
            for supports in candidate_supports(V, k, lambda: -np.inf)
            for support in supports
        }
        for c in rng.standard_normal((500, d)):
            scores = V @ c
            largest = np.argsort(-scores)[:k]
            assert tuple(np.sort(largest[scores[largest] > 0])) in found


@pytest.mark.parametrize(("n", "d"), [(6, 2), (6, 3), (5, 4)])
def test_all_signed_supports_of_random_directions_are_found(rng, n, d):
    V = rng.standard_normal((n, d))
    for k in range(1, n):
        found = {
            tuple(np.flatnonzero(support))
            for supports in candidate_supports(V, k, lambda: -np.inf, signed=True)
            for support in supports
        }
        for c in rng.standard_normal((500, d)):
            assert tuple(np.sort(np.argsort(-np.abs(V @ c))[:k])) in found


def test_no_support_comes_twice(rng):
    V = rng.standard_normal((10, 3))
    rounds = list(candidate_supports(V, 4, lambda: -np.inf))
    supports = np.concatenate(rounds)
    assert len(np.unique(supports, axis=0)) == len(supports)


def test_combinations_by_their_rank():
    for n, size in product(range(1, 7), range(1, 4)):
        expected = list(combinations(range(n), size))
        assert [tuple(unrank(i, size, n)) for i in range(len(expected))] == expected


def test_counts():
    assert vertex_count(5000, 2) == 12_502_500
    assert vertex_count(10, 3, signed=True) == 4 * comb(10, 3)


# --- stopping


class TestStopping:
    def test_the_report_stops(self, rng):
        V = rng.standard_normal((200, 3))
        told = []

        def report(value):
            told.append(value)
            return len(told) == 3

        best = spannogram(V, 20, eliminate=False, report=report, n_threads=1)
        assert not best.complete
        assert len(told) == 3
        assert best.value == pytest.approx(told[-1])

    def test_the_report_stops_while_rows_are_ruled_out(self, rng):
        V = rng.standard_normal((300, 3))
        best = spannogram(V, 20, report=lambda value: True)
        assert not best.complete
        assert best.value > 0

    def test_the_keyboard_stops(self, rng):
        def report(value):
            raise KeyboardInterrupt

        best = spannogram(rng.standard_normal((80, 3)), 20, eliminate=False, report=report)
        assert not best.complete
        assert best.support.size == 20

    def test_values_are_told_in_the_scale_of_the_rows(self, rng):
        V = 1000 * rng.standard_normal((60, 3))
        told = []
        best = spannogram(V, 5, eliminate=False, report=lambda value: bool(told.append(value)))
        assert told[-1] == pytest.approx(best.value)
        assert told == sorted(told)


# --- boxes


@given(seeds, st.integers(1, 5), st.integers(0, 3), st.booleans())
def test_boxes_cover_the_sphere(seed, d, n_splits, both_sides):
    boxes = Boxes.first(d, both_sides=both_sides)
    for _ in range(min(n_splits, 6 - d)):
        boxes = boxes.split()
    rng = np.random.default_rng(seed)
    C = rng.standard_normal((50, d))
    C /= np.linalg.norm(C, axis=1, keepdims=True)
    cosines = C @ boxes.directions().T
    if not both_sides:
        cosines = np.abs(cosines)
    inside = cosines >= np.sqrt(1 - boxes.sines() ** 2) - 1e-12
    assert inside.any(axis=1).all()


@examples(100)
@given(seeds, st.integers(12, 30), st.integers(2, 4), st.sampled_from(KINDS))
def test_what_is_ruled_out_is_in_no_optimal_support(seed, n, d, kind):
    """And what is fixed is in every one."""
    rng = np.random.default_rng(seed)
    V = draw_rows(rng, n, d, kind)
    V = V[V.any(axis=1)]
    if np.linalg.matrix_rank(V) < d:
        return
    V /= np.linalg.norm(V, axis=1).max()
    k = int(rng.integers(1, len(V) + 1))
    left = rule_out(V, k)
    full = spannogram(V, k, eliminate=False)
    assert left.value <= full.value * (1 + 1e-11)
    assert not (left.fixed & left.free).any()
    if left.closed:
        assert left.value == pytest.approx(full.value, rel=1e-10)
    else:
        assert (left.fixed | left.free)[full.support].all()
        assert np.isin(np.flatnonzero(left.fixed), full.support).all()


@examples(100)
@given(seeds, st.integers(3, 40), st.integers(1, 4))
def test_rows_that_are_not_selectable_are_never_selected(seed, n, d):
    rng = np.random.default_rng(seed)
    V = rng.standard_normal((n, d)) * rng.uniform(0, 1, (n, 1)) ** 3
    V /= np.linalg.norm(V, axis=1).max()
    k = int(rng.integers(1, n))
    kept = selectable(V, k)
    assert kept.sum() >= k
    for c in rng.standard_normal((200, d)):
        assert kept[np.argsort(-np.abs(V @ c))[:k]].all()


def test_short_rows_are_ruled_out(rng):
    V = rng.standard_normal((40, 2))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    V[20:] *= 1e-3
    assert not selectable(V, 5)[20:].any()


def test_boxes_that_would_be_too_many(rng, monkeypatch):
    V = rng.standard_normal((15, 3)) / 4
    expected = spannogram(V, 4).value
    monkeypatch.setattr(boxes_module, "MAX_ROWS_OF_BOXES", 10)
    assert selectable(V, 4).all()
    task = prepare(V, 4)
    assert task.free.all()
    assert enumerate_supports(task).value == pytest.approx(expected, rel=1e-11)


def test_a_climb_never_falls(rng):
    V = rng.standard_normal((30, 3))
    first = starts(3)
    value, c = ascend(V, first, 6)
    best = np.maximum(np.sort(first @ V.T, axis=1)[:, -6:], 0)
    assert value >= np.sum(best**2, axis=1).max()
    assert np.linalg.norm(c) == pytest.approx(1)
