"""Records of fits: what goes in comes out, every claim is checked, and runs are reproducible."""

import io
import json
import zipfile
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA

from kspan import (
    CertificateError,
    ElementSparsePCA,
    FeatureSparsePCA,
    FeatureSparseSelector,
    FitRecord,
    NonnegativeSparsePCA,
    StiefelSparsePCA,
    as_covariance,
    selection_stability,
    sparsity_path,
)
from kspan.datasets import load_pitprops
from kspan.problem import variance_shares
from kspan.progress import Status
from kspan.proofs.check.screened import ScreenedWitness
from kspan.records.form import require_features
from kspan.solvers import EM, IPM, IPU, registry
from kspan.storage import digest
from tests.out_of_core import npy

ESTIMATORS = {
    "features": FeatureSparsePCA(2, 4, scale=True, certify="exact", random_state=0),
    "selector": FeatureSparseSelector(2, 4, scale=True, certify=True, random_state=0),
    "plain": FeatureSparsePCA(3, 5, solver="ipu", random_state=0),
    "forced": FeatureSparsePCA(
        1, 3, include=["hue"], exclude=["proline"], certify="exact", random_state=0
    ),
    "stiefel": StiefelSparsePCA(2, n_nonzero_coefs=4, scale=True, random_state=0),
    "elements": ElementSparsePCA(2, 4, scale=True, random_state=0),
    "elements proved": ElementSparsePCA(2, 4, scale=True, certify="exact", random_state=0),
    "elements exact": ElementSparsePCA(
        2, 4, scale=True, solver="exact", deflation="remove", random_state=0
    ),
    "elements by IPM": ElementSparsePCA(2, 4, scale=True, solver=IPM(), certify=True),
    "nonnegative": NonnegativeSparsePCA(2, 4, scale=True, certify="exact", random_state=0),
    "projected": NonnegativeSparsePCA(
        2, 4, scale=True, deflation="projection", certify="exact", random_state=0
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def wine():
    return load_wine(as_frame=True).data


@pytest.fixture(scope="module")
def records(wine):
    return {
        name: FitRecord.from_estimator(model.fit(wine), wine, source="wine.csv", seconds=0.5)
        for name, model in ESTIMATORS.items()
    }


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_record_survives_a_file_and_is_verified(records, wine, tmp_path, name):
    record = records[name]
    record.save(tmp_path / "fit.kspan")
    back = FitRecord.load(tmp_path / "fit.kspan")
    assert back.parameters == record.parameters
    assert back.selected_names == record.selected_names
    assert (back.created, back.seconds) == (record.created, 0.5)
    np.testing.assert_array_equal(back.loadings, record.loadings)
    for one, other in zip(back.certificates, record.certificates, strict=True):
        assert one.digest == other.digest
        assert one.seconds == other.seconds
        np.testing.assert_array_equal(one.history, other.history)
    done = back.verify(wine)
    assert len(done) == 6 + len(record.certificates)
    assert done[-1].startswith("not checked: solver, history, n_iter")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_record_says_what_the_estimator_says(records, wine, name):
    record, model = records[name], ESTIMATORS[name]
    assert (record.n_samples, record.n_features) == wine.shape
    assert record.selected_names == list(model.selected_features_)
    if name != "selector":  # which returns columns, not coordinates
        np.testing.assert_allclose(
            record.transform(wine.to_numpy()), model.transform(wine), atol=1e-9
        )
    np.testing.assert_allclose(record.scores, record.transform(wine.to_numpy()), atol=1e-9)
    X = wine / wine.std() if model.scale else wine
    plain = PCA(record.n_components).fit(X)
    np.testing.assert_allclose(record.pca_variance, plain.explained_variance_, rtol=1e-8)
    assert record.total_variance == pytest.approx(X.var().sum())
    assert record.represented_share == model.represented_variance_ratio_
    assert record.panel_share == model.panel_variance_ratio_
    assert record.effective_features == model.effective_features_
    assert record.pca_share == pytest.approx(model.pca_variance_ratio_)


def test_a_record_from_before_shares_were_measured(records, wine, tmp_path):
    old = replace(
        records["features"], represented_share=None, panel_share=None, effective_features=None
    )
    old.save(tmp_path / "fit.kspan")
    back = FitRecord.load(tmp_path / "fit.kspan")
    assert back.represented_share is None
    assert len(back.verify(wine)) == 6


def test_near_copies_are_no_reason_to_refuse_a_record(rng):
    """Whether the difference of near copies tells anything is a matter of rounding."""
    X = rng.standard_normal((200, 3)) * [3, 0, 1]
    X[:, 1] = X[:, 0] + 3.6e-5 * X[:, 2]
    A, S = as_covariance(X), np.array([0, 1])
    model = FeatureSparsePCA(1, 2, solver="go").fit(X)
    record = FitRecord.from_estimator(model, X)
    W = record.loadings
    with_it, without = (variance_shares(A, S, W, dependent).panel for dependent in (1e-10, 3e-10))
    assert record.panel_share == with_it > without + 0.04
    for form in (np.asarray, np.asfortranarray, sp.csr_array, npy):
        replace(record, panel_share=without).verify(form(X))
        record.verify(form(X))
    for wrong in (with_it + 1e-4, without - 1e-4):
        with pytest.raises(CertificateError, match="panel_share"):
            replace(record, panel_share=wrong).verify(X)


def test_the_data_may_come_in_any_form(records, wine):
    values = wine.to_numpy()
    for form in (np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix, npy):
        records["plain"].verify(form(values))


def test_a_covariance(tmp_path):
    A = load_pitprops().covariance
    model = FeatureSparsePCA(2, 5, covariance="precomputed", certify="exact", random_state=0).fit(A)
    record = FitRecord.from_estimator(model, A)
    assert record.n_samples is None
    assert record.scores is None
    record.save(tmp_path / "x")
    assert FitRecord.load(tmp_path / "x").verify(A)
    with pytest.raises(CertificateError, match="fingerprint"):
        record.verify(A * 2)


def test_one_covariance_for_all(records, wine):
    """A record, its path and its check share one: A is formed once, as for the first of them."""
    X = wine.to_numpy()
    covariance = as_covariance(X, scale=True)
    path = sparsity_path(covariance, 2, ks=[2, 4], scale=True, random_state=0)
    record = FitRecord.from_estimator(ESTIMATORS["features"], covariance, path=path)
    assert record.fingerprint == records["features"].fingerprint
    np.testing.assert_array_equal(record.scores, records["features"].scores)
    assert record.verify(covariance)
    assert covariance.n_grams == 1


def test_a_covariance_that_was_built_otherwise_is_refused(records, wine):
    A = load_pitprops().covariance
    precomputed = FeatureSparsePCA(2, 5, covariance="precomputed", random_state=0).fit(A)
    record = FitRecord.from_estimator(precomputed, as_covariance(A, kind="covariance"))
    assert record.verify(as_covariance(A, kind="covariance"))
    with pytest.raises(ValueError, match="was made from data"):
        record.verify(as_covariance(wine))
    with pytest.raises(ValueError, match="say covariance='precomputed'"):
        records["plain"].verify(as_covariance(A, kind="covariance"))
    with pytest.raises(ValueError, match="not standardised: build it with scale=True"):
        records["features"].verify(as_covariance(wine))
    with pytest.raises(ValueError, match="standardised, but scale=False"):
        records["plain"].verify(as_covariance(wine, scale=True))
    with pytest.raises(CertificateError, match="scale: a covariance matrix has none"):
        replace(record, parameters={**record.parameters, "scale": True}).verify(A)


def test_float32(wine):
    X = wine.to_numpy(np.float32)
    model = FeatureSparsePCA(2, 4, certify=True, random_state=0).fit(X)
    assert FitRecord.from_estimator(model, X).verify(X)


def test_how_many_worked_on_it_is_not_part_of_a_record(wine):
    one, two = (
        FitRecord.from_estimator(
            FeatureSparsePCA(2, 4, certify="exact", n_jobs=n_jobs, random_state=0).fit(wine), wine
        )
        for n_jobs in (None, 2)
    )
    assert one.parameters == two.parameters
    assert digest(one.certificates[0].witness) == digest(two.certificates[0].witness)
    assert two.verify(wine)


# --- nothing false passes


def changed(record, **parts):
    """Return the record with functions of some parts in their place."""
    return replace(
        record, **{name: change(getattr(record, name)) for name, change in parts.items()}
    )


def one_sign(W):
    W = W.copy()
    W[0, 0] *= -1
    return W


CHANGES = {
    "loadings": {"loadings": lambda W: W * 1.01},
    "sign of one loading": {"loadings": one_sign},
    "no such feature": {"support": lambda S: np.r_[13, S[1:]]},
    "another support": {"support": lambda S: np.setdiff1d(np.arange(13), S)[: S.size]},
    "a feature twice": {"support": lambda S: np.r_[S[1], S[1:]]},
    "objective": {"objective": lambda value: value * 1.001},
    "variances": {"explained_variance": lambda values: values * [1.001, 0.999]},
    "total": {"total_variance": lambda value: value * 0.999},
    "plain PCA": {"pca_variance": lambda values: values * 0.99},
    "represented": {"represented_share": lambda value: value + 1e-6},
    "panel": {"panel_share": lambda value: value - 1e-6},
    "distinct signals": {"effective_features": lambda value: value * 1.00001},
    "more than all": {"panel_share": lambda value: 1.1},
    "a share left out": {"panel_share": lambda value: None},
    "a share in words": {"represented_share": lambda value: "much"},
    "fingerprint": {"fingerprint": lambda text: "0" * 64},
    "upper": {"certificates": lambda proofs: [replace(proofs[0], upper=proofs[0].upper * 1.001)]},
    "include": {"parameters": lambda asked: {**asked, "include": [0], "exclude": [1]}},
    "exclude": {"parameters": lambda asked: {**asked, "exclude": list(range(13))}},
    "another k": {"parameters": lambda asked: {**asked, "n_features_to_select": 5}},
    "no parameters": {"parameters": lambda asked: {}},
    "infinite total": {
        "total_variance": lambda value: np.inf, "objective": lambda value: value * 1e6
    },
    "claimed to be float32": {
        "dtype": lambda text: "float32", "objective": lambda value: value * 1.01
    },
    "another type": {"dtype": lambda text: "int8"},
    "mean": {"mean": lambda values: values + 0.01},
    "scale": {"scale": lambda values: values * 1.01},
    "no scale": {"scale": lambda values: None},
    "scores": {"scores": lambda values: values + 0.01},
    "samples": {"samples": lambda places: places[::-1]},
    "fewer scores": {"scores": lambda values: values[:-1]},
    "names": {"feature_names": lambda names: names[::-1]},
    "fewer names": {"feature_names": lambda names: names[:-1]},
    "floats for a support": {"support": lambda S: S.astype(float)},
    "not a number": {"total_variance": lambda value: "many"},
    "another estimator": {"estimator": lambda name: "ElementSparsePCA"},
    "no estimator of ours": {"estimator": lambda name: "PCA"},
    "another m": {"parameters": lambda asked: {**asked, "n_components": 7}},
    "another share": {"parameters": lambda asked: {**asked, "n_features_to_select": 0.9}},
    "negative samples": {"samples": lambda places: places - 178},
    "names of no samples": {"sample_names": lambda names: ["a", "b"]},
    "names that are none": {"feature_names": lambda names: list(range(13))},
    "samples that are none": {"sample_names": lambda names: [1.0] * 178},
    "float32 that is none": {"dtype": lambda text: "float32"},
    "a complex mean": {"mean": lambda values: values + 1j},
    "complex loadings": {"loadings": lambda W: W + 0j},
    "a list for a mean": {"mean": lambda values: values.tolist()},
    "text for a status": {"status": lambda text: "splendid"},
    "optimal by word alone": {
        "status": lambda text: "optimal", "certificates": lambda proofs: [],
    },
    "bounded, but proved": {"status": lambda text: "bounded"},
    "negative passes": {"n_passes": lambda n: -1},
    "text for steps": {"n_iter": lambda n: "3"},
    "negative seconds": {"seconds": lambda n: -1.0},
    "another solver's type": {"solver": lambda name: None},
    "no table": {"n_samples": lambda n: -178},
    "no history": {"history": lambda values: None},
    "a turned component": {"loadings": lambda W: -W, "scores": lambda Z: -Z},
    "unsorted": {
        "loadings": lambda W: W[:, ::-1], "scores": lambda Z: Z[:, ::-1],
        "explained_variance": lambda values: values[::-1],
    },
    "include of nothing": {"parameters": lambda asked: {**asked, "include": ["hue"]}},
    "a level that was not asked for": {"parameters": lambda asked: {**asked, "certify": "fast"}},
    "no proof asked for": {"parameters": lambda asked: {**asked, "certify": False}},
    "certificates of something else": {"certificates": lambda proofs: [3]},
    "another version": {"version": lambda n: 2},
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_record_is_refused(records, wine, change):
    record = records["features"]
    record.verify(wine)
    with pytest.raises(CertificateError):
        changed(record, **CHANGES[change]).verify(wine)


@pytest.mark.parametrize("share", [1e-9, 9e-8, -1e-9])
def test_the_objective_holds_to_rounding(records, wine, share):
    """What shared features of data in double precision explain is known to 1e-12 or so."""
    for name in ("features", "plain"):
        for part in ("objective", "explained_variance", "total_variance"):
            with pytest.raises(CertificateError, match=part):
                changed(records[name], **{part: lambda value: value * (1 + share)}).verify(wine)


@pytest.mark.parametrize("given", [True, False], ids=["matrix", "float32"])
def test_no_objective_is_above_its_certificate(wine, given):
    X = wine.to_numpy(np.float32)
    X = np.cov(X.T) if given else X
    kind = "precomputed" if given else None
    model = FeatureSparsePCA(2, 4, covariance=kind, certify="exact", random_state=0).fit(X)
    record = FitRecord.from_estimator(model, X)
    record.verify(X)
    above = record.certificates[0].upper * (1 + 1e-11)
    assert above < record.objective * (1 + 1e-8)
    with pytest.raises(CertificateError, match=r"objective: .* the most is"):
        replace(record, objective=above).verify(X)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize(
    "solver", [*(pytest.param(name, marks=pytest.mark.slow) for name in ("auto", "tpower")), "go"]
)
def test_honest_records_hold_in_any_form(rng, scale, solver):
    """Also where means are 1e9 times the deviations, and are taken out of products last."""
    shapes = [(50, 12, 3, 5), (20, 1100, 2, 30), (40, 700, 3, 450)]
    for (n, d, m, k), mean in product(shapes, (0.0, 1e3, 1e6)):
        X = 1e-3 * (rng.standard_normal((n, 3)) @ rng.standard_normal((3, d)))
        X += 1e-3 * rng.standard_normal((n, d)) + mean
        for form in (np.asarray, sp.csr_array):
            model = FeatureSparsePCA(
                m, k, solver=solver, scale=scale, time_limit=1, certify="fast", random_state=0
            ).fit(form(X))
            # Scores themselves cannot be told to seven digits then.
            record = replace(FitRecord.from_estimator(model, X), scores=None)
            for other in (np.asarray, sp.csr_array, npy):
                record.verify(other(X))


def forged(proof, **parts):
    """A certificate that was changed by someone who can compute a digest."""
    return replace(proof, **parts, digest="")


PROOF_CHANGES = {
    "bounded": {"status": Status.BOUNDED},
    "time limit": {"status": Status.TIME_LIMIT},
    "converged": {"status": Status.CONVERGED},
    "a level": {"level": "tight"},
    "no level": {"level": "by heart"},
    "nodes": {"n_nodes": 12345},
    "negative nodes": {"n_nodes": -1},
    "negative eigensolves": {"n_eigensolves": -1},
    "no history": {"history": np.zeros(3)},
    "negative seconds": {"seconds": -1.0},
}


@pytest.mark.parametrize("change", PROOF_CHANGES)
def test_what_a_certificate_says_about_itself_is_checked(records, wine, change):
    record = records["features"]
    proofs = [forged(record.certificates[0], **PROOF_CHANGES[change])]
    with pytest.raises(CertificateError):
        replace(record, certificates=proofs).verify(wine)


def test_rotated_components_are_refused(records, wine):
    """The same span, orthonormal, with variances that are true: but not principal axes."""
    record = records["features"]
    turn = np.array([[0.8, 0.6], [-0.6, 0.8]])
    W = record.loadings @ turn
    W *= np.sign(W[np.abs(W).argmax(axis=0), [0, 1]])
    X = (wine / wine.std()).to_numpy()[:, record.support]
    variances = np.diagonal(W.T @ np.cov(X.T) @ W)
    order = np.argsort(-variances)
    rotated = replace(
        record, loadings=W[:, order], explained_variance=variances[order], scores=None
    )
    with pytest.raises(CertificateError, match="not the principal axes of their span"):
        rotated.verify(wine)


def test_a_record_is_made_of_a_fit_and_of_its_data(wine):
    model = FeatureSparsePCA(2, 5, scale=True, random_state=0)
    with pytest.raises(ValueError, match="not fitted yet"):
        FitRecord.from_estimator(model, wine)
    model.fit(wine)
    for other in (2 * wine + 1, (wine - wine.mean()) / wine.std()):
        with pytest.raises(ValueError, match="not the data of the fit"):
            FitRecord.from_estimator(model, other)
    plain = FeatureSparsePCA(2, 5, random_state=0).fit(wine)
    with pytest.raises(ValueError, match="not the data of the fit"):
        FitRecord.from_estimator(plain, (wine - wine.mean()) / wine.std())
    with pytest.raises(ValueError, match="features, the fit had 13"):
        FitRecord.from_estimator(plain, wine.iloc[:, :12])
    with pytest.raises(TypeError, match="of a pipeline give its step"):
        FitRecord.from_estimator(object(), wine)


def test_a_share_that_is_not_reached_is_refused(records, wine):
    record = records["plain"]
    for share, holds in ((0.5, True), (0.99999999, False), (1.5, False)):
        asked = {**record.parameters, "n_features_to_select": None, "explained_share": share}
        claim = replace(record, parameters=asked)
        if holds:
            assert "that fewer features would not do" in claim.verify(wine)[-1]
        else:
            with pytest.raises(CertificateError, match="explained_share"):
                claim.verify(wine)
    model = FeatureSparsePCA(2, explained_share=0.8, scale=True, random_state=0).fit(wine)
    assert FitRecord.from_estimator(model, wine).verify(wine)


def test_a_share_that_all_features_fall_short_of(rng):
    X = rng.standard_normal((30, 5)) * [9.0, 1.0, 1.0, 1.0, 1.0]
    with pytest.warns(UserWarning, match="less than explained_share"):
        model = FeatureSparsePCA(2, explained_share=0.9, solver="ipu", exclude=[0]).fit(X)
    assert FitRecord.from_estimator(model, X).verify(X)


def test_float32_numbers_in_double_precision(wine, tmp_path):
    """As they come back from a text file: the record of a float32 fit holds for them too."""
    X = wine.to_numpy(np.float32)
    record = FitRecord.from_estimator(FeatureSparsePCA(2, 4, random_state=0).fit(X), X)
    assert record.dtype == "float32"
    for form in (np.asarray, sp.csr_array, npy, as_covariance):
        record.verify(form(X.astype(np.float64)))


@pytest.fixture(scope="module")
def with_path(records, wine):
    path = sparsity_path(wine, 2, ks=[2, 4, 7], scale=True, random_state=0)
    return replace(records["features"], path=path)


def test_axes_of_a_path_may_be_any_where_variances_are_equal():
    """What two scores tell then depends on the axes, and is checked against what features tell."""
    X = scipy.linalg.hadamard(16)[:, 1:9].astype(float)
    X[:, 7] += X[:, 0] + X[:, 1]
    model = FeatureSparsePCA(1, 3, exclude=[7], random_state=0).fit(X)
    path = sparsity_path(X, 1, ks=[2, 3], exclude=[7], random_state=0)
    record = FitRecord.from_estimator(model, X, path=path)
    for form in (np.asarray, sp.csr_array, npy):
        record.verify(form(X))
    other = replace(path, represented=0.9 * path.represented)
    replace(record, path=other).verify(X)
    with pytest.raises(CertificateError, match="panel"):
        replace(record, path=replace(path, panel=0.9 * path.panel)).verify(X)


def test_a_path_is_verified(with_path, wine):
    assert with_path.verify(wine)[-2] == "the path holds at 3 numbers of features"
    assert "how the path was found" in with_path.verify(wine)[-1]


PATH_CHANGES = {
    "represented": {"represented": lambda values: values * 0.999},
    "panel": {"panel": lambda values: np.minimum(values * 1.001, 1.0)},
    "represented left out": {"represented": lambda values: None},
    "panel above one": {"panel": lambda values: values + 1},
    "full": {"full": lambda value: value * 0.99},
    "total": {"total_variance": lambda value: value * 2},
    "another m": {"n_components": lambda m: m + 1},
    "slightly lower upper": {"upper": lambda values: values * (1 - 1e-11)},
    "text for a status": {"status": lambda text: "splendid"},
    "names that are none": {"feature_names": lambda names: list(range(13))},
    "one support for all": {"supports": lambda supports: supports[0]},
    "proofs with another level": {
        "certificates": lambda proofs: [forged(proof, level="magic") for proof in proofs]
    },
    "infinite upper": {"upper": lambda values: values * np.inf},
    "fractions": {"k": lambda k: k + 0.5},
    "other names": {"feature_names": lambda names: names[::-1]},
    "empty": {name: (lambda part: part[:0]) for name in ("k", "objective", "upper", "supports")},
    "negative places": {"supports": lambda supports: [*supports[:-1], supports[-1] - 13]},
    "objective": {"objective": lambda values: values * 1.001},
    "lower upper": {"upper": lambda values: np.minimum(values, values[-1] * 0.999)},
    "support": {"supports": lambda supports: [*supports[:-1], np.arange(7)]},
    "fewer features": {"supports": lambda supports: [*supports[:-1], np.zeros(7, dtype=int)]},
    "certificates": {
        "certificates": lambda proofs: [
            replace(proof, upper=proof.upper * 1.01) for proof in proofs
        ]
    },
}


@pytest.mark.parametrize("change", PATH_CHANGES)
def test_a_changed_path_is_refused(with_path, wine, change):
    with pytest.raises(CertificateError):
        replace(with_path, path=changed(with_path.path, **PATH_CHANGES[change])).verify(wine)


OWN_PATHS = {
    "orthonormal": (StiefelSparsePCA(2, n_nonzero_coefs=4, scale=True, random_state=0), {}),
    "disjoint": (
        StiefelSparsePCA(2, n_nonzero_coefs=4, disjoint=True, scale=True, random_state=0),
        {"estimator": "orthonormal", "disjoint": True},
    ),
    "separate": (ElementSparsePCA(2, 4, scale=True, random_state=0), {}),
    "nonnegative": (NonnegativeSparsePCA(2, 4, scale=True, random_state=0), {}),
    "single": (ElementSparsePCA(1, 4, scale=True, random_state=0), {"estimator": "separate"}),
}


@pytest.fixture(scope="module")
def own_paths(wine):
    found = {}
    for name, (model, options) in OWN_PATHS.items():
        asked = {"estimator": name, "ks": [2, 4, 7], "scale": True, "random_state": 0, **options}
        path = sparsity_path(wine, model.n_components, **asked)
        found[name] = FitRecord.from_estimator(model.fit(wine), wine, path=path)
    return found


@pytest.mark.parametrize("name", OWN_PATHS)
def test_a_path_of_features_of_their_own_is_kept_and_verified(own_paths, wine, tmp_path, name):
    record = own_paths[name]
    record.save(tmp_path / "x")
    back = FitRecord.load(tmp_path / "x")
    assert back.verify(wine)[-2] == "the path holds at 3 numbers of features"
    assert back.k_on_path == 4
    assert back.path.components_at(4) == record.path.components_at(4)


OWN_PATH_CHANGES = {
    "represented": {"represented": lambda values: values * 0.999},
    "panel": {"panel": lambda values: np.minimum(values * 1.001, 1.0)},
    "represented left out": {"represented": lambda values: None},
    "panel above one": {"panel": lambda values: values + 1},
    "objective": {"objective": lambda values: values * 1.001},
    "a bound": {"upper": lambda values: np.where(np.isnan(values), 9.0, values * 0.99)},
    "more features": {"k": lambda k: k - 1, "proved_at": lambda k: k - 1},
    "loadings": {"loadings": lambda found: [found[0], -found[1][::-1], found[2]]},
    "not of unit length": {"loadings": lambda found: [2 * part for part in found]},
    "proofs of others": {"certificates": lambda proofs: proofs[::-1]},
    "proofs at other numbers": {"proved_at": lambda k: np.full_like(k, 7)},
    "proved nowhere": {"proved_at": lambda k: k + 1},
    "a changed proof": {
        "certificates": lambda proofs: (
            [forged(proofs[0], upper=proofs[0].upper * 0.9), *proofs[1:]]
            if proofs[0].upper * 0.9 > proofs[0].lower
            else [forged(proofs[0], lower=proofs[0].lower * 0.9), *proofs[1:]]
        )
    },
    "another estimator": {"estimator": lambda name: "features"},
    "another rule": {"disjoint": lambda rule: not rule},
    "another m": {"n_components": lambda m: m + 1},
}


@pytest.mark.parametrize("change", OWN_PATH_CHANGES)
@pytest.mark.parametrize("name", OWN_PATHS)
def test_a_changed_path_of_features_of_their_own_is_refused(own_paths, wine, name, change):
    record = own_paths[name]
    with pytest.raises(CertificateError):
        replace(record, path=changed(record.path, **OWN_PATH_CHANGES[change])).verify(wine)


def test_a_path_belongs_to_its_estimator(own_paths, wine):
    model = OWN_PATHS["orthonormal"][0].fit(wine)
    for name in ("separate", "disjoint"):
        with pytest.raises(ValueError, match="path is that of another problem"):
            FitRecord.from_estimator(model, wine, path=own_paths[name].path)


@pytest.mark.parametrize(
    ("k", "m"),
    [*product([2, 3], [1, 2, 3]), (7, 1), (7, 2), pytest.param(7, 3, marks=pytest.mark.slow)],
)
def test_orthonormal_components_of_float32_data_hold(k, m):
    """Their loadings are orthonormal to seven digits, and may seem to have too much."""
    rng = np.random.default_rng(k)
    X = (rng.standard_normal((60, 4)) @ rng.standard_normal((4, 9))).astype(np.float32)
    X += 0.4 * rng.standard_normal((60, 9)).astype(np.float32)
    model = StiefelSparsePCA(m, n_nonzero_coefs=k, certify="exact", random_state=0).fit(X)
    record = FitRecord.from_estimator(model, X)
    record.verify(X)
    with pytest.raises(CertificateError):
        replace(record, loadings=record.loadings * (1 + 3e-4)).verify(X)


def test_no_path_is_above_its_band(records, wine):
    path = sparsity_path(wine, 2, ks=[4, 13], scale=True, certify=False, random_state=0)
    replace(records["features"], path=path).verify(wine)
    above = changed(path, objective=lambda values: values * [1, 1 + 1e-9])
    with pytest.raises(CertificateError, match=r"k=13: .* is above its bound"):
        replace(records["features"], path=above).verify(wine)


def test_loadings_that_are_worse_than_the_certificate_are_refused(records, wine, rng):
    """Random orthonormal loadings on the best support are not the best loadings."""
    record = records["features"]
    W = np.linalg.qr(rng.standard_normal(record.loadings.shape))[0]
    X = (wine / wine.std()).to_numpy()[:, record.support]
    inside = W.T @ np.cov(X.T) @ W
    values, rotation = np.linalg.eigh(inside)
    W = W @ rotation[:, ::-1]
    W *= np.sign(W[np.abs(W).argmax(axis=0), [0, 1]])
    worse = replace(
        record, loadings=W, objective=float(values.sum()), explained_variance=values[::-1],
        scores=None, represented_share=None, panel_share=None, effective_features=None,
    )  # fmt: skip
    with pytest.raises(CertificateError, match="worse than the certificate's"):
        worse.verify(wine)
    replace(worse, certificates=[], status="completed").verify(wine)


def test_what_does_not_follow_from_the_data_is_named(records, wine):
    record = records["features"]
    made_up = replace(
        record, parameters={**record.parameters, "random_state": 12345, "time_limit": 7.0}
    )
    said = made_up.verify(wine)[-1]
    assert "(explained_share, init, random_state, solver_options, time_limit)" in said
    assert "feature_names" not in said
    renamed = replace(made_up, feature_names=[f"gene {j}" for j in range(13)])
    assert "feature_names" in renamed.verify(wine.to_numpy())[-1]
    without = replace(record, certificates=[], status="completed")
    assert "(certify, explained_share," in without.verify(wine)[-1]
    assert "deflation" in records["elements"].verify(wine)[-1]
    with pytest.raises(CertificateError, match="one has no name"):
        replace(record, parameters={**record.parameters, "all\nholds": 1}).verify(wine)


def test_signs_of_nonnegative_components(records, wine):
    with pytest.raises(CertificateError, match="negative"):
        changed(records["nonnegative"], loadings=lambda W: -W, scores=lambda Z: -Z).verify(wine)


def test_more_features_than_asked_for(records, wine):
    for name in ("stiefel", "elements", "nonnegative"):
        asked = {**records[name].parameters, "n_nonzero_coefs": 1}
        with pytest.raises(CertificateError):
            replace(records[name], parameters=asked).verify(wine)


def test_a_small_component_is_checked_by_its_own_size(rng):
    X = rng.standard_normal((50, 3)) * [1e4, 1.0, 0.1]
    record = FitRecord.from_estimator(FeatureSparsePCA(2, 2, random_state=0).fit(X), X)
    record.verify(X)
    with pytest.raises(CertificateError, match=r"explained_variance\[1\]"):
        changed(record, explained_variance=lambda values: values * [1, 6]).verify(X)
    with pytest.raises(CertificateError, match="scores"):
        changed(record, scores=lambda Z: Z + [0, 0.01]).verify(X)


@pytest.mark.parametrize("form", [sp.csr_array, npy, np.asfortranarray])
def test_wide_data_in_any_form(rng, form):
    """A proof by way of rows, and of fewer features, needs the same numbers from every form."""
    X = rng.standard_normal((12, 1100)) * rng.uniform(0.5, 2, 1100)
    model = FeatureSparsePCA(1, 3, certify=True, random_state=0).fit(X)
    assert isinstance(model.certificate_.witness, ScreenedWitness)
    record = FitRecord.from_estimator(model, X)
    assert record.verify(form(X))
    assert record.verify(as_covariance(form(X)))


@pytest.mark.parametrize("deflation", ["remove", "projection", "orthogonalized"])
def test_float32_nonnegative_components(wine, deflation):
    X = (wine / wine.std()).to_numpy(np.float32)
    model = NonnegativeSparsePCA(3, 4, deflation=deflation, certify=True, random_state=0).fit(X)
    assert FitRecord.from_estimator(model, X).verify(X)


def test_renamed_columns_are_noticed(records, wine):
    with pytest.raises(CertificateError, match="another name"):
        records["plain"].verify(wine.rename(columns={"ash": "ashes"}))
    records["plain"].verify(wine.to_numpy())
    with pytest.raises(CertificateError, match="another name"):
        records["plain"].verify(wine.to_numpy(), [f"x{j}" for j in range(13)])


def test_what_does_not_belong_together_is_refused(records, wine):
    model = ESTIMATORS["features"]
    for wrong in (
        {"path": sparsity_path(wine, 1, ks=[2, 3], certify=False, random_state=0)},
        {"stability": selection_stability(wine.iloc[:, :5], 2, 3, n_resamples=3, random_state=0)},
        {"sample_names": ["one"]},
    ):
        with pytest.raises(ValueError, match=r"another problem|other data|expected 178"):
            FitRecord.from_estimator(model, wine, **wrong)


def test_a_certificate_of_another_fit_is_refused(records, wine):
    other = records["selector"]
    swapped = replace(records["forced"], certificates=other.certificates)
    with pytest.raises(CertificateError):
        swapped.verify(wine)


def test_other_data_is_refused(records, wine):
    with pytest.raises(CertificateError, match="not the data"):
        records["plain"].verify(wine.to_numpy() + 1e-9)
    with pytest.raises(CertificateError, match="177 x 13, but the fit was to 178 x 13"):
        records["plain"].verify(wine[:-1])
    with pytest.raises(CertificateError, match="not the data"):
        records["plain"].verify(wine.to_numpy()[::-1])


def test_files_that_are_no_records(records, tmp_path):
    path = tmp_path / "x"
    path.write_text("hello")
    with pytest.raises(ValueError, match="not a file of kspan"):
        FitRecord.load(path)
    records["features"].certificates[0].save(path)
    with pytest.raises(ValueError, match="does not hold the record of a fit"):
        FitRecord.load(path)
    replace(records["features"], version=99).save(path)
    with pytest.raises(ValueError, match="version 99"):
        FitRecord.load(path)


def test_one_array_in_many_places_is_refused(with_path, tmp_path):
    """A file of a few megabytes would take minutes: each place is looked at on its own."""
    with_path.save(tmp_path / "x")
    parts = members(tmp_path / "x")
    header = np.load(io.BytesIO(parts["header.npy"])).tobytes().decode()
    document = json.loads(header)
    supports = document["value"]["fields"]["path"]["fields"]["supports"]
    supports[1] = supports[0]
    text = np.frombuffer(json.dumps(document).encode(), dtype=np.uint8)
    named = {name[:-4]: np.load(io.BytesIO(part)) for name, part in parts.items()}
    np.savez(tmp_path / "y.npz", **{**named, "header": text})
    with pytest.raises(ValueError, match="is there twice"):
        FitRecord.load(tmp_path / "y.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"supports": lambda supports: [*supports[:-1], np.arange(6)]}, "k=7: not 7 features"),
        ({"n_features": lambda d: 10**6, "feature_names": lambda names: None}, "of other data"),
    ],
)
def test_a_path_of_something_else_is_not_loaded(with_path, tmp_path, change, message):
    wrong = replace(with_path, path=changed(with_path.path, **change))
    wrong.save(tmp_path / "x")
    with pytest.raises(ValueError, match=message):
        FitRecord.load(tmp_path / "x")


def test_the_features_of_a_file_are_looked_at_once(with_path, tmp_path, monkeypatch):
    seen = []

    def look(what, *rest):
        seen.append(what)
        require_features(what, *rest)

    monkeypatch.setattr("kspan.records.form.require_features", look)
    with_path.save(tmp_path / "x")
    FitRecord.load(tmp_path / "x")
    own, proofs = 1 + len(with_path.path.supports), 1 + len(with_path.path.certificates)
    assert len(seen) == own + 3 * proofs


# --- reproducible


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != "notes.json"}


@pytest.mark.parametrize("name", ["features", "nonnegative", "stiefel"])
def test_the_same_seed_gives_the_same_bytes_but_for_times(wine, tmp_path, name):
    paths = []
    for run, seconds in enumerate((1.0, 2.0)):
        model = ESTIMATORS[name].fit(wine)
        extra = {}
        if name == "features":
            asked = {"scale": True, "random_state": 0}
            extra["path"] = sparsity_path(wine, 2, ks=[2, 4, 6], **asked)
            extra["stability"] = selection_stability(wine, 2, 4, n_resamples=5, **asked)
        record = FitRecord.from_estimator(model, wine, seconds=seconds, **extra)
        paths.append(tmp_path / str(run))
        record.save(paths[-1])
        assert FitRecord.load(paths[-1]).seconds == seconds
    assert members(paths[0]) == members(paths[1])
    assert b"pickle" not in b"".join(members(paths[0]).values())


@pytest.mark.parametrize("name", ESTIMATORS)
def test_scores_need_the_chosen_features_only(records, wine, name, tmp_path):
    record = records[name]
    expected, chosen = record.transform(wine), record.selected_names
    measured = wine[chosen[::-1]]
    measured.to_csv(tmp_path / "new.csv", index=False)
    for given in (
        measured, measured.assign(kind="red"), wine[chosen].to_numpy(), wine.to_numpy().tolist(),
        sp.coo_array(wine[chosen].to_numpy()), tmp_path / "new.csv",
    ):  # fmt: skip
        np.testing.assert_allclose(record.transform(given), expected, rtol=0, atol=1e-9)
    found = record.transform(measured.to_numpy(), feature_names=chosen[::-1])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match=f"there is no column '{chosen[0]}'"):
        record.transform(measured.drop(columns=chosen[0]))


