"""Data that need not fit in memory: its rows, block by block, from files and chunked arrays.

A `RowSource` knows its shape and yields blocks of rows as float arrays. What goes wrong on the way
is told with the rows that it went wrong in.
"""

import os
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from mmap import mmap
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import Index
from kspan.linalg.threads import available_cores, one_blas_thread
from kspan.progress import Reading

# Of a block of rows in memory, unless told otherwise: small enough for memory to be used again.
BLOCK_BYTES = 1 << 24

# A block may be so many times as large if it had fewer rows than this otherwise.
LARGEST_BLOCK, FEWEST_ROWS = 8, 64

# Seconds between two reports of how far a pass has got.
REPORT_EVERY = 0.1

Part = TypeVar("Part")


@dataclass(frozen=True)
class Block:
    """Some rows: where they are, and their numbers."""

    start: int
    stop: int
    values: NDArray[np.floating]


class RowSource(ABC):
    """Rows of an n × d table.

    Attributes
    ----------
    shape : (n, d)
    dtype : float32 or float64, in which blocks come
    label : what to call it in messages
    feature_names : names of the columns, if it has any
    block_bytes : about how large a block is
    on_rows : called with a `Reading` as a pass goes on
    """

    shape: tuple[int, int]
    dtype: np.dtype[np.floating]
    label: str
    feature_names: NDArray[Any] | None = None
    block_bytes: int = BLOCK_BYTES
    on_rows: Callable[[Reading], None] | None = None
    _passes: int = 0

    @abstractmethod
    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the rows from start to stop, of any numeric type."""

    def edges(self) -> list[int]:
        """Return where blocks begin and end."""
        n = self.shape[0]
        return [*range(0, n, self._rows_per_block()), n]

    def _rows_per_block(self) -> int:
        """As many as fill a block; of very long rows more, as products of a few are slow."""
        bytes_each = max(1, self.shape[1] * self.dtype.itemsize)
        few = min(FEWEST_ROWS, LARGEST_BLOCK * self.block_bytes // bytes_each)
        return max(1, few, self.block_bytes // bytes_each)

    def blocks(self, columns: Index | None = None) -> Iterator[Block]:
        """Yield all rows, the next block being read while one is worked on."""
        return self._watched(self._blocks(columns))

    def _watched(self, parts: Iterator[Part]) -> Iterator[Part]:
        """Hand on what comes of the blocks, one by one, and report how many rows are done."""
        self._passes += 1
        started = reported = time.perf_counter()
        for part, rows in zip(parts, self.edges()[1:], strict=True):
            now = time.perf_counter()
            if rows == self.shape[0] or now - reported > REPORT_EVERY:
                self._report(rows, started)
                reported = now
            yield part

    def _report(self, rows: int, started: float) -> None:
        if self.on_rows is not None:
            seconds = time.perf_counter() - started
            self.on_rows(Reading(self.label, self._passes, rows, self.shape[0], seconds))

    def _blocks(self, columns: Index | None) -> Iterator[Block]:
        edges = self.edges()
        ranges = list(pairwise(edges))
        with ThreadPoolExecutor(1) as reader:
            waiting = reader.submit(self._block, *ranges[0], columns)
            for following in [*ranges[1:], None]:
                block = waiting.result()
                if following is not None:
                    waiting = reader.submit(self._block, *following, columns)
                yield block

    def head(self, n_rows: int) -> NDArray[np.floating]:
        """Return the first rows."""
        return self._block(0, min(n_rows, self.shape[0]), None).values

    def reduce(
        self,
        kernel: Callable[..., Any],
        merge: Callable[[Any, Any], Any],
        *,
        columns: Index | None = None,
        rows: NDArray[Any] | None = None,
    ) -> Any:
        """Return the merged results of a kernel on all blocks: one pass.

        The kernel gets the numbers of a block on some columns and, if given, its part of `rows`.
        """
        result = None
        for found in self._watched(self._results(kernel, columns, rows)):
            result = found if result is None else merge(result, found)
        return result

    def stack(self, kernel: Callable[..., Any], *, columns: Index | None = None) -> NDArray[Any]:
        """Return the results of a kernel on all blocks, one below the other: one pass."""
        return np.concatenate(list(self._watched(self._results(kernel, columns, None))))

    def _results(
        self, kernel: Callable[..., Any], columns: Index | None, rows: NDArray[Any] | None
    ) -> Iterator[Any]:
        """Yield what a kernel makes of every block, in their order.

        Blocks are read one at a time and worked on in parallel, one core for each: a kernel's
        products are small, and BLAS would lose more by sharing them out than it gains.
        """

        def task(start: int, stop: int) -> Any:
            with lock:
                block = self._block(start, stop, columns)
            return kernel(block.values, *(() if rows is None else (rows[start:stop],)))

        lock, n_workers = Lock(), available_cores()
        waiting: deque[Future[Any]] = deque()
        with one_blas_thread(), ThreadPoolExecutor(n_workers) as pool:
            for start, stop in pairwise(self.edges()):
                waiting.append(pool.submit(task, start, stop))
                if len(waiting) > n_workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def project(self, support: Index, axes: NDArray[Any], origin: NDArray[Any]) -> Any:
        """Return the data on a support times axes, minus an origin, in the type of the data."""
        return self.stack(partial(_projected, axes=axes, origin=origin), columns=support)

    def find_not_finite(self) -> tuple[str, int] | None:
        """Return in which rows, and in which column, the first number is that is not finite."""
        for block in self.blocks():
            bad = ~np.isfinite(block.values).all(axis=0)
            if bad.any():
                where = f"{self.label}, rows {block.start} to {block.stop - 1}"
                return where, int(np.flatnonzero(bad)[0])
        return None

    def _block(self, start: int, stop: int, columns: Index | None) -> Block:
        where = f"{self.label}: rows {start} to {stop - 1}"
        try:
            values = self.read(start, stop)
        except (OSError, ValueError, RuntimeError, EOFError) as error:
            raise ValueError(f"{where} could not be read: {error}") from error
        if values.shape != (stop - start, self.shape[1]):
            raise ValueError(
                f"{where} have shape {values.shape}, expected {(stop - start, self.shape[1])}: "
                "was the data changed or cut off?"
            )
        if values.dtype.kind not in "biuf":
            raise ValueError(f"{where} are not numbers, but {values.dtype}.")
        if columns is not None:
            values = values[:, columns]
        return Block(start, stop, values.astype(self.dtype, copy=False))


def float_type(dtype: Any, label: str) -> np.dtype[np.floating]:
    """Return float32 for float32, float64 for all other numbers; refuse the rest."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "biuf":
        raise ValueError(f"{label}: the data must be numeric, but its type is {dtype}.")
    return np.dtype(np.float32 if dtype.itemsize == 4 and dtype.kind == "f" else np.float64)


