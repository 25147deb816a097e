"""What goes into a record, from an estimator and its data."""

import os
import platform
import warnings
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.choosing_k.panel import Panel
from kspan.covariance import Covariance, as_covariance, require_built_as
from kspan.io import RowSource
from kspan.io.table import fits_float32
from kspan.proofs.check.known import LARGEST_FACTOR

# At most this many samples keep their scores, evenly taken: a picture shows no more.
MOST_SCORES = 2000

_PACKAGES = ("kspan", "numpy", "scipy", "scikit-learn", "numba")


def covariance_of(
    X: Any, parameters: Mapping[str, Any], *, sample_weight: Any = None, whole: bool = False
) -> Covariance:
    """Return the covariance of data as an estimator with these parameters sees it.

    Parameters
    ----------
    X : the data, a covariance matrix, or a `Covariance` that was built as the parameters say
    parameters : of the estimator
    sample_weight : what each row counts
    whole : hold wide data of moderate size in a dense array, whatever it came as: proofs about it
        need all of it
    """
    precomputed, scale = parameters["covariance"] == "precomputed", parameters["scale"]
    if isinstance(X, Covariance):
        missing = parameters["missing"]
        require_built_as(X, scale=scale, missing=missing, precomputed=precomputed)
    with warnings.catch_warnings():
        # What a matrix lacks was said when it was fitted, and the record says it again.
        warnings.filterwarnings("ignore", "The covariance is not positive semidefinite")
        covariance = as_covariance(
            X, "covariance" if precomputed else "data", scale=scale, sample_weight=sample_weight,
            missing=parameters["missing"], psd=parameters["psd"],
        )  # fmt: skip
        covariance.ensure_psd()
    n, d = covariance.n_samples or 0, covariance.n_features
    moderate = covariance.has_samples and n < d and n * d <= LARGEST_FACTOR
    return covariance.densified() if whole and moderate else covariance


# What means and variances of the same data may differ by, in another form or precision.
SAME = 1e-3


def require_fitted(estimator: Any) -> None:
    """Raise `TypeError` or `ValueError` unless it is a fitted estimator of kspan."""
    if not hasattr(type(estimator), "get_support") or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"A record is made of a fitted estimator of kspan, got {type(estimator).__name__}; of "
            "a pipeline give its step, and the data that the step saw."
        )
    if not hasattr(estimator, "_weights_digest"):
        raise ValueError(f"This {type(estimator).__name__} is not fitted yet: call `fit` first.")


def require_data_of(estimator: Any, covariance: Covariance) -> None:
    """Raise `ValueError` if data is clearly not what an estimator was fitted to."""
    d, explained = covariance.n_features, float(estimator.explained_variance_.sum())
    share = float(estimator.explained_variance_ratio_.sum())
    if d != estimator.mean_.size:
        raise ValueError(f"X has {d} features, the fit had {estimator.mean_.size}.")
    same = not share > 0 or abs(covariance.trace() * share / explained - 1) <= SAME
    if same and covariance.mean is not None and covariance.scale is not None:
        spread = np.sqrt(np.maximum(covariance.diagonal(), 0.0)) * covariance.scale
        apart = np.abs(covariance.mean - estimator.mean_)
        same = bool((apart <= SAME * (spread + np.abs(estimator.mean_))).all())
    if not same:
        raise ValueError(
            "X is not the data of the fit: its means or variances are others. After a scaler in a "
            "pipeline give what the step saw, such as pipe[:-1].transform(X)."
        )


def only_float32(X: Any) -> bool:
    """Whether all numbers of data are float32 numbers, whatever they are stored as.

    Parameters
    ----------
    X : array, data frame, sparse array, `RowSource` or `Covariance`
    """
    if isinstance(X, Covariance):
        given = getattr(X, "X", getattr(X, "A", None))
        X = given if X.missing is None else X.missing.given
    if isinstance(X, RowSource):
        return X.dtype == np.float32 or all(only_float32(block.values) for block in X.blocks())
    return fits_float32(X)


def some_scores(
    components: FloatArray, support: Index, covariance: Covariance
) -> tuple[FloatArray | None, Index]:
    """Return coordinates of samples, and which samples those are."""
    n = covariance.n_samples
    if n is None or not covariance.has_samples:
        return None, np.empty(0, dtype=np.intp)
    places = np.unique(np.linspace(0, n - 1, min(n, MOST_SCORES)).astype(np.intp))
    W = components[:, support].T.astype(np.float64)
    return covariance.scores(W, support)[places], places


def plain_parameters(estimator: Any, n_features: int) -> dict[str, Any]:
    """Return the parameters as plain numbers and texts; features by their places."""
    found, asked = {}, estimator.get_params()
    if "groups" in asked:
        names = getattr(estimator, "feature_names_in_", None)
        panel = Panel.of(asked).resolved(n_features, names)
        asked |= {name: getattr(panel, name) for name in Panel.names()}
        if panel.costs is not None:
            asked["costs"] = [float(cost) for cost in panel.costs]
    for name, value in sorted(asked.items()):
        if name in ("include", "exclude"):
            places = None if value is None else estimator._feature_indices(name, n_features)
            found[name] = None if places is None else [int(place) for place in places]
        elif name not in (
            "callback",
            "memory",
            "n_jobs",
            "verbose",
        ):  # say nothing about the answer
            found[name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    if is_dataclass(value) and not isinstance(value, type):  # a method, with its options
        options = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return {"method": getattr(value, "name", type(value).__name__), **options}
    return os.fspath(value) if isinstance(value, os.PathLike) else type(value).__name__


def environment() -> dict[str, str]:
    """Return the versions of what a fit is made with."""
    found = {"python": platform.python_version(), "system": platform.system()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # kspan itself, run from its sources
            continue
    return found
