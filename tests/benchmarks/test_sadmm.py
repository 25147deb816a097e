"""The reproduction of the SADMM paper: what the committed results claim, and a small rerun."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from benchmarks.papers.sadmm import cost, figures12, figures567, noise, starts, table2
from benchmarks.papers.sadmm import pages as sadmm_pages
from benchmarks.papers.sadmm.data import LARGE, REAL, factor_data, synthetic
from benchmarks.papers.sadmm.methods import AUTO, DEFLATION, METHODS, SVD_STARTS
from benchmarks.papers.sadmm.scores import measures, objective, plain_pca, recovery_error, total

HERE = Path(table2.__file__).parent
HERE_TOO = tuple(name for name in METHODS if find_spec("pymanopt") or "Manopt" not in name)


def committed(name):
    return json.loads((HERE / f"{name}.json").read_text())


# --- data and measures


def test_the_synthetic_data_have_the_covariance_of_the_paper():
    X, V = synthetic(20000, 30, noise=3.0)
    found = X.T @ X / len(X)
    wanted = np.eye(30) + 399 * np.outer(V[:, 0], V[:, 0]) + 299 * np.outer(V[:, 1], V[:, 1])
    wanted[20:, 20:] *= 9
    assert np.abs(found - wanted).max() < 1.5
    np.testing.assert_allclose(V.T @ V, np.eye(2), atol=1e-12)


def test_measures_are_what_they_say():
    X = factor_data(30, 40)
    centred = X - X.mean(axis=0)
    V = np.zeros((40, 2))
    V[:3, 0] = V[2:5, 1] = 1 / np.sqrt(3)
    found = measures(X, V)
    assert found["raw"] == pytest.approx(np.linalg.norm(centred @ V) ** 2)
    first, second = (centred @ V).T
    rest = second - first * (first @ second) / (first @ first)
    assert found["adjusted"] == pytest.approx(first @ first + rest @ rest)
    projector = V @ np.linalg.pinv(V)
    assert found["span"] == pytest.approx(np.linalg.norm(centred @ projector) ** 2)
    assert (found["features"], found["in each"]) == (5, [3, 3])
    assert total(scipy.sparse.csr_matrix(X)) == pytest.approx(total(X))
    best = np.linalg.svd(centred)[1]
    assert plain_pca(X, 2) == pytest.approx(np.sum(best[:2] ** 2))
    assert plain_pca(scipy.sparse.csr_matrix(X), 2) == pytest.approx(np.sum(best[:2] ** 2))
    Q = np.linalg.qr(V)[0]
    values = objective(X, Q, 0.7)
    wanted = 0.5 * np.linalg.norm(centred - centred @ Q @ Q.T) ** 2 / 29 + 0.7 * np.abs(Q).sum()
    assert values["(2)"] == pytest.approx(wanted)
    assert values["(2)"] - values["(4)"] == pytest.approx(0.5 * total(X) / 29)
    P = Q @ Q.T - np.eye(40, 2) @ np.eye(40, 2).T
    assert recovery_error(V, np.eye(40, 2)) == pytest.approx(np.sum(P**2))


@pytest.mark.parametrize("name", HERE_TOO)
def test_every_method_gives_the_number_of_features_it_is_asked_for(name):
    X, truth = synthetic(60, 80)
    V = METHODS[name](X, 2, 10).loadings
    wanted = {"K=k": [10, 10], "K=rk": [20, 20]}.get(name.split(", ")[-1], [10, 10])
    assert measures(X, V)["in each"] == wanted
    assert np.linalg.norm(V, axis=0) == pytest.approx(np.ones(2))
    if not name.startswith("Manopt") and not name.endswith("K=k"):
        assert recovery_error(V, truth) < 0.05


# --- Table 2


def test_table_2_is_complete():
    sets = committed("table2")["sets"]
    assert set(sets) == set(table2.SETS)
    for result in sets.values():
        assert set(result["methods"]) == set(METHODS)
        for name, row in result["methods"].items():
            assert row["span"] <= result["plain PCA"] * (1 + 1e-9), name
            in_all = 3 * result["k"]
            assert row["features"] <= in_all
            if name.startswith(("StSPCA-2S", "row-sparse")) or name in ("StSPCA", *AUTO):
                assert row["orthogonality error"] < 1e-10
            if name.split(", ")[-1] not in ("K=rk",):
                assert row["in each"] == [result["k"]] * 3


def test_on_as_many_features_in_all_row_sparse_auto_is_best():
    for label, result in committed("table2")["sets"].items():
        values = {name: row["span"] for name, row in result["methods"].items()}
        auto = values["row-sparse auto, K=rk"]
        for name, value in values.items():
            assert value <= auto * (1 + 1e-9), (label, name)
        assert values["StSPCA-2S, K=k"] <= values["row-sparse auto, K=k"] * (1 + 1e-9)


@pytest.mark.parametrize("name", REAL)
def test_two_stage_is_at_least_the_joint_method(name):
    """With as many features in all as the joint method may have, each component on all of them."""
    result = committed("table2")["sets"][name]
    for measure in ("span", "adjusted", "raw"):
        assert table2.claims(result, measure)["StSPCA-2S, K=rk ≥ StSPCA"] == []


def test_nothing_is_above_its_bound():
    for label, result in committed("table2")["sets"].items():
        for name, row in result["methods"].items():
            for measure in ("span", "raw"):
                below = table2.to_bound(row, result["bound"], measure)
                assert below is None or below >= -1e-9, (label, name, measure)


@pytest.mark.parametrize("name", REAL)
def test_where_the_joint_method_is_ahead_of_each_deflation_method(name):
    values = {k: v["span"] for k, v in committed("table2")["sets"][name]["methods"].items()}
    ahead = all(values[method] <= values["StSPCA"] for method in table2.ONE_BY_ONE)
    assert ahead == (name in ("prostate", "dlbcl"))
    behind = max(values[method] for method in table2.ONE_BY_ONE) / values["StSPCA"] - 1
    assert behind <= {"colon": 0.05, "leukemia": 0.01, "duke": 0.13}.get(name, 0.0)


@pytest.mark.parametrize("name", REAL)
def test_auto_explains_the_most_of_methods_with_as_many_features_each(name):
    rows = committed("table2")["sets"][name]["methods"]
    best = max(row["span"] for row in rows.values() if max(row["in each"]) <= table2.K)
    assert rows["orthonormal auto"]["span"] >= best * (1 - 1e-3)


def test_what_the_page_says_of_the_bounds():
    for name, result in sadmm_pages.sets().items():
        below = {
            method: table2.to_bound(row, result["bound"], "span")
            for method, row in result["methods"].items()
        }
        if name != "duke":
            assert below["row-sparse auto, K=rk"] <= 0.023
            assert below["StSPCA-2S, K=rk"] <= 0.031


def test_the_two_stage_numbers_of_the_paper_are_of_50_features_in_all():
    """On the sets as LIBSVM has them ours are some 5% above, for each sample: duke has 42 there."""
    paper = json.loads((HERE / "paper.json").read_text())["table2"]["StSPCA-2S"]
    for name, samples in (("colon", 1.0), ("duke", 48 / 41), ("leukemia", 1.0)):
        row = committed("table2")["sets"][f"{name}, normalised"]["methods"]["StSPCA-2S, K=k"]
        assert 1.04 < row["raw"] / (samples * paper[name]) < 1.06


@pytest.mark.slow
def test_a_small_table_2():
    X = factor_data(30, 60, seed=3)
    result = table2.one_set(X, 3, 5, names=HERE_TOO)
    claims = table2.claims(result)
    assert set(claims) >= {"StSPCA ≥ each deflation method"}
    values = {name: row["span"] for name, row in result["methods"].items()}
    assert max(values.values()) == pytest.approx(values["row-sparse auto, K=rk"])
    if len(HERE_TOO) == len(METHODS):
        page = table2.markdown({"seconds": 1.0, "sets": {"colon": result}}, {"StSPCA-2S": {}})
        assert "StSPCA ≥ each deflation method" in page


# --- Figures 1 and 2


def test_the_defaults_are_near_the_best_of_the_grid():
    sets = committed("figures12")["sets"]
    assert set(sets) == set(figures12.SETS)
    for name, runs in sets.items():
        assert [one["share"] for one in runs] == list(figures12.SHARES)
        for one in runs:
            assert len(one["SADMM"]) == len(one["ADMM"]) ** 2 == len(figures12.GRID) ** 2
            found = figures12.summary(one, "(2)")
            assert found["defaults"] <= figures12.WITHIN, (name, one["share"])
            # Without the constant ½‖X‖² too, but for one case with few features.
            if (name, one["share"]) != ("colon", 0.2):
                assert figures12.summary(one, "(4)")["defaults"] <= figures12.WITHIN


def test_a_small_grid():
    X = synthetic(60, 80)[0]
    one = figures12.one_lambda(X, 2, 0.05, grid=(0.1, 10.0), histories=True)
    for which in ("(2)", "(4)"):
        assert figures12.summary(one, which)["defaults"] <= figures12.WITHIN
    assert "| synthetic | 0.05 |" in figures12.markdown(
        {"init": "svd", "sets": {"synthetic": [one]}}
    )


# --- Figures 3 and 4


def test_two_stage_recovers_up_to_a_factor_of_six():
    sizes = committed("noise")["sizes"]
    for part in sizes.values():
        for ours in noise.TWO_STAGE:
            assert noise.excess(part["rows"], ours, noise.BASELINES) < noise.CLOSE
            assert noise.excess(part["rows"], ours, SVD_STARTS) < noise.CLOSE
    errors = noise.mean_errors(sizes["100x1000"]["rows"])
    assert {factor for factor, _ in errors} == set(range(1, 13))
    for name in noise.NAMES:
        if name.startswith(("StSPCA", "row")):
            assert all(errors[factor, name] < noise.CLOSE for factor in range(1, 7))
    # From their authors' starts the baselines end in noise there; from the SVD they do not.
    for name in ("GPower-l0", "GPower-l1", "TPower", "IPM"):
        assert errors[6, name] > 2
    for name in ("GPower-l0, svd start", "GPower-l1, svd start", "TPower, svd start"):
        assert errors[6, name] < noise.CLOSE


@pytest.mark.slow
def test_a_small_noise_experiment():
    names = ("TPower", "GPower-l0-B", "StSPCA", *noise.TWO_STAGE, "row-sparse auto, K=rk")
    rows = noise.run("60x120", (1, 3), 2, names)
    errors = noise.mean_errors(rows)
    assert len(errors) == 2 * len(names)
    for key, error in errors.items():
        assert 0 <= error < 0.1, key
    assert noise.beaten_at(rows, noise.TWO_STAGE[1], ("TPower",)) == []


def test_random_starts_end_near_the_svd_start():
    rows = committed("starts")["rows"]
    for share in starts.SHARES:
        mine = [row for row in rows if row["share"] == share]
        assert {row["start"] for row in mine} == {*starts.STARTS, "random"}
        best = min(row["(4)"] for row in mine)
        (svd,) = (row for row in mine if row["start"] == "svd")
        assert svd["(4)"] - best <= 1e-4 * abs(best)
        assert all(row["(4)"] - best <= 0.01 * abs(best) for row in mine)


def test_a_small_comparison_of_starts():
    rows = starts.run(60, 80, (0.05,), 2)
    assert len(rows) == len(starts.STARTS) + 2
    best = min(row["(4)"] for row in rows)
    assert all(row["(4)"] - best <= 0.05 * abs(best) for row in rows)
    assert starts.settled(np.array([5.0, 1.0, 1.0, 1.0])) == 2


# --- Figures 5 to 7, and the cost


def test_figures_5_to_7_are_complete():
    sets = committed("figures567")["sets"]
    assert set(sets) == set(LARGE)
    for rows in sets.values():
        for row in rows:
            assert 0 < row["span"] <= 1 + 1e-9
            assert row["features"] <= row["r"] * row["k"]


@pytest.mark.slow
def test_a_small_figure_5():
    names = tuple(name for name in figures567.NAMES if name in HERE_TOO)
    rows = figures567.run_set(factor_data(30, 100), (1, 2), (5,), names, None)
    best = {(row["r"], row["method"]): row["span"] for row in rows}
    highest = max(best[2, name] for name in names)
    assert best[2, "row-sparse auto, K=rk"] == pytest.approx(highest)
    assert "r=2" in figures567.markdown({"time limit": 20, "sets": {"gcm": rows}})


def test_the_cost_is_what_was_asked_for():
    sets = committed("cost")["sets"]
    assert set(sets) == set(cost.SETS)
    for one in sets.values():
        row = one["fits"]["StiefelSparsePCA"]
        assert row["memory"]["peak"] < cost.MOST_MEMORY
        assert row["by TruncatedSVD"] <= cost.MOST_TIME


def test_a_small_cost():
    X = factor_data(30, 200)
    one = cost.one_set(X, 2, 1, 0)
    assert one["fits"]["TruncatedSVD"]["by TruncatedSVD"] == 1.0
    assert one["fits"]["StiefelSparsePCA"]["span"] <= one["plain PCA"]
    assert cost.peak(X, 2, "TruncatedSVD")["peak"] > 0


# --- the tables are those of the JSON


def test_the_tables_are_drawn_from_the_results():
    paper = json.loads((HERE / "paper.json").read_text())["table2"]
    assert set(paper["StSPCA"]) == set(REAL)
    assert set(DEFLATION) < set(paper)
    assert not set(SVD_STARTS) & set(paper)
    pages = {
        "table2": table2.markdown(committed("table2"), paper),
        "figures12": figures12.markdown(committed("figures12")),
        "noise": noise.markdown(committed("noise")),
        "starts": starts.markdown(committed("starts")),
        "figures567": figures567.markdown(committed("figures567")),
        "cost": cost.markdown(committed("cost")),
    }
    for name, text in pages.items():
        assert (HERE / f"{name}.md").read_text() == text
        assert (HERE / f"{name}.png").stat().st_size > 10_000


def test_row_sparse_auto_explains_the_most_in_figures_5_to_7():
    points = second = 0
    for rows in committed("figures567")["sets"].values():
        for r, k in {(row["r"], row["k"]) for row in rows}:
            there = {row["method"]: row["span"] for row in rows if (row["r"], row["k"]) == (r, k)}
            ours = max(span for name, span in there.items() if name.startswith("row-sparse"))
            points += 1
            assert ours >= max(there.values()) * (1 - 1e-6)
            others = {name: s for name, s in there.items() if not name.startswith("row-sparse")}
            second += r > 1 and max(others, key=others.get).startswith("StSPCA-2S")
    assert (points, second) == (30, 17)
