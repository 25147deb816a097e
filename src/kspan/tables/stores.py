"""Files of columns and chunks: Parquet, AnnData, HDF5, zarr."""

import json
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspan.tables.table import LOAD_BYTES, Grid, Names, as_floats, refuse


def read_parquet(path: str, index: bool | None) -> Grid:
    """Read a Parquet file: all columns are numbers, but for one that may name the rows."""
    from kspan.covariance.sources import ParquetSource, _extra

    parquet = _extra("pyarrow.parquet", "pyarrow", "Parquet files")
    try:
        file = parquet.ParquetFile(path)
    except Exception as error:
        raise refuse(path, f"is not a Parquet file: {error}") from None
    with file:
        schema = file.schema_arrow
        names: list[str] = schema.names
        position = _index_position(schema) if index is None else (0 if index else None)
        if 8 * file.metadata.num_rows * len(names) > LOAD_BYTES:
            if position is not None and names[position] != "__index_level_0__":
                raise refuse(
                    path, f"is too large to load, and column {names[position]!r} names the rows; "
                    "drop it first.",
                )  # fmt: skip
            rows = ParquetSource(path)
            return Grid(rows, None, tuple(rows.columns), streamed=path)
        for j, field in enumerate(schema):
            if j != position and not _is_number(field.type):
                raise refuse(
                    path, f"column {field.name!r} (column {j + 1}) is not of numbers, but of "
                    f"type {field.type}; drop it first.",
                )  # fmt: skip
        columns = file.read().columns
    row_names, notes = None, []
    if position is not None:
        name = names.pop(position)
        row_names = tuple(map(str, columns.pop(position).to_pylist()))
        notes.append(f"index: column {name!r} names the rows")
    return Grid(columns_to_array(columns), row_names, tuple(names), tuple(notes))


def _index_position(schema: Any) -> int | None:
    """Return which column pandas wrote as its index, or the first if it is text."""
    written = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    if len(written) == 1 and written[0] in schema.names:
        return int(schema.names.index(written[0]))
    text = len(schema) and str(schema[0].type).startswith(("string", "large_string", "dictionary"))
    return 0 if text else None


def _is_number(kind: Any) -> bool:
    return str(kind) in ("double", "bool") or str(kind).rstrip("0123456789") in (
        "float", "halffloat", "int", "uint",
    )  # fmt: skip


def columns_to_array(columns: list[Any]) -> NDArray[np.floating]:
    """Return columns of pyarrow side by side: float32 if all are, else float64; nulls are NaN."""
    n = len(columns[0]) if columns else 0
    single = bool(columns) and all(str(column.type) == "float" for column in columns)
    turned = np.empty((len(columns), n), np.float32 if single else np.float64)
    for row, column in zip(turned, columns, strict=True):
        if str(column.type) == "bool":
            column = column.cast("uint8")
        if column.null_count:
            row[:] = column.to_numpy()
        else:
            # The same, but to_numpy imports pandas, which takes longer than most tables.
            start = 0
            for chunk in column.chunks:
                row[start : start + len(chunk)] = np.from_dlpack(chunk)
                start += len(chunk)
    return turned.T


def read_anndata(path: str, layer: str | None) -> Grid:
    """Read X, or a layer, of an ``.h5ad`` file; cells are rows."""
    from kspan.covariance.sources import _extra

    with warnings.catch_warnings():
        # About its own future, and about names that repeat, which we say ourselves.
        warnings.simplefilter("ignore")
        anndata = _extra("anndata", "anndata", "AnnData files")
        data = anndata.read_h5ad(path)
        if layer is not None and layer not in data.layers:
            known = ", ".join(map(repr, data.layers)) or "none"
            raise refuse(path, f"has no layer {layer!r}; it has {known}.")
        values = data.X if layer is None else data.layers[layer]
        cells, genes = _as_names(data.obs_names), _as_names(data.var_names)
    if values is None:
        raise refuse(path, f"has no X, but {len(data.layers)} layer(s); name one.")
    note = "X" if layer is None else f"layer: {layer}"
    return Grid(as_floats(path, values), cells, genes, notes=(note,))


def _as_names(names: Any) -> Names:
    return tuple(map(str, names))


def read_store(path: str, key: str | None) -> Grid:
    """Read a dataset of an HDF5 file, or an array of a zarr folder."""
    from kspan.covariance.sources import open_source

    place = path if key is None else f"{path}::{key}"
    try:
        rows: Any = open_source(place)
    except KeyError:
        raise refuse(path, f"there is no {key!r} in it.") from None
    except ValueError as error:
        # It may begin with the path and the key.
        raise refuse(path, str(error).removeprefix(f"{place}: ")) from None
    n, d = rows.shape
    if n * d * rows.dtype.itemsize > LOAD_BYTES:
        return Grid(rows, streamed=place)
    values = np.empty(rows.shape, rows.dtype)
    if values.size:
        for block in rows.blocks():
            values[block.start : block.stop] = block.values
    if (file := getattr(rows.array, "file", None)) is not None:  # of HDF5
        file.close()
    return Grid(values)
