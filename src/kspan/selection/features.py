"""Features by name, by number or by mask, for functions that take data as it comes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import Index
from kspan.covariance import Covariance, as_covariance, as_source

Features = Sequence[int] | Sequence[str] | NDArray[Any]


def named_covariance(
    X: Any, *, scale: bool, precomputed: bool
) -> tuple[Covariance, list[str] | None]:
    """Return the covariance of data, or the matrix itself, and the names of its features.

    Parameters
    ----------
    X : what `kspan.as_covariance` takes
    scale : work on correlations
    precomputed : X is a covariance matrix
    """
    rows = None if precomputed or isinstance(X, Covariance) else as_source(X)
    if rows is not None:  # opened once, so that its header is read once
        names = None if rows.feature_names is None else [str(name) for name in rows.feature_names]
        return as_covariance(rows, scale=scale), names
    names = column_names(X)
    if precomputed:
        if scale:
            raise ValueError("scale=True needs data, not covariance='precomputed'.")
        return as_covariance(X, kind="covariance", feature_names=names), names
    if isinstance(X, Covariance) and scale:
        raise ValueError("scale=True needs data; build the covariance with scale=True instead.")
    return as_covariance(X, scale=scale, feature_names=names), names


def column_names(X: Any) -> list[str] | None:
    """Names of the columns of a data frame, if all of them are strings."""
    columns = getattr(X, "columns", None)
    if columns is None or callable(columns):  # a Covariance has a method of that name
        return None
    names = list(columns)
    return names if all(isinstance(name, str) for name in names) else None


def feature_indices(
    parameter: str, features: Features | None, n_features: int, names: Sequence[str] | None
) -> Index:
    """Turn names, indices or a mask into indices.

    Parameters
    ----------
    parameter : what error messages call it
    features : names, indices, a mask, or None for no feature
    n_features : d
    names : of all features, if there are any

    Examples
    --------
    >>> feature_indices("include", ["b"], 3, ["a", "b", "c"])
    array([1])
    >>> feature_indices("include", [True, False, True], 3, None)
    array([0, 2])
    """
    array = np.asarray([] if features is None else features)
    if array.size == 0:
        return np.empty(0, dtype=np.intp)
    if array.dtype == bool:
        if array.shape != (n_features,):
            raise ValueError(
                f"{parameter} is a mask of shape {array.shape}, but there are "
                f"n_features={n_features}."
            )
        return np.flatnonzero(array)
    if array.dtype.kind in "UO" and all(isinstance(name, str) for name in array.ravel()):
        if names is None:
            raise ValueError(
                f"{parameter} names features, but the data has no feature names; "
                "use indices or a mask."
            )
        places = {name: place for place, name in enumerate(names)}
        missing = [name for name in array.ravel() if name not in places]
        if missing:
            raise ValueError(f"{parameter} names {str(missing[0])!r}, which is not a feature.")
        return np.unique([places[name] for name in array.ravel()]).astype(np.intp)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ValueError(
            f"{parameter} must hold feature names, feature indices or a mask, got {features!r}."
        )
    return np.unique(array).astype(np.intp)
