"""`FitRecord`: all there is to know about a fit, in one file.

What shows a fit (the report, the displays) and what checks it (`FitRecord.verify`) work from a
record; no solver is needed again, and data only to check. The file is a ``.npz`` without pickles;
what differs between two runs of the same fit, its times, is a member of its own.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.cards import LONGEST, MOST_ROWS, Grid, card, counted, shorten, signed
from kspan.choosing_k import BudgetPath, ComponentPath, Panel, SparsityPath, Stability
from kspan.choosing_k.result import path_types
from kspan.io.columns import Chosen, as_plain
from kspan.io.results import data_frame, json_ready
from kspan.io.rows import projected
from kspan.io.table import as_floats, not_finite
from kspan.proofs import Certificate, CertificateError
from kspan.proofs.check.certificate import file_types
from kspan.records.check import check_record
from kspan.records.collect import (
    covariance_of,
    environment,
    plain_parameters,
    require_data_of,
    require_fitted,
    some_scores,
)
from kspan.records.form import (
    DEFAULTS,
    JOINT,
    ONE_BY_ONE,
    PATH_OF,
    ROW_SPARSE,
    VERSION,
    features_each,
    require_form,
    require_times,
)
from kspan.records.notes import notes_about
from kspan.storage import load_file, load_notes, save_file


@dataclass(frozen=True, repr=False)
class FitRecord:
    """A fit, without its data.

    Attributes
    ----------
    estimator : str
        Name of the class, and `parameters`, those it was made with.
    n_samples, n_features : int
        Of the data; `n_samples` is None after a fit to a covariance.
    source : str
        What the data was called, such as the name of its file.
    fingerprint : str
        SHA-256 of the numbers of the data; see `kspan.covariance.Covariance.fingerprint`.
    dtype : {"float64", "float32"}
    feature_names : list of str or None
        Of all features.
    support : (k,) array
        The features that are used.
    loadings : (k, m) array
        Their loadings.
    mean, scale : (k,) arrays
        What is subtracted from them, and what they are divided by; `scale` may be None.
    explained_variance : (m,) array
    pca_variance : (m,) array or None
        What the components of plain PCA explain, for comparison.
    total_variance, objective : float
    represented_share, panel_share, effective_features : float or None
        What the scores, and all chosen features, tell of the variance of all features, and how many
        distinct signals those are: see `kspan.problem.VarianceShares`. None in older files.
    history : (t,) array
        The objective as it went.
    n_iter, n_passes : int
    solver, status : str
    certificates : list of Certificate
        None, one for all components, or one for each.
    scores : (s, m) array or None
        Coordinates of some samples, those at the places `samples`, with their `sample_names`.
    labels : list of str or None
        To which class each of these samples belongs, as `label_name` says; for pictures only.
    path : SparsityPath or None
    stability : Stability or None
    budget_path : BudgetPath or None
    environment : dict
        Versions of what it was made with.
    weights : str or None
        SHA-256 of the sample weights, if there were any.
    n_missing : int
        How many values of the data were missing; ``parameters["missing"]`` is what was done.
    indefiniteness : float
        How far below zero the smallest eigenvalue of a given matrix is, as a share of the largest
        one. Variances and bounds are about the matrix as it is.
    notes : list of str
        What to know about the data: raw counts, or columns in different units.
    created, seconds : str, float or None
        When, and how long it took.
    version : int
    """

    estimator: str
    parameters: dict[str, Any]
    n_samples: int | None
    n_features: int
    source: str
    fingerprint: str
    dtype: str
    feature_names: list[str] | None
    support: Index
    loadings: FloatArray
    mean: FloatArray
    scale: FloatArray | None
    explained_variance: FloatArray
    pca_variance: FloatArray | None
    total_variance: float
    objective: float
    history: FloatArray
    n_iter: int
    n_passes: int
    solver: str
    status: str
    certificates: list[Certificate]
    scores: FloatArray | None
    samples: Index
    sample_names: list[str] | None
    path: SparsityPath | None
    stability: Stability | None
    environment: dict[str, str]
    weights: str | None = None
    n_missing: int = 0
    indefiniteness: float = 0.0
    budget_path: BudgetPath | None = None
    represented_share: float | None = None
    panel_share: float | None = None
    effective_features: float | None = None
    labels: list[str] | None = None
    label_name: str | None = None
    notes: list[str] = field(default_factory=list)
    created: str = ""
    seconds: float | None = None
    version: int = field(default=VERSION)

    @property
    def n_components(self) -> int:
        """The number m of components."""
        return self.loadings.shape[1]

    @property
    def set_parameters(self) -> dict[str, Any]:
        """Those parameters that are not as they are by default, and the numbers that say most."""
        return {
            name: value
            for name, value in self.parameters.items()
            if name == "n_components" or value != DEFAULTS.get(name)
        }

    @property
    def pca_share(self) -> float | None:
        """What plain PCA with as many components tells of the variance of all features."""
        if self.pca_variance is None or self.total_variance <= 0:
            return None
        return float(self.pca_variance.sum()) / self.total_variance

    @property
    def missing_share(self) -> float:
        """The share of the data that was missing."""
        return self.n_missing / ((self.n_samples or 1) * self.n_features)

    @property
    def selected_names(self) -> list[str]:
        """Names of the features that are used; their places if they have none."""
        if self.feature_names is None:
            return [str(place) for place in self.support]
        return [self.feature_names[place] for place in self.support]

    @property
    def is_row_sparse(self) -> bool:
        """Whether all components share their features."""
        return self.estimator in ROW_SPARSE

    @property
    def tells_all(self) -> bool:
        """Whether the features were chosen to tell the most about all features."""
        return self.parameters.get("criterion") == "represent"

    @property
    def is_joint(self) -> bool:
        """Whether one proof is about all components, each with features of its own."""
        return self.estimator == JOINT

    @property
    def is_provable(self) -> bool:
        """Whether there are certificates for such a fit: not where a penalty says how sparse."""
        counts = (self.parameters.get(name) for name in ("n_nonzero_coefs", "n_nonzero_total"))
        by_counts = self.is_joint and any(count is not None for count in counts)
        return self.is_row_sparse or self.estimator in ONE_BY_ONE or by_counts

    @property
    def is_asked_to_prove(self) -> bool:
        """Whether a proof was asked for; without certificates the fit ended before it began."""
        return bool(self.parameters.get("certify")) or self.parameters.get("solver") == "exact"

    @property
    def k_on_path(self) -> int | None:
        """The number of features by which the fit lies on a path; None if it can lie on none."""
        if self.is_row_sparse:
            return int(self.support.size)
        return features_each(PATH_OF[self.estimator], self.parameters, self.n_features)

    @property
    def panel(self) -> Panel:
        """The rules about which features go together."""
        return Panel.of(self.parameters)

    @property
    def costs(self) -> FloatArray | None:
        """What the chosen features cost each."""
        costs = self.parameters.get("costs")
        return None if costs is None else np.array([costs[place] for place in self.support])

    @property
    def groups(self) -> list[str | None] | None:
        """The groups of the chosen features."""
        groups = self.parameters.get("groups")
        return None if groups is None else [groups[place] for place in self.support]

    def remarks(self) -> list[str]:
        """Say in sentences what is not as plain as it could be about data and rules."""
        found = [*self._rules(), *self.notes]
        if self.weights is not None:
            found.append("Samples are weighted.")
        if self.n_missing:
            done = {
                "mean": "the mean of the feature is taken in their place",
                "pairwise": "covariances are from the samples that have both features",
            }[self.parameters["missing"]]
            found.append(
                f"{self.n_missing:,} value{'s' if self.n_missing > 1 else ''} "
                f"({self.missing_share:.2%}) {'are' if self.n_missing > 1 else 'is'} missing: "
                f"{done}."
            )
        if self.indefiniteness:
            found.append(
                "The matrix is not positive semidefinite: it has an eigenvalue of "
                f"{-self.indefiniteness:.2g} of the largest one. Variances are those of the matrix "
                "as it is, and upper bounds hold for it."
            )
        return found

    def _rules(self) -> list[str]:
        """Say which rules about features the choice keeps."""
        panel, found = self.panel, []
        if panel.group_rule is not None:
            most = "" if panel.n_groups is None else f", at most {panel.n_groups} of them"
            found.append(f"Groups are chosen whole{most}.")
        if panel.max_per_group is not None:
            each = panel.max_per_group
            most = f"At most {each}" if isinstance(each, int) else "A limited number of"
            found.append(f"{most} of each group.")
        if self.costs is not None:
            found.append(f"The panel costs {self.costs.sum():g} of a budget of {panel.budget:g}.")
        if panel.max_correlation is not None:
            found.append(f"No two are correlated by more than {panel.max_correlation:g}.")
        budgets = self.budget_path
        if budgets is not None and budgets.budget[-1] > budgets.asked:
            more, last = budgets.budget[-1] / budgets.asked - 1, budgets.objective[-1]
            gain = last / budgets.objective[budgets.place(budgets.asked)] - 1
            found.append(f"{more:.0%} more money would buy {gain:.2%} more explained variance.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the fit as plain numbers, texts and lists, ready for JSON.

        It is what ``kspan fit --json`` writes. Path, stability and budgets have a `to_dict` of
        their own.
        """
        full = None if self.pca_variance is None else float(self.pca_variance.sum())
        names = self.selected_names
        found: dict[str, Any] = json_ready({
            "estimator": self.estimator,
            "parameters": self.parameters,
            "source": self.source,
            "n_samples": self.n_samples,
            "n_features": self.n_features,
            "fingerprint": self.fingerprint,
            "weights": self.weights,
            "label": self.label_name,
            "missing": {"values": self.n_missing, "share": self.missing_share},
            "indefiniteness": self.indefiniteness,
            "selected": [
                {"feature": name, "index": place, "loadings": loadings + 0.0}
                for name, place, loadings in zip(names, self.support, self.loadings, strict=True)
            ],
            "explained_variance": self.explained_variance,
            "objective": self.objective,
            "total_variance": self.total_variance,
            "share_of_total": self.objective / self.total_variance,
            "share_of_pca": None if full is None else self.objective / full,
            "represented_share": self.represented_share,
            "panel_share": self.panel_share,
            "pca_share": self.pca_share,
            "effective_features": self.effective_features,
            "solver": self.solver,
            "status": self.status,
            "n_passes": self.n_passes,
            "certificates": [
                {"about": self.proof_is_about(j), **_of_proof(proof)}
                for j, proof in enumerate(self.certificates)
            ],
            "seconds": self.seconds,
            "environment": self.environment,
        })  # fmt: skip
        return found

    def to_frame(self) -> Any:
        """Return the loadings as a pandas DataFrame: a row for each chosen feature, by its name."""
        columns: dict[str, Any] = {"index": self.support}
        columns |= {f"PC{j + 1}": column + 0.0 for j, column in enumerate(self.loadings.T)}
        return data_frame(columns, index=self.selected_names)

    def __repr__(self) -> str:
        proofs = "; ".join(dict.fromkeys(proof.verdict for proof in self.certificates))
        return f"<FitRecord: {self._found()}; {proofs or 'nothing is proved'}>"

    def _found(self) -> str:
        """Say in a line how many features explain, or tell, how much."""
        k, d, m = self.support.size, self.n_features, self.n_components
        carry = "tell" if self.tells_all else "carry"
        who = f"{k:,} of {counted(d, 'feature')} {carry}{'s' if k == 1 else ''}"
        if self.pca_variance is not None and self.pca_variance.sum() > 0:
            share, of = self.objective / float(self.pca_variance.sum()), "what plain PCA explains"
        elif self.total_variance > 0:
            share, of = self.objective / self.total_variance, "the variance of the data"
        else:
            return f"{k:,} of {counted(d, 'feature')}"
        return f"{who} {share:.1%} of {of}, with {counted(m, 'component')}"

    def _repr_html_(self) -> str:
        proofs = self.certificates
        said = [
            f"{about[0].upper()}{about[1:]}: {proof.verdict}."
            for about, proof in ((self.proof_is_about(j), p) for j, p in enumerate(proofs))
        ]
        samples = "a covariance" if self.n_samples is None else counted(self.n_samples, "sample")
        facts = [("data", f"{samples}, {counted(self.n_features, 'feature')}")]
        if self.represented_share is not None:
            facts.append(("scores tell of all features", f"{self.represented_share:.1%}"))
        facts.append(("found by", f"{self.solver}, {self.status}"))
        order = np.argsort(-(self.loadings**2).sum(axis=1), kind="stable")[:MOST_ROWS]
        source = f" of {shorten(self.source, LONGEST)}" if self.source else ""
        names, hidden = self.selected_names, self.support.size - order.size
        rows = [
            [shorten(names[i], LONGEST), *(signed(float(value)) for value in self.loadings[i])]
            for i in order
        ]
        return card(
            f"{self.estimator}{source}",
            f"{self._found()}.",
            [*(said or ["Nothing is proved about it."]), *self.notes],
            facts,
            Grid(
                ["feature", *(f"PC{j + 1}" for j in range(self.n_components))], rows,
                note=f"and {hidden:,} more: to_frame() has them all" if hidden else "",
            ),
        )  # fmt: skip

    def proof_is_about(self, number: int) -> str:
        """Say what a certificate is about; `number` counts from 0.

        Not about `explained_variance` where components have features of their own: that leaves out
        what a component shares with those before it.
        """
        if self.is_row_sparse:
            return "the selection"
        if self.n_components == 1:
            return "the component"
        if self.is_joint:
            return "the variances of all components added up, tr(V'AV)"
        left = ", in what those before it left" if number else ""
        return f"component {number + 1}{left}"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        sample_weight: Any = None,
        source: str = "",
        feature_names: Sequence[str] | None = None,
        sample_names: Sequence[str] | None = None,
        labels: Sequence[Any] | None = None,
        label_name: str = "label",
        path: SparsityPath | None = None,
        stability: Stability | None = None,
        budget_path: BudgetPath | None = None,
        seconds: float | None = None,
    ) -> "FitRecord":
        """Make a record of a fitted estimator and the data it was fitted to.

        The data is read twice or so, for its fingerprint and for what plain PCA explains; data
        that does not fit in memory once, for the fingerprint alone.

        Parameters
        ----------
        estimator : fitted estimator of kspan
        X : the data, as given to `fit`
        sample_weight : the weights, as given to `fit`
        source : what to call the data
        feature_names : names of all features, if X has none
        sample_names : names of all samples
        labels : the class of each sample, in words or numbers, by which pictures are coloured
        label_name : what the labels are called
        path, stability, budget_path : results of `kspan.sparsity_path`,
            `kspan.selection_stability` and `kspan.budget_path`
        seconds : how long the fit took
        """
        require_fitted(estimator)
        covariance = covariance_of(X, estimator.get_params(), sample_weight=sample_weight)
        own, in_blocks = estimator._weights_digest, hasattr(estimator, "_stream")
        if own != covariance.weights_digest and not in_blocks:
            raise ValueError("The fit had other sample weights: give sample_weight as to `fit`.")
        if not in_blocks:
            require_data_of(estimator, covariance)
        support = estimator.get_support(indices=True)
        names = getattr(estimator, "feature_names_in_", feature_names)
        labels = None if labels is None else list(labels)
        scores, samples = some_scores(estimator.components_, support, covariance)
        _require_length("feature_names", names, covariance.n_features)
        _require_length("sample_names", sample_names, covariance.n_samples)
        _require_length("labels", labels, covariance.n_samples)
        if path is not None and (path.kind, path.n_components, path.n_features) != (
            PATH_OF.get(type(estimator).__name__), estimator.n_components_, covariance.n_features,
        ):  # fmt: skip
            raise ValueError("path is that of another problem.")
        if isinstance(path, ComponentPath) and path.disjoint != getattr(
            estimator, "disjoint", False
        ):
            raise ValueError("path is that of another problem: disjoint differs.")
        own_budget = getattr(estimator, "budget", None)
        if budget_path is not None and (
            budget_path.asked != own_budget or budget_path.n_features != covariance.n_features
        ):
            raise ValueError("budget_path is that of another problem.")
        if stability is not None and stability.frequencies.size != covariance.n_features:
            raise ValueError("stability is that of other data.")
        found = getattr(estimator, "certificates_", None)
        if found is None:
            found = [estimator.certificate_] if hasattr(estimator, "certificate_") else []
        m = estimator.n_components_
        return cls(
            estimator=type(estimator).__name__,
            parameters=plain_parameters(estimator, covariance.n_features),
            n_samples=covariance.n_samples,
            n_features=covariance.n_features,
            source=source,
            fingerprint=covariance.fingerprint(),
            dtype=str(covariance.dtype),
            feature_names=None if names is None else [str(name) for name in names],
            support=support,
            loadings=estimator.components_[:, support].T.astype(np.float64),
            mean=estimator.mean_[support],
            scale=None if estimator.scale_ is None else estimator.scale_[support],
            explained_variance=np.asarray(estimator.explained_variance_),
            pca_variance=(None if covariance.reads_are_costly else covariance.leading(m).values),
            total_variance=covariance.trace(),
            objective=float(estimator.objective_),
            history=np.asarray(estimator.objective_history_, dtype=np.float64),
            n_iter=int(estimator.n_iter_),
            n_passes=int(estimator.n_passes_),
            solver=estimator.solver_,
            status=estimator.status_,
            certificates=list(found),
            scores=scores,
            samples=samples,
            sample_names=None if sample_names is None else [str(sample_names[i]) for i in samples],
            labels=None if labels is None else [str(labels[i]) for i in samples],
            label_name=None if labels is None else label_name,
            path=path,
            stability=stability,
            budget_path=budget_path,
            environment=environment(),
            weights=covariance.weights_digest,
            n_missing=0 if covariance.missing is None else covariance.missing.count,
            indefiniteness=covariance.indefiniteness,
            represented_share=estimator.represented_variance_ratio_,
            panel_share=estimator.panel_variance_ratio_,
            effective_features=estimator.effective_features_,
            notes=notes_about(covariance),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=seconds,
        )

    def transform(self, X: Any, feature_names: Sequence[str] | None = None) -> FloatArray:
        """Return the coordinates of samples along the components.

        Only the chosen features are needed: those that the record has in `support`. Missing values
        of them are taken to be the mean of the fit, if it was one that allows them. After a fit to
        a covariance no means are known, and X has to be centred.

        Parameters
        ----------
        X : array, data frame, scipy sparse array, or path of a file
            With names, those of the chosen features in any order; the other columns do not matter.
            Without names, all columns of the table of the fit, or just the chosen ones in the order
            of `support`.
        feature_names : names of the columns, if X has none
        """
        chosen = Chosen(self.support, self.n_features, self.feature_names)
        allow_missing = self.parameters["missing"] != "raise" and not self.of_covariance
        data = chosen.open(X, feature_names, allow_missing=allow_missing)
        axes = self.loadings if self.scale is None else self.loadings / self.scale[:, None]
        origin, fill = self.mean @ axes, self.mean if allow_missing else None
        if data.rows is not None:
            return np.asarray(data.rows.project(np.arange(self.support.size), axes, origin, fill))
        values = as_floats("X", as_plain(data.values))
        self._require_finite(values, allow_missing=allow_missing)
        return projected(values, axes, origin, None, fill)

    def _require_finite(self, values: Any, *, allow_missing: bool) -> None:
        """Refuse chosen columns with numbers that are infinite, or missing if they may not be."""
        rows, columns, found = not_finite(values)
        wrong = np.isinf(found) if allow_missing else np.ones(found.size, dtype=bool)
        if not wrong.any():
            return
        rows, columns, count = rows[wrong], columns[wrong], int(wrong.sum())
        first = np.lexsort((columns, rows))[0]
        raise ValueError(
            f"{count} missing or infinite value{'s' * (count > 1)} of chosen features, the first "
            f"in row {rows[first] + 1} of {self.selected_names[columns[first]]!r}."
        )

    @property
    def of_covariance(self) -> bool:
        """Whether the fit was to a covariance matrix: then no means of features are known."""
        return self.parameters["covariance"] == "precomputed"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file, atomically."""
        times = {
            "created": self.created,
            "seconds": self.seconds,
            "certificates": _times(self.certificates),
            "path": self.path and {
                "seconds": self.path.seconds, "certificates": _times(self.path.certificates)
            },
        }  # fmt: skip
        save_file(path, self._with_times({}), notes=times)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "FitRecord":
        """Read what `save` wrote. Nothing of it is believed until `verify` has passed it.

        A file that holds no record, or one whose parts are not of their types and shapes, is a
        `ValueError`; so is one that would unpack to more than 1 GiB, or eight times its size.
        """
        types = (cls, *path_types(), Stability, BudgetPath, *file_types())
        record = load_file(path, types)
        if not isinstance(record, cls):
            raise ValueError(f"{os.fspath(path)}: does not hold the record of a fit")
        if record.version != VERSION:
            raise ValueError(
                f"{os.fspath(path)}: a record of version {record.version}; this kspan reads "
                f"{VERSION}"
            )
        try:
            require_form(record)
        except CertificateError as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from None
        try:
            timed = record._with_times(load_notes(path))
            require_times(timed)
        except (AttributeError, KeyError, TypeError, CertificateError):
            raise ValueError(f"{os.fspath(path)}: its times are malformed") from None
        return timed

    def _with_times(self, times: Mapping[str, Any]) -> "FitRecord":
        """Return the record with other times; with none where nothing is given."""
        path = self.path
        if path is not None:
            known = times.get("path") or {}
            proofs = _with_times(path.certificates, known.get("certificates"))
            path = replace(path, seconds=known.get("seconds", 0.0), certificates=proofs)
        budgets = self.budget_path
        if budgets is not None:  # its times are not kept
            proofs = _with_times(budgets.certificates, None)
            budgets = replace(budgets, seconds=0.0, certificates=proofs)
        return replace(
            self,
            budget_path=budgets,
            created=times.get("created", ""),
            seconds=times.get("seconds"),
            certificates=_with_times(self.certificates, times.get("certificates")),
            path=path,
        )

    def verify(
        self, X: Any, feature_names: Sequence[str] | None = None, *, sample_weight: Any = None
    ) -> list[str]:
        """Check the record against the data; return what was checked, and last what was not.

        Checked are the data itself, loadings, variances, what they tell of all features, centre,
        scales, scores, the share that was asked for, certificates with their status, and the path
        with its bounds. How it was found does not follow from the data, nor do the frequencies of
        `stability`: the last line, which begins with "not checked", names all of that.

        Parameters
        ----------
        X : the data of the fit, in any form
        feature_names : names of all features, to compare; by default those that X has
        sample_weight : the weights of the fit, if it had any

        Raises
        ------
        CertificateError
            Naming the first number that does not follow from the data.
        """
        return check_record(self, X, feature_names, sample_weight)


def _of_proof(proof: Certificate) -> dict[str, Any]:
    """Return of a certificate what there is to say about a fit."""
    names = ("lower", "upper", "gap", "status", "level", "method", "confidence", "seconds")
    found = proof.to_dict()
    return {name: found[name] for name in names}


def _require_length(what: str, names: Any, length: int | None) -> None:
    if names is not None and len(names) != length:
        raise ValueError(f"{what} has {len(names)} names, expected {length}.")


def _times(proofs: Sequence[Certificate]) -> list[dict[str, Any]]:
    return [{"seconds": proof.seconds, "history": proof.history[:, 0].tolist()} for proof in proofs]


def _with_times(
    proofs: Sequence[Certificate], times: Sequence[Mapping[str, Any]] | None
) -> list[Certificate]:
    """Return certificates with other times, which are no part of the proofs."""
    if times is None:
        times = [{"seconds": 0.0, "history": 0.0}] * len(proofs)
    found = []
    for proof, time in zip(proofs, times, strict=True):
        history = proof.history.copy()
        history[:, 0] = time["history"]
        found.append(replace(proof, seconds=time["seconds"], history=history))
    return found
