"""Rules about which features go together, from the command's options to record and report."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from kspan import FitRecord
from kspan.anndata import select_features
from kspan.cli.app import app

NAMES = [f"s{i}" for i in range(9)]


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def files(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 9)) @ rng.standard_normal((9, 9))
    X[:, 8] = X[:, 0] + 1e-3 * X[:, 1]
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(X, columns=NAMES).to_csv("data.csv", index=False)
    lines = {
        "groups.csv": ["name,site", *(f"{name},{'abc'[i % 3]}" for i, name in enumerate(NAMES))],
        "prices.tsv": [f"{name}\t{1 + i % 4}" for i, name in enumerate(NAMES)],
        "half.csv": [f"{name},a" for name in NAMES[:4]],
        "unknown.csv": [*(f"{name},a" for name in NAMES), "other,b"],
        "twice.csv": [*(f"{name},a" for name in NAMES), "s0,b"],
        "negative.csv": [f"{name},-1" for name in NAMES],
        "values.txt": [str(1 + i % 4) for i in range(9)],
        "short.txt": ["1", "2"],
        "wide.csv": [f"{name},a,b" for name in NAMES],
        "empty.csv": [],
    }
    for name, text in lines.items():
        (tmp_path / name).write_text("\n".join(text))
    return tmp_path


def test_all_rules_at_once_through_to_the_report(files):
    done = run(
        "fit", "data.csv", "-m", 2, "-k", 5, "--groups", "groups.csv", "--max-per-group", 2,
        "--costs", "prices.tsv", "--budget", 9, "--max-correlation", 0.95, "--level", "exact",
        "--out", "fit.kspan", "--report", "fit.html", "--json", "--path", "-q",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    record = FitRecord.load("fit.kspan")
    assert record.costs.sum() <= 9
    assert record.support.size <= 5
    assert max(record.groups.count(label) for label in "abc") <= 2
    assert not {0, 8} <= set(record.support.tolist())
    assert json.loads(done.stdout)["selected"]
    assert run("verify", "fit.kspan", "data.csv").exit_code == 0
    page = (files / "fit.html").read_text()
    for words in ("What more money would buy", "that keeps the rules", "of a budget of 9"):
        assert words in page
    again = run("verify", "fit.kspan", "data.csv")
    assert "budgets buy holds" in again.output


def test_whole_groups_and_one_value_a_line(files):
    done = run("fit", "data.csv", "-m", 1, "--groups", "groups.csv", "--together",
               "--n-groups", 1, "--out", "g.kspan", "-q")  # fmt: skip
    assert done.exit_code == 0, done.output
    record = FitRecord.load("g.kspan")
    assert len(set(record.groups)) == 1
    assert record.support.size == 3
    assert "Groups are chosen whole" in done.output
    done = run("path", "data.csv", "--costs", "values.txt", "--budget", 6, "--no-certify", "-q")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--groups", "half.csv", "--max-per-group", 1], "half.csv: has nothing for 's4' and 4 ot"),
        (["--groups", "unknown.csv", "--max-per-group", 1], "line 10: 'other' is not a feature"),
        (["--groups", "twice.csv", "--max-per-group", 1], "line 10: 's0' is there twice"),
        (["--groups", "wide.csv", "--max-per-group", 1], "line 1: expected a feature and its"),
        (["--groups", "empty.csv", "--max-per-group", 1], "the file is empty"),
        (["--costs", "negative.csv", "--budget", 3], "'s0' costs '-1': not a number, 0 or more"),
        (["--costs", "groups.csv", "--budget", 3], "'s0' costs 'a': not a number"),
        (["--costs", "short.txt", "--budget", 3], "has 2 values for 9 features"),
        (["--costs", "nowhere.csv", "--budget", 3], "nowhere.csv: there is no such file"),
        (["--costs", "prices.tsv"], "--costs needs --budget"),
        (["--budget", 3], "--budget needs --costs"),
        (["--groups", "groups.csv"], "--groups needs --together or --max-per-group"),
        (["--n-groups", 2], "--n-groups needs --together"),
        (["--max-correlation", 0.9, "--estimator", "separate"], "need --estimator features"),
        (["--costs", "prices.tsv", "--budget", 1], "no choice of 2 features or more"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(files, options, words):
    done = run("fit", "data.csv", "-m", 2, "-q", *options)
    assert done.exit_code == 2
    assert words in " ".join(done.output.split())
    assert len(done.output.strip().splitlines()) == 1


def test_columns_of_an_annotated_object(files):
    anndata = pytest.importorskip("anndata")
    X = pd.read_csv("data.csv")
    cells = anndata.AnnData(X.to_numpy(), var=pd.DataFrame(index=NAMES))
    cells.var["site"] = list("abcabcabc")
    cells.var["price"] = [1.0 + i % 4 for i in range(9)]
    cells.var["blank"] = [i == 3 for i in range(9)]
    cells.obs["weight"] = np.linspace(0.5, 2, 40)
    select_features(
        cells, 2, 4, groups="site", max_per_group=2, costs="price", budget=8, exclude="blank",
        weights="weight", certify=True, random_state=0,
    )  # fmt: skip
    chosen = cells.var[cells.var["kspan"]]
    assert chosen["price"].sum() <= 8
    assert not chosen["blank"].any()
    assert chosen["site"].value_counts().max() <= 2
    cells.write_h5ad("cells.h5ad")
    done = run("fit", "cells.h5ad", "-m", 2, "-k", 4, "--groups", "site", "--max-per-group", 2,
               "--costs", "price", "--budget", 8, "--weights", "weight", "--out", "c.kspan", "-q",
               "--h5ad", "copy.h5ad")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert FitRecord.load("c.kspan").costs.sum() <= 8
    with pytest.raises(ValueError, match=r"groups names 'nothing', which is not a column of .var"):
        select_features(cells, 2, 4, groups="nothing", max_per_group=1)


def test_records_of_other_rules_do_not_hold(files):
    from dataclasses import replace

    from kspan import CertificateError, FeatureSparsePCA, Panel, budget_path

    X = pd.read_csv("data.csv")
    costs = [1.0 + i % 4 for i in range(9)]
    pca = FeatureSparsePCA(2, costs=costs, budget=7.0, certify=True, random_state=0).fit(X)
    money = budget_path(X, 2, panel=Panel(costs=costs, budget=7.0), random_state=0)
    record = FitRecord.from_estimator(pca, X, budget_path=money)
    record.save("fit.kspan")
    record = FitRecord.load("fit.kspan")
    record.verify(X)
    changes = {
        "budget": replace(record, parameters={**record.parameters, "budget": 6.0}),
        "costs": replace(record, parameters={**record.parameters, "costs": [9.0] * 9}),
        "budget_path": replace(
            record, budget_path=replace(money, upper=money.upper * 0.9, certificates=[])
        ),
        "support": replace(
            record, budget_path=replace(money, supports=[np.arange(9)] * len(money.supports))
        ),
    }
    for changed in changes.values():
        with pytest.raises(CertificateError):
            changed.verify(X)
