"""Rows of a dask array or dataframe: the work goes to the blocks, and only small results come back.

Every block is a task that runs where the block is; results are merged in a tree on the workers. A
worker that dies takes its blocks with it, and the scheduler computes them again: tasks are pure
functions, so the answer stays the same.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kspan.arrays import Index
from kspan.io.rows import Block, RowSource, checked_rows, projected
from kspan.io.table import Names, float_type

# Results of this many blocks are merged by one task.
FAN_IN = 8


class DaskRows(RowSource):
    """A dask array with blocks of rows, dense or scipy sparse.

    Parameters
    ----------
    array : dask.array.Array, two-dimensional
    label : what to call it
    feature_names : of a dataframe
    """

    def __init__(self, array: Any, label: str, feature_names: Names | None = None):
        self.dtype = float_type(label, array.shape, array.dtype)
        if array.shape[1] != array.shape[1]:
            raise ValueError(f"{label}: the number of columns is not known.")
        if any(size != size for size in array.chunks[0]):  # not known yet
            array = array.compute_chunk_sizes()
        if len(array.chunks[1]) > 1:
            array = array.rechunk({1: -1})
        self.array, self.label, self.feature_names = array, label, feature_names
        self.shape = int(array.shape[0]), int(array.shape[1])

    def edges(self) -> list[int]:
        """The blocks of the array; empty ones are left out."""
        sizes = [size for size in self.array.chunks[0] if size]
        return [0, *np.cumsum(sizes).tolist()]

    def head(self, n_rows: int) -> NDArray[np.floating]:
        """Return the first rows, of the first block only."""
        return super().head(min(n_rows, self.edges()[1]))

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Fetch some rows: for streams, which need them one after the other."""
        found = self.array[start:stop].compute()
        return np.asarray(found.toarray() if scipy.sparse.issparse(found) else found)

    def _tasks(self, columns: Index | None) -> Iterator[tuple[int, int, Any]]:
        """Yield every block as a task that checks it and takes out the columns."""
        from dask.delayed import delayed

        blocks = self.array.to_delayed()[:, 0]
        start = 0
        for size, block in zip(self.array.chunks[0], blocks, strict=True):
            if size:
                check = delayed(_checked, pure=True)
                where = f"{self.label}: rows {start} to {start + size - 1}"
                shape = (size, self.shape[1])
                yield start, start + size, check(block, shape, self.dtype, where, columns)
            start += size

    def reduce(
        self,
        kernel: Callable[..., Any],
        merge: Callable[[Any, Any], Any],
        *,
        columns: Index | None = None,
        rows: NDArray[Any] | None = None,
    ) -> Any:
        """Return the merged results of a kernel on all blocks: one pass, on the workers."""
        from dask.delayed import delayed

        run, fold = delayed(kernel, pure=False), delayed(partial(reduce, merge), pure=False)
        results = []
        for start, stop, block in self._tasks(columns):
            more = () if rows is None else (rows[start:stop],)
            results.append(run(block, *more))
        while len(results) > 1:
            results = [fold(results[i : i + FAN_IN]) for i in range(0, len(results), FAN_IN)]
        with self._one_pass():
            return results[0].compute()

    def stack(self, kernel: Callable[..., Any], *, columns: Index | None = None) -> NDArray[Any]:
        """Return the results of a kernel on all blocks, one below the other: one pass."""
        from dask.base import compute
        from dask.delayed import delayed

        run = delayed(kernel, pure=False)
        tasks = (run(block) for *_, block in self._tasks(columns))
        with self._one_pass():
            results = compute(*tasks)  # type: ignore[no-untyped-call]
        return np.concatenate(results)

    @contextmanager
    def _one_pass(self) -> Iterator[None]:
        """Report the beginning and the end of a pass: between them the scheduler is at work."""
        self._passes += 1
        started = time.perf_counter()
        self._report(0, started)
        yield
        self._report(self.shape[0], started)

    def project(
        self, support: Index, axes: NDArray[Any], origin: NDArray[Any],
        fill: NDArray[Any] | None = None,
    ) -> Any:  # fmt: skip
        """Return a dask array: nothing is computed yet."""
        return self.array.map_blocks(
            _projected, support, axes, origin, self.dtype, fill,
            dtype=self.dtype, chunks=(self.array.chunks[0], (axes.shape[1],)),
        )  # fmt: skip

    def _blocks(self, columns: Index | None) -> Iterator[Block]:
        """Yield the blocks one after the other, on this machine."""
        for start, stop in pairwise(self.edges()):
            yield self._block(start, stop, columns)


def dask_source(X: Any) -> DaskRows:
    """Return the rows of a dask array or dataframe."""
    if hasattr(X, "to_dask_array"):
        names = tuple(map(str, X.columns))
        return DaskRows(X.to_dask_array(lengths=True), "dask dataframe", names)
    return DaskRows(X, "dask array")


def _checked(
    block: Any, shape: tuple[int, int], dtype: Any, where: str, columns: Index | None
) -> Any:
    """Return a block as it should be, dense or in CSR; say where if it is not."""
    if not scipy.sparse.issparse(block):
        block = np.asarray(block)
    elif not (block := block.tocsr()).has_canonical_format:  # some entries are there twice
        block = block.copy()
        block.sum_duplicates()
    return checked_rows(block, shape, dtype, where, columns)


def _projected(
    block: Any, support: Index, axes: NDArray[Any], origin: NDArray[Any], dtype: Any,
    fill: NDArray[Any] | None,
) -> NDArray[Any]:  # fmt: skip
    if scipy.sparse.issparse(block):
        block = block.tocsr()
    return projected(block[:, support], axes, origin, dtype, fill)
