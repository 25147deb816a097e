"""The three routes of CONTRIBUTING: nothing is converted, measured, formed or deflated twice."""

from collections import Counter

import numpy as np
import pytest
from typer.testing import CliRunner

import kspan.estimators.covariance_estimator as covariance_estimator
import kspan.io.read as read
from kspan import ElementSparsePCA, FeatureSparsePCA, NonnegativeSparsePCA
from kspan.cli import app
from kspan.covariance import DataCovariance
from kspan.proofs.check.known import KnownFactor, KnownMatrix
from kspan.solvers.one_by_one import Deflation


@pytest.fixture
def counts(monkeypatch):
    """How often the things are done that should be done once, and the covariance of the data."""
    done = Counter()
    done.measured = []

    def count(owner, name, label):
        original = getattr(owner, name)

        def counted(*args, **kwargs):
            done[label] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    def measured(cls, *args, **kwargs):
        done.measured.append(measure(cls, *args, **kwargs))
        return done.measured[-1]

    measure = DataCovariance.from_moments.__func__
    monkeypatch.setattr(DataCovariance, "from_moments", classmethod(measured))
    count(covariance_estimator, "open_data", "opened")
    count(read, "_read", "files read")
    count(Deflation, "remove", "deflated")
    count(KnownMatrix, "of", "matrices for proofs")
    count(KnownFactor, "of", "factors for proofs")
    return done


def data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3)) @ rng.standard_normal((3, d)) + rng.standard_normal((n, d))


def test_an_exact_fit_measures_and_forms_once(counts):
    model = FeatureSparsePCA(2, 4, certify="exact", random_state=0).fit(data(80, 15))
    (covariance,) = counts.measured
    assert counts["opened"] == 1
    assert counts["matrices for proofs"] == 2  # a look while searching, and the proof
    assert counts["factors for proofs"] == counts["deflated"] == 0
    assert covariance.n_grams == 1
    assert model.n_passes_ == covariance.n_passes == 2  # moments, and A


@pytest.mark.parametrize("weights", [None, np.ones(12)], ids=["plain", "weighted"])
@pytest.mark.parametrize("m", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_exact_fit_of_wide_data_never_forms_the_matrix(counts, monkeypatch, m, weights):
    sizes, submatrix = [], DataCovariance.submatrix

    def noted(self, support):
        sizes.append(len(support))
        return submatrix(self, support)

    monkeypatch.setattr(DataCovariance, "submatrix", noted)
    FeatureSparsePCA(m, 4, certify="exact", random_state=0).fit(
        data(12, 2600), sample_weight=weights
    )
    assert counts["factors for proofs"] <= 1
    assert max(sizes) < 2600
    assert counts.measured[0].n_grams <= 1  # of samples


def test_the_command_reads_and_measures_once(counts, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    X = data(60, 12)
    np.savetxt("x.csv", X, delimiter=",", header=",".join(f"f{j}" for j in range(12)), comments="")
    done = CliRunner().invoke(
        app,
        ["fit", "x.csv", "-m", "2", "-k", "4", "--certify", "--path", "--stability", "3", "-q"]
        + ["--out", "fit.kspan", "--report", "fit.html"],
    )
    assert done.exit_code == 0, done.output
    assert counts["files read"] == 1
    (covariance,) = counts.measured
    assert covariance.n_grams == 1
    assert covariance.n_passes == 3  # moments, A, and the scores of the record


@pytest.mark.parametrize("Estimator", [NonnegativeSparsePCA, ElementSparsePCA])
def test_components_are_taken_out_once_each(counts, Estimator):
    model = Estimator(3, 3, certify=True, random_state=0).fit(data(80, 15))
    (covariance,) = counts.measured
    assert counts["opened"] == 1
    assert counts["deflated"] == 2  # not the last one
    assert len(model.certificates_) == 3
    if Estimator is NonnegativeSparsePCA:  # others take out features first, by row sums
        assert counts["matrices for proofs"] == 3  # what is left of A, for each
    assert covariance.n_grams == 1
    assert model.n_passes_ == covariance.n_passes == 2  # moments, and A


def test_weights_missing_and_psd_cost_plain_data_nothing(counts):
    """The parameters alone change nothing: no further pass, no copy, nothing formed twice."""
    X = data(80, 15)
    for rule in ("mean", "pairwise"):
        model = FeatureSparsePCA(2, 4, certify="exact", missing=rule, random_state=0).fit(X)
        covariance = counts.measured.pop()
        assert not counts.measured
        assert covariance.X is X
        assert covariance.n_grams == 1
        assert model.n_passes_ == 2  # moments, and A
    model = FeatureSparsePCA(2, 4, certify="exact", random_state=0)
    model.fit(X, sample_weight=np.ones(80))
    (covariance,) = counts.measured
    assert covariance.X is X
    assert covariance.n_grams == 1
    assert model.n_passes_ == 2