def test_scores_of_what_cannot_be_scored(records, wine):
    record, chosen = records["plain"], records["plain"].selected_names
    values = wine[chosen].to_numpy().copy()
    values[[4, 2], [0, 1]] = np.inf, np.nan
    with pytest.raises(ValueError, match=f"2 missing .* in row 3 of '{chosen[1]}'"):
        record.transform(values)
    nullable = wine[chosen].astype("Float64")
    nullable.iloc[5, 2] = None
    with pytest.raises(ValueError, match=f"1 missing .* in row 6 of '{chosen[2]}'"):
        record.transform(nullable)


def test_scores_by_represent_and_of_a_covariance(wine):
    model = FeatureSparsePCA(2, 3, criterion="represent", scale=True, random_state=0).fit(wine)
    record = FitRecord.from_estimator(model, wine)
    expected = model.transform(wine)
    np.testing.assert_allclose(record.transform(wine[record.selected_names]), expected, atol=1e-9)
    A = wine.cov()
    model = FeatureSparsePCA(2, 3, covariance="precomputed", random_state=0).fit(A)
    record = FitRecord.from_estimator(model, A)
    assert record.of_covariance
    centred = wine - wine.mean()
    expected = model.transform(centred)
    chosen = centred[record.selected_names]
    np.testing.assert_allclose(record.transform(chosen), expected, atol=1e-9)


