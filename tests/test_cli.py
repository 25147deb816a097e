"""The command as people use it: what it shows, what it writes, what it refuses."""

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_wine
from typer.testing import CliRunner

import kspan
from kspan import FeatureSparsePCA, FitRecord
from kspan.cli import app


def run(*arguments, **more):
    return CliRunner().invoke(
        app, [str(word) for word in arguments], env={"COLUMNS": "140"}, **more
    )


def command(*arguments, **more):
    """The real command, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "kspan", *map(str, arguments)], capture_output=True, text=True,
        check=False, **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def wine():
    return load_wine(as_frame=True).data


@pytest.fixture
def wine_csv(wine, tmp_path):
    path = tmp_path / "wine.csv"
    wine.to_csv(path, index=False)
    return path


# --- fit


def test_fit_shows_features_and_a_proof(wine_csv):
    result = run("fit", wine_csv, "-m", 2, "-k", 4, "--scale", "--level", "exact")
    assert result.exit_code == 0, result.output
    for word in ("wine.csv", "178 samples", "13 features", "flavanoids", "proved optimal", "PC2"):
        assert word in result.output
    said = " ".join(result.output.split())
    assert "The 2 scores tell 47.4% of the variance of all 13 features: so much of it a" in said
    assert "PCA on all 13 features would tell 55.4%, the most that 2 scores can." in said
    assert "All 4 chosen features, each as a predictor, tell 50.8%." in said


def test_json_is_all_there_is_on_standard_output(wine, wine_csv):
    result = run("fit", wine_csv, "-m", 2, "-k", 4, "--scale", "--certify", "--json")
    found = json.loads(result.stdout)
    model = FeatureSparsePCA(2, 4, scale=True, certify=True, random_state=0).fit(wine)
    assert [row["feature"] for row in found["selected"]] == list(model.selected_features_)
    assert found["objective"] == pytest.approx(model.objective_, rel=1e-12)
    assert found["certificates"][0]["gap"] == pytest.approx(model.certificate_.gap, abs=1e-9)
    assert found["represented_share"] == pytest.approx(model.represented_variance_ratio_)
    assert found["panel_share"] == pytest.approx(model.panel_variance_ratio_)
    assert found["pca_share"] == pytest.approx(model.pca_variance_ratio_)
    assert found["effective_features"] == pytest.approx(model.effective_features_)
    np.testing.assert_allclose(
        [row["loadings"] for row in found["selected"]],
        model.components_[:, model.get_support()].T, atol=1e-12,
    )  # fmt: skip


def test_as_many_components_as_a_share_of_the_variance_takes(wine_csv):
    asked = ("fit", wine_csv, "-m", 0.6, "-k", 5, "--scale", "--path", "--json")
    found = json.loads(run(*asked).stdout)
    assert len(found["explained_variance"]) == 3
    assert found["parameters"]["n_components"] == 0.6


@pytest.mark.parametrize("wrong", ["0", "1.5", "-1", "many", "nan", "inf"])
def test_what_is_no_number_of_components(wine_csv, wrong):
    result = run("fit", wine_csv, "-m", wrong)
    assert result.exit_code == 2
    assert "neither a whole number nor between 0 and 1" in " ".join(
        result.output.replace("│", " ").split()
    )


def test_counts_need_a_number_of_components(wine_csv):
    result = run(
        "fit", wine_csv, "-m", 0.5, "--estimator", "orthonormal", "--counts", "3,2"
    )  # fmt: skip
    assert result.exit_code == 2
    assert "--counts needs a number of components" in result.output


def test_the_number_of_features_follows_from_the_share(wine, wine_csv):
    found = json.loads(run("fit", wine_csv, "--scale", "--share", 0.8, "--json").stdout)
    model = FeatureSparsePCA(2, explained_share=0.8, scale=True, random_state=0).fit(wine)
    assert len(found["selected"]) == model.n_features_to_select_
    assert found["share_of_pca"] >= 0.8


@pytest.mark.parametrize("kind", ["nonnegative", "orthonormal", "separate"])
def test_other_estimators(wine_csv, kind):
    result = run("fit", wine_csv, "-m", 2, "-k", 3, "--scale", "--estimator", kind, "--json")
    loadings = np.array([row["loadings"] for row in json.loads(result.stdout)["selected"]])
    assert (np.count_nonzero(loadings, axis=0) <= 3).all()
    if kind == "nonnegative":
        assert (loadings >= 0).all()


@pytest.mark.parametrize("kind", ["nonnegative", "separate"])
def test_components_one_by_one_are_proved_and_verified(tmp_path, wine_csv, kind):
    record = tmp_path / "fit.kspan"
    asked = ["fit", wine_csv, "-m", 2, "-k", 3, "--scale", "--estimator", kind, "--level", "exact"]
    result = run(*asked, "--out", record, "--report", tmp_path / "fit.html")
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    found = json.loads(run(*asked, "--json").stdout)
    proofs = found["certificates"]
    assert [proof["status"] for proof in proofs] == ["optimal", "optimal"]
    # A proof is about the variance in what is left, and not about what a component adds.
    second = f"Component 2, in what those before it left: variance {proofs[1]['lower']:.5g}, proved"
    assert second in said
    assert "what each component adds to those before it" in said
    assert proofs[1]["about"] == "component 2, in what those before it left"
    checked = run("verify", record, wine_csv)
    assert checked.exit_code == 0, checked.output
    line = "component 2, in what those before it left: at least 100.0000% of the best possible"
    assert line in checked.output
    unproved = run(*asked[:-2])
    assert "ask with --certify" in unproved.output


def test_orthonormal_components_are_proved_together(tmp_path, wine_csv):
    """What they share counts in the proof, and not in what they explain: two numbers, both told."""
    record = tmp_path / "fit.kspan"
    asked = ["fit", wine_csv, "-m", 3, "--scale", "--estimator", "orthonormal", "--certify",
             "--total", 9, "--disjoint"]  # fmt: skip
    said = " ".join(run(*asked, "--out", record, "--report", tmp_path / "fit.html").output.split())
    found = json.loads(run(*asked, "--json").stdout)
    (proof,) = found["certificates"]
    assert proof["about"] == "the variances of all components added up, tr(V'AV)"
    assert proof["lower"] > found["objective"] * 1.05
    summed = f"The variances of all components added up, tr(V'AV): {proof['lower']:.5g}, at least"
    assert summed in said
    assert "what each component adds to those before it" in said
    # The total is a part of the claim: without it there are better components.
    page = (tmp_path / "fit.html").read_text()
    assert "3 orthonormal components of at most 9 features in all, none in two of them," in page
    checked = run("verify", record, wine_csv)
    assert checked.exit_code == 0, checked.output
    assert "the variances of all components added up, tr(V'AV): at least" in checked.output


@pytest.mark.parametrize("kind", ["orthonormal", "separate", "nonnegative"])
def test_a_path_of_features_of_their_own(tmp_path, wine_csv, kind):
    asked = ["path", wine_csv, "-m", 2, "-k", "2,3", "--scale", "--estimator", kind]
    table = tmp_path / "path.csv"
    result = run(*asked, "--csv", table, "--plot", tmp_path / "path.svg")
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    found = json.loads(run(*asked, "--json").stdout)
    header = table.read_text().splitlines()[0].split(",")
    assert found["estimator"] == kind
    for row in found["path"]:
        assert list(row)[: len(header)] == header
        assert all(1 <= len(part) <= row["features"] for part in row["components"])
        assert set().union(*row["components"]) == set(row["selected"])
    if kind == "orthonormal":
        told = ["represented", "panel"]
        assert header == ["features", "variance_sum", "share_of_pca", *told, "at_most", "gap"]
        assert "Variances of all components added up by number of features in each" in said
    else:
        assert header == [
            "features", "explained_variance", "share_of_pca", "represented", "panel", "gap_PC1",
            "gap_PC2",
        ]  # fmt: skip
        assert "of what they explain together nothing is proved" in said
        assert "whether fewer could is not proved" in said or "keep only" in said


def test_a_path_without_proofs_has_no_gaps_of_components(wine_csv):
    asked = ["path", wine_csv, "-m", 2, "-k", "2,3", "--estimator", "separate", "--no-certify"]
    assert "not proved" in run(*asked).output
    assert json.loads(run(*asked, "--json").stdout)["path"][0]["gap_PC1"] is None


@pytest.mark.parametrize("kind", ["orthonormal", "separate", "nonnegative"])
def test_a_fit_with_a_path_of_features_of_their_own(tmp_path, wine, kind):
    record, page, table = (tmp_path / name for name in ("fit.kspan", "fit.html", "some.csv"))
    wine.iloc[:, :6].to_csv(table)
    asked = ["fit", table, "-m", 2, "-k", 3, "--scale", "--estimator", kind, "--path"]
    result = run(*asked, "--out", record, "--report", page)
    assert result.exit_code == 0, result.output
    checked = run("verify", record, table)
    assert checked.exit_code == 0, checked.output
    assert "the path holds at 6 numbers of features" in checked.output
    text = page.read_text()
    together = "nothing is proved about what they explain together"
    assert (together in text) == (kind != "orthonormal")
    assert ("added up although they share some, as a share" in text) == (kind == "orthonormal")


@pytest.mark.parametrize("kind", ["orthonormal", "features"])
def test_a_proof_that_time_did_not_reach_is_not_called_unasked(tmp_path, wine_csv, kind):
    asked = ["fit", wine_csv, "-m", 3, "-k", 4, "--estimator", kind, "--certify"]
    page = tmp_path / "fit.html"
    result = run(*asked, "--time-limit", 1e-6, "--report", page)
    said = " ".join(result.output.split())
    assert "Nothing is proved: the fit ended before a proof was begun (time limit)." in said
    assert "the fit ended before a proof was begun" in page.read_text()
    assert "no proof was asked for" not in page.read_text()


def test_a_penalty_leaves_nothing_to_prove(wine_csv):
    result = run("fit", wine_csv, "--estimator", "orthonormal", "--scale")
    assert "give -k, --counts or --total, and --certify" in " ".join(result.output.split())


@pytest.mark.parametrize("kind", ["orthonormal", "separate"])
def test_zeros_have_no_sign(tmp_path, wine_csv, kind):
    table = tmp_path / "fit.csv"
    run("fit", wine_csv, "-m", 3, "-k", 3, "--scale", "--estimator", kind, "--csv", table)
    assert "-0.0," not in f"{table.read_text()},".replace("\n", ",")


def test_include_and_exclude_by_name_and_index(wine_csv):
    result = run(
        "fit", wine_csv, "-m", 1, "-k", 2, "--include", "ash", "--exclude", "proline",
        "--exclude", "4", "--json",
    )  # fmt: skip
    chosen = [row["feature"] for row in json.loads(result.stdout)["selected"]]
    assert "ash" in chosen
    assert not {"proline", "magnesium"} & set(chosen)


def test_a_covariance_matrix():
    by_name = json.loads(
        run("fit", "pitprops", "-m", 1, "-k", 5, "--level", "exact", "--json").stdout
    )
    assert by_name["objective"] == pytest.approx(3.4061, abs=1e-3)
    assert by_name["n_samples"] is None


def formats(folder, wine):
    X, names = wine.to_numpy(), list(wine.columns)
    wine.to_csv(folder / "a.csv")
    wine.to_csv(folder / "b.tsv", sep="\t", index=False)
    with gzip.open(folder / "c.csv.gz", "wt") as file:
        wine.to_csv(file, index=False)
    wine.to_parquet(folder / "d.parquet")
    np.save(folder / "e.npy", X)
    np.savez(folder / "f.npz", X=X)
    sp.save_npz(folder / "g.npz", sp.csr_matrix(X))
    scipy.io.mmwrite(folder / "h.mtx", sp.coo_matrix(X))
    scipy.io.savemat(folder / "i.mat", {"X": X})
    with h5py.File(folder / "j.h5", "w") as file:
        file["X"] = X
    import anndata

    cells = anndata.AnnData(sp.csr_matrix(X))
    cells.var_names = names
    cells.write_h5ad(folder / "k.h5ad")
    wine.T.to_csv(folder / "l.csv")
    return sorted(folder.iterdir())


def test_every_format_gives_the_same_answer(wine, tmp_path):
    expected = FeatureSparsePCA(2, 4, random_state=0).fit(wine)
    names = list(wine.columns)
    files = formats(tmp_path, wine)
    assert len(files) == 12
    prints = set()
    for path in files:
        more = ["--transpose"] if path.name == "l.csv" else []
        result = run("fit", path, "-m", 2, "-k", 4, "--json", *more)
        assert result.exit_code == 0, (path.name, result.output)
        found = json.loads(result.stdout)
        assert [row["index"] for row in found["selected"]] == expected.get_support(True).tolist()
        assert found["objective"] == pytest.approx(expected.objective_, rel=1e-9)
        prints.add(found["fingerprint"])
        if path.suffix in (".csv", ".tsv", ".gz", ".parquet", ".h5ad"):
            assert {row["feature"] for row in found["selected"]} <= set(names)
    assert len(prints) == 1, "the same numbers, the same fingerprint"


def test_records_reports_and_tables_are_written(wine, wine_csv, tmp_path):
    record, page, table = (tmp_path / name for name in ("fit.kspan", "fit.html", "fit.csv"))
    result = run(
        "fit", wine_csv, "-m", 2, "-k", 4, "--scale", "--certify", "--out", record,
        "--report", page, "--csv", table, "--path", "--stability", 5,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = FitRecord.load(record)
    assert found.path is not None
    assert found.stability.n_resamples == 5
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    lines = table.read_text().splitlines()
    assert lines[0] == "feature,index,PC1,PC2"
    np.testing.assert_array_equal(
        [[float(cell) for cell in line.split(",")[2:]] for line in lines[1:]], found.loadings
    )

    assert run("verify", record, wine_csv).exit_code == 0
    again = tmp_path / "again.html"
    assert run("report", record, "-o", again).exit_code == 0
    assert again.read_bytes() == page.read_bytes()


def test_h5ad_with_the_result(wine, tmp_path):
    import anndata

    cells = anndata.AnnData(sp.csr_matrix(wine.to_numpy()))
    cells.layers["log"] = cells.X.log1p()
    cells.write_h5ad(tmp_path / "in.h5ad")
    out = tmp_path / "out.h5ad"
    result = run("fit", tmp_path / "in.h5ad", "--layer", "log", "-k", 4, "--h5ad", out)
    assert result.exit_code == 0, result.output
    back = anndata.read_h5ad(out)
    assert back.var["kspan"].sum() == 4
    model = FeatureSparsePCA(2, 4, random_state=0).fit(cells.layers["log"])
    np.testing.assert_allclose(
        back.obsm["X_kspan"], model.transform(cells.layers["log"]), atol=1e-9
    )


# --- verify


def test_verify_says_what_it_checked(wine_csv, tmp_path):
    record = tmp_path / "fit.kspan"
    run("fit", wine_csv, "-k", 4, "--level", "exact", "-o", record)
    result = run("verify", record, wine_csv)
    assert result.exit_code == 0
    assert result.output.count("✓") == 6
    assert "- not checked: solver, history, n_iter" in result.output
    found = json.loads(run("verify", record, wine_csv, "--json").stdout)
    assert found["holds"] is True
    assert found["not_checked"].startswith("not checked: ")


def test_verify_refuses_other_data_with_exit_code_one(wine, wine_csv, tmp_path):
    record = tmp_path / "fit.kspan"
    run("fit", wine_csv, "-k", 4, "--level", "exact", "-o", record)
    changed = tmp_path / "changed.csv"
    (wine + 1e-6).to_csv(changed, index=False)
    result = command("verify", record, changed)
    assert result.returncode == 1
    assert (
        result.stderr.strip()
        == "kspan: does not hold: fingerprint: this is not the data of the fit"
    )


def test_verify_refuses_what_is_no_record(wine_csv, tmp_path):
    result = command("verify", wine_csv, wine_csv)
    assert result.returncode == 2
    assert "not a file of kspan" in result.stderr


# --- path


def test_path_shows_a_band_and_a_suggestion(wine_csv, tmp_path):
    picture, table = tmp_path / "path.png", tmp_path / "path.csv"
    result = run(
        "path", wine_csv, "-m", 2, "--scale", "-k", "2:8:2,11", "--plot", picture, "--csv", table
    )
    assert result.exit_code == 0, result.output
    assert "Suggested" in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    rows = [line.split(",") for line in table.read_text().splitlines()]
    assert [row[0] for row in rows] == ["features", "2", "4", "6", "8", "11"]
    for row in rows[1:]:
        named = dict(zip(rows[0], map(float, row), strict=True))
        assert named["explained_variance"] <= named["at_most"] * (1 + 1e-12)
        assert 0 < named["represented"] <= named["panel"] <= 1
    assert "linear regression on the 2 scores" in " ".join(result.output.split())


def test_path_as_json(wine, wine_csv):
    found = json.loads(run("path", wine_csv, "--scale", "--json").stdout)
    assert [row["features"] for row in found["path"]] == list(range(2, 14))
    assert set(found["path"][0]["selected"]) <= set(wine.columns)
    assert found["suggestion"]["k"] in range(2, 14)
    assert found["suggestion"]["reasons"]


# --- datasets, demo, help


def test_datasets_are_listed_and_written(tmp_path, monkeypatch):
    monkeypatch.delenv("KSPAN_DATA", raising=False)
    result = run("datasets")
    table, _, below = result.output.partition("Any of them stands")
    for words in ("breast_cancer", "569 x 30", "measurements of cells", "Wolberg", "13 x 13"):
        assert words in table
    assert "colon" not in table
    assert "Not on this machine: cbcl_faces (2429 x 361), colon (62 x 2000)," in below
    assert "leukemia and numerical_numbers are downloaded" in " ".join(below.split())
    rows = {row["name"]: row for row in json.loads(run("datasets", "--json").stdout)}
    assert rows["wine"]["here"]
    assert not rows["duke"]["here"]
    np.savez(tmp_path / "colon.npz", X=np.eye(3))
    monkeypatch.setenv("KSPAN_DATA", str(tmp_path))
    assert "tissue of colon" in run("datasets").output.partition("Any of them")[0]
    out = tmp_path / "cancer.csv"
    assert run("datasets", "breast_cancer", "--out", out).exit_code == 0
    found = json.loads(run("fit", out, "-k", 3, "--json").stdout)
    assert {row["feature"] for row in found["selected"]} <= set(load_breast_cancer().feature_names)
    assert run("datasets", "nonsense").exit_code == 2


def test_the_demo_shows_features_rivals_and_proof(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("demo", "-m", "2", "-k", "6")
    assert result.exit_code == 0
    assert result.output.count("pixel_") == 6
    said = " ".join(result.output.split())
    for words in ("plain PCA", "kspan", "highest variances", "74,974,368 ways"):
        assert words in said
    assert "proved: no other 6 pixels explain more The record" in said
    numbers = {
        line.split("│")[1].strip(): float(line.split("│")[3])
        for line in result.output.splitlines()
        if "%" in line
    }
    assert numbers["highest variances"] <= numbers["kspan"] <= numbers["plain PCA"]


def test_the_demo_leaves_a_record_that_holds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # the second one takes the place of the first
        said = run("demo", "-m", "2", "-k", "6").output
        assert [place.name for place in tmp_path.iterdir()] == ["kspan-demo.kspan"]
    assert "verified from the data alone: kspan-demo.kspan" in " ".join(said.split())
    asked = re.search(r"kspan (verify kspan-demo.kspan digits)", said)[1]
    again = run(*asked.split())
    assert again.exit_code == 0, again.output
    assert "nothing is claimed" not in again.output


@pytest.mark.parametrize("found", ["a file", "a link", "a folder", "another record"])
def test_the_demo_never_overwrites_what_is_not_its_own(found, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place, other = tmp_path / "kspan-demo.kspan", tmp_path / "other"
    if found == "a file":
        place.write_text("mine")
    elif found == "a link":
        place.symlink_to(other)
    elif found == "a folder":
        place.mkdir()
    else:
        run("fit", "wine", "-k", 3, "--out", place)
    before = place.read_bytes() if place.is_file() else None
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = run("demo", "-m", "2", "-k", "6")
    assert said.exit_code == 0, said.output
    assert before is None or place.read_bytes() == before
    assert not other.exists()
    (written,) = tmp_path.glob("kspan-*/kspan-demo.kspan")
    assert FitRecord.load(written).source == "kspan demo"
    assert str(written) in said.output


def test_where_nothing_can_be_written_the_demo_uses_a_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    save = FitRecord.save

    def refuse(record, place):
        if os.path.dirname(place) == "":
            raise PermissionError(13, "Permission denied", str(place))
        save(record, place)

    monkeypatch.setattr(FitRecord, "save", refuse)
    assert run("demo", "-m", "2", "-k", "6").exit_code == 0
    assert list(tmp_path.glob("kspan-*/kspan-demo.kspan"))


def test_what_the_demo_says_is_what_is_proved():
    from kspan.demo import run_demo
    from kspan.progress import Status

    result = run_demo(2, 6)
    (proof,) = result.record.certificates
    assert proof.status is Status.OPTIMAL

    def said(*proofs):
        return replace(result, record=replace(result.record, certificates=list(proofs))).proved

    wide = replace(proof, upper=1.03001 * proof.lower, status=Status.TIME_LIMIT)
    assert said(wide) == "proved: other 6 pixels explain at most 3.01% more"
    assert said().startswith("nothing is proved")


def test_the_demo_needs_no_compiler(tmp_path):
    """It takes seconds, and the first one who runs the demo has nothing compiled."""
    empty = tmp_path / "cache"
    found = command("demo", cwd=tmp_path, env={**os.environ, "NUMBA_CACHE_DIR": str(empty)})
    assert found.returncode == 0, found.stderr
    assert "proved: no other 16 pixels explain more" in found.stdout
    assert not empty.exists() or not [place for place in empty.rglob("*") if place.is_file()]


def test_version():
    assert run("--version").output.strip() == f"kspan {kspan.__version__}"


def test_help_is_there_at_once_and_has_examples():
    best = np.inf
    for _ in range(3):
        started = time.perf_counter()
        result = command("--help")
        best = min(best, time.perf_counter() - started)
    assert result.returncode == 0
    for name in ("fit", "path", "report", "transform", "verify", "datasets", "demo"):
        assert f" {name} " in result.stdout
    code = "import sys, kspan.cli; print({'numpy', 'sklearn', 'scipy'} & set(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "set()", "the command imports what it needs when it runs"
    assert best < 2.0, "0.3 s on a quiet machine"
    for name in ("fit", "path", "report", "transform", "verify", "datasets", "demo"):
        assert f"kspan {name} " in run(name, "--help").output.replace(f"Usage: kspan {name}", "")


# --- what is refused: one line, exit code 2, no file


GOOD = "a,b,c\n1,2,3\n4,5,7\n7,8,1\n2,1,9\n"
BAD_FILES = {
    "ragged": ("x.csv", "a,b,c\n1,2,3\n4,5\n7,8,1\n", ["line 3"]),
    "text column": ("x.csv", "a,b,c\n1,2,3\n4,hello,6\n7,8,1\n", ["'b'", "hello"]),
    "missing value": ("x.csv", "a,b,c\n1,2,3\n4,,6\n7,8,1\n", ["'b'"]),
    "unknown ending": ("x.ods", "a,b,c\n1,2,3\n", [".xlsx", ".csv"]),
    "wrong ending": ("x.npy", GOOD, ["NumPy"]),
    "empty": ("x.csv", "", ["empty"]),
    "only a header": ("x.csv", "a,b,c\n", []),
    "one sample": ("x.csv", "a,b,c\n1,2,3\n", ["1 sample"]),
    "infinity": ("x.csv", "a,b,c\n1,2,3\n4,inf,6\n7,8,1\n", ["inf"]),
    "constant": ("x.csv", "a,b,c\n1,2,3\n1,2,3\n1,2,3\n", ["constant"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_refused_in_one_line(tmp_path, name, monkeypatch):
    file, text, words = BAD_FILES[name]
    (tmp_path / file).write_text(text)
    monkeypatch.chdir(tmp_path)
    asked = ["fit", file, "-m", 1, "-k", 2, "--out", "fit.kspan", "--report", "fit.html"]
    asked += ["--csv", "fit.csv"]
    if name == "ragged":  # one of them through a process of its own
        result = command(*asked, cwd=tmp_path)
        assert result.returncode == 2, result.stderr
    else:
        result = run(*asked)
        assert result.exit_code == 2, result.stderr
    lines = [line for line in result.stderr.splitlines() if "error" in line]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("kspan: error: ")
    for word in words:
        assert word in lines[0]
    assert "Traceback" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == [file], "nothing was written"


BAD_USES = {
    "no such file": (["fit", "nowhere.csv"], "nowhere.csv"),
    "k below m": (["fit", "good.csv", "-m", "3", "-k", "2"], "-k 2 must be at least -m 3"),
    "k above d": (["fit", "good.csv", "-k", "9"], "-k 9 is more than the 3 features of"),
    "k of zero": (["fit", "good.csv", "-k", "0"], "-k"),
    "share": (["fit", "good.csv", "--share", "1.5"], "--share 1.5"),
    "unknown solver": (
        ["fit", "good.csv", "-k", "2", "--solver", "magic"],
        "--solver 'magic' is none of --estimator features: auto",
    ),
    "a solver of another criterion": (
        ["fit", "good.csv", "-k", "2", "--solver", "ipu", "--criterion", "represent"],
        "--solver 'ipu' is none of --criterion represent: auto",
    ),
    "no time": (["fit", "good.csv", "-k", "2", "--time-limit", "0"], "--time-limit 0 must be"),
    "a correlation": (
        ["path", "good.csv", "--max-correlation", "2"], "--max-correlation 2 must be above 0"
    ),
    "a budget": (["fit", "good.csv", "--budget", "-1", "--costs", "x"], "--budget -1 must be"),
    "a path below m": (["path", "good.csv", "-m", "2", "-k", "1:3"], "-k 1 must be at least -m 2"),
    "a path of zero": (["path", "good.csv", "-k", "0:3"], "-k 0: every number of features"),
    "an index and none": (
        ["fit", "good.csv", "--index", "a", "--no-index"], "--index or --no-index, not both"
    ),
    "the wrong kind of file": (["fit", "good.npy", "--no-header"], "--header has no meaning for"),
    "unknown feature": (["fit", "good.csv", "-k", "2", "--include", "zebra"], "zebra"),
    "a feature of both": (
        ["fit", "good.csv", "-k", "2", "--include", "a", "--exclude", "a"], "include and exclude"
    ),
    "no folder": (["fit", "good.csv", "-k", "2", "--out", "no/where.kspan"], "no folder"),
    "a folder": (["fit", "good.csv", "-k", "2", "--report", "."], "is a folder"),
    "a proof that is not there": (
        ["fit", "good.csv", "--estimator", "orthonormal", "--certify"], "--certify"
    ),
    "counts of others": (
        ["fit", "good.csv", "--estimator", "separate", "--counts", "2,2"],
        "--counts, --total and --disjoint need --estimator orthonormal",
    ),
    "too many counts": (
        ["fit", "good.csv", "--estimator", "orthonormal", "--counts", "2,2,2"],
        "--counts 2,2,2 has 3 numbers for 2 components",
    ),
    "counts above d": (
        ["fit", "good.csv", "--estimator", "orthonormal", "--counts", "2,9"],
        "--counts 9 is more than the 3 features of good.csv",
    ),
    "counts that are words": (
        ["fit", "good.csv", "--estimator", "orthonormal", "--counts", "a,b"], "whole numbers"
    ),
    "counts twice": (
        ["fit", "good.csv", "--estimator", "orthonormal", "--counts", "2,2", "-k", "2"], "not both"
    ),
    "disjoint without counts": (
        ["fit", "good.csv", "--estimator", "orthonormal", "--disjoint"], "--disjoint needs -k"
    ),
    "a total below m": (
        ["fit", "good.csv", "--estimator", "orthonormal", "--total", "1"],
        "--total 1 must be at least -m 2",
    ),
    "disjoint components that cannot fit": (
        ["fit", "good.csv", "--estimator", "orthonormal", "--disjoint", "-m", "4", "-k", "1"],
        "-m 4 is more than the 3 features of good.csv",
    ),
    "h5ad from csv": (["fit", "good.csv", "-k", "2", "--h5ad", "x.h5ad"], "H5AD"),
    "numbers": (["path", "good.csv", "-k", "2:x"], "2:40"),
    "four numbers": (["path", "good.csv", "-k", "2:3:1:1"], "2:40"),
    "over the data": (["fit", "good.csv", "-k", "2", "--csv", "good.csv"], "is the data already"),
    "one over the other": (
        ["fit", "good.csv", "-k", "2", "--out", "x", "--report", "./x"], "is another output already"
    ),
    "a checkpoint of nothing": (
        ["fit", "good.csv", "-k", "2", "--checkpoint", "x"], "--checkpoint needs --certify"
    ),
    "a checkpoint of no search": (
        ["fit", "good.csv", "-k", "2", "--level", "fast", "--checkpoint", "x"], "--checkpoint needs"
    ),
    "a checkpoint nowhere": (
        ["fit", "good.csv", "-k", "2", "--certify", "--checkpoint", "no/where"], "no folder"
    ),
    "a checkpoint over an output": (
        ["fit", "good.csv", "-k", "2", "--certify", "--out", "x", "--checkpoint", "x"],
        "is another output already",
    ),
    "one resample": (["fit", "good.csv", "-k", "2", "--stability", "1"], "--stability 1"),
    "resamples of others": (
        ["fit", "good.csv", "-k", "2", "--estimator", "nonnegative", "--stability", "5"],
        "--stability needs --estimator features",
    ),
    "a disjoint path of others": (
        ["path", "good.csv", "--estimator", "separate", "--disjoint"],
        "--disjoint needs --estimator orthonormal",
    ),
    "a path of others with features to include": (
        ["path", "good.csv", "--estimator", "separate", "--include", "a"],
        "--include and --exclude need --estimator features",
    ),
    "a path with more components than features": (
        ["path", "good.csv", "--estimator", "orthonormal", "-m", "4"],
        "-m 4 is more than the 3 features of good.csv",
    ),
    "a path beyond all features": (
        ["path", "good.csv", "--estimator", "nonnegative", "-k", "2:4"],
        "-k 4 is more than the 3 features of good.csv",
    ),
    "resampled covariance": (["fit", "pitprops", "-k", "2", "--stability", "5"], "needs data"),
    "jobs of none": (
        ["fit", "good.csv", "--estimator", "orthonormal", "-j", "2"],
        "--jobs is not there",
    ),
    "no jobs": (["fit", "good.csv", "-k", "2", "--certify", "-j", "0"], "--jobs 0: give a number"),
    "a picture of what": (["path", "good.csv", "--plot", "x.docx"], ".png"),
    "nonsense": (["nonsense"], "No such command"),
    "demo": (["demo", "-m", "5", "-k", "3"], "--features 3 must be at least --components 5"),
    "report of nothing": (["report", "good.csv"], "not a file of kspan"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_USES)
def test_wrong_use_exits_with_two_and_writes_nothing(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(GOOD)
    arguments, message = BAD_USES[name]
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert "Traceback" not in result.output
    assert os.listdir(tmp_path) == ["good.csv"]


def test_a_missing_extra_is_named_before_any_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(GOOD)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for arguments, extra in (
        (["fit", "good.csv", "-k", 2, "--report", "x.html"], "report"),
        (["path", "good.csv", "--plot", "x.png"], "plot"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert f"pip install 'kspan[{extra}]'" in result.output


def test_a_name_of_several_features(tmp_path):
    (tmp_path / "x.csv").write_text(GOOD.replace("a,b,c", "a,b,a"))
    result = run("fit", tmp_path / "x.csv", "-m", 1, "-k", 2, "--include", "a")
    assert result.exit_code == 2
    assert "several features" in result.output
    assert run("fit", tmp_path / "x.csv", "-m", 1, "-k", 2, "--include", 2).exit_code == 0


def test_renamed_columns_do_not_verify(wine, wine_csv, tmp_path):
    record, other = tmp_path / "fit.kspan", tmp_path / "other.csv"
    run("fit", wine_csv, "-k", 4, "-o", record)
    wine.rename(columns={"ash": "ashes"}).to_csv(other, index=False)
    result = run("verify", record, other)
    assert result.exit_code == 1
    assert "another name" in result.output


def test_the_time_limit_is_for_the_path_too(wine_csv, tmp_path):
    record = tmp_path / "x"
    run("fit", wine_csv, "-k", 4, "--time-limit", 0.001, "--path", "--quiet", "-o", record)
    assert FitRecord.load(record).path.status == "time limit"
    result = run("path", wine_csv, "--time-limit", 0.001)
    assert "time limit: this is what was done by then" in result.output


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_whoever_has_seen_enough_may_go(wine_csv):
    line = f"{sys.executable} -m kspan fit {wine_csv} -k 4 --quiet | head -1"
    result = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr
    assert "rror" not in result.stderr


def test_a_near_name_is_suggested(wine_csv):
    result = run("fit", wine_csv, "-k", 2, "--include", "alcohl")
    assert "Did you mean 'alcohol'?" in result.output


def test_a_write_that_fails_leaves_nothing(wine_csv, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device", "fit.kspan")

    monkeypatch.setattr("os.replace", fail)
    result = run("fit", wine_csv, "-k", 3, "--out", tmp_path / "fit.kspan")
    assert result.exit_code == 2
    assert "No space left on device" in result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["wine.csv"]


def test_warnings_are_lines(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", np.outer(rng.random(20), rng.random(5)))
    result = run("fit", tmp_path / "x.npy", "-m", 3, "-k", 4)
    assert result.exit_code == 0
    assert "kspan: warning: n_components=3 is above the rank" in result.output


def test_an_interrupted_fit_gives_the_best_so_far(wine_csv, monkeypatch):
    def interrupt(self, progress):
        raise KeyboardInterrupt

    monkeypatch.setattr("kspan.cli.progress.Watcher.on_step", interrupt)
    result = run("fit", wine_csv, "-k", 4, "--json")
    assert result.exit_code == 1
    assert "interrupted" in result.output


@pytest.mark.parametrize("arguments", [["--level", "exact"], ["--path"]])
def test_an_interrupted_proof_or_path_ends_with_one(tmp_path, monkeypatch, arguments):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.standard_normal((60, 40)))

    def interrupt(self, progress):
        if progress.upper is not None or progress.solver.startswith("path"):
            raise KeyboardInterrupt

    monkeypatch.setattr("kspan.cli.progress.Watcher.on_step", interrupt)
    record = tmp_path / "fit.kspan"
    result = run("fit", tmp_path / "x.npy", "-k", 8, *arguments, "-o", record)
    assert result.exit_code == 1, result.output
    assert FitRecord.load(record).support.size == 8, "what was found is written"
    assert run("path", tmp_path / "x.npy").exit_code == 1


def test_a_checkpoint_is_written_and_read_again(tmp_path, wine_csv, monkeypatch):
    place = tmp_path / "search.npz"
    asked = ["fit", wine_csv, "-m", 2, "-k", 4, "--level", "exact", "--checkpoint", place, "--json"]
    first = json.loads(run(*asked).stdout)
    assert place.exists()
    again = json.loads(run(*asked).stdout)
    assert again["certificates"][0]["upper"] == first["certificates"][0]["upper"]
    asked[asked.index(4)] = 5
    result = run(*asked)
    assert result.exit_code == 2
    assert "belongs to another problem" in result.output


@pytest.mark.parametrize("kind", ["nonnegative", "separate"])
def test_components_one_by_one_have_a_checkpoint_each(tmp_path, wine_csv, kind):
    place = tmp_path / "search.npz"
    asked = ["fit", wine_csv, "-m", 2, "-k", 3, "--estimator", kind, "--certify"]
    result = run(*asked, "--checkpoint", place)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in tmp_path.glob("search*")) == [
        "search.npz.1",
        "search.npz.2",
    ]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("asked", ["fit", "path"])
def test_a_signal_to_end_is_an_interrupt(tmp_path, monkeypatch, asked):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.standard_normal((60, 40)))

    def terminate(self, progress):
        if progress.upper is not None or progress.solver.startswith("path"):
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("kspan.cli.progress.Watcher.on_step", terminate)
    before = signal.getsignal(signal.SIGTERM)
    table = tmp_path / "table.csv"
    more = ["-k", 8, "--level", "exact"] if asked == "fit" else []
    result = run(asked, tmp_path / "x.npy", *more, "--csv", table)
    assert result.exit_code == 1, result.output
    assert "interrupted" in result.output
    assert table.exists(), "what was found is written"
    assert signal.getsignal(signal.SIGTERM) is before


# --- records of strangers


def edited(record, out, change):
    """Write a record with its JSON changed."""
    with zipfile.ZipFile(record) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = np.load(io.BytesIO(members["header.npy"]))
    document = change(json.loads(header.tobytes()))
    stream = io.BytesIO()
    np.save(stream, np.frombuffer(json.dumps(document).encode(), dtype=np.uint8))
    members["header.npy"] = stream.getvalue()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def field(name, value):
    """Change one field of the record."""

    def change(document):
        document["value"]["fields"][name] = value
        return document

    return change


def swapped(one, other):
    """Change the places of two fields."""

    def change(document):
        parts = document["value"]["fields"]
        parts[one], parts[other] = parts[other], parts[one]
        return document

    return change


def deep(document):
    value = 0
    for _ in range(400):
        value = [value]
    return {**document, "value": value}


EDITS = {
    "another type": (field("n_features", "13"), "n_features is a str, not a int"),
    "a negative number": (field("n_iter", -5), "n_iter: negative"),
    "no such feature": (swapped("support", "mean"), "support is an array of float64"),
    "an array twice": (field("support", {"array": 1}), "array 1 is there twice"),
    "no such array": (field("support", {"array": 999}), "array 999 is not in the file"),
    "a certificate for a record": (
        lambda document: {**document, "value": document["value"]["fields"]["certificates"][0]},
        "does not hold the record of a fit",
    ),
    "no status": (field("status", "splendid"), "status: 'splendid' is none"),
    "a status of ours": (
        field("certificates", [{"enum": "Status", "name": "SPLENDID"}]), "unknown Status 'SPLENDID'"
    ),
    "names that are none": (field("feature_names", [1] * 13), "feature_names is a list in which"),
    "nothing": (lambda document: None, "has no format"),
    "deep": (deep, "does not hold the record"),
}  # fmt: skip


@pytest.mark.parametrize("asked", ["verify", "report"])
def test_a_malformed_record_is_refused_in_one_line(tmp_path, wine_csv, asked):
    good, bad = tmp_path / "good.kspan", tmp_path / "bad.kspan"
    run("fit", wine_csv, "-k", 3, "--certify", "-o", good)
    whole = good.read_bytes()

    def refused(message):
        result = run(asked, bad, *([wine_csv] if asked == "verify" else []))
        assert result.exit_code == 2, result.output
        assert isinstance(result.exception, SystemExit), result.exception
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1

    for change, message in EDITS.values():
        edited(good, bad, change)
        refused(message)
    for content in (b"", whole[:-40], whole[:200], b"PK\x03\x04" + b"\0" * 40, b"\x80\x05."):
        bad.write_bytes(content)
        refused("not a file of kspan")
    bad.unlink()
    refused("bad.kspan: No such file or directory")
    bad.mkdir()
    refused("is a folder")


def test_a_record_with_a_flipped_bit_is_refused_or_right(tmp_path, wine_csv):
    """No traceback, whatever bit it is; and what passes says what the whole record says."""
    good, bad = tmp_path / "good.kspan", tmp_path / "bad.kspan"
    run("fit", wine_csv, "-k", 3, "--certify", "-o", good)
    whole, rng = np.frombuffer(good.read_bytes(), dtype=np.uint8), np.random.default_rng(0)
    for _ in range(40):
        data = whole.copy()
        data[rng.integers(data.size)] ^= 1 << rng.integers(8)
        bad.write_bytes(data)
        result = run("verify", bad, wine_csv)
        assert result.exit_code in (0, 1, 2)
        assert result.exit_code == 0 or isinstance(result.exception, SystemExit), result.exception


def test_the_help_of_fit_says_what_exact_cannot_do():
    said = " ".join(re.sub(r"[│╭╮╰╯─]", " ", run("fit", "--help").output).split())
    assert "searches until the optimum is proved" in said
    assert "with several components on more than 2500 features" in said.lower()
