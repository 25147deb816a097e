"""Everything that is asked of a `RuledChoice`, against all supports that keep the rules."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan.problem import RuledChoice
from tests.effort import examples
from tests.ruled import choice_of, keeps, rules, supports


def listed(choice, names=None, **batch):
    """The supports that a choice lists; when all features go together, that one alone."""
    found = [row for rows in choice.supports(**batch) for row in rows]
    found = found if names is None else [names[row] for row in found]
    return sorted(tuple(row.tolist()) for row in found)


def as_listed(every):
    """What should be listed."""
    rows = sorted(tuple(S.tolist()) for S in every)
    largest = max(rows, key=len, default=())
    return [largest] if rows and all(set(row) <= set(largest) for row in rows) else rows


def some_scores(d, seed, least=0.0):
    return np.random.default_rng(seed).integers(0, 5, d) / 4 + least


@examples(400)
@given(st.integers(1, 3).flatmap(lambda least: rules(least=least)), st.integers(0, 99))
def test_choices_bounds_and_losses(asked, seed):
    d, every = asked["n_features"], supports(asked)
    choice = choice_of(asked)
    assert (choice is None) == (not every)
    if choice is None:
        return
    scores = some_scores(d, seed)
    best = max(scores[S].sum() for S in every)
    chosen = choice.select(scores)
    assert keeps(asked, chosen.tolist())
    assert choice.objection(chosen) is None
    assert best <= choice.best_sum(scores)
    assert choice.size == min(choice.asked, choice.size) >= max(len(S) for S in every)
    exact = choice._exactly(scores)
    assert scores[exact].sum() == pytest.approx(best)
    put_in, left_out = choice.losses(scores)
    for i in range(d):
        with_it = [scores[S].sum() for S in every if i in S]
        without = [scores[S].sum() for S in every if i not in S]
        for loss, sums in ((put_in[i], with_it), (left_out[i], without)):
            assert loss >= 0
            if sums and not choice.forced[i] and choice.allowed[i]:
                assert max(sums) <= choice.best_sum(scores) - loss + 1e-12
        if with_it:
            assert choice.allowed[i]
        if not without:
            continue
        assert not choice.forced[i]


@examples(200)
@given(rules(), st.integers(0, 99))
def test_the_best_sums_are_of_supports_that_keep_the_rules(asked, seed):
    choice = choice_of(asked)
    if choice is None:
        return
    scores = np.array([some_scores(asked["n_features"], seed + i) for i in range(3)])
    every = supports(asked)
    for row, found in zip(scores, choice.best_sums(scores), strict=True):
        sums = [row[S].sum() for S in every]
        assert found in sums
        assert found == row[choice.select(row)].sum() <= max(sums) <= choice.best_sum(row)


@examples(300)
@given(rules(), st.data())
def test_all_supports_and_objections(asked, data):
    choice, every = choice_of(asked), supports(asked)
    if choice is None:
        return
    found = listed(choice, batch=3)
    assert len(found) == len(set(found)) <= choice.n_supports
    assert found == as_listed(every)
    d = asked["n_features"]
    some = data.draw(st.lists(st.integers(0, d - 1), min_size=1, unique=True))
    support = np.sort(np.array(some))
    assert (choice.objection(support) is None) == keeps(asked, some)


@examples(300)
@given(rules(), st.data())
def test_smaller_choices(asked, data):
    choice, every = choice_of(asked), supports(asked)
    if choice is None:
        return
    d = asked["n_features"]
    feature = data.draw(st.integers(0, d - 1))
    for fixed in (True, False):
        half = choice.settled([feature] if fixed else [], [] if fixed else [feature])
        left = [S for S in every if (feature in S) == fixed]
        if half.is_empty:
            assert not left
            continue
        assert listed(half) == as_listed(left)
    some = data.draw(st.lists(st.integers(0, d - 1), min_size=1, unique=True))
    if not set(choice.include.tolist()) <= set(some):
        return
    features = np.sort(np.array(some))
    left = [S for S in every if set(S.tolist()) <= set(some)]
    for smaller, numbers in (
        (choice.on(features), features),
        (choice.within(features), np.arange(d)),
    ):
        assert listed(smaller, numbers) == as_listed(left)
    size = data.draw(st.integers(1, d))
    resized = choice.resized(size)
    assert listed(resized) == as_listed(supports(asked | {"size": size}))


@examples(200)
@given(rules(), st.integers(0, 99))
def test_neighbours_keep_the_rules(asked, seed):
    choice = choice_of(asked)
    if choice is None:
        return
    rng = np.random.default_rng(seed)
    support = choice.select(rng.random(asked["n_features"]))
    for _ in range(3):
        support = choice.exchange(support, rng, np.ones(asked["n_features"], dtype=bool))
        assert keeps(asked, support.tolist())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"include": [0, 1, 2], "costs": [4.0] * 6, "budget": 10.0},
            "the 3 features of include cost 12, more than the budget of 10",
        ),
        (
            {"include": [0, 1], "groups": list("aabbcc"), "max_per_group": 1},
            "include names more than 1 features of group 'a'",
        ),
        ({"include": [0, 1], "conflicts": np.array([[0, 1]])}, "more correlated than max_corr"),
        (
            {"include": [0], "exclude": [1], "groups": list("aabbcc"), "together": True},
            "include and exclude name features of one group",
        ),
        (
            {"include": [0, 2], "groups": list("aabbcc"), "together": True, "n_groups": 1},
            "of more groups than n_groups=1",
        ),
        ({"costs": [4.0] * 6, "budget": 10.0, "least": 3}, "at most 2 can be chosen together"),
        ({"groups": list("ab"), "max_per_group": 1}, "groups has 2 labels for 6 features"),
        ({"groups": list("aabbcc"), "max_per_group": {"x": 1}}, "names 'x', and no feature is"),
    ],
)
def test_what_cannot_be_is_named(given, words):
    with pytest.raises(ValueError, match=words):
        RuledChoice.of(6, 4, **given)


def test_a_sum_of_costs_that_is_above_the_budget_by_rounding_is_not_above():
    choice = RuledChoice.of(3, costs=[0.1, 0.2, 5.0], budget=0.3)
    assert choice.select(np.ones(3)).tolist() == [0, 1]


def test_the_size_is_what_the_rules_leave():
    assert RuledChoice.of(9, costs=[1.0] * 9, budget=4.0).size == 4
    assert RuledChoice.of(9, 7, groups=list("aaabbbccc"), max_per_group=1).size == 3
    pairs = np.array([[i, j] for i in range(6) for j in range(i)])
    assert RuledChoice.of(9, 7, conflicts=pairs).size == 4
