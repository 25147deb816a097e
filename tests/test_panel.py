"""Rules as people write them: what is understood, what is refused, what estimators do with it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from kspan import FeatureSparsePCA, FeatureSparseSelector, Panel, as_covariance, verify
from kspan.problem import RuledChoice

NAMES = ["a", "b", "c", "d", "e", "f"]


@pytest.fixture
def table():
    """Six features; b is nearly a."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((60, 6)) * [3.0, 3.0, 2.5, 2.0, 1.5, 1.0]
    values[:, 1] = values[:, 0] + 0.01 * rng.standard_normal(60)
    return pd.DataFrame(values, columns=NAMES)


# --- what is refused

LABELS = list("xxyyzz")
REFUSED = [
    ({"group_rule": "apart", "groups": LABELS}, "must be None or 'together', got 'apart'"),
    ({"group_rule": "together"}, "group_rule needs groups"),
    ({"max_per_group": 1}, "max_per_group needs groups"),
    ({"costs": [1.0] * 6}, "costs needs budget"),
    ({"budget": 1.0}, "budget needs costs"),
    ({"groups": LABELS}, "groups needs group_rule='together' or max_per_group"),
    ({"groups": LABELS, "group_rule": "together", "max_per_group": 1},
     "max_per_group does not go with group_rule='together'"),
    ({"groups": LABELS, "max_per_group": 1, "n_groups": 2}, "n_groups needs group_rule='together'"),
    ({"groups": LABELS, "group_rule": "together", "n_groups": 0},
     "n_groups must be a whole number, 1 or more, got 0"),
    ({"groups": LABELS, "max_per_group": 1.5}, "max_per_group must be a whole number.*got 1.5"),
    ({"groups": LABELS, "max_per_group": {"x": 0}}, r"max_per_group\['x'\] must be a whole number"),
    ({"groups": LABELS, "max_per_group": {"w": 1}}, "max_per_group names 'w', and no feature"),
    ({"costs": [1.0] * 6, "budget": 0.0}, "budget must be a positive number, got 0.0"),
    ({"costs": [1.0] * 6, "budget": np.inf}, "budget must be a positive number, got inf"),
    ({"costs": [1.0] * 6, "budget": True}, "budget must be a positive number, got True"),
    ({"costs": [1.0] * 6, "budget": "much"}, "budget must be a positive number, got 'much'"),
    ({"max_correlation": 1.5}, "max_correlation must be above 0 and at most 1, got 1.5"),
    ({"max_correlation": np.nan}, "max_correlation must be above 0 and at most 1, got nan"),
    ({"groups": LABELS[:5], "max_per_group": 1}, "groups has 5 entries for 6 features"),
    ({"costs": [1.0] * 7, "budget": 1.0}, "costs has 7 entries for 6 features"),
    ({"costs": [1.0] * 5 + ["dear"], "budget": 1.0}, "costs must be numbers"),
    ({"costs": [1.0] * 5 + [-1.0], "budget": 1.0}, "zero or more; feature 'f' costs -1.0"),
    ({"costs": [1.0, np.nan] + [1.0] * 4, "budget": 1.0}, "zero or more; feature 'b' costs nan"),
    ({"costs": {"a": 1.0, "q": 2.0}, "budget": 1.0}, "costs names 'q', which is not a feature"),
    ({"costs": dict.fromkeys("abcde", 1.0), "budget": 1.0}, "costs has nothing for feature 'f'"),
    ({"costs": {"a": 1.0}, "budget": 1.0}, "nothing for feature 'b' and 4 other features"),
    ({"groups": {"a": "x"}, "max_per_group": 1}, "groups has nothing for feature 'b' and 4 other"),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "message"), REFUSED)
def test_every_refusal_says_what_is_wrong(rules, message, table):
    covariance = as_covariance(table.to_numpy())
    with pytest.raises(ValueError, match=message):
        Panel(**rules).problem(covariance, 1, 3, names=NAMES)


def test_rules_by_name_need_names(table):
    for rules in ({"costs": dict.fromkeys(NAMES, 1.0), "budget": 2.0},
                  {"groups": dict.fromkeys(NAMES, "x"), "max_per_group": 1}):  # fmt: skip
        with pytest.raises(ValueError, match="names features, but the data has no feature names"):
            FeatureSparsePCA(1, 3, **rules).fit(table.to_numpy())


