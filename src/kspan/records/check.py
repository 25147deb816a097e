"""Checking a record against the data: nothing of it is believed.

What does not follow from the data, and is not checked, is said by `not_checked`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.choosing_k import BudgetPath, ComponentPath, SparsityPath
from kspan.choosing_k.band import free_bounds, least_of_more, upper_band
from kspan.choosing_k.components import is_share
from kspan.choosing_k.criteria import asking
from kspan.choosing_k.own_features import OwnFeatures
from kspan.choosing_k.panel import Panel
from kspan.choosing_k.smallest import readable_size
from kspan.covariance import Covariance
from kspan.io import open_data
from kspan.linalg.eigen import RESIDUAL_TOL
from kspan.linalg.representing import DEPENDENT
from kspan.linalg.rounding import UNIT
from kspan.linalg.selection import placed
from kspan.problem import (
    ElementSparseProblem,
    NonnegativeProblem,
    Patterns,
    RepresentProblem,
    RowSparseProblem,
    RuledChoice,
    StiefelProblem,
    adjusted_variances,
    default_nonzero_coefs,
    shares_along,
    variance_shares,
)
from kspan.progress import Status, worst
from kspan.proofs import Certificate, CertificateError, verify
from kspan.proofs.check.certificate import OPTIMAL_GAP
from kspan.proofs.check.claims import provable
from kspan.proofs.check.tree import TreeWitness
from kspan.proofs.search.prover import level_of, levels_of
from kspan.records.collect import covariance_of, only_float32
from kspan.records.form import (
    JOINT,
    NONNEGATIVE,
    ONE_BY_ONE,
    ORTHONORMAL,
    PARAMETERS,
    PATH_OF,
    need,
    require_form,
)
from kspan.solvers.method import AnyMethod
from kspan.solvers.registry import methods_for
from kspan.solving import component_problems, is_settled

if TYPE_CHECKING:
    from kspan.records.record import FitRecord

# What numbers may differ by, relatively: eigenvalues are accurate to 1e-8. What features explain
# together is known better, see `Check.rounding`. A bound may be higher than what follows from the
# data, but no lower than by rounding.
TOLERANCE = 1e-7

# Loadings, centre and scales of a float32 fit are float32 numbers.
LOOSE = {"float64": 1e-7, "float32": 1e-5}
BOUND_TOLERANCE = 1e-12

# How the line begins that names what was not checked.
NOT_CHECKED = "not checked"

# Shares are measured again with so many times larger and smaller a limit on what adds nothing, if
# need be; of the difference so much is rounding.
NEARLY, SPREAD = 100.0, 1e-3

# Variances of rounding size, relative to all that is explained.
ROUNDING = 1e-12


def check_record(
    record: "FitRecord", X: Any, feature_names: Sequence[str] | None = None,
    sample_weight: Any = None,
) -> list[str]:  # fmt: skip
    """Check every claim; return what was checked, or raise `CertificateError`."""
    require_form(record)
    asked = record.parameters
    need(not (asked["covariance"] and asked["scale"]), "scale: a covariance matrix has none")
    need(record.weights is None or sample_weight is not None or isinstance(X, Covariance),
         "weights: the fit had sample weights, and none are given (sample_weight)")  # fmt: skip
    data = open_data(X, allow_missing=asked["missing"] != "raise")
    # Four digits are enough only where the data has no more than seven.
    single = record.dtype == "float64" or only_float32(data.values)
    need(single, "dtype: float32, but the numbers of the data are not")
    covariance = covariance_of(data.values, asked, sample_weight=sample_weight, whole=True)
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
        self.loose = LOOSE[record.dtype]
        self.d, self.m = covariance.n_features, record.loadings.shape[1]
        self.plain: FloatArray | None = None
        self._ruled: RowSparseProblem | None = None  # with as many features as rules allow
        if record.pca_variance is not None or record.path is not None:
            self.plain = covariance.leading(self.m).values

    def run(self, names: Sequence[str] | None) -> list[str]:
        """Check everything; return what was checked, and last what was not."""
        done = [self.data(names), *self.components(), *self.shares(), self.frame()]
        self.share()
        done += self.certificates()
        if self.record.indefiniteness:
            done.append(
                f"the matrix has an eigenvalue of {-self.record.indefiniteness:.2g} of its largest "
                "one: all of this is about the matrix as it is"
            )
        self.status()
        if self.record.path is not None:
            done.append(self.path(self.record.path))
        if self.record.budget_path is not None:
            done.append(self.budgets(self.record.budget_path))
        if self.record.dtype == "float32":
            done.append("the fit was made in float32: its loadings hold to five digits")
        return [*done, not_checked(self.record, named=names is not None)]

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
        need(covariance.weights_digest == record.weights,
             "weights: the fit had no sample weights" if record.weights is None
             else "weights: these are not the sample weights of the fit")  # fmt: skip
        count = 0 if covariance.missing is None else covariance.missing.count
        need(count == record.n_missing, f"n_missing: {count} values are missing in the data")
        known = record.feature_names
        if names is not None and known is not None:
            other = [j for j in range(self.d) if str(names[j]) != known[j]]
            need(not other, f"feature_names: column {other[:1]} has another name in the data")
        # What is left of it is known to some 1e-16 of the largest eigenvalue.
        self.agree("indefiniteness", record.indefiniteness, covariance.indefiniteness, 1e-3)
        weighted = "" if record.weights is None else ", with its weights"
        return f"the data is that of the fit (SHA-256 {record.fingerprint[:12]}…){weighted}"

    def components(self) -> list[str]:
        """The loadings are what they should be, and explain what they are said to."""
        record, covariance = self.record, self.covariance
        W, support = record.loadings, record.support
        self.choice("support", support)
        if record.tells_all:
            return self.telling_scores()
        gram = W.T @ W
        orthonormal = record.estimator in ORTHONORMAL
        error = np.abs(gram - np.eye(self.m)) if orthonormal else np.abs(np.diagonal(gram) - 1)
        kind = "orthonormal" if orthonormal else "of unit length"
        need(error.max() <= 10 * self.loose, f"loadings: not {kind}")
        if record.estimator == NONNEGATIVE:
            need((W >= 0).all(), "loadings: negative")
        self.signs(W)
        self.counts(W)
        # As unit vectors: what rounding does to them then shows in the square of it only.
        W = W / np.sqrt(np.diagonal(gram))
        inside = W.T @ covariance.submatrix(support) @ W
        variances = np.diagonal(inside) if record.is_row_sparse else adjusted_variances(inside)
        if record.is_row_sparse:
            self.axes(inside)
        objective, total = float(variances.sum()), covariance.trace()
        most = self.rounding(np.arange(self.d), 1) if self.is_double else np.inf
        self.agree("total_variance", record.total_variance, total, most=most)
        # What components share is taken out of their variances: that costs digits.
        tol = TOLERANCE if record.is_row_sparse else self.loose
        before = np.zeros(self.m) if record.is_row_sparse else np.diagonal(inside)
        floor = np.maximum(before, ROUNDING / TOLERANCE * objective)
        most = np.inf
        if record.is_row_sparse and self.is_double:
            most = self.rounding(support, self.m) + self.centring(objective)
        self.agree("objective", record.objective, objective, float(before.sum()), tol, most)
        self.agree_all("explained_variance", record.explained_variance, variances, floor, tol, most)
        if record.pca_variance is not None:
            assert self.plain is not None
            floor = np.full(self.m, 0.1 * self.plain[0])  # Lanczos stops at 1e-8 of the largest
            self.agree_all("pca_variance", record.pca_variance, self.plain, floor)
        return [
            f"the loadings are {kind}, on {support.size} features",
            f"they explain {objective / total:.4%} of the variance",
        ]

    def telling_scores(self) -> list[str]:
        """Scores that tell all features: uncorrelated, each with the variance that it explains."""
        record, covariance, S = self.record, self.covariance, self.record.support
        self.counts(record.loadings)
        W = record.loadings.astype(np.float64)
        image = covariance.matmat(W, S)
        inside = W.T @ image[S]
        self.axes(inside)
        variances = np.diagonal(inside)
        slack = 100 * self.loose * float(variances.max())
        # The covariances with all features are as orthogonal, and as long, as PCA's are.
        told = image.T @ image
        off = np.abs(told - np.diag(variances**2)).max() / max(float(variances.max()), 1e-300)
        need(off <= slack, "loadings: a score does not have the variance that it tells")
        turned = image.max(axis=0) >= (1 - 100 * self.loose) * np.abs(image).max(axis=0)
        need(turned.all(), "loadings: a component is turned")
        floor = np.full(self.m, ROUNDING / TOLERANCE * float(variances.sum()))
        self.agree("total_variance", record.total_variance, covariance.trace())
        self.agree_all(
            "explained_variance", record.explained_variance, variances, floor, self.loose
        )
        best = self.problem_at(int(S.size)).refit(S)
        self.agree("objective", record.objective, best.objective, tol=self.loose)
        if record.pca_variance is not None:
            assert self.plain is not None
            floor = np.full(self.m, 0.1 * self.plain[0])
            self.agree_all("pca_variance", record.pca_variance, self.plain, floor)
        share = float(variances.sum()) / covariance.trace()
        return [
            f"the scores are uncorrelated, and made of {S.size} features",
            f"they tell {share:.4%} of the variance of all features",
        ]

    def shares(self) -> list[str]:
        """What scores and chosen features tell of all features, and how much of it is the same."""
        record = self.record
        claimed = {
            "represented_share": record.represented_share, "panel_share": record.panel_share,
            "effective_features": record.effective_features,
        }  # fmt: skip
        if all(value is None for value in claimed.values()):
            return []  # a file from before they were measured
        follows = self.told_by(1.0)
        if not self.within(claimed, [follows]):
            # Whether a feature that is nearly a sum of others adds anything is a matter of
            # rounding: what follows is between the numbers with it and without it.
            others = [self.told_by(NEARLY), follows, self.told_by(1 / NEARLY)]
            for name, value in claimed.items():
                wrong = f"{name}: {value!r} was claimed, the data gives {follows[name]!r}"
                need(self.within({name: value}, others), wrong)
        return [
            f"the scores tell {follows['represented_share']:.4%} of the variance of all features, "
            f"the chosen features {follows['panel_share']:.4%}"
        ]

    def told_by(self, factor: float) -> dict[str, float]:
        """Measure the loadings; by the factor more or fewer features depend on others."""
        W = self.record.loadings.astype(np.float64)
        found = variance_shares(self.covariance, self.record.support, W, factor * DEPENDENT)
        return {
            "represented_share": found.represented, "panel_share": found.panel,
            "effective_features": found.effective_features,
        }  # fmt: skip

    def within(
        self, claimed: Mapping[str, float | None], follows: Sequence[Mapping[str, float]]
    ) -> bool:
        """Say whether all numbers are among those that follow, up to rounding."""
        for name, value in claimed.items():
            found = [each[name] for each in follows]
            slack = self.loose * max(found) + SPREAD * (max(found) - min(found))
            if value is None or not min(found) - slack <= value <= max(found) + slack:
                return False
        return True

    @property
    def is_double(self) -> bool:
        """Whether the fit was to data in double precision; a given matrix may have been mended."""
        return self.record.dtype == "float64" and self.covariance.n_samples is not None

    def rounding(self, support: Index, m: int) -> float:
        r"""Return by how much two computations of tr(W'AW) differ at most, for W on a support.

        In each, entries of A are off by their errors, which is :math:`\sqrt{m} \sum_{i∈S} r_i`
        (`kspan.proofs.check.known.Uncertainty`), and eigenvalues or products by a modest multiple
        of k units of tr A_SS.
        """
        k, trace = support.size, float(self.covariance.diagonal()[support].sum())
        errors = float(self.covariance.entry_errors()[support].sum())
        return 2 * np.sqrt(m) * errors + 32 * m * (k + 8) * UNIT * trace

    def centring(self, explained: float) -> float:
        """Return what products add to that in which means are taken out last, of large data.

        Scores ``Xw - μ'w`` are off by e = 4(k+8)u‖μ‖, and their variances s² by 2se + e².
        """
        covariance, S = self.covariance, self.record.support
        if covariance.mean is None:
            return 0.0
        mean = covariance.mean if covariance.scale is None else covariance.mean / covariance.scale
        e = 4 * (S.size + 8) * UNIT * float(np.linalg.norm(mean[S]))
        return self.m * (2 * np.sqrt(explained) * e + e * e)

    def signs(self, W: FloatArray) -> None:
        """The entry of largest size is positive, in every component; of several one."""
        sizes = np.abs(W).max(axis=0)
        need((W.max(axis=0) >= (1 - self.loose) * sizes).all(), "loadings: a component is turned")

    def axes(self, inside: FloatArray) -> None:
        """Components that share their features are principal axes of their span, sorted.

        Others that span the same would explain as much together, but not one by one.
        """
        variances = np.diagonal(inside)
        slack = 10 * self.loose * np.abs(variances).max()
        mixed = np.abs(inside - np.diag(variances)).max()
        need(mixed <= slack, "loadings: not the principal axes of their span")
        need((np.diff(variances) <= slack).all(), "loadings: components are not sorted")

    def share(self) -> None:
        """Where a share decided how many features there are, they reach it."""
        record, asked = self.record, self.record.parameters
        if not record.is_row_sparse or asked["n_features_to_select"] is not None:
            return
        if self.panel.says_how_many:
            return
        share, n_allowed = asked["explained_share"], self.d - len(asked["exclude"] or [])
        if share is None:
            if self.panel.is_plain:
                size = readable_size(
                    self.problem_at(max(self.m, len(asked["include"] or ()))).choice, self.m
                )
                need(record.support.size == size, f"support: {size} features by default")
            return
        if not self.panel.is_plain:
            n_allowed = self.problem_at(None).choice.most_features
        need(0 < share <= 1, "explained_share: not a share")
        # With all features, or cut short, a fit may fall short of it. What is proved was found.
        cut_short = Status(record.status).stopped_early and not record.certificates
        if record.support.size == n_allowed or cut_short:
            return
        wanted = share * float(self.covariance.leading(self.m).values.sum())
        need(record.objective >= wanted * (1 - TOLERANCE),
             f"explained_share: {share} was asked for, the features keep less")  # fmt: skip

    def counts(self, W: FloatArray) -> None:
        """As many components, and features in each, as were asked for."""
        asked = self.record.parameters
        self.components_asked_for(asked["n_components"])
        if self.record.is_row_sparse:
            return
        need(W.any(axis=1).all(), "support: with features that no component uses")
        used = W != 0
        most, total = asked["n_nonzero_coefs"], asked.get("n_nonzero_total")
        need(np.size(most) in (1, self.m), "n_nonzero_coefs: not one for each component")
        need(most is None or (used.sum(axis=0) <= most).all(), "loadings: too many features")
        need(total is None or used.sum() <= total, "loadings: too many features in all")
        need(not asked.get("disjoint") or (used.sum(axis=1) <= 1).all(),
             "loadings: two components share a feature")  # fmt: skip

    def components_asked_for(self, wanted: int | float) -> None:
        """As many components as were asked for, or the fewest with a share of the variance."""
        if not is_share(wanted):
            need(wanted == self.m, "n_components: not as many components")
            return
        need(0 < wanted < 1, "n_components: no share")
        most = min(self.d, self.covariance.n_samples or self.d)
        explained = np.cumsum(self.covariance.leading(self.m).values)
        target, slack = wanted * self.covariance.trace(), self.loose * float(explained[-1])
        need(
            explained[-1] >= target - slack or self.m == most,
            f"n_components: {self.m} components have less than {wanted} of the variance",
        )
        fewer = explained[-2] if self.m > 1 else 0.0
        need(fewer <= target + slack,
             f"n_components: fewer than {self.m} have {wanted} of the variance")  # fmt: skip

    def frame(self) -> str:
        """Centre, scales and scores: what applies the fit to samples."""
        record, covariance, S = self.record, self.covariance, self.record.support
        mean = np.zeros(self.d) if covariance.mean is None else covariance.mean
        deviation = np.sqrt(np.maximum(covariance.diagonal(), 0.0))[S]
        if covariance.scale is not None:
            deviation = deviation * covariance.scale[S]
        # In standard deviations, but for the rounding of the mean itself.
        rounding = 4 * float(np.finfo(record.dtype).eps) * np.abs(mean[S])
        off = np.abs(record.mean - mean[S]) <= self.loose * deviation + rounding
        need(off.all(), f"mean: not that of the data in column {S[~off][:1]}")
        if record.parameters["scale"]:
            assert covariance.scale is not None
            need(record.scale is not None, "scale: missing")
            nothing = np.zeros(S.size)
            self.agree_all("scale", record.scale, covariance.scale[S], nothing, self.loose)
        else:
            need(record.scale is None, "scale: the fit has none")
        if record.scores is not None:
            places, n = record.samples, covariance.n_samples or 0
            need(np.isin(places, np.arange(n)).all(), "samples: not samples of the data")
            found = covariance.scores(record.loadings, S)[places]
            largest = np.broadcast_to(np.abs(found).max(axis=0, initial=0.0), found.shape)
            self.agree_all("scores", record.scores, found, largest, self.loose)
        return "centre, scales and scores are those of the data"

    def choice(self, what: str, support: Index, k: int | None = None) -> None:
        """As many features as were asked for, and those that had to be."""
        asked = self.record.parameters
        if self.record.is_row_sparse and not self.panel.is_plain:
            k = self.asked_size() if k is None else k
            wrong = self.problem_at(k).choice.objection(support)
            need(wrong is None, f"{what}: {wrong}")
            return
        need(np.isin(asked.get("include") or [], support).all(), f"{what}: without one to include")
        need(not np.isin(asked.get("exclude") or [], support).any(), f"{what}: with one to exclude")
        if k is None and self.record.is_row_sparse:
            k = self.asked_size()
        need(k is None or support.size == k, f"{what}: not {k} features")

    # --- proofs

    def certificates(self) -> list[str]:
        """The certificates hold, and are about these loadings."""
        record, done = self.record, []
        problems = self.problems()
        need(len(record.certificates) <= len(problems), "certificates: more than problems")
        for j, (problem, proof) in enumerate(zip(problems, record.certificates, strict=False)):
            lower, upper = verify(problem, proof)
            self.told(proof, type(problem))
            level = self.level()
            own = self.method() is None  # a stranger's method, with a level of its own
            need(
                own or proof.level == level, f"level: {proof.level!r}, but {level!r} was asked for"
            )
            reached = self.reached(problem, proof, j)
            tol = self.loose if record.is_joint else TOLERANCE
            need(max(reached, 0.0) >= lower * (1 - tol), "loadings: worse than the certificate's")
            if record.is_row_sparse or record.is_joint:
                most = upper * (1 + BOUND_TOLERANCE) + self.centring(upper)
                most += self.slanted() if record.is_joint else 0.0
                need(reached <= most, f"objective: {reached!r} was claimed, the most is {upper!r}")
            share = 1.0 if upper <= 0 else min(reached, upper) / upper
            sure = "" if proof.confidence == 1 else f", with probability {proof.confidence:.4g}"
            what = record.proof_is_about(j)
            done.append(f"{what}: at least {share:.4%} of the best possible{sure}")
        return done

    def told(self, proof: Certificate, kind: type) -> None:
        """What a certificate says about itself fits its numbers and its witness."""
        need(proof.level in levels_of(kind), f"level: {proof.level!r} is none")
        closed = proof.gap <= OPTIMAL_GAP
        fits = closed if proof.status is Status.OPTIMAL else not closed and (
            proof.status is Status.BOUNDED or proof.status.stopped_early
        )  # fmt: skip
        need(fits, f"status: a gap of {proof.gap:.3g} is not {proof.status.value!r}")
        if isinstance(proof.witness, TreeWitness):
            n_closed = sum(node.kind != "open" for node in proof.witness.records)
            need(proof.n_nodes == n_closed, f"n_nodes: the tree has {n_closed} that are settled")

    @property
    def kind(self) -> type:
        """The kind of problem that was fitted."""
        if self.record.is_row_sparse:
            return RepresentProblem if self.record.tells_all else RowSparseProblem
        if self.record.is_joint:
            return StiefelProblem
        return NonnegativeProblem if self.record.estimator == NONNEGATIVE else ElementSparseProblem

    def level(self) -> str | None:
        """Return the level of proof that the parameters ask for."""
        method = self.method()
        if method is not None and method.proof_level is not None:
            return method.proof_level
        return level_of(self.record.parameters["certify"], self.kind)

    def method(self) -> type[AnyMethod] | None:
        """Return the method of the fit; None if it was an object of somebody's own."""
        solver = self.record.parameters["solver"]
        name = solver.get("method") if isinstance(solver, dict) else solver
        return methods_for(self.kind).get(str(name))

    def status(self) -> None:
        """A fit is called proved, or bounded, only if its certificates say so, all together.

        A search that was settled on its way has none: that is proved again, which costs little.
        """
        claimed, proofs = Status(self.record.status), self.record.certificates
        asked = self.record.parameters.get("certify") or getattr(self.method(), "proof_level", None)
        searched = self.kind is RowSparseProblem and not proofs and not asked
        if claimed is Status.OPTIMAL and searched:
            settled = is_settled(self.problem_at(self.size_proved()), self.record.support)
            need(settled, "status: 'optimal', but that is not so easily proved")
        elif claimed in (Status.OPTIMAL, Status.BOUNDED):
            wanted = 1 if self.record.is_row_sparse or self.record.is_joint else self.m
            same = len(proofs) == wanted and worst(proof.status for proof in proofs) is claimed
            need(same, f"status: {claimed.value!r}, but no certificate says so")

    def reached(self, problem: Any, proof: Certificate, j: int) -> float:
        """What the loadings that a certificate is about explain."""
        record, x = self.record, self.record.loadings[:, j]
        if record.is_joint:
            same = np.array_equal(np.sort(proof.support), np.sort(record.support))
            need(same, "support: the certificate is about other features")
            U = self.unit_loadings()
            return float(np.sum(U * (problem.covariance.submatrix(record.support) @ U)))
        used = record.support if record.is_row_sparse else record.support[x != 0]
        same = np.array_equal(np.sort(proof.support), np.sort(used))
        if not record.is_row_sparse:  # a component may use fewer than it may
            same = bool(np.isin(used, proof.support).all())
        need(same, "support: the certificate is about other features")
        if record.is_row_sparse:
            return record.objective
        return float(x[x != 0] @ problem.covariance.submatrix(used) @ x[x != 0])

    def unit_loadings(self) -> FloatArray:
        """Return the loadings as unit vectors: rounded to float32 they are not."""
        W = self.record.loadings.astype(np.float64)
        return np.asarray(W / np.linalg.norm(W, axis=0))

    def slanted(self) -> float:
        """Return what loadings may have too much for not being orthogonal to the last digit.

        As in `StiefelProblem.claimed_value`.
        """
        W = self.unit_loadings()
        off = float(np.linalg.norm(W.T @ W - np.eye(self.m)))
        return 4 * off * float(self.covariance.diagonal()[self.record.support].sum())

    def problems(self) -> list[Any]:
        """Return the problem of every certificate."""
        record, asked = self.record, self.record.parameters
        if not record.certificates:
            return []
        if record.is_row_sparse:
            return [self.problem_at(self.size_proved())]
        if record.estimator == JOINT:
            counts = asked.get("n_nonzero_coefs"), asked.get("n_nonzero_total")
            disjoint = bool(asked.get("disjoint"))
            patterns = Patterns.of(self.d, self.m, *counts, disjoint=disjoint)
            return [StiefelProblem(self.covariance, self.m, patterns=patterns)]
        need(record.estimator in ONE_BY_ONE, "certificates: there are none for this estimator")
        k = asked["n_nonzero_coefs"] or default_nonzero_coefs(self.d)
        loadings = placed(record.loadings, record.support, self.d)
        problem = self.kind(self.covariance, self.m, k)
        return self.one_by_one(problem, loadings, record.certificates, self.deflation())

    def one_by_one(
        self, problem: Any, loadings: FloatArray, proofs: Sequence[Certificate],
        deflation: str | None,
    ) -> list[Any]:  # fmt: skip
        """Return the problem of each component, given the vectors of certificates before it."""
        for j, proof in enumerate(proofs[: self.m]):
            # In double precision, as they were taken out one after the other.
            exact = placed(proof.weights[:, 0], proof.support, self.d)
            exact = exact if exact @ loadings[:, j] >= 0 else -exact
            close = np.abs(exact - loadings[:, j]).max() <= 10 * self.loose
            need(close, "loadings: not those of the certificate")
            loadings[:, j] = exact
        return component_problems(problem, loadings, deflation)

    def deflation(self) -> str | None:
        """Return how components were taken out: as asked for, or as the method says."""
        asked = self.record.parameters
        options = asked["solver"] if isinstance(asked["solver"], dict) else {}
        by_default = getattr(self.method(), "deflation", None)
        found: str | None = asked["deflation"] or options.get("deflation") or by_default
        return found

    @property
    def panel(self) -> Panel:
        """The rules about which features go together."""
        return Panel.of(self.record.parameters)

    def asked_size(self) -> int | None:
        """Return k as it was asked for, as a number of features."""
        k = self.record.parameters["n_features_to_select"]
        return int(k * self.d) if isinstance(k, float) and k < 1 else k

    def size_proved(self) -> int | None:
        """Return the k that the certificate is about: under rules there may be fewer features."""
        if self.panel.is_plain:
            return int(self.record.support.size)
        k, proofs = self.asked_size(), self.record.certificates
        found = k is None and not self.panel.says_how_many and proofs
        return _size_of(proofs[0]) if found else k

    def problem_at(self, k: int | None) -> RowSparseProblem:
        """Return the problem with k features, or with as many as rules allow."""
        asked, panel = self.record.parameters, self.panel
        forced: dict[str, Any] = {
            "include": asked["include"] or (), "exclude": asked["exclude"] or (),
            "ask": asking(asked.get("criterion", "variance"), asked.get("ridge")),
        }  # fmt: skip
        if panel.is_plain:
            return panel.problem(self.covariance, self.m, k, **forced)
        try:
            if self._ruled is None:  # correlations are looked at once
                self._ruled = panel.problem(self.covariance, self.m, None, **forced)
            return self._ruled if k is None else self._ruled.at(k)
        except ValueError as error:
            raise CertificateError(f"parameters: {error}") from None

    def path(self, path: SparsityPath) -> str:
        """What other numbers of features explain, and what they cannot exceed."""
        of = path.kind, path.n_components, path.n_features
        same = of == (PATH_OF[self.record.estimator], self.m, self.d)
        if isinstance(path, ComponentPath):
            same = same and path.disjoint == bool(self.record.parameters.get("disjoint"))
        ridge = getattr(self.problem_at(int(path.k[0])), "ridge", None) if same and (
            self.record.is_row_sparse
        ) else None  # fmt: skip
        need(same and path.ridge == ridge, "path: of another problem")
        named = path.feature_names is None or path.feature_names == self.record.feature_names
        need(named, "path: other feature_names")
        assert self.plain is not None
        self.agree("path.full", path.full, float(self.plain.sum()))
        self.agree("path.total_variance", path.total_variance, self.covariance.trace())
        if isinstance(path, ComponentPath):
            return self.component_path(path)
        for proof in path.certificates:
            verify(self.problem_at(_size_of(proof)), proof)
            self.told(proof, self.kind)
        ks = [int(k) for k in path.k]
        uppers = upper_band(self.problem_at(ks[0]), ks, path.certificates)
        rows = zip(ks, path.supports, path.objective, path.upper, uppers, strict=True)
        for k, support, objective, upper, follows in rows:
            self.choice(f"path, k={k}", support, k)
            found = self.problem_at(k).refit(support).objective
            self.agree(f"path, k={k}", float(objective), found)
            need(objective <= upper, f"path, k={k}: {objective!r} is above its bound {upper!r}")
            proved = np.isfinite(upper) and upper >= follows * (1 - BOUND_TOLERANCE)
            need(proved, f"path, k={k}: upper {upper!r} was claimed, only {follows!r} follows")
        self.path_shares(
            path,
            lambda i: self.problem_at(ks[i]).refit(path.supports[i]).weights,
            lambda i: self.turned(path.supports[i]),
        )
        return f"the path holds at {len(ks)} numbers of features"

    def path_shares(
        self, path: SparsityPath, weights: Callable[[int], FloatArray],
        doubt: Callable[[int], float],
    ) -> None:  # fmt: skip
        """What scores and features tell at every k, given loadings and how well these are known."""
        claimed = {"represented": path.represented, "panel": path.panel}
        if all(values is None for values in claimed.values()):
            return  # a file from before they were measured
        for name, values in claimed.items():
            need(values is not None, f"path: {name} is missing")
        loadings = [weights(i) for i in range(path.k.size)]
        follows = [self.told_along(path, loadings, 1.0)]
        wrong = self.wrong_shares(path, follows, doubt)
        if wrong:  # beyond rounding, unless near copies are taken for copies, or not
            follows += [self.told_along(path, loadings, by) for by in (NEARLY, 1 / NEARLY)]
            wrong = self.wrong_shares(path, follows, doubt)
        need(not wrong, wrong)

    def wrong_shares(
        self, path: SparsityPath, follows: list[dict[str, FloatArray]],
        doubt: Callable[[int], float],
    ) -> str:  # fmt: skip
        """Return the first share of a path that is not among those that follow, in words."""
        for name in ("represented", "panel"):
            for i, k in enumerate(path.k):
                claimed, found = getattr(path, name)[i], [each[name][i] for each in follows]
                off = max(min(found) - claimed, claimed - max(found))
                slack = self.loose + SPREAD * (max(found) - min(found))
                if off > slack and (name == "panel" or off > slack + doubt(i)):
                    return (
                        f"path, k={k}: {name} {claimed!r} was claimed, the data gives {found[0]!r}"
                    )
        return ""

    def told_along(
        self, path: SparsityPath, loadings: list[FloatArray], factor: float
    ) -> dict[str, FloatArray]:
        """Measure the choices of a path; by the factor more or fewer features depend on others."""
        found = shares_along(self.covariance, path.supports, loadings, factor * DEPENDENT)
        return {"represented": found[0], "panel": found[1]}

    def turned(self, support: Index) -> float:
        """Return what the principal axes of a support may be turned by, for rounding.

        Their residuals are 1e-8 of the largest eigenvalue, and so their angles that over the gap to
        the next one. Where there is no gap, any axes will do.
        """
        if support.size <= self.m:
            return 0.0
        values = self.covariance.leading(self.m + 1, support).values
        gap = float(values[-2] - values[-1])
        return min(4 * RESIDUAL_TOL * float(values[0]) / gap, 1.0) if gap > 0 else 1.0

    def budgets(self, path: BudgetPath) -> str:
        """What other budgets buy, and what they could buy at most."""
        need(self.panel.budget == path.asked, "budget_path: another budget")
        choice = self.problem_at(self.asked_size()).choice
        assert isinstance(choice, RuledChoice)
        problems = []
        for budget in path.budget:
            other = choice.with_budget(float(budget))
            need(other.has_supports, f"budget_path: a budget of {budget:g} buys nothing")
            problems.append(RowSparseProblem(self.covariance, self.m, other))
        upper = free_bounds(problems)
        for place, proof in enumerate(path.certificates):
            upper[place] = min(upper[place], verify(problems[place], proof)[1])
            self.told(proof, RowSparseProblem)
        uppers = least_of_more(upper)
        for place, problem in enumerate(problems):
            what, support = f"budget_path, {path.budget[place]:g}", path.supports[place]
            wrong = problem.choice.objection(support)
            need(wrong is None, f"{what}: {wrong}")
            spent = float(choice.costs[support].sum())
            self.agree(f"{what}, spent", float(path.spent[place]), spent)
            self.agree(what, float(path.objective[place]), problem.refit(support).objective)
            proved = path.upper[place] >= uppers[place] * (1 - BOUND_TOLERANCE)
            proved = proved and path.objective[place] <= path.upper[place]
            need(bool(proved), f"{what}: its bound does not follow")
        return f"what {len(problems)} budgets buy holds"

    def component_path(self, path: ComponentPath) -> str:
        """What components with other numbers of features have, and what is proved of them."""
        family = OwnFeatures(self.covariance, self.m, path.estimator, path.disjoint)
        ks = [int(k) for k in path.k]
        uppers = family.upper_band(ks, path.proved_at.tolist(), path.certificates)
        for place, k in enumerate(ks):
            what, objective = f"path, k={k}", float(path.objective[place])
            point = family.point(placed(path.loadings[place], path.supports[place], self.d))
            need(np.array_equal(point.support, path.supports[place]), f"{what}: other features")
            family.require_feasible(k, point)
            lengths = (point.weights**2).sum(axis=0)
            need(np.abs(lengths - 1).max() <= 10 * self.loose, f"{what}: not of unit length")
            self.agree(what, objective, point.objective, tol=self.loose)
            proofs = [path.certificates[i] for i in np.flatnonzero(path.proved_at == k)]
            for problem, proof in zip(
                self.path_problems(family, path, place), proofs, strict=False
            ):
                verify(problem, proof)
                self.told(proof, family.kind)
            upper, follows = float(path.upper[place]), float(uppers[place])
            if not family.is_one_problem:
                need(np.isnan(upper), f"{what}: a bound on the sum of components does not follow")
                continue
            family.at_least(k, point)  # orthonormal, where that is asked for
            need(objective <= upper, f"{what}: {objective!r} is above its bound {upper!r}")
            proved = np.isfinite(upper) and upper >= follows * (1 - BOUND_TOLERANCE)
            need(proved, f"{what}: upper {upper!r} was claimed, only {follows!r} follows")
        self.path_shares(path, lambda i: path.loadings[i], lambda i: 0.0)
        return f"the path holds at {len(ks)} numbers of features"

    def path_problems(self, family: OwnFeatures, path: ComponentPath, place: int) -> list[Any]:
        """Return the problems of the certificates at one k of a path."""
        problem = family.at(int(path.k[place]))
        if family.is_one_problem:
            return [provable(problem)]
        loadings = placed(path.loadings[place], path.supports[place], self.d)
        proofs = [path.certificates[i] for i in np.flatnonzero(path.proved_at == path.k[place])]
        if not proofs:
            return []
        return self.one_by_one(problem, loadings, proofs, path.deflation)

    # --- numbers

    def agree(
        self, name: str, claimed: float, found: float, size: float = 0.0, tol: float = TOLERANCE,
        most: float = np.inf,
    ) -> None:  # fmt: skip
        """Two numbers are the same, up to a share of the larger, or of `size`, and to `most`."""
        slack = min(tol * max(abs(found), abs(size)), most)
        need(bool(np.isfinite(claimed)) and abs(claimed - found) <= slack,
             f"{name}: {claimed!r} was claimed, the data gives {found!r}")  # fmt: skip

    def agree_all(
        self, name: str, claimed: Any, found: FloatArray, sizes: FloatArray,
        tol: float = TOLERANCE, most: float = np.inf,
    ) -> None:  # fmt: skip
        """`agree`, for every number of an array, each with a size of its own."""
        need(np.shape(claimed) == found.shape, f"{name}: not of shape {found.shape}")
        for place in np.ndindex(found.shape):
            where = ", ".join(str(i) for i in place)
            size = float(sizes[place])
            values = float(claimed[place]), float(found[place])
            self.agree(f"{name}[{where}]", *values, size, tol, most)


def not_checked(record: "FitRecord", *, named: bool) -> str:
    """Say what of a record does not follow from the data.

    Parameters
    ----------
    record : FitRecord
    named : whether there were names of features to compare
    """
    names = ["solver", "history", "n_iter", "n_passes", "times", "environment", "source"]
    names.append("why it ended (status)")
    if unread := unread_parameters(record):
        names.append(f"parameters ({', '.join(unread)})")
    if record.feature_names is not None and not named:
        names.append("feature_names")
    if record.sample_names is not None:
        names.append("sample_names")
    if record.labels is not None:
        names.append("labels")
    if record.notes:
        names.append("notes")
    if record.is_row_sparse and record.parameters["n_features_to_select"] is None:
        names.append("that fewer features would not do")
    if record.certificates:
        names.append("how the proofs were found (history, n_eigensolves)")
    if record.path is not None:
        names.append("how the path was found")
    if record.stability is not None:
        names.append("stability")
    return f"{NOT_CHECKED}: {', '.join(names)}"


def _size_of(proof: Certificate) -> int:
    """Return the k that a proof was asked for; rules may leave less of it."""
    choice = proof.choice
    return choice.asked if isinstance(choice, RuledChoice) else proof.n_features_to_select


def unread_parameters(record: "FitRecord") -> list[str]:
    """Return the parameters of a record that no check has read, but for the solver."""
    asked, read = record.parameters, set(PARAMETERS)
    if not record.certificates:
        read -= {"certify", "deflation"}
    if asked.get("n_features_to_select") is not None:
        read -= {"explained_share"}
    return sorted(asked.keys() - read)
