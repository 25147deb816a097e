"""``kspan transform``: scores of files that have little more than the chosen features."""

import io

import numpy as np
import pandas as pd
import pytest

from kspan import FeatureSparsePCA, FitRecord
from tests.test_cli import run

NAMES = [f"f{j}" for j in range(6)]


@pytest.fixture
def fit(rng, tmp_path, monkeypatch):
    """A fit with its record, in a folder that the command runs in."""
    monkeypatch.chdir(tmp_path)
    values = rng.standard_normal((30, 6)) @ rng.standard_normal((6, 6)) + np.arange(6)
    frame = pd.DataFrame(values, columns=NAMES, index=[f"s{i}" for i in range(30)])
    model = FeatureSparsePCA(2, 3, scale=True, random_state=0).fit(frame)
    FitRecord.from_estimator(model, frame).save("fit.kspan")
    return model, frame


def scores(result):
    assert result.exit_code == 0, result.output
    return pd.read_csv(io.StringIO(result.stdout))


def test_a_file_with_only_the_chosen_features(fit):
    model, frame = fit
    expected = model.transform(frame)
    chosen = list(model.selected_features_)
    frame[chosen[::-1]].to_csv("new.csv")
    found = scores(run("transform", "fit.kspan", "new.csv", "-q"))
    assert list(found.columns) == ["sample", "PC1", "PC2"]
    assert list(found["sample"]) == list(frame.index)
    np.testing.assert_allclose(found[["PC1", "PC2"]], expected, rtol=0, atol=1e-9)
    frame.to_csv("all.csv", index=False)
    found = scores(run("transform", "fit.kspan", "all.csv"))
    assert list(found.columns) == ["PC1", "PC2"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    frame[chosen].T.to_csv("turned.tsv", sep="\t")
    found = scores(run("transform", "fit.kspan", "turned.tsv", "--transpose"))
    np.testing.assert_allclose(found[["PC1", "PC2"]], expected, rtol=0, atol=1e-9)
    np.save("new.npy", frame[chosen].to_numpy())
    written = run("transform", "fit.kspan", "new.npy", "--out", "scores.csv")
    assert "scores of 30 samples: scores.csv" in written.stdout
    assert "new.npy has no names: its columns are taken" in written.stderr
    assert chosen[0] in written.stderr
    np.testing.assert_allclose(pd.read_csv("scores.csv"), expected, rtol=0, atol=1e-9)


def test_holes_elsewhere_do_not_matter(fit):
    model, frame = fit
    other = next(name for name in NAMES if name not in model.selected_features_)
    expected = model.transform(frame)
    frame = frame.copy()
    frame.loc["s3", other] = np.nan
    frame.to_csv("new.csv")
    found = scores(run("transform", "fit.kspan", "new.csv"))
    np.testing.assert_allclose(found[["PC1", "PC2"]], expected, rtol=0, atol=1e-9)
    frame.loc["s5", model.selected_features_[1]] = np.nan
    frame.to_csv("new.csv")
    result = run("transform", "fit.kspan", "new.csv", "-q")
    assert result.exit_code == 2
    place = f"the first in row 6 of '{model.selected_features_[1]}'"
    assert f"new.csv: 1 missing or infinite value of chosen features, {place}" in result.stderr


def test_holes_are_means_where_the_fit_has_them(fit):
    _, frame = fit
    frame = frame.copy()
    frame.loc["s3"] = np.nan
    model = FeatureSparsePCA(2, 3, missing="mean", random_state=0).fit(frame)
    FitRecord.from_estimator(model, frame).save("holes.kspan")
    frame[list(model.selected_features_)].to_csv("new.csv")
    found = scores(run("transform", "holes.kspan", "new.csv"))
    np.testing.assert_allclose(found[["PC1", "PC2"]], model.transform(frame), rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.loc[3, ["PC1", "PC2"]].to_numpy(float), 0, atol=1e-9)


def test_a_covariance_knows_no_means(fit):
    _, frame = fit
    centred = frame - frame.mean()
    model = FeatureSparsePCA(2, 3, covariance="precomputed", random_state=0).fit(frame.cov())
    FitRecord.from_estimator(model, frame.cov()).save("matrix.kspan")
    centred[list(model.selected_features_)].to_csv("new.csv")
    result = run("transform", "matrix.kspan", "new.csv")
    assert "new.csv are taken to be centred" in result.stderr
    found = scores(result)[["PC1", "PC2"]]
    np.testing.assert_allclose(found, model.transform(centred), rtol=0, atol=1e-9)


def test_what_is_wrong_is_one_line(fit):
    model, frame = fit
    first, second, third = model.selected_features_
    frame[[first, third]].to_csv("few.csv")
    np.save("narrow.npy", np.ones((5, 4)))
    for arguments, said in (
        (["fit.kspan", "few.csv"], f"few.csv: 1 of the 3 chosen features is missing: there is no "
         f"column '{second}'."),
        (["fit.kspan", "narrow.npy"], "narrow.npy: There are 4 columns, without names to find"),
        (["fit.kspan", "none.csv"], "none.csv: there is no such file."),
        (["none.kspan", "few.csv"], "none.kspan: No such file"),
        (["few.csv", "few.csv"], "few.csv: "),
        (["fit.kspan", "pitprops"], "pitprops is a covariance matrix: it has no samples."),
        (["fit.kspan", "few.csv", "--out", "few.csv"], "few.csv: is the data already."),
        (["fit.kspan", "few.csv", "--out", "fit.kspan"], "fit.kspan: is the record already."),
        (["fit.kspan", "few.csv", "--out", "no/where.csv"], "no/where.csv"),
    ):  # fmt: skip
        result = run("transform", *arguments, "-q")
        assert result.exit_code == 2, arguments
        assert said in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
    assert FitRecord.load("fit.kspan").transform(frame).shape == (30, 2)
