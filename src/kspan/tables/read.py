"""`read_table`: which reader takes which file, and what is refused before one does."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kspan.tables import arrays, stores, text
from kspan.tables.table import Grid, Table, TableError, finish, refuse


@dataclass(frozen=True)
class _Format:
    """A kind of file: what to call it, who reads it, which options that takes."""

    name: str
    read: Callable[..., Grid]
    options: tuple[str, ...] = ()
    may_be_compressed: bool = False


_TEXT = _Format("text", text.read_text, ("delimiter", "header", "index"), may_be_compressed=True)
_PARQUET = _Format("Parquet", stores.read_parquet, ("index",))
_STORE = _Format("HDF5", stores.read_store, ("key",))

_FORMATS = {
    ".csv": _TEXT,
    ".tsv": _TEXT,
    ".txt": _TEXT,
    ".tab": _TEXT,
    ".dat": _TEXT,
    ".parquet": _PARQUET,
    ".pq": _PARQUET,
    ".npy": _Format("NumPy", arrays.read_npy),
    ".npz": _Format("NumPy archive", arrays.read_npz, ("key",)),
    ".mtx": _Format("MatrixMarket", arrays.read_matrix_market, may_be_compressed=True),
    ".mat": _Format("MATLAB", arrays.read_matlab, ("key",)),
    ".h5ad": _Format("AnnData", stores.read_anndata, ("layer",)),
    ".h5": _STORE,
    ".hdf5": _STORE,
    ".zarr": _Format("zarr", stores.read_store, ("key",)),
}
_COMPRESSED = (".gz", ".bz2")


def known_endings() -> list[str]:
    """Return the endings of the files that `read_table` reads; text may also be compressed.

    Examples
    --------
    >>> known_endings()[:3]
    ['.csv', '.tsv', '.txt']
    """
    return list(_FORMATS)


def read_table(
    path: str | os.PathLike[str],
    *,
    transpose: bool = False,
    delimiter: str | None = None,
    header: bool | None = None,
    index: bool | None = None,
    key: str | None = None,
    layer: str | None = None,
) -> Table:
    r"""Read a table of numbers from a file, by its ending.

    Parameters
    ----------
    path : path
        ``.csv``, ``.tsv`` and ``.txt`` (also as ``.gz`` or ``.bz2``), ``.parquet``, ``.npy``,
        ``.npz``, ``.mtx`` (also as ``.gz`` or ``.bz2``), ``.mat``, ``.h5ad``, ``.h5`` or
        ``.zarr``.
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

    Returns
    -------
    Table
        Numbers are float64, or float32 if the file has those; sparse stays sparse. Of
        ``.npy``, ``.parquet``, ``.h5`` and ``.zarr`` with more than 1 GiB of numbers, X is not
        loaded but something that estimators read in blocks.

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
    source = os.fspath(path)
    place = source
    if key is None and "::" in place and not os.path.exists(place):
        place, _, key = place.partition("::")  # as estimators are told: file.h5::name
    form = _format_of(source, place)
    given = {"delimiter": delimiter, "header": header, "index": index, "key": key, "layer": layer}
    for name, value in given.items():
        if value is not None and name not in form.options:
            raise refuse(source, f"{name} has no meaning for a file of kind {form.name}.")
    options = {name: given[name] for name in form.options}
    _require_readable(source, place)
    try:
        grid = form.read(place, **options)
        return finish(source, grid, transpose=transpose)
    except TableError:
        raise
    except ImportError as error:
        raise refuse(source, error) from None
    except MemoryError:
        raise refuse(source, "does not fit in memory.") from None
    # Readers of other libraries raise what they like.
    except Exception as error:
        raise refuse(source, f"could not be read as {form.name}: {_said(error, place)}") from error


def _said(error: Exception, place: str) -> str:
    return (str(error) or type(error).__name__).removeprefix(f"{place}: ")


def _format_of(source: str, place: str) -> _Format:
    path = Path(place)
    ending = path.suffix.lower()
    squeezed = ending in _COMPRESSED
    if squeezed:
        ending = Path(path.stem).suffix.lower()
    form = _FORMATS.get(ending)
    if form is None:
        known = ", ".join(_FORMATS)
        what = f"the ending {ending!r} is not known" if ending else "the name has no ending"
        raise refuse(source, f"{what}; known are {known}.")
    if squeezed and not form.may_be_compressed:
        raise refuse(source, f"{form.name} files are not read compressed; unpack it first.")
    return form


def _require_readable(source: str, place: str) -> None:
    """Say what any reader would stumble over, before it does."""
    path = Path(place)
    if not path.exists():
        raise refuse(source, "there is no such file.")
    if path.is_dir():
        if path.suffix.lower() != ".zarr":
            raise refuse(source, "is a directory, not a file.")
        return
    try:
        with path.open("rb") as file:
            empty = not file.read(1)
    except OSError as error:
        raise refuse(source, f"cannot be opened: {error.strerror or error}.") from None
    if empty:
        raise refuse(source, "the file is empty.")
