"""What a file is read into, a `Grid` and then a `Table`; which extra is missing to do so."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module, util
from typing import Any

import numpy as np
from numpy.typing import NDArray

Names = tuple[str, ...]


class TableError(ValueError):
    """Data that cannot be read as a table: one line, beginning with the name of the file."""


class NoSuchFileError(TableError, FileNotFoundError):
    """There is no file of that name."""


@dataclass(frozen=True)
class Table:
    """Samples in rows, features in columns.

    Attributes
    ----------
    X : float array, scipy sparse array or matrix, or `RowSource`
        Anything that kspan's estimators take. Large files come as a `RowSource`, which is read in
        blocks.
    feature_names, sample_names : tuple of str, or None if the file has none
    source : the name of the file, as given
    notes : what was found out about the file, for people to read
    labels : what the label of each sample is, as text; None if no label was asked for
    label_name : what the labels are called
    text_columns : columns that are text, and so no features, but for those that were named
    columns : what the features are called in the file, if they are its columns: their numbers, from
        1, if it has no header
    """

    X: Any = field(repr=False)
    feature_names: Names | None = field(repr=False)
    sample_names: Names | None = field(repr=False)
    source: str
    notes: Names = ()
    labels: Names | None = field(default=None, repr=False)
    label_name: str | None = None
    text_columns: Names = ()
    columns: Names | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Grid:
    """Rows and columns as they are in the file, before anyone asks which are the samples.

    Attributes
    ----------
    values : float array, scipy sparse array or matrix, or `RowSource`
    row_names, column_names : None if the file has none
    notes : what was found out about the file
    numbers : the columns' numbers in the file, from 1, if there are others; for text
    line_of : from the number of a row, counted from 0, to its line; for text
    text : columns that are no numbers: from their names to what reads their cells
    """

    values: Any
    row_names: Names | None = None
    column_names: Names | None = None
    notes: Names = ()
    numbers: Sequence[int] | None = None
    line_of: Callable[[int], int] | None = None
    text: Mapping[str, Callable[[], Sequence[Any]]] = field(default_factory=dict)

    @property
    def columns(self) -> Names | None:
        """What the columns are called: by their numbers if they have no names."""
        if self.column_names is None and self.numbers is not None:
            return tuple(map(str, self.numbers))
        return self.column_names


def refuse(source: str, reason: object) -> TableError:
    """Return the error that says, in one line, why a file is not read."""
    text = " ".join(str(reason).split()).removeprefix(f"{source}: ")
    if len(text) > 500:  # some libraries explain at length
        text = f"{text[:497]}..."
    return TableError(f"{source}: {text}")


def only_text(source: str, names: Iterable[str]) -> TableError:
    """Return the error about a file whose columns are all text."""
    return refuse(
        source, f"has no column of numbers; these are text: {', '.join(map(repr, names))}."
    )


def several(source: str, name: str) -> TableError:
    """Return the error about a name that is not enough to know a column by."""
    return refuse(source, f"has several columns of the name {name!r}.")


def float_type(source: str, shape: tuple[int, ...], dtype: Any) -> np.dtype[np.floating]:
    """Return float32 for float32, float64 for all other numbers; refuse what is no table."""
    dtype = np.dtype(dtype)
    if len(shape) != 2:
        raise refuse(source, f"expected 2D array, got {len(shape)}D array instead.")
    if dtype.kind == "c":
        raise refuse(source, "complex data not supported.")
    if dtype.kind not in "biuf":
        raise refuse(source, f"the data must be numeric, but its type is {dtype}.")
    return np.dtype(np.float32 if dtype.itemsize == 4 and dtype.kind == "f" else np.float64)


def as_floats(source: str, values: Any) -> Any:
    """Return a table as floats: dense as it is, sparse in CSR or CSC."""
    if hasattr(values, "tocsr") and values.format not in ("csr", "csc"):
        values = values.tocsr()
    return values.astype(float_type(source, values.shape, values.dtype), copy=False)


def require_numbers(source: str, grid: Grid, *, allow_missing: bool = False) -> None:
    """Refuse an empty table, and numbers that are missing (unless they may be) or infinite."""
    n, d = grid.values.shape
    if d == 0 and grid.text:
        raise only_text(source, grid.text)
    if n == 0 or d == 0:
        raise refuse(source, f"the table is empty: {n} rows and {d} columns.")
    rows, columns, values = not_finite(grid.values)
    if not values.size:
        return
    # Those that are missing first: whoever fills them in will look at the others too.
    wanted, what = np.isnan(values), "missing"
    if allow_missing or not wanted.any():
        wanted, what = np.isinf(values), "infinite"
        if not wanted.any():
            return
    rows, columns = rows[wanted], columns[wanted]
    first = np.lexsort((columns, rows))[0]
    row, column = int(rows[first]), int(columns[first])
    line = "" if grid.line_of is None else f" (line {grid.line_of(row)})"
    many = rows.size > 1
    number = column + 1 if grid.numbers is None else grid.numbers[column]
    raise refuse(
        source,
        f"{rows.size} {what} value{'s' * many}, {'the first ' * many}in row {row + 1}"
        f"{_named(grid.row_names, row)}{line}, column {number}"
        f"{_named(grid.column_names, column)}; fill in or drop {'them' if many else 'it'}.",
    )


def not_finite(X: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return rows, columns and values of what is not finite."""
    sparse = hasattr(X, "tocoo")
    if np.isfinite(X.data if sparse else X).all():
        nothing = np.empty(0, dtype=np.intp)
        return nothing, nothing, nothing
    if sparse:
        entries = X.tocoo()
        bad = ~np.isfinite(entries.data)
        return entries.row[bad], entries.col[bad], entries.data[bad]
    rows, columns = np.nonzero(~np.isfinite(X))
    return rows, columns, X[rows, columns]


def fits_float32(X: Any) -> bool:
    """Whether all numbers of a table are float32 numbers, whatever they are stored as.

    What is missing is as good in one type as in the other.
    """
    values = X.data if hasattr(X, "tocoo") else np.asarray(X)
    if values.dtype.kind not in "biuf":
        return False
    with np.errstate(over="ignore"):  # what overflows is none
        same = values.astype(np.float32, copy=False) == values
    return bool(same.all() or np.isnan(values[~same]).all())


def _named(names: Names | None, position: int) -> str:
    return "" if names is None else f" {names[position]!r}"


def require_extra(*packages: str, extra: str, what: str) -> None:
    """Refuse what needs packages that are not there; nothing is imported.

    Parameters
    ----------
    packages : names of packages
    extra : the extra of kspan that has them
    what : what needs them, as the beginning of a sentence

    Examples
    --------
    >>> require_extra("no_such_package", extra="io", what="Reading scrolls")
    Traceback (most recent call last):
    ImportError: Reading scrolls needs no_such_package: pip install 'kspan[io]'.
    """
    for package in packages:
        if util.find_spec(package) is None:
            raise ImportError(f"{what} needs {package}: pip install 'kspan[{extra}]'.")


def import_extra(module: str, *, extra: str, what: str) -> Any:
    """Return a module of a package that may be missing."""
    require_extra(module.partition(".")[0], extra=extra, what=what)
    return import_module(module)