def test_without_names_a_wrong_price_is_named_by_its_place():
    with pytest.raises(ValueError, match="feature 2 costs -3"):
        Panel(costs=[1, 2, -3], budget=4).resolved(3, None)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"costs": [3.0] * 6, "budget": 5.0}, "no choice of 2 features or more.*at most 1"),
        ({"costs": [3.0] * 6, "budget": 7.0, "include": ["a", "c", "d"]},
         "the 3 features of include cost 9, more than the budget of 7"),
        ({"groups": LABELS, "max_per_group": 1, "include": ["a", "b"]},
         "include names more than 1 features of group 'x'"),
        ({"groups": LABELS, "group_rule": "together", "n_groups": 1, "include": ["a", "c"]},
         "of more groups than n_groups=1"),
        ({"groups": LABELS, "group_rule": "together", "include": ["a"], "exclude": ["b"]},
         "features of one group, which go together"),
        ({"max_correlation": 0.9, "include": ["a", "b"]},
         "include names features 'a' and 'b', which are more correlated than max_correlation"),
    ],
)  # fmt: skip
def test_rules_that_leave_nothing_say_why(rules, message, table):
    with pytest.raises(ValueError, match=message):
        FeatureSparsePCA(2, 4, **rules).fit(table)


# --- what is understood


def test_labels_in_order_by_name_and_missing():
    in_order = Panel(groups=["x", None, np.nan, "", 1, np.str_("x")], max_per_group=1)
    expected = ["x", None, None, None, "1", "x"]
    assert in_order.resolved(6, None).groups == expected
    by_name = dict(zip(reversed(NAMES), reversed(in_order.groups), strict=True))
    assert Panel(groups=by_name, max_per_group=1).resolved(6, NAMES).groups == expected
    as_array = Panel(groups=np.array([0, 0, 1, 1, 2, 2]), max_per_group={0: 2, "1": 1})
    found = as_array.resolved(6, None)
    assert found.groups == list("001122")
    assert found.max_per_group == {"0": 2, "1": 1}
    series = pd.Series(["x", np.nan, "y"])
    assert Panel(groups=series, max_per_group=1).resolved(3, None).groups == ["x", None, "y"]


def test_what_pandas_makes_of_labels():
    """NA, and whole numbers that became floats among missing ones."""
    text = pd.Series(["x", pd.NA, "y"], dtype="string")
    assert Panel(groups=text, max_per_group=1).resolved(3, None).groups == ["x", None, "y"]
    numbers = Panel(groups=pd.Series([1, np.nan, 2]), max_per_group={1: 2}).resolved(3, None)
    assert numbers.groups == ["1", None, "2"]
    assert numbers.max_per_group == {"1": 2}


def test_a_series_with_names_is_by_name(table):
    """Its order is not that of the features."""
    prices = pd.Series([1, 1, 1, 1, 9, 9], index=list("fedcba"))
    pca = FeatureSparsePCA(1, costs=prices, budget=3, random_state=0).fit(table)
    assert prices[pca.selected_features_].sum() <= 3
    for names in (NAMES, None):
        found = Panel(costs=pd.Series([1, 1, 1, 1, 9, 9]), budget=3).resolved(6, names).costs
        np.testing.assert_array_equal(found, [1, 1, 1, 1, 9, 9])
    with pytest.raises(ValueError, match="costs names 'q', which is not a feature"):
        Panel(costs=prices.rename({"a": "q"}), budget=3).resolved(6, NAMES)


def test_features_without_a_label_have_no_limit(table):
    """NaN is not a group of its own."""
    groups = ["x", "x", np.nan, np.nan, None, ""]
    pca = FeatureSparsePCA(1, 6, groups=groups, max_per_group=1).fit(table)
    assert set("cdef") <= set(pca.selected_features_)
    assert len(pca.selected_features_) == 5


def test_costs_by_name_and_resolved_again():
    costs = dict(zip(reversed(NAMES), range(6), strict=True))
    once = Panel(costs=costs, budget=3).resolved(6, NAMES)
    np.testing.assert_array_equal(once.costs, [5, 4, 3, 2, 1, 0])
    np.testing.assert_array_equal(once.resolved(6, None).costs, once.costs)


def test_of_an_estimator_and_of_a_mapping():
    pca = FeatureSparsePCA(costs=[1.0, 2.0], budget=2.0)
    for found in (Panel.of(pca), Panel.of({"costs": [1.0, 2.0], "budget": 2.0, "other": 1})):
        assert (found.costs, found.budget, found.groups) == ([1.0, 2.0], 2.0, None)
    assert Panel().is_plain
    assert not Panel(max_correlation=0.9).is_plain
    assert [name for name in Panel.names() if not hasattr(pca, name)] == []


def test_a_plain_panel_is_a_plain_problem(table):
    covariance = as_covariance(table.to_numpy())
    problem = Panel().problem(covariance, 2, 3, include=[1], exclude=[0])
    assert not isinstance(problem.choice, RuledChoice)
    assert Panel().problem(covariance, 2, exclude=[0]).n_features_to_select == 5


# --- estimators


