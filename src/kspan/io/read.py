"""`read_table` and `open_data`: from a file, or data as it comes, to numbers and names."""

import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspan.io.array_files import read_sample_column
from kspan.io.endings import Kind, kind_of
from kspan.io.numeric import require_numeric
from kspan.io.row_files import chunked_rows
from kspan.io.rows import RowSource, SomeColumns
from kspan.io.table import Grid, Names, NoSuchFileError, Table, TableError, refuse, require_numbers

# More than this is not loaded if it can be read in blocks.
LOAD_BYTES = 1 << 30


@dataclass(frozen=True)
class Opened:
    """Data as it came: what to compute with, and what its features are called.

    Attributes
    ----------
    values : array, data frame, scipy sparse array or matrix, or `RowSource`
    feature_names : tuple of str, or None
    as_given : whether the values are what was given, and not read from it or to be read
    """

    values: Any = field(repr=False)
    feature_names: Names | None = field(repr=False)
    as_given: bool = False

    @property
    def rows(self) -> RowSource | None:
        """The values if they are read in blocks, else None."""
        return self.values if isinstance(self.values, RowSource) else None


def open_data(X: Any, *, load_bytes: float = 0, allow_missing: bool = False) -> Opened:
    """Open data, whatever it is.

    Parameters
    ----------
    X : array, data frame, scipy sparse array, path, memory map, zarr array, HDF5 dataset, dask
        array or dataframe, `RowSource`, or what this function returned before
        A path is that of a file with any of `known_endings`.
    load_bytes : float
        What can be read in blocks but has no more bytes of numbers than this is loaded.
    allow_missing : bool
        Leave missing values of a file to whoever asks, as NaN; else they are refused.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(3)
    >>> open_data(X).values is X
    True
    """
    if isinstance(X, str | os.PathLike):
        table = _read(os.fspath(X), {}, load_bytes, allow_missing=allow_missing)
        return Opened(table.X, table.feature_names)
    if isinstance(X, Opened):
        X, names, as_given = X.values, X.feature_names, X.as_given
    else:
        names, as_given = _column_names(X), True
    rows = chunked_rows(X)
    if rows is None:
        return Opened(require_numeric(X, allow_missing=allow_missing), names, as_given)
    return Opened(rows.load() if rows.n_bytes <= load_bytes else rows, rows.feature_names)


def _column_names(X: Any) -> Names | None:
    """Return the names of the columns of a data frame, if all of them are strings."""
    columns = getattr(X, "columns", None)
    if columns is None or callable(columns):  # a covariance has a method of that name
        return None
    names = tuple(columns)
    return names if all(isinstance(name, str) for name in names) else None


def read_table(
    path: str | os.PathLike[str],
    *,
    transpose: bool = False,
    delimiter: str | None = None,
    header: bool | None = None,
    index: bool | None = None,
    key: str | None = None,
    layer: str | None = None,
    load_bytes: float = LOAD_BYTES,
    allow_missing: bool = False,
) -> Table:
    r"""Read a table of numbers from a file, by its ending.

    Parameters
    ----------
    path : path
        With any of `kspan.io.known_endings`: ``.csv``, ``.tsv`` and other text (also as ``.gz`` or
        ``.bz2``), ``.parquet``, ``.npy``, ``.npz``, ``.mtx`` (also as ``.gz`` or ``.bz2``),
        ``.mat``, ``.h5ad``, ``.h5``, ``.zarr``.
    transpose : bool
        Whether the rows of the file are the features, as in most tables of genes.
    delimiter : str, optional
        What stands between cells of a text file: one character, or "tab" or "whitespace".
        Found out if not given: comma, tab, semicolon, bar or white space.
    header : bool, optional
        Whether the first line of a text file has names. Found out if not given: it has if it
        is text where later lines are numbers.
    index : bool, optional
        Whether the first column has names. Found out if not given: it has if it is text, or if
        the header says nothing above it.
    key : str, optional
        Which table, in a file of several (``.npz``, ``.mat``, ``.h5``, ``.zarr``).
    layer : str, optional
        Which layer of an ``.h5ad`` file; else its X.
    load_bytes : float
        What has more bytes of numbers is not loaded if it can be read in blocks.
    allow_missing : bool
        Read cells without a number as NaN; by default they are refused, with their place.

    Returns
    -------
    Table
        Numbers are float64, or float32 if the file has those; sparse stays sparse. Of
        ``.npy``, ``.parquet``, ``.h5`` and ``.zarr`` with more than `load_bytes` of numbers, X
        is a `RowSource`, which estimators read in blocks.

    Raises
    ------
    TableError
        One line that begins with the name of the file: it is not there, not what its ending
        says, ragged, or has text or missing values among the numbers.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "plants.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("plant,height,width\nrose,1.5,0.5\ntulip,0.4,0.1\n")
    ...     table = read_table(path)
    >>> table.feature_names, table.sample_names
    (('height', 'width'), ('rose', 'tulip'))
    >>> table.X
    array([[1.5, 0.5],
           [0.4, 0.1]])
    """
    given = {"delimiter": delimiter, "header": header, "index": index, "key": key, "layer": layer}
    return _read(
        os.fspath(path), given, load_bytes, transpose=transpose, allow_missing=allow_missing
    )


