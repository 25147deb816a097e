"""Files that are read in blocks of rows: NumPy's, memory maps, HDF5, zarr, Parquet."""

import json
import os
from collections.abc import Collection
from mmap import mmap
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from kspan.io.rows import RowSource
from kspan.io.table import Names, float_type, import_extra, only_text, refuse
from kspan.io.text_columns import is_text_column

# Of a column of text so many first entries say whether they are meant as numbers.
FIRST_ROWS = 10_000


class ArraySource(RowSource):
    """An array that is read by slicing: a zarr array, an HDF5 dataset, a part of a memory map."""

    def __init__(self, array: Any, label: str):
        self.dtype = float_type(label, array.shape, array.dtype)
        self.array, self.label = array, label
        self.shape = int(array.shape[0]), int(array.shape[1])

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Slice."""
        return np.asarray(self.array[start:stop])

    def edges(self) -> list[int]:
        """Whole chunks of the array, so that none is read twice."""
        chunks = getattr(self.array, "chunks", None)
        rows = int(chunks[0]) if chunks else 1
        n = self.shape[0]
        return [*range(0, n, max(rows, self._rows_per_block() // rows * rows)), n]


class FileSource(RowSource):
    """Numbers in a file, read and not mapped.

    Mapped pages would count as our memory, and a mapped file that is cut off ends the process.

    Parameters
    ----------
    path : of the file
    shape, dtype : of the table
    offset : bytes before it
    fortran : whether columns, and not rows, lie together
    """

    def __init__(
        self, path: str | os.PathLike[str], shape: tuple[int, ...], dtype: Any, offset: int,
        fortran: bool = False,
    ):  # fmt: skip
        self.label = os.fspath(path)
        self.dtype = float_type(self.label, shape, dtype)
        self.shape = int(shape[0]), int(shape[1])
        self.stored, self.offset, self.fortran = np.dtype(dtype), offset, fortran

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read the bytes of these rows."""
        n, d = self.shape
        if not self.fortran:
            return self._numbers(start * d, (stop - start) * d).reshape(stop - start, d)
        if stop - start == n:
            return self._numbers(0, n * d).reshape(d, n).T
        columns = [self._numbers(j * n + start, stop - start) for j in range(d)]
        return np.stack(columns, axis=1)

    def turned(self) -> "FileSource":
        """Return the columns as rows: C order read as Fortran order."""
        return FileSource(self.label, self.shape[::-1], self.stored, self.offset, not self.fortran)

    def _numbers(self, first: int, count: int) -> NDArray[Any]:
        size = self.stored.itemsize
        found = np.fromfile(
            self.label, dtype=self.stored, count=count, offset=self.offset + first * size
        )
        if found.size < count:
            raise ValueError("the file ends before them")
        return found


