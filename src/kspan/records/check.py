"""Checking a record against the data: nothing of it is believed.

Not checked, as they do not follow from the data: how the answer was found (solver, history, passes,
times, environment), and the frequencies of a stability study.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.choosing_k import SparsityPath
from kspan.choosing_k.band import upper_band
from kspan.covariance import Covariance
from kspan.io import open_data
from kspan.linalg.selection import placed
from kspan.problem import (
    NonnegativeProblem,
    RowSparseProblem,
    adjusted_variances,
    default_nonzero_coefs,
)
from kspan.proofs import Certificate, CertificateError, verify
from kspan.records.collect import covariance_of
from kspan.solving import component_problems

if TYPE_CHECKING:
    from kspan.records.record import FitRecord

# What numbers may differ by, relatively: eigenvalues are accurate to 1e-8. Bounds may not.
TOLERANCE = {"float64": 1e-7, "float32": 1e-4}
BOUND_TOLERANCE = 1e-9

ORTHONORMAL = ("FeatureSparsePCA", "FeatureSparseSelector", "StiefelSparsePCA")
NONNEGATIVE = "NonnegativeSparsePCA"
ESTIMATORS = (*ORTHONORMAL, NONNEGATIVE, "ElementSparsePCA")

# Variances of rounding size, relative to all that is explained.
ROUNDING = 1e-12


def check_record(
    record: "FitRecord", X: Any, feature_names: Sequence[str] | None = None
) -> list[str]:
    """Check every claim; return what was checked, or raise `CertificateError`."""
    asked = record.parameters
    if not isinstance(asked, dict) or not {"covariance", "scale"} <= set(asked):
        raise CertificateError("parameters: not those of an estimator")
    need(not (asked["covariance"] and asked["scale"]), "scale: a covariance matrix has none")
    data = open_data(X)
    covariance = covariance_of(data.values, asked, whole=True)
    names = data.feature_names if feature_names is None else list(feature_names)
    try:
        return Check(record, covariance).run(names)
    except CertificateError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CertificateError(f"record: malformed ({error})") from error


class Check:
    """The claims of a record, one after the other.

    Parameters
    ----------
    record : FitRecord
    covariance : Covariance
        Of the data that it is to be about.
    """

    def __init__(self, record: "FitRecord", covariance: Covariance):
        self.record, self.covariance = record, covariance
        self.tol = TOLERANCE[record.dtype]
        self.d, self.m = covariance.n_features, record.loadings.shape[1]
        self.plain: FloatArray | None = None
        if record.pca_variance is not None or record.path is not None:
            self.plain = covariance.leading(self.m).values

    def run(self, names: Sequence[str] | None) -> list[str]:
        """Check everything; return what was checked."""
        need(self.record.estimator in ESTIMATORS, "estimator: not one of kspan")
        done = [self.data(names), *self.components(), self.frame()]
        done += self.certificates()
        if self.record.path is not None:
            done.append(self.path(self.record.path))
        if self.record.dtype == "float32":
            done.append("the fit was made in float32: its numbers hold to four digits")
        return done

    # --- data, loadings, variances

    def data(self, names: Sequence[str] | None) -> str:
        """The data is that of the fit."""
        record, covariance = self.record, self.covariance
        if self.d != record.n_features or covariance.n_samples != record.n_samples:
            rows = self.d if covariance.n_samples is None else covariance.n_samples
            raise CertificateError(
                f"data: {rows} x {self.d}, but the fit was to "
                f"{record.n_samples or record.n_features} x {record.n_features}"
            )
        need(covariance.fingerprint() == record.fingerprint,
             "fingerprint: this is not the data of the fit")  # fmt: skip
        known = record.feature_names
        need(known is None or len(known) == self.d, "feature_names: not one for each feature")
        if names is not None and known is not None:
            other = [j for j in range(self.d) if str(names[j]) != known[j]]
            need(not other, f"feature_names: column {other[:1]} has another name in the data")
        return f"the data is that of the fit (SHA-256 {record.fingerprint[:12]}…)"

    def components(self) -> list[str]:
        """The loadings are what they should be, and explain what they are said to."""
        record, covariance = self.record, self.covariance
        W, support = record.loadings, record.support
        self.choice("support", support)
        need(W.shape[0] == support.size, "loadings: not one row for each selected feature")
        need(W.dtype == np.float64 and np.isfinite(W).all(), "loadings: not finite numbers")
        gram = W.T @ W
        orthonormal = record.estimator in ORTHONORMAL
        error = np.abs(gram - np.eye(self.m)) if orthonormal else np.abs(np.diagonal(gram) - 1)
        kind = "orthonormal" if orthonormal else "of unit length"
        need(error.max() <= 10 * self.tol, f"loadings: not {kind}")
        if record.estimator == NONNEGATIVE:
            need((W >= 0).all(), "loadings: negative")
        self.counts(W)
        inside = W.T @ covariance.submatrix(support) @ W
        variances = np.diagonal(inside) if record.is_row_sparse else adjusted_variances(inside)
        objective, total = float(variances.sum()), covariance.trace()
        self.agree("total_variance", record.total_variance, total)
        self.agree("objective", record.objective, objective)
        floor = np.full(self.m, ROUNDING / self.tol * objective)
        self.agree_all("explained_variance", record.explained_variance, variances, floor)
        if record.pca_variance is not None:
            assert self.plain is not None
            floor = np.full(self.m, 0.1 * self.plain[0])  # Lanczos stops at 1e-8 of the largest
            self.agree_all("pca_variance", record.pca_variance, self.plain, floor)
        return [
            f"the loadings are {kind}, on {support.size} features",
            f"they explain {objective / total:.4%} of the variance",
        ]

    def counts(self, W: FloatArray) -> None:
        """As many components, and features in each, as were asked for."""
        asked = self.record.parameters
        need(asked["n_components"] == self.m, "n_components: not as many components")
        if self.record.is_row_sparse:
            return
        need(W.any(axis=1).all(), "support: with features that no component uses")
        most = asked["n_nonzero_coefs"]
        need(most is None or (W != 0).sum(axis=0).max() <= most, "loadings: too many features")

    def frame(self) -> str:
        """Centre, scales and scores: what applies the fit to samples."""
        record, covariance, S = self.record, self.covariance, self.record.support
        mean = np.zeros(self.d) if covariance.mean is None else covariance.mean
        deviation = np.sqrt(np.maximum(covariance.diagonal(), 0.0))[S]
        if covariance.scale is not None:
            deviation = deviation * covariance.scale[S]
        self.agree_all("mean", record.mean, mean[S], deviation)
        if record.parameters["scale"]:
            assert covariance.scale is not None
            need(record.scale is not None, "scale: missing")
            self.agree_all("scale", record.scale, covariance.scale[S], np.zeros(S.size))
        else:
            need(record.scale is None, "scale: the fit has none")
        if record.scores is not None:
            places, n = record.samples, covariance.n_samples or 0
            need(places.dtype.kind in "iu" and np.isin(places, np.arange(n)).all(),
                 "samples: not samples of the data")  # fmt: skip
            found = covariance.scores(record.loadings, S)[places]
            largest = np.broadcast_to(np.abs(found).max(axis=0, initial=0.0), found.shape)
            self.agree_all("scores", record.scores, found, largest)
        names = record.sample_names
        need(names is None or len(names) == record.samples.size, "sample_names: not one for each")
        return "centre, scales and scores are those of the data"

    def choice(self, what: str, support: Index, k: int | None = None) -> None:
        """Features of the data, each once, as many as were asked for, and those that had to be."""
        asked = self.record.parameters
        need(support.dtype.kind in "iu" and support.ndim == 1, f"{what}: not indices")
        need(np.unique(support).size == support.size, f"{what}: a feature is there twice")
        inside = support.size == 0 or (support.min() >= 0 and support.max() < self.d)
        need(inside, f"{what}: not features of the data")
        need(np.isin(asked.get("include") or [], support).all(), f"{what}: without one to include")
        need(not np.isin(asked.get("exclude") or [], support).any(), f"{what}: with one to exclude")
        if k is None and self.record.is_row_sparse:
            k = asked["n_features_to_select"]
            k = int(k * self.d) if isinstance(k, float) and k < 1 else k
        need(k is None or support.size == k, f"{what}: not {k} features")

    # --- proofs

    def certificates(self) -> list[str]:
        """The certificates hold, and are about these loadings."""
        record, done = self.record, []
        problems = self.problems()
        need(len(record.certificates) <= len(problems), "certificates: more than problems")
        for j, (problem, proof) in enumerate(zip(problems, record.certificates, strict=False)):
            lower, upper = verify(problem, proof)
            reached = self.reached(problem, proof, j)
            need(reached >= lower * (1 - self.tol), "loadings: worse than the certificate's")
            what = "the selection" if record.is_row_sparse else f"component {j + 1}"
            share = 1.0 if upper <= 0 else min(reached, upper) / upper
            sure = "" if proof.confidence == 1 else f", with probability {proof.confidence:.4g}"
            done.append(f"{what} explains at least {share:.4%} of the best possible{sure}")
        return done

    def reached(self, problem: Any, proof: Certificate, j: int) -> float:
        """What the loadings that a certificate is about explain."""
        record, x = self.record, self.record.loadings[:, j]
        used = record.support if record.is_row_sparse else record.support[x != 0]
        same = np.array_equal(np.sort(proof.support), np.sort(used))
        need(same, "support: the certificate is about other features")
        if record.is_row_sparse:
            return record.objective
        return float(x[x != 0] @ problem.covariance.submatrix(used) @ x[x != 0])

    def problems(self) -> list[Any]:
        """Return the problem of every certificate."""
        record, asked = self.record, self.record.parameters
        if not record.certificates:
            return []
        if record.is_row_sparse:
            return [self.problem_at(record.support.size)]
        need(record.estimator == NONNEGATIVE, "certificates: there are none for this estimator")
        k = asked["n_nonzero_coefs"] or default_nonzero_coefs(self.d)
        loadings = placed(record.loadings, record.support, self.d)
        for j, proof in enumerate(record.certificates[: self.m]):
            # In double precision, as they were taken out one after the other.
            exact = placed(proof.weights[:, 0], proof.support, self.d)
            close = np.abs(exact - loadings[:, j]).max() <= 10 * self.tol
            need(close, "loadings: not those of the certificate")
            loadings[:, j] = exact
        problem = NonnegativeProblem(self.covariance, self.m, k)
        return list(component_problems(problem, loadings, self.deflation()))

    def deflation(self) -> str:
        """Return how components were taken out: as asked for, or as the method says."""
        asked = self.record.parameters
        options = asked["solver"] if isinstance(asked["solver"], dict) else {}
        found: str = asked["deflation"] or options.get("deflation") or "remove"
        return found

    def problem_at(self, k: int) -> RowSparseProblem:
        """Return the problem with k features."""
        asked = self.record.parameters
        forced = asked["include"] or (), asked["exclude"] or ()
        return RowSparseProblem(self.covariance, self.m, k, *forced)

    def path(self, path: SparsityPath) -> str:
        """What other numbers of features explain, and what they cannot exceed."""
        need(self.record.is_row_sparse, "path: the components do not share their features")
        need((path.n_components, path.n_features) == (self.m, self.d), "path: of another problem")
        need(path.k.dtype.kind in "iu" and path.k.size > 0 and (np.diff(path.k) > 0).all(),
             "path: k does not rise")  # fmt: skip
        named = path.feature_names is None or path.feature_names == self.record.feature_names
        need(named, "path: other feature_names")
        assert self.plain is not None
        self.agree("path.full", path.full, float(self.plain.sum()))
        self.agree("path.total_variance", path.total_variance, self.covariance.trace())
        for proof in path.certificates:
            verify(self.problem_at(proof.n_features_to_select), proof)
        ks = [int(k) for k in path.k]
        uppers = upper_band(self.problem_at(ks[0]), ks, path.certificates)
        rows = zip(ks, path.supports, path.objective, path.upper, uppers, strict=True)
        for k, support, objective, upper, follows in rows:
            self.choice(f"path, k={k}", support, k)
            found = self.problem_at(k).refit(support).objective
            self.agree(f"path, k={k}", float(objective), found)
            proved = np.isfinite(upper) and upper >= follows * (1 - BOUND_TOLERANCE)
            need(proved, f"path, k={k}: upper {upper!r} was claimed, only {follows!r} follows")
        return f"the path holds at {len(ks)} numbers of features"

    # --- numbers

    def agree(self, name: str, claimed: float, found: float, size: float = 0.0) -> None:
        """Two numbers are the same, up to a share of the larger, or of `size`."""
        slack = self.tol * max(abs(found), abs(size))
        need(bool(np.isfinite(claimed)) and abs(claimed - found) <= slack,
             f"{name}: {claimed!r} was claimed, the data gives {found!r}")  # fmt: skip

    def agree_all(self, name: str, claimed: Any, found: FloatArray, sizes: FloatArray) -> None:
        """`agree`, for every number of an array, each with a size of its own."""
        need(np.shape(claimed) == found.shape, f"{name}: not of shape {found.shape}")
        for place in np.ndindex(found.shape):
            where = ", ".join(str(i) for i in place)
            size = float(sizes[place])
            self.agree(f"{name}[{where}]", float(claimed[place]), float(found[place]), size)


def need(holds: Any, message: str) -> None:
    """Raise unless a claim holds."""
    if not holds:
        raise CertificateError(message)
