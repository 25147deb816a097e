"""Data that need not fit in memory: its rows, block by block.

A `RowSource` knows its shape and yields blocks of rows as float arrays. What goes wrong on the way
is told with the rows that it went wrong in.
"""

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import Index
from kspan.io.table import Names, refuse
from kspan.linalg.machine import available_cores, one_blas_thread
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
    notes : what was found out about it, for people to read
    text_columns : names of columns that are no features
    block_bytes : about how large a block is
    on_rows : called with a `Reading` as a pass goes on
    """

    shape: tuple[int, int]
    dtype: np.dtype[np.floating]
    label: str
    feature_names: Names | None = None
    notes: Names = ()
    text_columns: Names = ()
    block_bytes: int = BLOCK_BYTES
    on_rows: Callable[[Reading], None] | None = None
    _passes: int = 0

    @property
    def n_bytes(self) -> int:
        """How much memory all rows would take."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

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
        ranges = list(pairwise(self.edges()))
        with ThreadPoolExecutor(1) as reader:
            waiting = reader.submit(self._block, *ranges[0], columns)
            for following in [*ranges[1:], None]:
                block = waiting.result()
                if following is not None:
                    waiting = reader.submit(self._block, *following, columns)
                yield block

    def load(self) -> NDArray[np.floating]:
        """Return all rows as one array."""
        return self._block(0, self.shape[0], None).values

    def sample_names(self) -> Names | None:
        """Return the names of the rows; None if they have none."""
        return None

    def text(self, name: str) -> list[Any]:
        """Return the entries of one of the `text_columns`."""
        raise LookupError(name)

    def turned(self) -> "RowSource":
        """Return the columns as rows, if they can be read that way."""
        raise refuse(
            self.label, "is too large to transpose in memory; store it with samples in rows."
        )

    def head(self, n_rows: int) -> NDArray[np.floating]:
        """Return the first rows."""
        return self._block(0, min(n_rows, self.shape[0]), None).values

    def row(self, place: int) -> NDArray[np.floating]:
        """Return one row: the block that it is in is read."""
        start, stop = next(edges for edges in pairwise(self.edges()) if edges[1] > place)
        return self._block(start, stop, None).values[place - start]

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

    def project(
        self, support: Index, axes: NDArray[Any], origin: NDArray[Any],
        fill: NDArray[Any] | None = None,
    ) -> Any:  # fmt: skip
        """Return the data on a support times axes, minus an origin, in the type of the data.

        What is missing is first filled with a number for each column of the support, if given.
        """
        kernel = partial(projected, axes=axes, origin=origin, dtype=self.dtype, fill=fill)
        found = self.stack(kernel, columns=support)
        if not np.isfinite(found).all() and (wrong := self.find_not_finite(support)) is not None:
            raise ValueError(
                f"Input X contains NaN or infinity: in {wrong[0]}, the first in column "
                f"{support[wrong[1]]}."
            )
        return found

    def find_not_finite(self, columns: Index | None = None) -> tuple[str, int] | None:
        """Return in which rows, and in which column, the first number is that is not finite.

        Of some columns, if given; then it is their number that counts.
        """
        for block in self.blocks(columns):
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
        shape = (stop - start, self.shape[1])
        return Block(start, stop, checked_rows(values, shape, self.dtype, where, columns))


def checked_rows(
    values: Any, shape: tuple[int, int], dtype: Any, where: str, columns: Index | None
) -> Any:
    """Return some columns of rows, as floats; say where if they are not what they should be."""
    if values.shape != shape:
        raise ValueError(
            f"{where} have shape {values.shape}, expected {shape}: was the data changed or cut off?"
        )
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{where} are not numbers, but {values.dtype}.")
    if columns is not None:
        values = values[:, columns]
    return values.astype(dtype, copy=False)


def projected(
    values: Any, axes: NDArray[Any], origin: NDArray[Any], dtype: Any,
    fill: NDArray[Any] | None = None,
) -> NDArray[Any]:  # fmt: skip
    """Return rows times axes, minus an origin; what is missing filled by columns first."""
    found = np.asarray((values if fill is None else filled(values, fill)) @ axes - origin, dtype)
    found += 0.0  # zeros have no sign
    return found