class ArraySource(RowSource):
    """An array that is read by slicing: a zarr array, an HDF5 dataset, a memory map."""

    def __init__(self, array: Any, label: str):
        if len(array.shape) != 2:
            raise ValueError(f"{label}: expected 2D array, got {len(array.shape)}D array instead.")
        self.array, self.label = array, label
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.dtype = float_type(array.dtype, label)

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
        self.path, self.label = Path(path), os.fspath(path)
        if len(shape) != 2:
            raise ValueError(f"{self.label}: expected 2D array, got {len(shape)}D array instead.")
        self.shape = int(shape[0]), int(shape[1])
        self.stored, self.offset, self.fortran = np.dtype(dtype), offset, fortran
        self.dtype = float_type(dtype, self.label)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read the bytes of these rows."""
        n, d = self.shape
        if not self.fortran:
            return self._numbers(start * d, (stop - start) * d).reshape(stop - start, d)
        columns = [self._numbers(j * n + start, stop - start) for j in range(d)]
        return np.stack(columns, axis=1)

    def _numbers(self, first: int, count: int) -> NDArray[Any]:
        size = self.stored.itemsize
        found = np.fromfile(
            self.path, dtype=self.stored, count=count, offset=self.offset + first * size
        )
        if found.size < count:
            raise ValueError("the file ends before them")
        return found


def npy_source(path: str | os.PathLike[str]) -> FileSource:
    """Return the rows of a ``.npy`` file."""
    with open(path, "rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }.get(version)
            if read is None:
                raise ValueError(f"format {version} is not known")
            shape, fortran, dtype = read(file)
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}: not a NumPy file: {error}") from None
        return FileSource(path, shape, dtype, file.tell(), fortran)


class ParquetSource(RowSource):
    """A Parquet file: a block is a row group. All columns must be numbers."""

    def __init__(self, path: str | os.PathLike[str]):
        parquet = _extra("pyarrow.parquet", "pyarrow", "Parquet files")
        self.label = str(path)
        try:
            self.file = parquet.ParquetFile(path)
        except Exception as error:
            raise ValueError(f"{self.label}: not a Parquet file: {error}") from None
        names = [name for name in self.file.schema_arrow.names if name != "__index_level_0__"]
        self.columns = names
        self.feature_names = np.array(names, dtype=object)
        types = [self.file.schema_arrow.field(name).type.to_pandas_dtype() for name in names]
        for name, kind in zip(names, types, strict=True):
            float_type(kind, f"{self.label}, column {name!r}")
        self.shape = (int(self.file.metadata.num_rows), len(names))
        single = all(np.dtype(kind) == np.float32 for kind in types)
        self.dtype = np.dtype(np.float32 if single else np.float64)
        sizes = [
            self.file.metadata.row_group(i).num_rows
            for i in range(self.file.metadata.num_row_groups)
        ]
        self._edges = np.concatenate([[0], np.cumsum(sizes)]).astype(int).tolist()

    def edges(self) -> list[int]:
        """Row groups."""
        return [int(edge) for edge in dict.fromkeys(self._edges)]

    def head(self, n_rows: int) -> NDArray[np.floating]:
        """Return the first rows, from the first group."""
        return self._block(0, self.edges()[1], None).values[:n_rows]

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read one row group."""
        group = self._edges.index(stop) - 1
        table = self.file.read_row_group(group, columns=self.columns)
        values = [column.to_numpy(zero_copy_only=False) for column in table.columns]
        return np.stack([np.asarray(v, dtype=self.dtype) for v in values], axis=1)