class ParquetSource(RowSource):
    """A Parquet file: a block is a row group.

    Parameters
    ----------
    path : of the file
    index : whether the first column names the rows, or the name of the column that does. By default
        it is what pandas wrote as its index, or the first column if that is text and its entries
        differ.
    aside : columns that are no features, whatever they hold
    only : if there are any, all others are no features
    """

    def __init__(
        self, path: str, index: bool | str | None = None, aside: Collection[str] = (),
        only: Collection[str] = (),
    ):  # fmt: skip
        parquet = import_extra("pyarrow.parquet", extra="io", what="Reading Parquet files")
        try:
            self.file = parquet.ParquetFile(path)
        except Exception as error:
            raise refuse(path, f"is not a Parquet file: {error}") from None
        schema = self.file.schema_arrow
        self.label = path
        place = self._index_position(schema, index, {*aside, *only})
        self.index = None if place is None else schema.names[place]
        if not set(only).isdisjoint(schema.names):
            aside = {*aside, *schema.names}.difference(only)
        fields, text = [], []
        for j, field in enumerate(schema):
            if j == place:
                continue
            wanted = field.name in only
            if field.name in aside or not (
                _is_number(field.type) or self._has_numbers(j, field, wanted=wanted)
            ):
                text.append(field.name)
            else:
                fields.append((j, field))
        if text and not fields:
            raise only_text(path, text)
        self.feature_names = tuple(field.name for _, field in fields)
        self.text_columns = tuple(text)
        if self.index is not None:
            self.notes = (f"index: column {self.index!r} names the rows",)
        single = fields and all(str(field.type) == "float" for _, field in fields)
        self.dtype = np.dtype(np.float32 if single else np.float64)
        groups = self.file.metadata
        sizes = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
        self._edges: list[int] = np.cumsum([0, *sizes]).tolist()
        self.shape = self._edges[-1], len(fields)

    def _index_position(
        self, schema: Any, index: bool | str | None, told: Collection[str]
    ) -> int | None:
        """Return which column names the rows, if it is not told by name, or is none."""
        if isinstance(index, bool):
            return 0 if index else None
        written = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
        for names in (written, ["__index_level_0__"]):
            if len(names) == 1 and names[0] in schema.names and names[0] not in told:
                return int(schema.names.index(names[0]))
        if index is not None or not len(schema) or schema.names[0] in told:
            return None
        if not str(schema[0].type).startswith(("string", "large_string", "dictionary")):
            return None
        cells = self._first_cells(schema.names[0])
        return 0 if len(set(cells)) * 2 > len(cells) else None

    def _has_numbers(self, j: int, field: Any, *, wanted: bool) -> bool:
        """Return False if a column is text by the rule of `text_columns`; refuse what is neither.

        By its first entries, as the others may be many. What is wanted as numbers is not text.
        """
        kind = "" if wanted else str(field.type)
        if kind.startswith(("date", "time", "binary", "large_binary")):
            return False
        if kind.startswith(("string", "large_string", "dictionary")):
            pyarrow = import_extra("pyarrow", extra="io", what="Reading Parquet files")
            cells = self._first_cells(field.name)
            words = [cell for cell in cells if isinstance(cell, str)]
            is_text = not words or is_text_column(pyarrow.array(words, pyarrow.string()))
            if len(words) == len(cells) and is_text:
                return False
        raise refuse(
            self.label, f"column {field.name!r} (column {j + 1}) is not of numbers, but of type "
            f"{field.type}. If it is no feature, drop it.",
        )  # fmt: skip

    def _first_cells(self, name: str) -> list[Any]:
        """Return the first entries of a column that are there."""
        for batch in self.file.iter_batches(FIRST_ROWS, columns=[name]):
            return [cell for cell in batch.column(0).to_pylist() if cell is not None]
        return []

    def edges(self) -> list[int]:
        """Row groups."""
        return list(dict.fromkeys(self._edges))

    def head(self, n_rows: int) -> NDArray[np.floating]:
        """Return the first rows, from the first group."""
        return self._block(0, self.edges()[1], None).values[:n_rows]

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read whole row groups."""
        groups = range(self._edges.index(start), self._edges.index(stop))
        # By name only if one is left out: names may repeat.
        whole = self.index is None and not self.text_columns
        names = None if whole else self.feature_names
        return columns_to_array(self.file.read_row_groups(list(groups), columns=names).columns)

    def sample_names(self) -> Names | None:
        """Return what the index says."""
        return None if self.index is None else tuple(map(str, self.text(self.index)))

    def text(self, name: str) -> list[Any]:
        """Return the entries of a column, whatever they are."""
        found: list[Any] = self.file.read(columns=[name]).column(0).to_pylist()
        return found


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


def open_npy(path: str) -> FileSource:
    """Return the rows of a ``.npy`` file."""
    with open(path, "rb") as file:
        if file.read(6) != b"\x93NUMPY":
            raise refuse(path, "is not a NumPy file, whatever its ending says.")
        file.seek(0)
        # The third version differs from the second in the alphabet of names, which tables lack.
        is_first = npy_format.read_magic(file) == (1, 0)
        read_header = (
            npy_format.read_array_header_1_0 if is_first else npy_format.read_array_header_2_0
        )
        shape, fortran, dtype = read_header(file)
        if dtype.hasobject:
            raise refuse(path, "holds Python objects (a pickle), which are never loaded.")
        return FileSource(path, shape, dtype, file.tell(), fortran)


def open_zarr(path: str, key: str | None = None) -> ArraySource:
    """Return the rows of an array in a zarr folder."""
    zarr = import_extra("zarr", extra="io", what="Reading zarr arrays")
    found = zarr.open(path, mode="r")
    if key is not None:
        if hasattr(found, "chunks") or key not in found:
            raise refuse(path, f"there is no {key!r} in it.")
        found = found[key]
    if not hasattr(found, "chunks"):
        raise refuse(path, f"is a group; name one of its arrays, as in {path}::name.")
    return ArraySource(found, path)


def open_hdf5(path: str, key: str | None = None) -> ArraySource:
    """Return the rows of a dataset in an HDF5 file, which may be its only table."""
    h5py = import_extra("h5py", extra="io", what="Reading HDF5 files")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise refuse(path, f"is not an HDF5 file: {error}") from None
    if key is None:
        key = _only_table(path, file)
    if key not in file:
        raise refuse(path, f"there is no {key!r} in it.")
    if not hasattr(file[key], "shape"):
        raise refuse(path, f"{key!r} is a group; name one of its tables.")
    return ArraySource(file[key], path)


def _only_table(path: str, file: Any) -> str:
    tables: list[str] = []

    def visit(name: str, item: Any) -> None:
        if len(getattr(item, "shape", ())) == 2:
            tables.append(name)

    file.visititems(visit)
    if len(tables) != 1:
        raise refuse(
            path, f"has {len(tables)} tables ({', '.join(tables[:5])}); name one, as in "
            f"{path}::{tables[0] if tables else 'name'}.",
        )  # fmt: skip
    return tables[0]


def chunked_rows(X: Any) -> RowSource | None:
    """Return the rows of a memory map or of anything in chunks; None for all else."""
    if isinstance(X, RowSource):
        return X
    if isinstance(X, np.memmap):
        base: Any = X.base
        if X.filename is not None and isinstance(base, mmap) and X.flags.forc:
            fortran = not X.flags.c_contiguous
            return FileSource(X.filename, X.shape, X.dtype, X.offset, fortran)
        return ArraySource(X, "memory map")  # a part of one
    module = type(X).__module__.partition(".")[0]
    if module == "dask":
        from kspan.io.dask_rows import dask_source

        return dask_source(X)
    if module in ("zarr", "h5py") and hasattr(X, "shape"):
        return ArraySource(X, f"{module} array")
    return None
