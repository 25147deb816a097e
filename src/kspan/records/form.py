"""Whether a record is one at all: types, shapes and counts, of which nothing needs the data.

A file may hold anything. What passes here can be shown and be checked without stumbling; whether
it is true is the matter of `kspan.records.check`.
"""

from collections.abc import Iterable
from dataclasses import fields
from numbers import Integral
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import numpy as np

from kspan.choosing_k import BudgetPath, ComponentPath, SparsityPath, Stability
from kspan.choosing_k.criteria import CRITERIA
from kspan.choosing_k.panel import Panel
from kspan.covariance.matrix import Psd
from kspan.covariance.missing import RULES
from kspan.problem import default_nonzero_coefs
from kspan.progress import Status
from kspan.proofs import Certificate, CertificateError
from kspan.storage import misfit

if TYPE_CHECKING:
    from kspan.records.record import FitRecord

# Raised whenever older versions could not read what this one writes.
VERSION = 1

ROW_SPARSE = ("FeatureSparsePCA", "FeatureSparseSelector")
JOINT = "StiefelSparsePCA"
ORTHONORMAL = (*ROW_SPARSE, JOINT)
NONNEGATIVE = "NonnegativeSparsePCA"
# One certificate for each component.
ONE_BY_ONE = (NONNEGATIVE, "ElementSparsePCA")
ESTIMATORS = (*ORTHONORMAL, *ONE_BY_ONE)

# What `kspan.sparsity_path` calls their problems.
SHARED = "features"
PATH_OF = {
    **dict.fromkeys(ROW_SPARSE, SHARED),
    JOINT: "orthonormal",
    NONNEGATIVE: "nonnegative",
    "ElementSparsePCA": "separate",
}

STATUSES = frozenset(status.value for status in Status)

# Of the parameters, what the check reads; each estimator has more.
PARAMETERS: dict[str, Any] = {
    "n_components": int | float,
    "covariance": str | None,
    "scale": bool,
    "missing": str,
    "psd": str,
    "solver": str | dict[str, Any],
    "n_features_to_select": int | float | None,
    "explained_share": float | None,
    "criterion": str,
    "ridge": float | int | None,
    "include": list[int] | None,
    "exclude": list[int] | None,
    "groups": list[str | None] | None,
    "group_rule": str | None,
    "n_groups": int | None,
    "max_per_group": int | dict[str, int] | None,
    "costs": list[float] | None,
    "budget": float | int | None,
    "max_correlation": float | int | None,
    "n_nonzero_coefs": int | list[int] | None,
    "n_nonzero_total": int | None,
    "disjoint": bool,
    "deflation": str | None,
    "certify": bool | str,
}

# What parameters are by default, where that is not None.
DEFAULTS: dict[str, Any] = {
    "n_components": 2, "scale": False, "missing": "raise", "psd": "mend", "solver": "auto",
    "criterion": "variance", "disjoint": False, "penalty": "l1", "certify": False, "rank": 3,
    "epsilon": 0.1,
}  # fmt: skip


def need(holds: Any, message: str) -> None:
    """Raise unless a claim holds."""
    if not holds:
        raise CertificateError(message)


def features_each(kind: str, asked: dict[str, Any], n_features: int) -> int | None:
    """Return how many features each component may have; None if that is not a single number.

    Parameters
    ----------
    kind : of the path, but for shared features
    asked : the parameters of the estimator
    n_features : of the data
    """
    k = asked.get("n_nonzero_coefs")
    if k is None and kind != PATH_OF[JOINT]:
        return default_nonzero_coefs(n_features)
    alone = isinstance(k, Integral) and asked.get("n_nonzero_total") is None
    return int(k) if alone else None  # type: ignore[arg-type]


