"""Paths over budgets, and paths over k and stability under rules."""

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

import kspan.progress
from kspan import Panel, as_covariance, budget_path, selection_stability, sparsity_path, verify
from kspan.choosing_k import BudgetPath, budgets
from kspan.progress import Monitor

COSTS = [3.0, 1.0, 2.0, 2.0, 1.0, 2.5, 1.5, 1.0]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    values = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 8))
    return pd.DataFrame(values + rng.standard_normal((40, 8)), columns=list("abcdefgh"))


def best_of(table, m, keeps):
    """The optimum over all sets of features that keep a rule."""
    A = np.cov(table.to_numpy().T)
    every = (S for size in range(m, 9) for S in combinations(range(8), size) if keeps(S))
    return max(np.linalg.eigvalsh(A[np.ix_(S, S)])[-m:].sum() for S in every)


def affordable(budget):
    return lambda S: sum(COSTS[i] for i in S) <= budget


@pytest.mark.parametrize("certify", [False, "fast", True, "exact"])
def test_the_optimum_is_in_the_band(certify, table):
    panel = Panel(costs=COSTS, budget=6.0)
    path = budget_path(table, 2, panel=panel, certify=certify, random_state=0)
    assert path.budget.tolist() == [3.0, 4.5, 5.4, 6.0, pytest.approx(6.6), 7.5, 9.0]
    assert (path.spent <= path.budget).all()
    assert (np.diff(path.objective) >= 0).all()
    assert (np.diff(path.upper) >= 0).all()
    for place, budget in enumerate(path.budget):
        optimum = best_of(table, 2, affordable(budget))
        assert path.objective[place] <= optimum * (1 + 1e-12)
        assert optimum <= path.upper[place]
        chosen = path.supports[place]
        assert path.spent[place] == pytest.approx(sum(COSTS[i] for i in chosen))
    if certify == "exact":
        assert path.gap.max() < 1e-6
        for budget, proof in zip(path.budget, path.certificates, strict=True):
            rules = replace(panel, budget=float(budget))
            verify(rules.problem(as_covariance(table.to_numpy()), 2), proof)
    assert len(path.certificates) == (7 if certify else 0)


def test_with_other_rules_and_a_number(table):
    groups = list("xxxyyyzz")
    panel = Panel(costs=dict(zip(table, COSTS, strict=True)), budget=6.0, groups=groups,
                  max_per_group=1)  # fmt: skip
    path = budget_path(
        table, 1, panel=panel, budgets=[4.0, 50], n_features_to_select=2, include=["b"],
        exclude=["a"], certify="exact", random_state=0,
    )  # fmt: skip
    assert path.budget.tolist() == [4.0, 6.0, 50.0]
    for place, budget in enumerate(path.budget):

        def keeps(S, budget=budget):
            labels = [groups[i] for i in S]
            fine = len(set(labels)) == len(labels) and len(S) <= 2 and 1 in S and 0 not in S
            return fine and affordable(budget)(S)

        optimum = best_of(table, 1, keeps)
        assert path.objective[place] == pytest.approx(optimum)
        assert keeps(path.supports[place].tolist())
    assert path.feature_names == list(table)


def test_gain_places_and_columns(table):
    path = budget_path(table, 2, panel=Panel(costs=COSTS, budget=6.0), random_state=0)
    assert path.asked == 6.0
    assert path.gain(0.1) == pytest.approx(path.objective[4] / path.objective[3] - 1)
    assert path.gain(0.0) == 0
    with pytest.raises(ValueError, match="no budget of 12"):
        path.gain(1.0)
    columns = pd.DataFrame(path.columns())
    assert columns["features"].tolist() == [support.size for support in path.supports]
    assert (columns["share_of_pca"] <= 1).all()
    np.testing.assert_allclose(columns["share_of_pca"], path.objective / path.full)


def test_budgets_that_buy_nothing_are_left_out(table):
    path = budget_path(
        table, 2, panel=Panel(costs=COSTS, budget=6.0), budgets=[0.5, 1.5, 2.0], random_state=0
    )
    assert path.budget.tolist() == [2.0, 6.0]


def test_saved_and_loaded(table, tmp_path):
    path = budget_path(table, 2, panel=Panel(costs=COSTS, budget=6.0), random_state=0)
    path.save(tmp_path / "path.npz")
    again = BudgetPath.load(tmp_path / "path.npz")
    for name, column in path.columns().items():
        np.testing.assert_array_equal(again.columns()[name], column)
    assert (again.status, again.asked, again.full) == (path.status, path.asked, path.full)
    problem = Panel(costs=COSTS, budget=6.0).problem(as_covariance(table.to_numpy()), 2)
    verify(problem, again.certificates[3])
    path.certificates[0].save(tmp_path / "other.npz")
    with pytest.raises(ValueError, match=r"other\.npz"):
        BudgetPath.load(tmp_path / "other.npz")


def test_a_covariance_and_a_matrix(table):
    panel = Panel(costs=COSTS, budget=6.0)
    A = np.cov(table.to_numpy().T)
    found = budget_path(A, 2, panel=panel, covariance="precomputed", random_state=0)
    expected = budget_path(table, 2, panel=panel, random_state=0)
    np.testing.assert_allclose(found.objective, expected.objective)


