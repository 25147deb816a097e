"""What a file is read into, and the way from a reader's `Grid` to a `Table`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

# More than this is not loaded: estimators read it from the file, block by block.
LOAD_BYTES = 1 << 30

Names = tuple[str, ...]


class TableError(ValueError):
    """A file that cannot be read as a table: one line, beginning with the name of the file."""


@dataclass(frozen=True)
class Table:
    """Samples in rows, features in columns.

    Attributes
    ----------
    X : float array, scipy sparse array or matrix, path, or `RowSource`
        Anything that kspan's estimators take. Large files come as a path or a `RowSource`, which
        are read in blocks.
    feature_names, sample_names : tuple of str, or None if the file has none
    source : the name of the file, as given
    notes : what was found out about the file, for people to read
    """

    X: Any = field(repr=False)
    feature_names: Names | None = field(repr=False)
    sample_names: Names | None = field(repr=False)
    source: str
    notes: Names = ()


@dataclass(frozen=True)
class Grid:
    """Rows and columns as they are in the file, before anyone asks which are the samples.

    What is too large to load has a `RowSource` as its values, and in `streamed` the path by which
    estimators find it.
    """

    values: Any
    row_names: Names | None = None
    column_names: Names | None = None
    notes: Names = ()
    streamed: str | None = None


def refuse(source: str, reason: object) -> TableError:
    """Return the error that says, in one line, why a file is not read."""
    text = " ".join(str(reason).split()).removeprefix(f"{source}: ")
    if len(text) > 500:  # some libraries explain at length
        text = f"{text[:497]}..."
    return TableError(f"{source}: {text}")


def as_floats(source: str, values: Any) -> Any:
    """Return a table as float32, if it is that, or float64; refuse what is no table of numbers."""
    if values.ndim != 2:
        raise refuse(source, f"expected a table with 2 dimensions, found {values.ndim}.")
    if values.dtype.kind == "c":
        raise refuse(source, "the numbers are complex, which has no meaning here.")
    if values.dtype.kind not in "biuf":
        raise refuse(source, f"the table must be of numbers, but its type is {values.dtype}.")
    single = values.dtype.kind == "f" and values.dtype.itemsize == 4
    return values.astype(np.float32 if single else np.float64, copy=False)


def finish(source: str, grid: Grid, *, transpose: bool) -> Table:
    """Check what was read and put the samples in rows."""
    samples, features, notes = grid.row_names, grid.column_names, [*grid.notes]
    if grid.streamed is None:
        _require_numbers(source, grid)
        X = grid.values.T if transpose else grid.values  # a view; that of CSR is CSC
    else:
        X = _turned(source, grid.values) if transpose else grid.streamed
        notes.append("not loaded: large, and read in blocks")
    if transpose:
        samples, features = features, samples
        notes.append("transposed: the rows of the file are features")
    for kind, names in (("feature", features), ("sample", samples)):
        if names is not None and (twice := _first_repeated(names)) is not None:
            notes.append(f"{kind} names repeat, the first being {twice!r}")
    return Table(X, features, samples, source, tuple(notes))


def missing(
    source: str, count: int, row: int, column: int, grid: Grid, *, line: int | None = None,
    n_before: int = 0, what: str = "missing",
) -> TableError:  # fmt: skip
    """Return the error about numbers that are missing.

    `row` and `column` count from 0; in the file there are `n_before` columns before them.
    """
    cells = f"{count} {what} value{'s' if count > 1 else ''}"
    first = "the first " if count > 1 else ""
    where = f"in row {row + 1}{_named(grid.row_names, row)}" + (f" (line {line})" if line else "")
    return refuse(
        source,
        f"{cells}, {first}{where}, column {column + 1 + n_before}"
        f"{_named(grid.column_names, column)}; fill in or drop {'them' if count > 1 else 'it'}.",
    )


def _named(names: Names | None, position: int) -> str:
    return "" if names is None else f" {names[position]!r}"


def _require_numbers(source: str, grid: Grid) -> None:
    """Refuse an empty table, and numbers that are missing or infinite."""
    X = grid.values
    n, d = X.shape
    if n == 0 or d == 0:
        raise refuse(source, f"the table is empty: {n} rows and {d} columns.")
    sparse = hasattr(X, "tocoo")
    if np.isfinite(X.data if sparse else X).all():
        return
    if sparse:
        entries = X.tocoo()
        bad = ~np.isfinite(entries.data)
        rows, columns, values = entries.row[bad], entries.col[bad], entries.data[bad]
    else:
        rows, columns = np.nonzero(~np.isfinite(X))
        values = X[rows, columns]
    wanted: NDArray[np.bool_] = np.isnan(values)
    what = "missing"
    if not wanted.any():
        wanted, what = np.isinf(values), "infinite"
    rows, columns = rows[wanted], columns[wanted]
    first = np.lexsort((columns, rows))[0]
    raise missing(source, rows.size, int(rows[first]), int(columns[first]), grid, what=what)


def _turned(source: str, rows: Any) -> Any:
    """Return the columns of a large file as rows."""
    from kspan.covariance.sources import FileSource

    if isinstance(rows, FileSource):  # C order read as Fortran order
        return FileSource(rows.path, rows.shape[::-1], rows.stored, rows.offset, not rows.fortran)
    raise refuse(source, "is too large to transpose in memory; store it with samples in rows.")


def _first_repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
