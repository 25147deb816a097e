"""Features by name, by number or by mask, for functions that take data as it comes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import Index
from kspan.covariance import Covariance, as_covariance, require_built_as
from kspan.covariance.interface import Kind
from kspan.covariance.matrix import Psd
from kspan.io import open_data

Features = Sequence[int] | Sequence[str] | NDArray[Any]


def named_covariance(
    X: Any, *, scale: bool, precomputed: bool, missing: str = "raise", psd: Psd = "mend",
    sample_weight: Any = None,
) -> tuple[Covariance, list[str] | None]:  # fmt: skip
    """Return the covariance of data, or the matrix itself, and the names of its features.

    Parameters
    ----------
    X : what `kspan.as_covariance` takes; a `Covariance` must have been built as the others say
    scale : work on correlations
    precomputed : X is a covariance matrix
    missing, psd, sample_weight : see `kspan.as_covariance`
    """
    if isinstance(X, Covariance):
        require_built_as(X, scale=scale, missing=missing, precomputed=precomputed or None)
        return as_covariance(X, sample_weight=sample_weight), None
    if scale and precomputed:
        raise ValueError("scale=True needs data, not covariance='precomputed'.")
    allow_missing = missing != "raise" and not precomputed
    data = open_data(X, load_bytes=np.inf if precomputed else 0, allow_missing=allow_missing)
    names = None if data.feature_names is None else list(data.feature_names)
    kind: Kind = "covariance" if precomputed else "data"
    covariance = as_covariance(
        data.values, kind, scale=scale, feature_names=names, missing=missing, psd=psd,
        sample_weight=sample_weight,
    )  # fmt: skip
    return covariance, names


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