def require_form(record: "FitRecord") -> None:
    """Raise `CertificateError` unless every field is of its type and shape."""
    require_times(record)
    need(record.version == VERSION, f"version: {record.version}, this kspan reads {VERSION}")
    need(record.estimator in ESTIMATORS, "estimator: not one of kspan")
    need(record.dtype in ("float64", "float32"), f"dtype: {record.dtype!r} is none of a fit")
    d, n = record.n_features, record.n_samples
    need(d >= 1 and (n is None or n >= 1), "n_samples, n_features: not numbers of a table")
    require_counts(record, "n_iter", "n_passes", "n_missing")
    asked = record.parameters
    need(not record.n_missing or asked.get("missing") in RULES[1:], "n_missing: without a rule")
    need(n is not None or not record.n_missing, "n_missing: of a matrix")
    need(0 <= record.indefiniteness < np.inf, "indefiniteness: no share")
    need(record.status in STATUSES, f"status: {record.status!r} is none")
    require_features("support", record.support, d)
    k = record.support.size
    need(record.loadings.ndim == 2 and record.loadings.shape[1] >= 1, "loadings: not a matrix")
    m = record.loadings.shape[1]
    need(record.loadings.shape[0] == k, "loadings: not one row for each selected feature")
    need(np.isfinite(record.loadings).all(), "loadings: not finite numbers")
    s = record.samples.size
    for name, shape in {
        "mean": (k,), "scale": (k,), "explained_variance": (m,), "pca_variance": (m,),
        "samples": (s,), "scores": (s, m), "history": (record.history.size,),
    }.items():  # fmt: skip
        require_shape(name, getattr(record, name), shape)
    for name in ("total_variance", "objective"):
        need(np.isfinite(getattr(record, name)), f"{name}: not finite")
    for name, most in (("represented_share", 1), ("panel_share", 1), ("effective_features", k)):
        value = getattr(record, name)
        need(value is None or 0 <= value <= most * (1 + 1e-9), f"{name}: not between 0 and {most}")
    require_length("feature_names", record.feature_names, d, "feature")
    require_length("sample_names", record.sample_names, s, "sample")
    require_length("labels", record.labels, s, "sample")
    need((record.labels is None) == (record.label_name is None), "label_name: without labels")
    require_parameters(record.parameters, d)
    for number, proof in enumerate(record.certificates):
        require_certificate(proof, f"certificate {number + 1}")
    if record.path is not None:
        require_path(record.path, d, ruled=has_rules(record.parameters))
    if record.budget_path is not None:
        require_budgets(record.budget_path, d)
    if record.stability is not None:
        require_stability(record.stability, d)


def require_times(record: "FitRecord") -> None:
    """What times are part of is of its types, and they are times; they come from elsewhere."""
    require_types(record, "")
    require_seconds("seconds", record.seconds)
    named = [(f"certificate {i + 1}", proof) for i, proof in enumerate(record.certificates)]
    if record.path is not None:
        require_types(record.path, "path: ")
        require_seconds("path: seconds", record.path.seconds)
        named += [("path: a certificate", proof) for proof in record.path.certificates]
    for what, proof in named:
        require_types(proof, f"{what}: ")
        require_seconds(f"{what}: seconds", proof.seconds)
        require_shape(f"{what}: history", proof.history, (proof.history.shape[:1] or (0,)) + (3,))


def require_parameters(asked: dict[str, Any], d: int) -> None:
    """Those that the check reads are of the types that the estimator takes."""
    need({"n_components", "covariance", "scale", "missing", "psd"} <= set(asked),
         "parameters: not those of an estimator")  # fmt: skip
    need(all(name.isidentifier() for name in asked), "parameters: one has no name")
    for name in PARAMETERS.keys() & asked.keys():
        wrong = misfit(asked[name], PARAMETERS[name])
        need(not wrong, f"parameters: {name} {wrong}")
    need(asked["covariance"] in (None, "precomputed"), "parameters: covariance is none")
    need(asked["missing"] in RULES, "parameters: missing is no rule")
    need(asked["psd"] in get_args(Psd), "parameters: psd is no rule")
    need(asked.get("criterion", "variance") in CRITERIA, "parameters: criterion is none")
    for name in ("include", "exclude"):
        inside = all(0 <= place < d for place in asked.get(name) or [])
        need(inside, f"parameters: {name} names what is not a feature")


def require_certificate(proof: Certificate, what: str) -> None:
    """What is shown of a proof, and what the check reads before it follows it."""
    require_counts(proof, "n_eigensolves", "n_nodes", what=what)
    require_types(proof.choice, f"{what}: ")
    masks = proof.choice.forced, proof.choice.allowed
    need(masks[0].ndim == 1 and masks[0].shape == masks[1].shape, f"{what}: choice is none")
    for name in ("support", "proved_in", "proved_out"):
        require_features(f"{what}: {name}", getattr(proof, name), proof.n_features)
    need(proof.weights.ndim == 2, f"{what}: weights are no matrix")


def has_rules(asked: dict[str, Any]) -> bool:
    """Say whether features have to keep rules: k is "at most" then."""
    return any(asked.get(name) is not None for name in Panel.names())


def require_path(path: SparsityPath, d: int, *, ruled: bool) -> None:
    """As many of everything as there are numbers of features."""
    need(path.n_features == d, "path: of other data")
    t = path.k.size
    for name in ("k", "objective", "upper"):
        require_shape(f"path: {name}", getattr(path, name), (t,))
    for name in ("represented", "panel"):
        shares = getattr(path, name)
        require_shape(f"path: {name}", shares, (t,))
        need(shares is None or ((shares >= 0) & (shares <= 1)).all(), f"path: {name} is no share")
    need(t > 0 and (np.diff(path.k) > 0).all() and path.k[0] >= 1, "path: k does not rise")
    require_length("path: supports", path.supports, t, "number of features")
    shared = not isinstance(path, ComponentPath)
    for k, support in zip(path.k, path.supports, strict=True):
        right = support.size <= k if ruled else support.size == k
        need(not shared or right, f"path, k={k}: not {k} features")
        require_features(f"path, k={k}", support, d)
    if isinstance(path, ComponentPath):
        require_component_path(path)
    require_length("path: feature_names", path.feature_names, d, "feature")
    need(path.status in STATUSES, f"path: status {path.status!r} is none")
    require_counts(path, "n_passes", what="path")
    for proof in path.certificates:
        require_certificate(proof, "path: a certificate")


