"""The command on data as it comes: weights, missing values, matrices of few digits."""

import json

import anndata
import numpy as np
import pandas as pd
import pytest

from kspan import FeatureSparsePCA, FitRecord
from kspan.io import read
from kspan.io.rows import SomeColumns
from tests.test_cli import run

NAMES = [f"f{j}" for j in range(6)]


@pytest.fixture
def frame(rng, tmp_path, monkeypatch):
    """A table with a column of weights, in a folder that the command runs in."""
    monkeypatch.chdir(tmp_path)
    values = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 6)) + rng.random((40, 6))
    frame = pd.DataFrame(values, columns=NAMES)
    frame["w"] = rng.integers(0, 4, 40)
    frame.to_csv("x.csv", index=False)
    frame[NAMES].to_csv("plain.csv", index=False)
    frame["w"].to_csv("w.csv", index=False)
    holes = frame.copy()
    holes.iloc[3, 2] = holes.iloc[7, 4] = np.nan
    holes.to_csv("holes.csv", index=False)
    return frame


def weighted(frame):
    return FeatureSparsePCA(2, 3, random_state=0).fit(frame[NAMES], sample_weight=frame["w"])


def test_weights_from_a_column_or_a_file(frame):
    expected = weighted(frame)
    for place, name in (("x.csv", "w"), ("plain.csv", "w.csv")):
        result = run("fit", place, "-k", 3, "--weights", name, "--json", "--out", "fit.kspan")
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        assert found["n_features"] == 6
        assert found["weights"] == FitRecord.load("fit.kspan").weights
        assert found["objective"] == pytest.approx(expected.objective_)
        for other, its in (("x.csv", "w"), ("plain.csv", "w.csv")):
            checked = run("verify", "fit.kspan", other, "--weights", its)
            assert checked.exit_code == 0, checked.output
            assert "with its weights" in checked.output
        refused = run("verify", "fit.kspan", "plain.csv")
        assert refused.exit_code == 1
        assert "the fit had sample weights, and none are given" in refused.stderr
    shown = run("fit", "x.csv", "-k", 3, "--weights", "w", "--report", "fit.html", "-q")
    assert "Samples are weighted." in shown.output
    with open("fit.html") as page:
        assert "Samples are weighted." in page.read()


def test_weights_of_a_large_file_are_a_column_of_it(frame, monkeypatch):
    frame.to_parquet("x.parquet", index=False, row_group_size=9)
    monkeypatch.setattr(read, "LOAD_BYTES", 0)
    monkeypatch.setattr(read.read_table, "__kwdefaults__",
                        {**read.read_table.__kwdefaults__, "load_bytes": 0})  # fmt: skip
    table = read.read_table("x.parquet")
    weights, others = read.take_column(table, "w")
    np.testing.assert_array_equal(weights, frame["w"])
    assert isinstance(others.X, SomeColumns)
    np.testing.assert_array_equal(others.X.load(), frame[NAMES])
    result = run("fit", "x.parquet", "-k", 3, "--weights", "w", "--json")
    assert json.loads(result.stdout)["objective"] == pytest.approx(weighted(frame).objective_)


def test_weights_of_cells_are_a_column_of_obs(frame):
    cells = anndata.AnnData(frame[NAMES].to_numpy(), obs=pd.DataFrame({"w": frame["w"].to_numpy()},
                            index=[f"c{i}" for i in range(40)]))  # fmt: skip
    cells.obs["kind"] = "a"
    cells.write_h5ad("x.h5ad")
    result = run("fit", "x.h5ad", "-k", 3, "--weights", "w", "--json", "--h5ad", "y.h5ad")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["objective"] == pytest.approx(weighted(frame).objective_)
    assert anndata.read_h5ad("y.h5ad").uns["kspan"]["weights"]
    result = run("fit", "x.h5ad", "-k", 3, "--weights", "kind")
    assert result.exit_code == 2
    assert "column 'kind' of .obs is not of numbers" in result.stderr