def filled(values: Any, fill: NDArray[Any]) -> Any:
    """Return rows, dense or sparse, with NaN replaced by the number of its column, as doubles."""
    if not hasattr(values, "tocoo"):
        values = values.astype(np.float64)  # a copy
        np.copyto(values, fill, where=np.isnan(values))
        return values
    places = values.tocoo().coords[1] if values.format != "csr" else values.indices
    data = values.data.astype(np.float64)
    gone = np.isnan(data)
    data[gone] = fill[places[gone]]
    return type(values)((data, values.indices, values.indptr), shape=values.shape)


class ChangedRows(RowSource):
    """The rows of another source, which reads them, in its blocks, and tells how far it is."""

    def __init__(self, source: RowSource):
        self.source = source
        self.shape, self.dtype, self.label = source.shape, source.dtype, source.label
        self.feature_names, self.notes = source.feature_names, source.notes

    @property
    def on_rows(self) -> Callable[[Reading], None] | None:
        """Who is told."""
        return self.source.on_rows

    @on_rows.setter
    def on_rows(self, told: Callable[[Reading], None] | None) -> None:
        self.source.on_rows = told

    def edges(self) -> list[int]:
        """Those of the source."""
        return self.source.edges()

    def sample_names(self) -> Names | None:
        """Those of the source."""
        return self.source.sample_names()

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the changed rows."""
        return self._block(start, stop, None).values


class SomeColumns(ChangedRows):
    """Some columns of another source.

    Parameters
    ----------
    source : RowSource
    columns : their places
    """

    def __init__(self, source: RowSource, columns: Index):
        super().__init__(source)
        self.columns, self.shape = columns, (source.shape[0], columns.size)
        if source.feature_names is not None:
            self.feature_names = tuple(source.feature_names[place] for place in columns)

    def _of(self, columns: Index | None) -> Index:
        return self.columns if columns is None else self.columns[columns]

    def _block(self, start: int, stop: int, columns: Index | None) -> Block:
        return self.source._block(start, stop, self._of(columns))

    def reduce(
        self,
        kernel: Callable[..., Any],
        merge: Callable[[Any, Any], Any],
        *,
        columns: Index | None = None,
        rows: NDArray[Any] | None = None,
    ) -> Any:
        """Let the source do it."""
        return self.source.reduce(kernel, merge, columns=self._of(columns), rows=rows)

    def stack(self, kernel: Callable[..., Any], *, columns: Index | None = None) -> NDArray[Any]:
        """Let the source do it."""
        return self.source.stack(kernel, columns=self._of(columns))

    def project(
        self, support: Index, axes: NDArray[Any], origin: NDArray[Any],
        fill: NDArray[Any] | None = None,
    ) -> Any:  # fmt: skip
        """Let the source do it, at once or when it is asked for."""
        return self.source.project(self._of(support), axes, origin, fill)


class FilledRows(ChangedRows):
    """The rows of another source, with what is missing filled by columns as they are read.

    Blocks are made of doubles, so that a mean is as good a fill as it can be.

    Parameters
    ----------
    source : RowSource
    fill : (d,) array
    """

    def __init__(self, source: RowSource, fill: NDArray[np.float64]):
        super().__init__(source)
        self.fill = fill

    def _block(self, start: int, stop: int, columns: Index | None) -> Block:
        block = self.source._block(start, stop, columns)
        return Block(start, stop, filled(block.values, self._on(columns)))

    def _on(self, columns: Index | None) -> NDArray[np.float64]:
        return self.fill if columns is None else self.fill[columns]

    def reduce(
        self,
        kernel: Callable[..., Any],
        merge: Callable[[Any, Any], Any],
        *,
        columns: Index | None = None,
        rows: NDArray[Any] | None = None,
    ) -> Any:
        """Let the source do it: where its blocks are, they are filled."""
        kernel = partial(_on_filled, kernel, self._on(columns))
        return self.source.reduce(kernel, merge, columns=columns, rows=rows)

    def stack(self, kernel: Callable[..., Any], *, columns: Index | None = None) -> NDArray[Any]:
        """Let the source do it."""
        return self.source.stack(partial(_on_filled, kernel, self._on(columns)), columns=columns)


def _on_filled(kernel: Callable[..., Any], fill: NDArray[Any], values: Any, *rows: Any) -> Any:
    return kernel(filled(values, fill), *rows)
