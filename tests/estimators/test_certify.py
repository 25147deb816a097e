import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine

from kspan import (
    CertificateError,
    ElementSparsePCA,
    FeatureSparsePCA,
    FeatureSparseSelector,
    FitRecord,
    NonnegativeSparsePCA,
    RowSparseProblem,
    StiefelSparsePCA,
    as_covariance,
    verify,
)
from kspan.solving import Exact
from tests.oracles import best_by_enumeration


@pytest.fixture(scope="module")
def X():
    return load_wine().data


@pytest.mark.parametrize("Estimator", [FeatureSparsePCA, FeatureSparseSelector])
@pytest.mark.parametrize("level", [True, "fast", "tight", "exact"])
def test_the_certificate_holds_and_verifies(X, Estimator, level):
    model = Estimator(2, 5, scale=True, certify=level, random_state=0).fit(X)
    certificate = model.certificate_
    best = best_by_enumeration(np.corrcoef(X.T), 2, 5)
    assert certificate.lower <= best * (1 + 1e-12) <= certificate.upper * (1 + 2e-12)
    assert certificate.level == ("tight" if level is True else level)
    assert certificate.lower == pytest.approx(model.objective_, rel=1e-11)  # rounded down
    assert np.array_equal(certificate.support, model.get_support(indices=True))
    verify(RowSparseProblem(as_covariance(X, scale=True), 2, 5), certificate)
    if level == "exact":
        assert certificate.status.value == "optimal"


def test_the_exact_solver(X):
    model = FeatureSparsePCA(2, 5, scale=True, solver="exact", random_state=0).fit(X)
    assert model.solver_ == "exact"
    assert model.status_ == "optimal"
    assert model.certificate_.status.value == "optimal"
    assert model.objective_ == pytest.approx(best_by_enumeration(np.corrcoef(X.T), 2, 5))


def test_a_better_choice_found_while_certifying_is_taken(X):
    """IPU alone is stuck on the wine data at m=2, k=5; the search is not."""
    stuck = FeatureSparsePCA(2, 5, scale=True, solver="ipu").fit(X)
    best = best_by_enumeration(np.corrcoef(X.T), 2, 5)
    assert stuck.objective_ < 0.999 * best
    model = clone(stuck).set_params(certify="exact").fit(X)
    assert model.objective_ == pytest.approx(best, rel=1e-9)
    assert model.solver_ == "ipu"
    C = model.components_
    np.testing.assert_allclose(C @ C.T, np.eye(2), atol=1e-12)


def test_a_second_fit_forgets_the_certificate(X):
    model = FeatureSparsePCA(2, 5, solver="ipu", certify="fast").fit(X)
    assert model.certificate_.gap >= 0
    model.set_params(certify=False).fit(X)
    assert not hasattr(model, "certificate_")


def test_include_exclude_and_the_smallest_k(X):
    model = FeatureSparsePCA(
        2, explained_share=0.8, scale=True, include=[0], exclude=[6], certify="exact",
        random_state=0,
    ).fit(X)  # fmt: skip
    certificate = model.certificate_
    k = model.n_features_to_select_
    assert certificate.n_features_to_select == k
    best = best_by_enumeration(np.corrcoef(X.T), 2, k, [0], [6])
    assert certificate.lower == pytest.approx(best, rel=1e-9)


def test_the_search_log_goes_to_standard_error(X, capsys):
    FeatureSparsePCA(
        2, 5, scale=True, solver="ipu", certify="exact", verbose=1
    ).fit(X)  # fmt: skip
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "nodes     open  features          lower          upper       gap" in printed.err
    assert printed.err.rstrip().endswith("%")


def test_time_limit_is_for_fit_and_proof_together(X):
    model = FeatureSparsePCA(2, 5, solver="ipu", certify="exact", time_limit=1e-6).fit(X)
    assert model.status_ == "time limit"
    assert not hasattr(model, "certificate_")


@pytest.mark.parametrize("solver", ["ipu", "auto"])
def test_a_fit_whose_proof_was_stopped_says_so(X, solver):
    """As nonnegative components do: what is called completed has nothing left to do."""

    def stop(progress):
        return progress.upper is not None

    model = FeatureSparsePCA(2, 5, scale=True, solver=solver, certify="exact", random_state=0)
    model.set_params(callback=stop).fit(X)
    assert model.certificate_.status.value == "stopped by callback"
    assert model.status_ == "stopped by callback"
    record = FitRecord.from_estimator(model, X)
    record.verify(X)
    asked = {**record.parameters, "n_features_to_select": None, "explained_share": 0.99999}
    with pytest.raises(CertificateError, match="explained_share"):
        replace(record, parameters=asked).verify(X)


