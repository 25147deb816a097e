"""Everything that is asked of a `Choice`, against the enumeration of all supports."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan.problem import Choice
from tests.effort import examples


@st.composite
def choices(draw):
    d = draw(st.integers(1, 7))
    state = draw(st.lists(st.sampled_from(["free", "forced", "out"]), min_size=d, max_size=d))
    forced = np.array([s == "forced" for s in state])
    allowed = np.array([s != "out" for s in state])
    at_most = draw(st.booleans())
    size = draw(st.integers(max(1, int(forced.sum())), d))
    return Choice(size, forced, allowed, at_most)


def supports(choice):
    """All feasible supports, by the definition."""
    d, sizes = choice.n_features, [choice.size]
    if choice.at_most:
        sizes = range(1, choice.size + 1)
    return [
        np.array(S)
        for size in sizes
        for S in combinations(range(d), size)
        if set(np.flatnonzero(choice.forced)) <= set(S) <= set(np.flatnonzero(choice.allowed))
    ]


def some_scores(choice, seed, least=0.0):
    # Few different values, so that there are ties.
    rng = np.random.default_rng(seed)
    return rng.integers(0, 5, choice.n_features) / 4 + least


@examples(250)
@given(choices(), st.integers(0, 99))
def test_the_best_support_and_its_sum(choice, seed):
    scores = some_scores(choice, seed)
    every = supports(choice)
    assert choice.is_empty == (not every) or (choice.at_most and not choice.allowed.any())
    if not every:
        return
    best = max(scores[S].sum() for S in every)
    chosen = choice.select(scores)
    assert choice.objection(chosen) is None
    assert scores[chosen].sum() == best
    assert best <= choice.best_sum(scores) <= best + 1e-12


@examples(250)
@given(choices(), st.integers(0, 99), st.integers(0, 4))
def test_the_best_sums_of_many_rows(choice, seed, n_rows):
    scores = np.array([some_scores(choice, seed + i) for i in range(n_rows)])
    scores = scores.reshape(n_rows, choice.n_features)
    every = supports(choice)
    if not every:
        return
    kept = scores.copy()
    sums = choice.best_sums(scores)
    assert sums.shape == (n_rows,)
    np.testing.assert_array_equal(scores, kept)
    for row, found in zip(scores, sums, strict=True):
        assert found == max(row[S].sum() for S in every)  # quarters are added up exactly
        assert found <= choice.best_sum(row) <= found + 1e-12


@examples(250)
@given(choices(), st.integers(0, 99))
def test_negative_scores_need_not_be_taken_when_fewer_may_be(choice, seed):
    scores = some_scores(choice, seed, least=-0.6)
    every = supports(choice)
    if not every:
        return
    best = max(scores[S].sum() for S in every)
    assert best <= choice.best_sum(scores) + 1e-15


@examples(250)
@given(choices(), st.integers(0, 99))
def test_losses_are_never_more_than_what_is_lost(choice, seed):
    scores = some_scores(choice, seed)
    every = supports(choice)
    if not every:
        return
    best = max(scores[S].sum() for S in every)
    put_in, left_out = choice.losses(scores)
    for i in range(choice.n_features):
        with_it = [scores[S].sum() for S in every if i in S]
        without = [scores[S].sum() for S in every if i not in S]
        if with_it:
            assert max(with_it) <= best - put_in[i] + 1e-12
        if without:
            assert max(without) <= best - left_out[i] + 1e-12


def test_losses_of_a_plain_choice_are_exact():
    put_in, left_out = Choice.of(4, 2).losses(np.array([4.0, 3.0, 2.0, 0.0]))
    assert put_in.tolist() == [0.0, 0.0, 1.0, 3.0]
    assert left_out.tolist() == [2.0, 1.0, 0.0, 0.0]


@examples(250)
@given(choices())
def test_all_supports_are_enumerated_once(choice):
    every = supports(choice)
    found = [row for rows in choice.supports(batch=3) for row in rows]
    largest = max((len(S) for S in every), default=0)
    wanted = {S.tobytes() for S in every if len(S) == largest}
    assert {np.asarray(S).tobytes() for S in found if len(S)} == wanted
    assert len(found) == choice.n_supports or (choice.at_most and largest == 0)


@examples(250)
@given(choices(), st.integers(0, 99))
def test_objections(choice, seed):
    rng = np.random.default_rng(seed)
    S = np.flatnonzero(rng.integers(0, 2, choice.n_features))
    feasible = {S.tobytes() for S in supports(choice)}
    assert (choice.objection(S) is None) == (S.tobytes() in feasible)


@examples(250)
@given(choices(), st.integers(0, 99))
def test_smaller_choices(choice, seed):
    rng = np.random.default_rng(seed)
    every = supports(choice)
    feature = int(rng.integers(choice.n_features))
    if choice.allowed[feature]:
        inside = choice.settled(fixed=[feature])
        assert len(supports(inside)) == sum(feature in S for S in every)
    if not choice.forced[feature]:
        outside = choice.settled(removed=[feature])
        assert len(supports(outside)) == sum(feature not in S for S in every)
    kept = np.flatnonzero(choice.forced | (rng.random(choice.n_features) < 0.6))
    within, renamed = choice.within(kept), choice.on(kept)
    wanted = [S for S in every if np.isin(S, kept).all()]
    assert [S.tolist() for S in supports(within)] == [S.tolist() for S in wanted]
    assert [kept[S].tolist() for S in supports(renamed)] == [S.tolist() for S in wanted]


@examples(250)
@given(choices(), st.integers(0, 99))
def test_neighbours_are_feasible(choice, seed):
    rng = np.random.default_rng(seed)
    every = supports(choice)
    if not every:
        return
    S = every[int(rng.integers(len(every)))]
    usable = rng.random(choice.n_features) < 0.8
    moved = choice.exchange(S, rng, usable)
    assert choice.objection(moved) is None
    assert usable[np.setdiff1d(moved, S)].all()
    assert moved.size == S.size
    for place in choice.leaving(S):
        for feature in np.flatnonzero(choice.coming(S)):
            swapped = np.sort(np.append(np.delete(S, place), feature))
            assert choice.objection(swapped) is None


def test_a_third_of_the_features_is_exchanged(rng):
    choice = Choice.of(100, 30, include=range(6))
    S = np.arange(30)
    moved = choice.exchange(S, rng, np.ones(100, dtype=bool))
    assert np.intersect1d(S, moved).size == 30 - 24 // 3


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (Choice.of(5, 2, [1], [3]), True),
        (Choice.of(5, 3, [1], [3]), False),
        (Choice.of(5, 2, [2], [3]), False),
        (Choice.of(5, 2, [1], [4]), False),
        (Choice.of(5, 2, [1], [3], at_most=True), False),
        (Choice.of(6, 2, [1], [3]), False),
    ],
)
def test_the_same_choice(other, same):
    assert Choice.of(5, 2, [1], [3]).same_as(other) == same


def test_forced_features_are_chosen_whatever_their_score():
    choice = Choice.of(5, 3, include=[0, 4], exclude=[2])
    assert choice.select(np.array([0.0, 1.0, 9.0, 2.0, 0.0])).tolist() == [0, 3, 4]