def _read(
    source: str, given: Mapping[str, Any], load_bytes: float, *, transpose: bool = False,
    allow_missing: bool = False,
) -> Table:  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None}
    place = source
    if "key" not in options and "::" in source and not os.path.exists(source):
        place, _, options["key"] = source.partition("::")
    kind = kind_of(place)
    for name in options:
        if name not in kind.options:
            raise refuse(source, f"{name} has no meaning for a file of kind {kind.name}.")
    _require_readable(place, kind)
    try:
        grid = _grid(kind, place, options, load_bytes)
        return _table(source, grid, transpose=transpose, allow_missing=allow_missing)
    except TableError:
        raise
    except ImportError as error:
        raise refuse(source, error) from None
    except MemoryError:
        raise refuse(source, "does not fit in memory.") from None
    # Readers of other libraries raise what they like.
    except Exception as error:
        said = (str(error) or type(error).__name__).removeprefix(f"{place}: ")
        raise refuse(source, f"could not be read as {kind.name}: {said}") from error


def _grid(kind: Kind, path: str, options: Mapping[str, Any], load_bytes: float) -> Grid:
    """Load a file, or open its rows if it is large."""
    if kind.stream is not None:
        rows = kind.stream(path, **options)
        if rows.n_bytes > load_bytes:
            notes = (*rows.notes, "not loaded: large, and read in blocks")
            return Grid(rows, None, rows.feature_names, notes)
        if kind.load is None:
            return Grid(rows.load(), rows.sample_names(), rows.feature_names, rows.notes)
    assert kind.load is not None
    return kind.load(path, **options)


def _table(source: str, grid: Grid, *, transpose: bool, allow_missing: bool) -> Table:
    """Check what was read and put the samples in rows."""
    X, samples, features, notes = grid.values, grid.row_names, grid.column_names, [*grid.notes]
    streamed = isinstance(X, RowSource)
    if not streamed:
        require_numbers(source, grid, allow_missing=allow_missing)
    if transpose:
        X = X.turned() if streamed else X.T  # a view; that of CSR is CSC
        samples, features = features, samples
        notes.append("transposed: the rows of the file are features")
    for side, names in (("feature", features), ("sample", samples)):
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            notes.append(f"{side} names repeat, the first being {twice!r}")
    return Table(X, features, samples, source, tuple(notes))


def take_column(table: Table, name: str) -> tuple[NDArray[np.float64], Table]:
    """Return the numbers of a column, and the table without it.

    Examples
    --------
    >>> import numpy as np
    >>> table = Table(np.array([[1.0, 2.0], [3.0, 4.0]]), ("a", "w"), None, "plants")
    >>> column, others = take_column(table, "w")
    >>> column, others.feature_names
    (array([2., 4.]), ('a',))
    """
    names = table.feature_names or ()
    if names.count(name) != 1:
        several = "several columns" if name in names else "no column"
        raise refuse(table.source, f"has {several} of the name {name!r}.")
    place, X = names.index(name), table.X
    others = np.delete(np.arange(len(names)), place)
    if isinstance(X, RowSource):
        column = np.concatenate([block.values for block in X.blocks(np.array([place]))])
        X = SomeColumns(X, others)
    else:
        column = X[:, [place]]
        column = column.toarray() if hasattr(column, "toarray") else column
        X = X[:, others]
    left = replace(table, X=X, feature_names=tuple(names[place] for place in others))
    return np.asarray(column[:, 0], dtype=np.float64), left


def read_sample_numbers(table: Table, name: str) -> tuple[NDArray[np.float64], Table]:
    """Return a number for each sample, and the table without them if they were a column of it.

    Parameters
    ----------
    table : from `read_table`
    name : of a column of the table, or of ``.obs`` of an H5AD file; or of a file with one number
        for each sample
    """
    if table.source.endswith(".h5ad"):
        found = read_sample_column(table.source, name)
        if found is not None:
            return found, table
    if name in (table.feature_names or ()):
        return take_column(table, name)
    if not os.path.exists(name):
        raise refuse(table.source, f"has no column {name!r}, and there is no file of that name.")
    numbers = read_table(name, load_bytes=math.inf).X
    numbers = numbers.toarray() if hasattr(numbers, "toarray") else numbers
    if 1 not in numbers.shape:
        shape = " x ".join(map(str, numbers.shape))
        raise refuse(name, f"expected one number for each sample, but it is a table of {shape}.")
    return np.asarray(numbers, dtype=np.float64).ravel(), table


def _require_readable(path: str, kind: Kind) -> None:
    """Say what any reader would stumble over, before it does."""
    place = Path(path)
    if not place.exists():
        raise NoSuchFileError(f"{path}: there is no such file.")
    if place.is_dir():
        if not kind.is_folder:
            raise refuse(path, "is a directory, not a file.")
        return
    try:
        with place.open("rb") as file:
            empty = not file.read(1)
    except OSError as error:
        raise refuse(path, f"cannot be opened: {error.strerror or error}.") from None
    if empty:
        raise refuse(path, "the file is empty.")