@pytest.mark.parametrize("rule", ["mean", "pairwise"])
def test_missing_values(frame, rule):
    result = run("fit", "holes.csv", "-k", 3, "--weights", "w", "-q")
    assert result.exit_code == 2
    assert "2 missing values, the first in row 4 (line 5), column 3 'f2'" in result.stderr
    result = run(
        "fit", "holes.csv", "-k", 3, "--weights", "w", "--missing", rule, "-q", "--certify",
        "--out", "fit.kspan", "--report", "fit.html",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "2 values (0.83%) are missing" in result.output
    with open("fit.html") as page:
        assert "2 values, 0.83% of the table" in page.read()
    found = json.loads(
        run("fit", "holes.csv", "-k", 3, "--weights", "w", "--missing", rule, "--json").stdout
    )
    assert found["missing"] == {"values": 2, "share": 2 / 240}
    assert found["parameters"]["missing"] == rule
    checked = run("verify", "fit.kspan", "holes.csv", "--weights", "w")
    assert checked.exit_code == 0, checked.output
    path = run("path", "holes.csv", "--weights", "w", "--missing", rule, "-k", "2,3", "--json")
    assert path.exit_code == 0, path.output
    assert len(json.loads(path.stdout)["path"]) == 2


def test_a_matrix_of_few_digits(frame):
    A = np.corrcoef(np.c_[frame[NAMES], frame["f0"] + frame["f1"]].T)
    np.savetxt("a.csv", np.round(A, 2), delimiter=",")
    result = run("fit", "a.csv", "--precomputed", "-k", 3, "--level", "exact", "--out", "a.kspan")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("warning: The covariance is not positive semidefinite") == 1
    assert "Variances are those of the matrix as it is" in " ".join(result.stdout.split())
    assert run("verify", "a.kspan", "a.csv").exit_code == 0
    for asked in ("fit", "path"):
        refused = run(asked, "a.csv", "--precomputed", "--psd", "raise", "-q")
        assert refused.exit_code == 2
        assert "not positive semidefinite" in refused.stderr


WRONG = {
    "no column": (["x.csv", "--weights", "v"], "x.csv: has no column 'v', and there is no file"),
    "a table": (["x.csv", "--weights", "plain.csv"], "plain.csv: expected one number for each"),
    "too few": (["plain.csv", "--weights", "few.csv"], "sample_weight.shape == (3,), expected"),
    "negative": (["plain.csv", "--weights", "minus.csv"], "Negative values in data passed to"),
    "sum to one": (["plain.csv", "--weights", "ones.csv"], "multiply them by a constant"),
    "a hole": (["holes.csv", "--weights", "f2", "--missing", "mean"], "sample_weight contains NaN"),
    "text": (["plain.csv", "--weights", "text.csv"], "text.csv: "),
    "a matrix": (["x.csv", "--weights", "w", "--precomputed"], "--weights needs data"),
    "no rule": (["x.csv", "--missing", "median"], "median"),
    "no way": (["x.csv", "--psd", "cut"], "cut"),
}


@pytest.mark.parametrize("asked", ["fit", "path"])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_data_is_refused_in_one_line(frame, asked, name):
    np.savetxt("few.csv", np.ones(3))
    np.savetxt("minus.csv", np.append(np.ones(39), -1))
    np.savetxt("ones.csv", np.full(40, 1 / 40))
    with open("text.csv", "w") as file:
        file.write("a\n1\nmany\n3\n")
    arguments, message = WRONG[name]
    result = run(asked, *arguments, "-q")
    assert result.exit_code == 2
    assert message in result.stderr
    if name not in ("no rule", "no way"):  # of the options themselves
        assert len(result.stderr.strip().splitlines()) == 1


def test_a_data_set_does_not_overwrite_a_file_that_is_not_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wine.csv").write_text("mine\n")
    refused = run("datasets", "wine")
    assert refused.exit_code == 2
    assert "wine.csv is there already" in refused.stderr
    assert (tmp_path / "wine.csv").read_text() == "mine\n"
    assert run("datasets", "wine", "--out", "wine.csv").exit_code == 0