@pytest.mark.parametrize("estimator", [FeatureSparsePCA, FeatureSparseSelector])
@pytest.mark.parametrize(
    ("rules", "best"),
    [
        ({"groups": dict(zip(NAMES, "xxyyzz", strict=True)), "max_per_group": 1}, "ace|bce"),
        ({"groups": LABELS, "max_per_group": {"x": 1}}, "acd|bcd"),
        ({"groups": LABELS, "group_rule": "together"}, "ab"),
        ({"costs": dict(zip(NAMES, [9, 1, 1, 1, 1, 1], strict=True)), "budget": 3}, "bcd"),
        ({"max_correlation": 0.95}, "acd|bcd"),
    ],
)  # fmt: skip
def test_each_rule_on_a_table(estimator, rules, best, table):
    """The best of all choices that keep it, with a proof that can be checked."""
    model = estimator(2, 3, **rules, certify="exact", random_state=0).fit(table)
    assert "".join(sorted(model.get_feature_names_out() if estimator is FeatureSparseSelector
                          else model.selected_features_)) in best.split("|")  # fmt: skip
    assert model.certificate_.status.value == "optimal"
    chosen = model.get_support(indices=True)
    assert model.certificate_.choice.objection(chosen) is None
    covariance = as_covariance(table.to_numpy())
    verify(Panel(**rules).problem(covariance, 2, 3, names=NAMES), model.certificate_)


def test_a_budget_needs_no_number(table):
    costs = [9, 1, 1, 1, 1, 1]
    pca = FeatureSparsePCA(2, costs=costs, budget=4.0, certify="exact", random_state=0).fit(table)
    assert list(pca.selected_features_) == ["b", "c", "d", "e"]
    groups = FeatureSparsePCA(1, groups=LABELS, group_rule="together", n_groups=2).fit(table)
    assert list(groups.selected_features_) == list("abcd")


def test_without_a_number_the_fewest_that_keep_a_share(table):
    pca = FeatureSparsePCA(
        1, explained_share=0.4, max_correlation=0.95, scale=False, random_state=0
    ).fit(table)
    assert len(pca.selected_features_) == 1


def test_rules_that_cannot_keep_the_share_warn(table):
    with pytest.warns(UserWarning, match="less than explained_share=0.99"):
        FeatureSparsePCA(2, explained_share=0.99, groups=["x"] * 6, max_per_group=2).fit(table)


def test_parameters_can_be_read_set_and_cloned(table):
    rules = {
        "groups": LABELS, "group_rule": None, "n_groups": None, "max_per_group": {"x": 1},
        "costs": [1.0] * 6, "budget": 2.0, "max_correlation": 0.9,
    }  # fmt: skip
    pca = FeatureSparsePCA(2, 3, **rules)
    assert {name: pca.get_params()[name] for name in rules} == rules
    assert set(rules) == set(Panel.names())
    copy = clone(pca)
    assert {name: copy.get_params()[name] for name in rules} == rules
    copy.fit(table)
    assert copy.get_params()["groups"] == LABELS  # fitting leaves what was given alone
    copy.set_params(budget=3.0, groups=None, max_per_group=None)
    assert len(copy.fit(table).selected_features_) == 3


@pytest.mark.parametrize("rules", [{"group_rule": "apart"}, {"budget": -1}, {"max_correlation": 2}])
def test_parameters_are_checked_as_others_are(rules, table):
    with pytest.raises(ValueError, match=f"The '{next(iter(rules))}' parameter"):
        FeatureSparsePCA(2, 3, **rules).fit(table)


# --- near copies


def copies():
    """Three features that are the same but for a little noise, and three others."""
    rng = np.random.default_rng(1)
    values = rng.standard_normal((80, 6))
    values[:, :3] = 5 * values[:, :1] + 0.01 * rng.standard_normal((80, 3))
    return values


def test_near_copies_are_told_with_numbers_and_the_remedy():
    with pytest.warns(UserWarning, match="near copies") as caught:
        FeatureSparsePCA(1, 3, random_state=0).fit(copies())
    text = str(caught[0].message)
    largest = np.abs(np.tril(np.corrcoef(copies()[:, :3].T), -1)).max()
    assert text.startswith("2 of the 3 chosen features are near copies of another one")
    assert f"above 0.99, up to {largest:.4f}" in text
    assert text.endswith("max_correlation=0.95 leaves them out.")
    assert caught[0].filename == __file__


def test_no_warning_when_the_remedy_is_taken_or_nothing_is_copied():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pca = FeatureSparsePCA(1, 3, max_correlation=0.95, random_state=0).fit(copies())
        FeatureSparsePCA(1, 3, exclude=[0, 1], random_state=0).fit(copies())
    assert np.count_nonzero(pca.get_support()[:3]) == 1