def test_few_of_many_samples_keep_their_scores(rng):
    X = rng.standard_normal((5000, 4)) * [1, 2, 3, 4]
    names = [f"s{i}" for i in range(5000)]
    record = FitRecord.from_estimator(
        FeatureSparsePCA(1, 2, random_state=0).fit(X), X, sample_names=names
    )
    assert record.scores.shape == (2000, 1)
    assert record.sample_names[0] == "s0"
    assert record.sample_names[-1] == "s4999"
    np.testing.assert_allclose(record.scores, record.transform(X)[record.samples], atol=1e-12)


def test_names_and_parameters_are_plain(wine):
    data = load_breast_cancer()
    model = FeatureSparsePCA(
        2, 4, solver_options={"n_restarts": np.int64(3)}, include=np.array([3]),
        callback=lambda progress: None, random_state=np.int64(0),
    ).fit(data.data)  # fmt: skip
    record = FitRecord.from_estimator(model, data.data, feature_names=data.feature_names)
    assert record.parameters["include"] == [3]
    assert "callback" not in record.parameters
    assert record.parameters["random_state"] == 0
    assert set(record.selected_names) <= set(data.feature_names)


@dataclass(frozen=True, eq=False)
class Proving(IPU):
    """A method from another package that wants its answer proved."""

    name = "proving"
    proof_level = "fast"


def test_a_method_of_somebody_else_may_ask_for_a_proof(wine):
    model = FeatureSparsePCA(2, 3, solver=Proving(), random_state=0).fit(wine)
    assert model.certificate_.level == "fast"
    FitRecord.from_estimator(model, wine).verify(wine)


@dataclass(frozen=True, eq=False)
class Projecting(EM):
    """A method with another deflation than most, unless told."""

    name = "projecting"
    deflation: str = "projection"


def test_the_deflation_is_that_of_the_method(wine, monkeypatch):
    model = NonnegativeSparsePCA(2, 3, solver=Projecting(), certify="fast", random_state=0)
    record = FitRecord.from_estimator(model.fit(wine), wine)
    record.verify(wine)
    monkeypatch.setattr(registry, "_FROM_ABOVE", [*registry._FROM_ABOVE, Projecting])
    named = replace(record, parameters={**record.parameters, "solver": "projecting"})
    named.verify(wine)
