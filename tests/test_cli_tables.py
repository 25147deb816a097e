"""The command on tables as people have them: classes, descriptions, names, standard input."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kspan import FitRecord
from tests.test_cli import run

N = 40


@pytest.fixture
def frame(rng, tmp_path, monkeypatch):
    """Plants, in a folder that the command runs in."""
    monkeypatch.chdir(tmp_path)
    values = rng.standard_normal((N, 3)) @ rng.standard_normal((3, 5)) + 5
    frame = pd.DataFrame(values, columns=list("abcde"))
    frame.insert(0, "plant", [f"p{i}" for i in range(N)])
    frame["species"] = np.array(["rose", "tulip"])[np.arange(N) % 2]
    frame["note"] = "in the shade"
    frame.to_csv("t.csv", index=False)
    frame.drop(columns=["species", "note"]).to_csv("plain.csv", index=False)
    return frame


@pytest.mark.parametrize("asked", [["fit", "-k", 2], ["path", "-k", "2,3"]])
def test_text_columns_are_named(frame, asked):
    command, *more = asked
    said = "kspan: t.csv: left out, as they are text: 'species', 'note'; see --label and --drop"
    for flags in ([], ["--json"]):
        result = run(command, "t.csv", *more, *flags)
        assert result.exit_code == 0, result.output
        assert result.stderr.count(said) == 1
    assert said not in run(command, "t.csv", *more, "-q").stderr
    told = run(command, "t.csv", *more, "--label", "species", "--drop", "note")
    assert "left out" not in told.stderr
    told = run(command, "t.csv", *more, "--drop", "note,species")
    assert told.exit_code == 0
    assert "left out" not in told.stderr


def test_labels_reach_the_report_and_the_record(frame):
    result = run(
        "fit", "t.csv", "-k", 3, "--label", "species", "--drop", "note", "--drop", "e", "--out",
        "fit.kspan", "--report", "fit.html", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["label"] == "species"
    assert json.loads(result.stdout)["n_features"] == 4
    record = FitRecord.load("fit.kspan")
    assert record.labels == list(frame["species"])
    assert record.sample_names == list(frame["plant"])
    assert "Colours and marks show species." in Path("fit.html").read_text()
    assert run("verify", "fit.kspan", "t.csv", "--drop", "e").exit_code == 0
    plain = run("verify", "fit.kspan", "plain.csv", "--drop", "e", "--index", "plant")
    assert plain.exit_code == 0, plain.output
    wrong = run("verify", "fit.kspan", "t.csv")
    assert wrong.exit_code == 1
    assert "t.csv has columns that the fit had not: 'e'; see --drop" in wrong.stderr


def test_verify_knows_the_labels_of_the_fit(frame):
    frame["class"] = np.arange(N) % 3
    frame.to_csv("t.csv", index=False)
    result = run("fit", "t.csv", "-k", 3, "--label", "class", "--out", "fit.kspan", "-q")
    assert result.exit_code == 0, result.output
    assert FitRecord.load("fit.kspan").labels == [str(i % 3) for i in range(N)]
    for more in ([], ["--label", "class"], ["--drop", "class"]):
        assert run("verify", "fit.kspan", "t.csv", *more).exit_code == 0


def test_row_names_by_a_column(frame):
    result = run("fit", "t.csv", "-k", 3, "--index", "species", "--out", "fit.kspan", "-q")
    assert result.exit_code == 0, result.output
    assert FitRecord.load("fit.kspan").sample_names == list(frame["species"])
    result = run("fit", "t.csv", "-k", 3, "--no-index", "--out", "fit.kspan")
    assert "left out, as they are text: 'plant', 'species', 'note'" in result.stderr
    assert FitRecord.load("fit.kspan").sample_names is None


def test_names_with_commas_are_between_quotes(frame):
    frame.rename(columns={"a": "a,1"}).to_csv("t.csv", index=False)
    result = run("fit", "t.csv", "-k", 2, "--drop", '"a,1",species', "--drop", "note", "--json")
    assert json.loads(result.stdout)["n_features"] == 4, result.output
    assert run("fit", "t.csv", "-k", 2, "--drop", "a,1").exit_code == 2


@pytest.mark.parametrize("asked", ["fit", "path"])
def test_classes_in_numbers_are_pointed_out(frame, asked):
    frame["my class"] = np.arange(N) % 3
    frame.drop(columns=["species", "note"]).to_csv("n.csv", index=False)
    said = (
        "kspan: n.csv: column 'my class' has 3 distinct whole numbers: if it is a label, use "
        "--label 'my class'"
    )
    assert said in run(asked, "n.csv", "-k", 2).stderr
    assert said in run(asked, "n.csv", "-k", 2, "--json").stderr
    for more in (["--label", "my class"], ["--drop", "my class"], ["--weights", "my class"],
                 ["-q"]):  # fmt: skip
        result = run(asked, "n.csv", "-k", 2, *more)
        assert result.exit_code == 0, result.output
        assert "distinct whole numbers" not in result.stderr


def test_standard_input(frame):
    text = frame.to_csv(index=False)
    result = run("fit", "-", "-k", 3, "--out", "fit.kspan", "--label", "species", input=text)
    assert result.exit_code == 0, result.output
    assert "standard input: left out, as they are text: 'note'" in result.stderr
    assert FitRecord.load("fit.kspan").source == "standard input"
    assert run("verify", "fit.kspan", "-", input=text).exit_code == 0
    scores = run("transform", "fit.kspan", "-", "-q", input=frame.to_csv(index=False, sep="\t"))
    assert scores.stdout.startswith("sample,PC1,PC2\np0,"), scores.output
    assert run("path", "-", "-k", "2,3", "-q", input=text).exit_code == 0
    empty = run("fit", "-", input="")
    assert empty.exit_code == 2
    assert "kspan: error: standard input: the file is empty" in empty.stderr


def test_scores_of_a_table_that_is_another(frame):
    run("fit", "t.csv", "-k", 2, "--out", "fit.kspan", "-q")
    frame.rename(columns=str.upper).to_csv("other.csv", index=False)
    frame.rename(columns=str.upper).to_parquet("other.parquet", index=False)
    for name in ("other.csv", "other.parquet"):
        result = run("transform", "fit.kspan", name, "-q")
        assert result.exit_code == 2
        assert f"{name}: 2 of the 2 chosen features are missing" in result.stderr


def test_scores_of_tables_with_anything_else_in_them(frame):
    run("fit", "t.csv", "-k", 2, "--out", "fit.kspan", "-q")
    record = FitRecord.load("fit.kspan")
    other = next(name for name in "abcde" if name not in record.selected_names)
    frame[other] = ["1,5", "n/a"] * (N // 2)
    frame.to_csv("t.csv", index=False)
    assert run("fit", "t.csv", "-k", 2).exit_code == 2
    result = run("transform", "fit.kspan", "t.csv")
    assert result.exit_code == 0, result.output
    assert "left out" not in result.stderr
    name = record.selected_names[0]
    frame[name] = frame[name].astype(str)
    frame.loc[3, name] = "1,5"
    frame.to_csv("t.csv", index=False)
    result = run("transform", "fit.kspan", "t.csv", "-q")
    assert result.exit_code == 2
    assert f"{name!r} has text: '1,5' on line 5." in result.stderr


WRONG = {
    "no such column": (["fit", "t.csv", "--drop", "Note"], "has no column of the name 'Note'. Did"),
    "no such data set": (
        ["fit", "wines"],
        "wines: there is no such file, and no data set of that ",
    ),
    "no such label": (
        ["fit", "t.csv", "--label", "x"],
        "has no column 'x', and there is no",
    ),
    "no such index": (["path", "t.csv", "--index", "x"], "t.csv: has no column of the name 'x'."),
    "a label of rows": (["fit", "t.csv", "-t", "--label", "species"], "the label 'species' cannot"),
    "a label of a data set": (["fit", "wine", "--label", "x"], "options for reading files do not"),
    "a label of a matrix": (
        ["fit", "t.csv", "--precomputed", "--label", "x"],
        "--label needs data",
    ),
    "an index of arrays": (["fit", "t.npy", "--no-index"], "--no-index has no meaning for t.npy"),
    "a layer of text": (["fit", "t.csv", "--layer", "x"], "--layer has no meaning for t.csv"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_one_line(frame, name):
    arguments, said = WRONG[name]
    result = run(*arguments, "-q")
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "asked",
    [
        ["-k", "1"], ["-m", "9", "-k", "3"], ["--solver", "magic"], ["--time-limit", "0"],
        ["--estimator", "orthonormal", "-j", "2"], ["-j", "0"], ["--share", "2"],
        ["--estimator", "orthonormal", "--certify"], ["--estimator", "separate", "--include", "a"],
        ["--estimator", "orthonormal", "--counts", "1,2,3"], ["--max-correlation", "0"],
    ],
)  # fmt: skip
def test_options_are_checked_before_data_is_read(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("fit", "there_is_no_such.csv", *asked)
    assert result.exit_code == 2
    assert "there_is_no_such" not in result.stderr
    for word in ("n_components", "n_features_to_select", "n_nonzero", "time_limit", "n_jobs"):
        assert word not in result.stderr
