"""`read_table` and `open_data`: from a file, or data as it comes, to numbers and names."""

import difflib
import os
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspan.io.array_files import read_sample_column
from kspan.io.endings import Kind, kind_of
from kspan.io.feature_values import read_sample_values
from kspan.io.numeric import require_numeric
from kspan.io.row_files import chunked_rows
from kspan.io.rows import RowSource, SomeColumns
from kspan.io.table import (
    Grid,
    Names,
    NoSuchFileError,
    Table,
    TableError,
    refuse,
    require_numbers,
    several,
)
from kspan.io.text import STANDARD_INPUT

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
    text_columns : of a file, those that are text and so no features
    """

    values: Any = field(repr=False)
    feature_names: Names | None = field(repr=False)
    as_given: bool = False
    text_columns: Names = ()

    @property
    def rows(self) -> RowSource | None:
        """The values if they are read in blocks, else None."""
        return self.values if isinstance(self.values, RowSource) else None


def open_data(
    X: Any, *, load_bytes: float = 0, allow_missing: bool = False, only: Collection[str] = ()
) -> Opened:
    """Open data, whatever it is; warn of columns of a file that are text, and so no features.

    Parameters
    ----------
    X : array, data frame, scipy sparse array, path, memory map, zarr array, HDF5 dataset, dask
        array or dataframe, `RowSource`, or what this function returned before
        A path is that of a file with any of `known_endings`.
    load_bytes : float
        What can be read in blocks but has no more bytes of numbers than this is loaded.
    allow_missing : bool
        Leave missing values of a file to whoever asks, as NaN; else they are refused.
    only : names of columns, optional
        Of a file that may have text: read no others, whatever they hold.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(3)
    >>> open_data(X).values is X
    True
    """
    if isinstance(X, str | os.PathLike):
        table = _read(os.fspath(X), {}, load_bytes, allow_missing=allow_missing, only=only)
        if table.text_columns:
            named = ", ".join(map(repr, table.text_columns))
            warnings.warn(
                f"{table.source}: text columns are left out: {named}. kspan.io.read_table has "
                "`label` and `drop` for them.",
                stacklevel=3,
            )
        return Opened(table.X, table.feature_names, text_columns=table.text_columns)
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
    index: bool | str | None = None,
    label: str | None = None,
    drop: str | Sequence[str] = (),
    only: Collection[str] = (),
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
        ``.bz2``), ``.xlsx``, ``.parquet``, ``.npy``, ``.npz``, ``.mtx`` (also as ``.gz`` or
        ``.bz2``), ``.mat``, ``.h5ad``, ``.h5``, ``.zarr``. Or a folder of 10x, or "-" for text on
        standard input.
    transpose : bool
        Whether the rows of the file are the features, as in most tables of genes.
    delimiter : str, optional
        What stands between cells of a text file: one character, or "tab" or "whitespace".
        Found out if not given: comma, tab, semicolon, bar or white space.
    header : bool, optional
        Whether the first line of a text file has names. Found out if not given: it has if it
        is text where later lines are numbers.
    index : bool or str, optional
        Whether the first column has the names of the rows, or the name of the column that has.
        Found out if not given: the first one has if it is text that differs from row to row, or if
        the header says nothing above it.
    label : str, optional
        What says to which class each sample belongs, in words or numbers, and is no feature: the
        name of a column, or of a column of ``.obs`` of an ``.h5ad`` file, or a file with a label
        for each sample.
    drop : str or sequence of str
        Names of columns that are no features, whatever they hold.
    only : collection of str
        If the table has any of these, no other columns are features, and they may hold anything
        (``.csv`` and its like, ``.xlsx``, ``.parquet``).
    key : str, optional
        Which table, in a file of several (``.npz``, ``.mat``, ``.h5``, ``.zarr``), or which sheet
        (``.xlsx``).
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

    Notes
    -----
    Columns that are text are no features: `Table.text_columns` names them. A column is text if
    fewer than one in ten of its cells is a number, or nearly one (1,234 or <0.5 or 12%), cells
    without anything left out. In all other columns a cell that is no number is an error. The
    columns of a text file without a header are named by their numbers, from 1.

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
    drop = [drop] if isinstance(drop, str) else list(drop)
    return _read(
        os.fspath(path), given, load_bytes, transpose=transpose, allow_missing=allow_missing,
        label=label, drop=drop, only=only,
    )  # fmt: skip


def _read(
    source: str, given: Mapping[str, Any], load_bytes: float, *, transpose: bool = False,
    allow_missing: bool = False, label: str | None = None, drop: Sequence[str] = (),
    only: Collection[str] = (),
) -> Table:  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None}
    place = source
    if "key" not in options and "::" in source and not os.path.exists(source):
        place, _, options["key"] = source.partition("::")
    kind, named_index = kind_of(place), options.get("index")
    if isinstance(named_index, str) and "index" not in kind.options:
        del options["index"]  # of its names, whatever it is
    for name in options:
        if name not in kind.options:
            raise refuse(source, f"{name} has no meaning for a file of kind {kind.name}.")
    if place == STANDARD_INPUT:
        source = "standard input"
    else:
        _require_readable(place, kind)
    try:
        aside = _Aside(source, label, tuple(drop), named_index)
        if kind.has_text:
            options |= {"aside": aside.names, "only": () if transpose else only}
        grid = aside.taken_from(_grid(kind, place, options, load_bytes), transpose=transpose)
        table = _table(source, grid, transpose=transpose, allow_missing=allow_missing)
        if only:  # the others are not wanted, whatever they are
            table = replace(table, text_columns=())
        return aside.labelled(table)
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
        text = {name: partial(rows.text, name) for name in rows.text_columns}
        if rows.n_bytes > load_bytes:
            notes = (*rows.notes, "not loaded: large, and read in blocks")
            return Grid(rows, None, rows.feature_names, notes, text=text)
        if kind.load is None:
            rows_by = rows.sample_names()
            return Grid(rows.load(), rows_by, rows.feature_names, rows.notes, text=text)
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
    return Table(
        X, features, samples, source, tuple(notes), text_columns=tuple(grid.text),
        columns=None if transpose else grid.columns,
    )  # fmt: skip


@dataclass
class _Aside:
    """Columns of a file that somebody has named, as they are no features.

    Attributes
    ----------
    source : what the file is called
    label, drop, index : as `read_table` takes them
    labels : what was found of the label, if it is a column
    """

    source: str
    label: str | None
    drop: Names
    index: Any
    labels: Names | None = None

    @property
    def names(self) -> frozenset[str]:
        """All of them; a label may also be something else than a column."""
        index = self.index if isinstance(self.index, str) else None
        return frozenset(n for n in (*self.drop, self.label, index) if n is not None)

    def taken_from(self, grid: Grid, *, transpose: bool) -> Grid:
        """Return a grid without them."""
        names = self.names
        if not names:
            return grid
        columns = grid.columns
        for name in sorted(names):
            self._require_one(name, columns or (), grid.text)
        if isinstance(self.index, str):
            notes = [note for note in grid.notes if not note.startswith("index:")]
            notes.append(f"index: column {self.index!r} names the rows")
            cells = self._cells(self.index, columns, grid)
            grid = replace(grid, row_names=cells, notes=tuple(notes))
        if self.label is not None and (self.label in grid.text or self.label in (columns or ())):
            if transpose:
                raise refuse(
                    self.source, f"the label {self.label!r} cannot be a column, as features are in "
                    "rows; give a file with a label for each sample.",
                )  # fmt: skip
            self.labels = self._cells(self.label, columns, grid)
        text = {name: read for name, read in grid.text.items() if name not in names}
        grid = replace(grid, text=text)
        kept = [j for j, name in enumerate(columns or ()) if name not in names]
        return grid if len(kept) == len(columns or ()) else _with_columns(grid, kept)

    def labelled(self, table: Table) -> Table:
        """Return a table with its labels, which may come from elsewhere than its columns."""
        if self.label is None:
            return table
        labels, name = self.labels, self.label
        if labels is None:
            labels = tuple(value or "" for value in read_sample_values(table, name))
            name = Path(name).stem if os.path.exists(name) else name
        return replace(table, labels=labels, label_name=name)

    def _require_one(self, name: str, columns: Names, text: Mapping[str, Any]) -> None:
        """Refuse names that no column has, or several have; all of those may be dropped."""
        count = columns.count(name) + (name in text)
        if count > 1 and name not in self.drop:
            raise several(self.source, name)
        if count or (name == self.label and name not in self.drop):
            return  # a label may be in a file of its own
        known = [*columns, *text]
        by_word = {other.casefold(): other for other in known}
        near = difflib.get_close_matches(name.casefold(), by_word, 1)
        hint = f" Did you mean {by_word[near[0]]!r}?" if near else ""
        if not known:
            hint = " Its columns have no names."
        raise refuse(self.source, f"has no column of the name {name!r}.{hint}")

    def _cells(self, name: str, columns: Names | None, grid: Grid) -> Names:
        """Return a column as text."""
        if name in grid.text:
            cells = grid.text[name]()
        else:
            assert columns is not None
            cells = _column(grid.values, columns.index(name)).tolist()
        return tuple(map(_as_text, cells))


def _as_text(cell: Any) -> str:
    """Return a cell as people write it: 3 and not 3.0; nothing where there is nothing."""
    if cell is None or cell != cell:
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _column(X: Any, place: int) -> NDArray[np.floating]:
    """Return the numbers of a column."""
    if isinstance(X, RowSource):
        return np.concatenate([block.values for block in X.blocks(np.array([place]))])[:, 0]
    column = X[:, [place]]
    dense = column.toarray() if hasattr(column, "toarray") else column
    return np.asarray(dense[:, 0])


def _with_columns(grid: Grid, kept: Sequence[int]) -> Grid:
    """Return some of the columns."""
    X, places = grid.values, np.array(kept, dtype=np.intp)
    X = SomeColumns(X, places) if isinstance(X, RowSource) else X[:, places]
    names = None if grid.column_names is None else tuple(grid.column_names[j] for j in kept)
    numbers = None if grid.numbers is None else [grid.numbers[j] for j in kept]
    return replace(grid, values=X, column_names=names, numbers=numbers)


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
        if name in names:
            raise several(table.source, name)
        raise refuse(table.source, f"has no column of the name {name!r}.")
    place, X = names.index(name), table.X
    column = _column(X, place)
    others = np.delete(np.arange(len(names)), place)
    X = SomeColumns(X, others) if isinstance(X, RowSource) else X[:, others]
    kept = tuple(names[place] for place in others)
    left = replace(table, X=X, feature_names=kept, columns=kept)
    return np.asarray(column, dtype=np.float64), left


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
    numbers = read_table(name, load_bytes=np.inf).X
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