def require_budgets(path: BudgetPath, d: int) -> None:
    """As many of everything as there are budgets."""
    require_types(path, "budget_path: ")
    need(path.n_features == d, "budget_path: of other data")
    t = path.budget.size
    for name in ("budget", "spent", "objective", "upper"):
        require_shape(f"budget_path: {name}", getattr(path, name), (t,))
        need(np.isfinite(getattr(path, name)).all(), f"budget_path: {name} is not finite")
    need(t > 0 and (np.diff(path.budget) > 0).all(), "budget_path: budgets do not rise")
    require_length("budget_path: supports", path.supports, t, "budget")
    for support in path.supports:
        require_features("budget_path", support, d)
    need(len(path.certificates) <= t, "budget_path: more proofs than budgets")
    for proof in path.certificates:
        require_certificate(proof, "budget_path: a certificate")
    need(path.status in STATUSES, f"budget_path: status {path.status!r} is none")


def require_component_path(path: ComponentPath) -> None:
    """Loadings on the supports, and a k of the path for every certificate."""
    m = path.n_components
    need(path.estimator in PATH_OF.values() and path.estimator != SHARED, "path: estimator is none")
    require_length("path: loadings", path.loadings, path.k.size, "number of features")
    for k, support, weights in zip(path.k, path.supports, path.loadings, strict=True):
        require_shape(f"path, k={k}: loadings", weights, (support.size, m))
        need(np.isfinite(weights).all(), f"path, k={k}: loadings are not finite numbers")
    require_shape("path: proved_at", path.proved_at, (len(path.certificates),))
    need(np.isin(path.proved_at, path.k).all(), "path: proved_at is not on the path")
    each = 1 if path.is_bounded else m
    counts = np.unique(path.proved_at, return_counts=True)[1]
    need((counts <= each).all(), "path: more certificates than problems")


def require_stability(stability: Stability, d: int) -> None:
    """Frequencies of all features, and supports of their size."""
    require_types(stability, "stability: ")
    need(stability.n_features == d, "stability: of other data")
    require_shape("stability: frequencies", stability.frequencies, (d,))
    shares = stability.frequencies
    need(((shares >= 0) & (shares <= 1)).all(), "stability: frequencies are no shares")
    require_counts(stability, "n_resamples", "n_components", "n_features_to_select",
                   what="stability")  # fmt: skip
    rows, most = stability.supports.shape, stability.n_features_to_select
    need(len(rows) == 2 and rows[0] == stability.n_resamples and rows[1] <= most,
         "stability: supports have a wrong shape")  # fmt: skip
    for name in ("jaccard", "nogueira"):
        need(np.isfinite(getattr(stability, name)), f"stability: {name} is not finite")
    need(stability.status in STATUSES, f"stability: status {stability.status!r} is none")


# --- one part


def require_types(part: Any, what: str) -> None:
    """Every field is what its annotation says."""
    hints = get_type_hints(type(part))
    for field in fields(part):
        wrong = misfit(getattr(part, field.name), hints[field.name])
        need(not wrong, f"{what}{field.name} {wrong}")


def require_counts(part: Any, *names: str, what: str = "") -> None:
    """Numbers of things are not negative."""
    for name in names:
        need(getattr(part, name) >= 0, f"{what and f'{what}: '}{name}: negative")


def require_seconds(what: str, seconds: float | None) -> None:
    """A time that can have passed."""
    need(seconds is None or 0 <= seconds < np.inf, f"{what}: not a time")


def require_shape(name: str, array: Any, shape: Iterable[int]) -> None:
    """An array, where there is one, has a shape."""
    need(array is None or array.shape == tuple(shape), f"{name}: not of shape {tuple(shape)}")


def require_length(name: str, values: Any, length: int, of: str) -> None:
    """A list, where there is one, has an entry for each."""
    need(values is None or len(values) == length, f"{name}: not one for each {of}")


def require_features(what: str, support: Any, d: int) -> None:
    """Features of the data, each once."""
    need(support.dtype.kind in "iu" and support.ndim == 1, f"{what}: not indices")
    need(np.unique(support).size == support.size, f"{what}: a feature is there twice")
    inside = support.size == 0 or (support.min() >= 0 and support.max() < d)
    need(inside, f"{what}: not features of the data")