def test_what_is_refused(table):
    for panel in (Panel(), Panel(max_correlation=0.9)):
        with pytest.raises(ValueError, match="needs a panel with costs and a budget"):
            budget_path(table, 2, panel=panel)
    panel = Panel(costs=COSTS, budget=6.0)
    for wrong in (0.0, -1.0, np.inf, np.nan, "much"):
        with pytest.raises(ValueError, match="every one of budgets must be a positive number"):
            budget_path(table, 2, panel=panel, budgets=[wrong])
    with pytest.raises(ValueError, match="covariance must be None or 'precomputed', got 'given'"):
        budget_path(table, 2, panel=panel, covariance="given")
    with pytest.raises(ValueError, match="costs needs budget"):
        Panel(costs=COSTS).resolved(8, None)
    with pytest.raises(ValueError, match="costs has 8 entries for 13 features"):
        budget_path(load_wine().data, 2, panel=panel)


def test_a_callback_stops_it(table):
    path = budget_path(
        table, 2, panel=Panel(costs=COSTS, budget=6.0), certify=False, random_state=0,
        callback=lambda progress: progress.solver.startswith("budget 4.5"),
    )  # fmt: skip
    assert path.budget.tolist() == [3.0, 4.5]
    assert path.status == "stopped by callback"


def test_every_budget_has_the_same_time(table, monkeypatch):
    """Search and proof of a budget share its part, so that the last proof is not starved."""
    clock = [0.0]
    told = SimpleNamespace(perf_counter=lambda: clock[0], time=lambda: clock[0])
    monkeypatch.setattr(kspan.progress, "time", told)
    found, search, prove = [], budgets.run_method, budgets.prove_point

    def slow_search(problem, method, monitor, rng):
        clock[0] += 2.0
        return search(problem, method, Monitor("no limit"), rng)

    def slow_proof(problem, point, level, monitor, options):
        found.append(monitor.deadline.left)
        clock[0] += monitor.deadline.left
        return prove(problem, point, level, Monitor("no limit"), options)

    monkeypatch.setattr(budgets, "run_method", slow_search)
    monkeypatch.setattr(budgets, "prove_point", slow_proof)
    panel = Panel(costs=COSTS, budget=6.0)
    budget_path(table, 2, panel=panel, budgets=[5.0, 7.0], certify="fast", time_limit=30.0)
    assert found == pytest.approx([8.0, 8.0, 8.0])


# --- rules on a path over k, and in stability


def test_a_path_over_k_under_rules(table):
    groups = list("xxyyyzzz")
    panel = Panel(groups=dict(zip(table, groups, strict=True)), max_per_group=1)
    path = sparsity_path(table, 1, panel=panel, certify="exact", random_state=0)
    assert path.k.tolist() == [1, 2, 3]

    for place, k in enumerate(path.k):

        def keeps(S, k=k):
            return len(S) <= k and len({groups[i] for i in S}) == len(S)

        optimum = best_of(table, 1, keeps)
        assert path.objective[place] <= optimum * (1 + 1e-12)
        assert optimum <= path.upper[place]
        assert keeps(path.supports[place].tolist())


def test_a_path_under_a_budget_ends_where_it_does(table):
    path = sparsity_path(table, 2, panel=Panel(costs=COSTS, budget=4.0), random_state=0)
    assert path.k[-1] == 3
    for place, k in enumerate(path.k):
        optimum = best_of(table, 2, lambda S, k=k: len(S) <= k and affordable(4.0)(S))
        assert path.objective[place] <= optimum * (1 + 1e-12)
        assert optimum <= path.upper[place]


def test_only_shared_features_have_a_panel(table):
    with pytest.raises(ValueError, match="A panel needs estimator='features'"):
        sparsity_path(table, 2, estimator="orthonormal", panel=Panel(max_correlation=0.9))


def test_every_resample_keeps_the_rules(table):
    panel = Panel(groups=list("xxyyyzzz"), max_per_group=1)
    found = selection_stability(table, 2, 3, panel=panel, n_resamples=20, random_state=0)
    # Of each group at most one in every resample: frequencies of a group add up to at most one.
    for label in "xyz":
        own = [f for f, group in zip(found.frequencies, "xxyyyzzz", strict=True) if group == label]
        assert sum(own) <= 1 + 1e-12
    with pytest.raises(ValueError, match="groups has 2 entries"):
        selection_stability(table, 2, 3, panel=Panel(groups=["x", "y"], max_per_group=1))


def test_stability_with_names_and_costs(table):
    panel = Panel(costs=dict(zip(table, COSTS, strict=True)), budget=3.0)
    found = selection_stability(table, 2, 3, panel=panel, n_resamples=10, random_state=0)
    assert float(found.frequencies @ COSTS) <= 3.0 + 1e-12
    again = selection_stability(table, 2, 3, panel=panel, n_resamples=10, random_state=0)
    np.testing.assert_array_equal(found.frequencies, again.frequencies)


def test_features_to_include_may_be_near_the_limit_of_correlation(table):
    """On some resamples two features to include are more correlated than on all rows."""
    near = table.assign(b=table["a"] + 0.6 * table["b"])
    limit = abs(np.corrcoef(near["a"], near["b"])[0, 1]) + 0.002
    panel = Panel(max_correlation=limit)
    found = selection_stability(
        near, 2, 4, panel=panel, include=["a", "b"], n_resamples=15, random_state=0
    )
    assert found.frequencies[:2].tolist() == [1.0, 1.0]
