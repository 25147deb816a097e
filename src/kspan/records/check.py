"""Checking a record against the data: nothing of it is believed."""

from typing import TYPE_CHECKING, Any

import numpy as np

from kspan.certificates import Certificate, CertificateError, verify
from kspan.covariance import Covariance
from kspan.problem import NonnegativeProblem, RowSparseProblem
from kspan.records.collect import covariance_of
from kspan.selection import SparsityPath
from kspan.selection.band import upper_band
from kspan.series import component_problems
from kspan.solution import adjusted_variances

if TYPE_CHECKING:
    from kspan.records.record import FitRecord


def check_record(record: "FitRecord", X: Any) -> list[str]:
    """Check every claim; return what was checked, or raise `CertificateError`."""
    covariance = covariance_of(X, record.parameters)
    d = covariance.n_features
    if d != record.n_features or covariance.n_samples != record.n_samples:
        rows = d if covariance.n_samples is None else covariance.n_samples
        raise CertificateError(
            f"data: {rows} x {d}, but the fit was to {record.n_samples or record.n_features} x "
            f"{record.n_features}"
        )
    if covariance.fingerprint() != record.fingerprint:
        raise CertificateError("fingerprint: this is not the data of the fit")
    done = [f"the data is that of the fit (SHA-256 {record.fingerprint[:12]}…)"]
    done += _components(record, covariance)
    problems = _problems(record, covariance)
    if record.certificates and len(record.certificates) > len(problems):
        raise CertificateError("certificates: more than there are problems")
    for j, (problem, proof) in enumerate(zip(problems, record.certificates, strict=False)):
        _about_this_fit(record, proof, j)
        lower, upper = verify(problem, proof)
        what = "the selection" if record.is_row_sparse else f"component {j + 1}"
        share = 1.0 if upper <= 0 else lower / upper
        done.append(f"{what} explains at least {share:.4%} of the best possible")
    if record.path is not None:
        done.append(_path(record, covariance, record.path))
    return done


def _components(record: "FitRecord", covariance: Covariance) -> list[str]:
    """Check loadings and variances."""
    tol = _tolerance(record)
    W, support = record.loadings, record.support
    if W.shape[0] != support.size or not np.isfinite(W).all():
        raise CertificateError("loadings: not one finite row for each selected feature")
    if np.unique(support).size != support.size:
        raise CertificateError("support: a feature is there twice")
    if support.size and (support.min() < 0 or support.max() >= record.n_features):
        raise CertificateError("support: not features of the data")
    gram = W.T @ W
    if record.is_row_sparse and np.abs(gram - np.eye(len(gram))).max() > 100 * tol:
        raise CertificateError("loadings: not orthonormal")
    if np.abs(np.diagonal(gram) - 1).max() > 100 * tol:
        raise CertificateError("loadings: not of unit length")
    inside = W.T @ covariance.submatrix(support) @ W
    variances = np.diagonal(inside) if record.is_row_sparse else adjusted_variances(inside)
    _agree(record, "total_variance", record.total_variance, covariance.trace())
    _agree(record, "objective", record.objective, float(variances.sum()))
    for j, (claimed, found) in enumerate(zip(record.explained_variance, variances, strict=True)):
        _agree(record, f"explained_variance[{j}]", float(claimed), float(found))
    if record.pca_variance is not None:
        plain = covariance.leading(record.n_components).values
        for j, (claimed, found) in enumerate(zip(record.pca_variance, plain, strict=True)):
            _agree(record, f"pca_variance[{j}]", float(claimed), float(found))
    kind = "orthonormal" if record.is_row_sparse else "of unit length"
    share = record.objective / record.total_variance
    return [
        f"the loadings are {kind}, on {support.size} features",
        f"they explain {share:.4%} of the variance",
    ]


def _problems(record: "FitRecord", covariance: Covariance) -> list[Any]:
    """Return the problem of every certificate."""
    asked = record.parameters
    if not record.certificates:
        return []
    k = record.certificates[0].n_features_to_select
    if record.is_row_sparse:
        include, exclude = asked["include"] or (), asked["exclude"] or ()
        return [RowSparseProblem(covariance, record.n_components, k, include, exclude)]
    loadings = np.zeros((record.n_features, record.n_components))
    loadings[record.support] = record.loadings
    problem = NonnegativeProblem(covariance, record.n_components, k)
    return list(component_problems(problem, loadings, asked["deflation"] or "remove"))


def _about_this_fit(record: "FitRecord", proof: Certificate, j: int) -> None:
    """A sound certificate of another selection proves nothing about this one."""
    used = record.support if record.is_row_sparse else record.support[record.loadings[:, j] != 0]
    if not np.array_equal(np.sort(proof.support), np.sort(used)):
        raise CertificateError("support: the certificate is about other features")


def _path(record: "FitRecord", covariance: Covariance, path: SparsityPath) -> str:
    """Check what other numbers of features explain, and what they cannot exceed."""
    asked = record.parameters

    def at(k: int) -> RowSparseProblem:
        forced = asked["include"] or (), asked["exclude"] or ()
        return RowSparseProblem(covariance, record.n_components, k, *forced)

    for proof in path.certificates:
        verify(at(proof.n_features_to_select), proof)
    uppers = upper_band(at(int(path.k[0])), path.k.tolist(), path.certificates)
    for k, support, claimed in zip(path.k, path.supports, path.objective, strict=True):
        if np.unique(support).size != k:
            raise CertificateError(f"path: not {k} features at k={k}")
        _agree(record, f"path, k={k}", claimed, at(int(k)).refit(support).objective)
    for k, claimed, found in zip(path.k, path.upper, uppers, strict=True):
        _agree(record, f"path, upper bound at k={k}", claimed, float(found))
    return f"the path holds at {path.k.size} numbers of features"


def _agree(record: "FitRecord", name: str, claimed: float, found: float) -> None:
    if not abs(claimed - found) <= 1000 * _tolerance(record) * record.total_variance:
        raise CertificateError(f"{name}: {claimed!r} was claimed, the data gives {found!r}")


def _tolerance(record: "FitRecord") -> float:
    return 1e-9 if record.dtype == "float64" else 1e-5