def test_options_of_the_proof(X, tmp_path):
    path = tmp_path / "search.npz"
    model = FeatureSparsePCA(
        2, 5, solver="ipu", certify="exact", solver_options={"checkpoint": path, "k_grid": [7]}
    ).fit(X)
    assert path.exists()
    assert np.isfinite(model.certificate_.upper_at(7))


def test_a_bool_of_numpy_is_a_bool(X):
    model = FeatureSparsePCA(2, 5, scale=True, certify=np.True_, random_state=0).fit(X)
    assert model.certificate_.level == "tight"
    assert not hasattr(model.set_params(certify=np.False_).fit(X), "certificate_")


def test_the_options_of_an_exact_object_count(X, tmp_path):
    place = tmp_path / "search.npz"
    FeatureSparsePCA(2, 5, scale=True, solver=Exact(checkpoint=place), random_state=0).fit(X)
    assert place.exists()


@pytest.mark.parametrize(
    "model",
    [
        FeatureSparsePCA(2, 5, certify="exact", solver_options={"checkpoint": "no/where"}),
        FeatureSparsePCA(2, 5, solver=Exact(checkpoint="no/where")),
        NonnegativeSparsePCA(2, 5, certify=True, solver_options={"checkpoint": "no/where"}),
    ],
    ids=["features", "exact", "nonnegative"],
)
def test_a_checkpoint_that_cannot_be_written_is_seen_before_any_work(X, model):
    steps = []
    with pytest.raises(FileNotFoundError, match="there is no folder 'no'"):
        model.set_params(callback=steps.append).fit(X)
    assert steps == []


@pytest.mark.parametrize("how", [{"ddof": 0}, {"scale": np.full(13, 2.0)}])
def test_a_covariance_that_an_estimator_cannot_stand_for_is_refused(X, how):
    with pytest.raises(ValueError, match="scales of its own, or ddof other than 1"):
        FeatureSparsePCA(2, 5).fit(as_covariance(X, **how))


def test_a_covariance_in_the_place_of_its_data(X):
    one, other = (
        FeatureSparsePCA(2, 5, scale=True, random_state=0).fit(data)
        for data in (X, as_covariance(X, scale=True))
    )
    np.testing.assert_array_equal(one.components_, other.components_)
    np.testing.assert_array_equal(one.transform(X), other.transform(X))
    assert one.score(X) == other.score(X)
    with pytest.raises(ValueError, match="not standardised"):
        FeatureSparsePCA(2, 5, scale=True).fit(as_covariance(X))


def test_budgets_of_a_proof_are_budgets():
    pca = FeatureSparsePCA(2, 4, certify="exact", solver_options={"budgets": 7})
    with pytest.raises(ValueError, match="budgets must be a Budgets, got 7"):
        pca.fit(np.random.default_rng(0).normal(size=(20, 8)))


@pytest.mark.parametrize(
    ("model", "name", "also"),
    [
        (FeatureSparsePCA(2, 5), "certificate_", "solver='exact'"),
        (FeatureSparseSelector(2, 5), "certificate_", "solver='exact'"),
        (StiefelSparsePCA(2, n_nonzero_coefs=3), "certificate_", "solver='exact'"),
        (ElementSparsePCA(2, 3), "certificates_", "solver='exact'"),
        (NonnegativeSparsePCA(2, 3), "certificates_", "certify=True"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_missing_certificate_says_why(X, model, name, also):
    other = "certificates_" if name == "certificate_" else "certificate_"
    model = clone(model).set_params(scale=True, random_state=0)
    with pytest.raises(AttributeError, match="not fitted"):
        getattr(model, name)
    model.fit(X)
    with pytest.raises(AttributeError, match="fit with certify=True") as caught:
        getattr(model, name)
    assert also in str(caught.value)
    with pytest.raises(AttributeError, match=f"its proofs are in {name}"):
        getattr(model, other)
    assert not hasattr(model, name)
    assert not hasattr(pickle.loads(pickle.dumps(model)), name)
    assert not hasattr(copy.deepcopy(model), name)
    with pytest.raises(AttributeError, match=r"no attribute 'nope_'"):
        model.nope_  # noqa: B018
    with pytest.raises(AttributeError, match="after the fit"):
        getattr(model.set_params(certify=True), name)
    getattr(model.set_params(certify="fast").fit(X), name)


def test_a_fit_that_ended_early_says_so(X):
    model = FeatureSparsePCA(2, 5, certify=True, callback=lambda _: True, random_state=0).fit(X)
    assert model.status_ == "stopped by callback"
    with pytest.raises(AttributeError, match=r"stopped before a proof .*stopped by callback"):
        model.certificate_  # noqa: B018