def open_source(path: str | os.PathLike[str]) -> RowSource:
    """Open a file by its ending: ``.npy``, ``.parquet``, ``.zarr``, ``.h5`` or ``.hdf5``.

    An HDF5 file with several tables needs the name of one: ``file.h5::name``.
    """
    text = os.fspath(path)
    text, _, inner = text.partition("::")
    if not os.path.exists(text):
        raise FileNotFoundError(f"There is no file {text!r}.")
    ending = Path(text).suffix.lower()
    if ending == ".npy":
        return npy_source(text)
    if ending in (".parquet", ".pq"):
        return ParquetSource(text)
    if ending == ".zarr":
        zarr = _extra("zarr", "zarr", "zarr arrays")
        found = zarr.open(text, mode="r")
        found = found[inner] if inner else found
        if not hasattr(found, "chunks"):
            raise ValueError(f"{text}: is a group; name one of its arrays, as in {text}::name.")
        return ArraySource(found, os.fspath(path))
    if ending in (".h5", ".hdf5"):
        return ArraySource(_hdf5_table(text, inner), os.fspath(path))
    raise ValueError(
        f"{text}: the ending {ending!r} is not known; use .npy, .parquet, .zarr, .h5 or .hdf5."
    )


def _hdf5_table(path: str, name: str) -> Any:
    h5py = _extra("h5py", "h5py", "HDF5 files")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise ValueError(f"{path}: not an HDF5 file: {error}") from None
    if name:
        if name not in file:
            raise ValueError(f"{path}: there is no {name!r} in it.")
        return file[name]
    tables: list[str] = []
    file.visititems(
        lambda key, item: tables.append(key) if len(getattr(item, "shape", ())) == 2 else None
    )
    if len(tables) != 1:
        raise ValueError(
            f"{path}: has {len(tables)} tables ({', '.join(tables[:5])}); name one, as in "
            f"{path}::{tables[0] if tables else 'name'}."
        )
    return file[tables[0]]


def as_source(X: Any) -> RowSource | None:
    """Return the rows of a path, a memory map, or anything in chunks; None for all else."""
    if isinstance(X, RowSource):
        return X
    if isinstance(X, str | os.PathLike):
        return open_source(X)
    if isinstance(X, np.memmap):
        base: Any = X.base
        if X.filename is not None and isinstance(base, mmap) and X.flags.forc:
            fortran = not X.flags.c_contiguous
            return FileSource(X.filename, X.shape, X.dtype, X.offset, fortran)
        return ArraySource(X, "memory map")  # a part of one
    module = type(X).__module__.partition(".")[0]
    if module == "dask":
        from kspan.covariance.dask_rows import dask_source

        return dask_source(X)
    if module in ("zarr", "h5py") and hasattr(X, "shape"):
        return ArraySource(X, f"{module} array")
    return None


def _projected(values: Any, axes: NDArray[Any], origin: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(values @ axes - origin, dtype=values.dtype)


def _extra(module: str, package: str, what: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise ImportError(f"Reading {what} needs {package}: pip install 'kspan[io]'.") from None
