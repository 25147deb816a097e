"""Features of single-cell data: from an `AnnData` object into the same object.

=============================  ============================================================
``adata.var[key]``             whether a feature was chosen
``adata.varm[key]``            loadings, one column a component
``adata.obsm["X_" + key]``     coordinates of the cells
``adata.uns[key]``             parameters, explained variances, and the certificate
=============================  ============================================================

`key` is "kspan" unless you say otherwise.
"""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kspan.estimators import FeatureSparsePCA
from kspan.records import FitRecord


def select_features(
    adata: Any,
    n_components: int = 2,
    n_features: int | float | None = None,
    *,
    layer: str | None = None,
    include: Sequence[str] | Sequence[int] | None = None,
    exclude: Sequence[str] | Sequence[int] | None = None,
    weights: str | None = None,
    groups: str | Sequence[Any] | None = None,
    costs: str | Sequence[float] | None = None,
    key: str = "kspan",
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Choose the features that span the most variance, and write them into the object.

    Parameters
    ----------
    adata : anndata.AnnData
        Cells in rows. Sparse matrices stay sparse.
    n_components : int
        m, the number of components.
    n_features : int, float or None
        k, a share of the features, or None: as in `FeatureSparsePCA`.
    layer : str, optional
        Take this layer rather than ``adata.X``.
    include, exclude : sequences, optional
        Features that must, and must not, be chosen: names or indices, or the name of a column of
        ``adata.var`` that says it of each feature.
    groups, costs : str or sequence, optional
        A column of ``adata.var`` with the group, or the price, of each feature; for `max_per_group`
        and `group_rule`, and for `budget`, which are among the parameters below.
    weights : str, optional
        A column of ``adata.obs`` that says what each cell counts.
    key : str
        Where to write; see the table above.
    copy : bool
        Return a changed copy, and leave `adata` as it is.
    **parameters
        More of `kspan.FeatureSparsePCA`, such as ``certify=True``, ``scale=True`` and
        ``random_state=0``.

    Returns
    -------
    AnnData or None
        The copy, if one was asked for.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from kspan.anndata import select_features
    >>> rng = np.random.default_rng(0)
    >>> cells = anndata.AnnData(rng.random((50, 6)) * [1, 2, 3, 4, 5, 6])
    >>> select_features(cells, n_components=2, n_features=2, random_state=0)
    >>> cells.var_names[cells.var["kspan"]].tolist()
    ['4', '5']
    """
    if copy:
        adata = adata.copy()
    X, sample_weight = _matrix(adata, layer), _weights(adata, weights)
    model = FeatureSparsePCA(
        n_components,
        n_features,
        include=_places(adata, include, "include"),
        exclude=_places(adata, exclude, "exclude"),
        groups=_column(adata, groups, "groups"),
        costs=_column(adata, costs, "costs"),
        **parameters,
    ).fit(X, sample_weight=sample_weight)
    names = [str(name) for name in adata.var_names]
    record = FitRecord.from_estimator(
        model, X, source="AnnData" if layer is None else layer, feature_names=names,
        sample_weight=sample_weight,
    )  # fmt: skip
    write_result(adata, record, key=key, layer=layer)
    return adata if copy else None


def write_result(
    adata: Any, record: FitRecord, *, key: str = "kspan", layer: str | None = None
) -> None:
    """Write what a record says into an object; see the table above."""
    if adata.n_vars != record.n_features:
        raise ValueError(
            f"The record is of {record.n_features} features, the object has {adata.n_vars}."
        )
    chosen = np.zeros(record.n_features, dtype=bool)
    chosen[record.support] = True
    loadings = np.zeros((record.n_features, record.n_components))
    loadings[record.support] = record.loadings
    adata.var[key] = chosen
    adata.varm[key] = loadings
    adata.obsm[f"X_{key}"] = record.transform(_matrix(adata, layer))
    adata.uns[key] = _summary(record, layer)


def copy_with_result(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    record: FitRecord,
    *,
    layer: str | None = None,
) -> None:
    """Write a copy of an H5AD file with a result in it, whole or not at all."""
    import anndata

    adata = anndata.read_h5ad(source)
    write_result(adata, record, layer=layer)
    place = Path(target)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.") as folder:
        temporary = Path(folder) / "copy.h5ad"
        adata.write_h5ad(temporary)
        os.replace(temporary, place)


def _matrix(adata: Any, layer: str | None) -> Any:
    if layer is not None and layer not in adata.layers:
        known = ", ".join(sorted(adata.layers)) or "none"
        raise ValueError(f"There is no layer {layer!r}; there are: {known}.")
    X = adata.X if layer is None else adata.layers[layer]
    if X is None:
        raise ValueError("The object has no X; name a layer.")
    return X.to_memory() if hasattr(X, "to_memory") else X


def _weights(adata: Any, column: str | None) -> Any:
    if column is None:
        return None
    if column not in adata.obs:
        raise ValueError(f"weights names {column!r}, which is not a column of .obs.")
    return adata.obs[column].to_numpy()


def _column(adata: Any, values: Any, parameter: str) -> Any:
    """Return a column of ``.var`` by its name; leave values alone."""
    if not isinstance(values, str):
        return values
    if values not in adata.var:
        raise ValueError(f"{parameter} names {values!r}, which is not a column of .var.")
    return adata.var[values].to_numpy()


def _places(adata: Any, features: Any, parameter: str) -> Any:
    """Turn names into indices; leave indices and masks alone."""
    if features is None:
        return None
    if isinstance(features, str):
        values = _column(adata, features, parameter)
        if values.dtype != bool:
            raise ValueError(f"{parameter}: column {features!r} of .var is not of true and false.")
        return values
    array = np.asarray(features)
    if array.dtype.kind not in "UO":
        return array
    if not adata.var_names.is_unique:
        raise ValueError(f"{parameter} names features, but var_names are not unique; use indices.")
    places = adata.var_names.get_indexer(array)
    if (places < 0).any():
        missing = array[places < 0][0]
        raise ValueError(f"{parameter} names {str(missing)!r}, which is not in var_names.")
    return places


def _summary(record: FitRecord, layer: str | None) -> dict[str, Any]:
    """Return what H5AD files can hold: texts, numbers, arrays."""
    asked = {name: value for name, value in record.parameters.items() if value is not None}
    asked |= {name: np.array(asked[name]) for name in ("include", "exclude") if name in asked}
    if "groups" in asked:
        asked["groups"] = np.array([label or "" for label in asked["groups"]])
    if "costs" in asked:
        asked["costs"] = np.array(asked["costs"])
    if layer is not None:
        asked["layer"] = layer
    summary: dict[str, Any] = {
        "params": asked,
        "variance": record.explained_variance,
        "variance_ratio": record.explained_variance / record.total_variance,
        "objective": record.objective,
        "solver": record.solver,
        "status": record.status,
        "version": record.environment.get("kspan", ""),
        "fingerprint": record.fingerprint,
        "n_missing": record.n_missing,
    }
    if record.weights is not None:
        summary["weights"] = record.weights
    if record.certificates:
        proof = record.certificates[0]
        summary["certificate"] = {
            "lower": proof.lower,
            "upper": proof.upper,
            "gap": proof.gap,
            "status": proof.status.value,
            "level": proof.level,
        }
    return summary
