"""Files that are loaded as a whole: NumPy archives, MATLAB's, AnnData.

Nothing is ever unpickled.
"""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspan.io.table import Grid, Names, as_floats, import_extra, refuse

# MATLAB's classes of numbers.
_NUMBERS = {
    "double", "single", "sparse", "logical",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
}  # fmt: skip


def read_npz(path: str, key: str | None = None) -> Grid:
    """Read one array of a ``.npz`` file, or the matrix that `scipy.sparse.save_npz` wrote."""
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            raise refuse(path, "is not a NumPy archive, whatever its ending says.")
    # Opened here: np.load leaves open what it opened itself and cannot read.
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        if key is None and {"format", "shape", "data"} <= set(archive.files):
            from scipy.sparse import load_npz

            return Grid(as_floats(path, load_npz(path)), notes=("a sparse matrix",))
        found = _arrays(path, archive, key)
    tables = {n: a.shape for n, a in found.items() if a.ndim == 2 and a.dtype.kind in "biuf"}
    if key is None or key not in found:
        key = _choose(path, tables, key)
    values = as_floats(path, found[key])
    names = [
        _names_beside(found.get(side), size)
        for side, size in zip(("sample_names", "feature_names"), values.shape, strict=True)
    ]
    return Grid(values, names[0], names[1], notes=(f"array: {key}",))


def _arrays(path: str, archive: Any, key: str | None) -> dict[str, NDArray[Any]]:
    """Return all arrays of an archive but those of Python objects, which are not for us."""
    found = {}
    for name in archive.files:
        try:
            found[name] = archive[name]
        except ValueError:
            if name == key:
                raise refuse(
                    path, "holds Python objects (a pickle), which are never loaded."
                ) from None
    return found


def read_matlab(path: str, key: str | None = None) -> Grid:
    """Read one matrix of a ``.mat`` file; since version 7.3 these are HDF5 files."""
    from scipy.io import loadmat, whosmat

    try:
        listed = whosmat(path)
    except NotImplementedError:
        return _read_matlab_hdf5(path, key)
    tables = {name: shape for name, shape, kind in listed if kind in _NUMBERS and len(shape) == 2}
    key = _choose(path, tables, key)
    values = loadmat(path, variable_names=[key])[key]
    return Grid(as_floats(path, values), notes=(f"variable: {key}",))


def _read_matlab_hdf5(path: str, key: str | None) -> Grid:
    h5py = import_extra("h5py", extra="io", what="Reading MATLAB files of version 7.3")
    with h5py.File(path, "r") as file:
        tables: dict[str, tuple[int, ...]] = {}
        for name, item in file.items():
            if "MATLAB_sparse" in item.attrs:
                tables[name] = int(item.attrs["MATLAB_sparse"]), len(item["jc"]) - 1
            elif _is_matlab_matrix(item):
                tables[name] = item.shape[::-1]  # MATLAB's order is Fortran's
        key = _choose(path, tables, key)
        values = _matlab_matrix(file[key], tables[key])
    return Grid(as_floats(path, values), notes=(f"variable: {key}",))


def _matlab_matrix(item: Any, shape: tuple[int, ...]) -> Any:
    if "MATLAB_sparse" not in item.attrs:
        return item[()].T
    from scipy.sparse import csc_array

    # A matrix of zeros has neither numbers nor rows.
    data, rows = (item[part][()] if part in item else [] for part in ("data", "ir"))
    return csc_array((data, rows, item["jc"][()]), shape=shape)


def _is_matlab_matrix(item: Any) -> bool:
    kind = item.attrs.get("MATLAB_class", b"double")
    name = kind.decode() if isinstance(kind, bytes) else str(kind)
    return (
        name in _NUMBERS
        and len(getattr(item, "shape", ())) == 2
        and "MATLAB_empty" not in item.attrs
        and item.dtype.kind in "biuf"
    )


def read_anndata(path: str, layer: str | None = None) -> Grid:
    """Read X, or a layer, of an ``.h5ad`` file; cells are rows."""
    with warnings.catch_warnings():
        # About its own future, and about names that repeat, which we say ourselves.
        warnings.simplefilter("ignore")
        anndata = import_extra("anndata", extra="io", what="Reading AnnData files")
        data = anndata.read_h5ad(path)
        if layer is not None and layer not in data.layers:
            known = ", ".join(map(repr, data.layers)) or "none"
            raise refuse(path, f"has no layer {layer!r}; it has {known}.")
        values = data.X if layer is None else data.layers[layer]
        cells, genes = (tuple(map(str, names)) for names in (data.obs_names, data.var_names))
    if values is None:
        raise refuse(path, f"has no X, but {len(data.layers)} layer(s); name one.")
    note = "X" if layer is None else f"layer: {layer}"
    return Grid(as_floats(path, values), cells, genes, notes=(note,))


def read_sample_column(path: str, name: str) -> NDArray[np.float64] | None:
    """Return a column of ``.obs`` of an ``.h5ad`` file as numbers; None if it has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anndata = import_extra("anndata", extra="io", what="Reading AnnData files")
        columns = anndata.read_h5ad(path, backed="r").obs
    if name not in columns:
        return None
    try:
        return np.asarray(columns[name], dtype=np.float64)
    except (TypeError, ValueError):
        raise refuse(path, f"column {name!r} of .obs is not of numbers.") from None


def _names_beside(names: NDArray[Any] | None, size: int) -> Names | None:
    """Return the names that an archive holds for one side of its table."""
    if names is None or names.dtype.kind != "U" or names.shape != (size,):
        return None
    return tuple(names.tolist())


def _choose(source: str, tables: Mapping[str, tuple[int, ...]], key: str | None) -> str:
    """Return the table that was asked for, or the only one that can be meant."""
    listed = ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in tables.items())
    if key is not None:
        if key not in tables:
            raise refuse(source, f"has no table {key!r}; it has {listed or 'none at all'}.")
        return key
    if not tables:
        raise refuse(source, "has no table: no array of numbers with 2 dimensions.")
    # MATLAB's numbers and lists have 2 dimensions too.
    wide = [name for name, shape in tables.items() if min(shape) > 1]
    for names in (["X"] if "X" in tables else [], list(tables), wide):
        if len(names) == 1:
            return names[0]
    raise refuse(source, f"has {len(tables)} tables ({listed}); name one by its key.")
