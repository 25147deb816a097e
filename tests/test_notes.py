"""What is said about data that is not ready: never about tables on one scale."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from kspan import FeatureSparsePCA, FitRecord, as_covariance
from kspan.datasets import load_dataset
from kspan.records.notes import notes_about
from kspan.report import wording


def counts(rng, n=200, d=300):
    """Negative binomial counts of genes whose levels span decades."""
    level = np.exp(rng.normal(1.0, 2.0, d))
    depth = rng.lognormal(0.0, 0.3, n)
    return rng.poisson(depth[:, None] * level * rng.gamma(2.0, 0.5, (n, d))).astype(float)


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_mixed_units(load):
    X = load().data
    (note,) = notes_about(as_covariance(X))
    assert "scale=True" in note
    assert notes_about(as_covariance(sp.csr_array(X))) == [note]
    assert notes_about(as_covariance(X, scale=True)) == []
    assert notes_about(as_covariance(np.cov(X.T), kind="covariance")) == []


def test_one_scale(rng):
    assert notes_about(as_covariance(load_digits().data)) == []
    assert notes_about(as_covariance(rng.normal(size=(50, 20)))) == []
    genes = rng.normal(size=(60, 2000)) * np.exp(rng.normal(0, 1.2, 2000))
    assert notes_about(as_covariance(genes)) == []


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_array])
def test_counts(rng, make):
    X = counts(rng)
    for scale in (False, True):
        (note,) = notes_about(as_covariance(make(X), scale=scale))
        assert "raw counts" in note
    assert notes_about(as_covariance(np.log1p(X))) == []
    assert "raw counts" not in "".join(notes_about(as_covariance(X + 0.5)))
    assert "raw counts" not in "".join(notes_about(as_covariance(X - 1)))


@pytest.mark.real_data
@pytest.mark.parametrize(
    "name",
    ["colon", "leukemia", "prostate", "dlbcl", "duke", "cbcl_faces", "lrs", "numerical_numbers",
     "nus_wide", "tdt2"],
)  # fmt: skip
def test_real_tables_are_on_one_scale(name):
    assert notes_about(as_covariance(load_dataset(name).X)) == []


def test_a_record_keeps_its_notes(tmp_path):
    X = load_wine(as_frame=True).data
    record = FitRecord.from_estimator(FeatureSparsePCA(2, 4, random_state=0).fit(X), X)
    record.save(tmp_path / "wine")
    record = FitRecord.load(tmp_path / "wine")
    (note,) = record.notes
    assert note in record.remarks()
    assert note in wording.meaning(record)
    assert "notes" in record.verify(X)[-1]
    ready = FitRecord.from_estimator(FeatureSparsePCA(2, 4, scale=True, random_state=0).fit(X), X)
    assert ready.notes == []
    assert "notes" not in ready.verify(X)[-1]
