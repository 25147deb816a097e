"""Files of arrays: NumPy's, MatrixMarket, MATLAB's. Nothing is ever unpickled."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kspan.tables.table import LOAD_BYTES, Grid, Names, as_floats, refuse

# MATLAB's classes of numbers.
_NUMBERS = {
    "double", "single", "sparse", "logical",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
}  # fmt: skip


def read_npy(path: str) -> Grid:
    """Read a ``.npy`` file."""
    from kspan.covariance.sources import npy_source

    if Path(path).stat().st_size > LOAD_BYTES:
        return Grid(npy_source(path), streamed=path)
    _require_signature(path, b"\x93NUMPY", "a NumPy file")
    with open(path, "rb") as file:
        return Grid(as_floats(path, _load(path, file)))


def read_npz(path: str, key: str | None) -> Grid:
    """Read one array of a ``.npz`` file, or the matrix that `scipy.sparse.save_npz` wrote."""
    _require_signature(path, b"PK", "a NumPy archive")
    with open(path, "rb") as file, _load(path, file) as archive:
        if key is None and {"format", "shape", "data"} <= set(archive.files):
            from scipy.sparse import load_npz

            return Grid(_compressed(path, load_npz(path)), notes=("a sparse matrix",))
        found: dict[str, NDArray[Any]] = {}
        for name in archive.files:
            try:
                found[name] = archive[name]
            except ValueError:  # Python objects, which are not for us
                if name == key:
                    raise _objects(path) from None
    tables = {n: a.shape for n, a in found.items() if a.ndim == 2 and a.dtype.kind in "biuf"}
    if key is None or key not in found:
        key = _choose(path, tables, key)
    values = as_floats(path, found[key])
    names = [
        _names_beside(found.get(kind), size)
        for kind, size in zip(("sample_names", "feature_names"), values.shape, strict=True)
    ]
    return Grid(values, names[0], names[1], notes=(f"array: {key}",))


def read_matrix_market(path: str) -> Grid:
    """Read a ``.mtx`` file: sparse, unless it lists every number."""
    from scipy.io import mmread

    return Grid(_compressed(path, mmread(path)))


def read_matlab(path: str, key: str | None) -> Grid:
    """Read one matrix of a ``.mat`` file; since version 7.3 these are HDF5 files."""
    from scipy.io import loadmat, whosmat

    try:
        listed = whosmat(path)
    except NotImplementedError:
        return _read_matlab_hdf5(path, key)
    tables = {name: shape for name, shape, kind in listed if kind in _NUMBERS and len(shape) == 2}
    key = _choose(path, tables, key)
    values = loadmat(path, variable_names=[key])[key]
    return Grid(_compressed(path, values), notes=(f"variable: {key}",))


def _read_matlab_hdf5(path: str, key: str | None) -> Grid:
    from scipy.sparse import csc_array

    from kspan.covariance.sources import _extra

    h5py = _extra("h5py", "h5py", "MATLAB files of version 7.3")
    with h5py.File(path, "r") as file:
        tables: dict[str, tuple[int, ...]] = {}
        for name, item in file.items():
            if "MATLAB_sparse" in item.attrs:
                tables[name] = int(item.attrs["MATLAB_sparse"]), len(item["jc"]) - 1
            elif _is_matlab_matrix(item):
                tables[name] = item.shape[::-1]  # MATLAB's order is Fortran's
        key = _choose(path, tables, key)
        item = file[key]
        if "MATLAB_sparse" in item.attrs:
            # A matrix of zeros has neither numbers nor rows.
            data, rows = (item[part][()] if part in item else [] for part in ("data", "ir"))
            values = csc_array((data, rows, item["jc"][()]), shape=tables[key])
        else:
            values = item[()].T
    return Grid(_compressed(path, values), notes=(f"variable: {key}",))


def _is_matlab_matrix(item: Any) -> bool:
    kind = item.attrs.get("MATLAB_class", b"double")
    name = kind.decode() if isinstance(kind, bytes) else str(kind)
    return (
        name in _NUMBERS
        and len(getattr(item, "shape", ())) == 2
        and "MATLAB_empty" not in item.attrs
        and item.dtype.kind in "biuf"
    )


def _require_signature(path: str, signature: bytes, what: str) -> None:
    with open(path, "rb") as file:
        if file.read(len(signature)) != signature:
            raise refuse(path, f"is not {what}, whatever its ending says.")


def _load(source: str, file: BinaryIO) -> Any:
    try:
        return np.load(file, allow_pickle=False)
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise _objects(source) from None
        raise


def _objects(source: str) -> Exception:
    return refuse(source, "holds Python objects (a pickle), which are never loaded.")


def _compressed(source: str, values: Any) -> Any:
    """Return floats, as they are if dense, else in CSR or CSC."""
    if hasattr(values, "tocsr") and values.format not in ("csr", "csc"):
        values = values.tocsr()
    return as_floats(source, values)


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
