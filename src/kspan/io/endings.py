"""The table of endings: which kind of file it is, who reads it, and how.

A new format is a line in `ENDINGS` and a reader: `read_table`, every estimator and every command
take it from here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kspan.io.array_files import read_anndata, read_matlab, read_npz
from kspan.io.matrix_market import is_tenx, read_matrix_market
from kspan.io.row_files import ParquetSource, open_hdf5, open_npy, open_zarr
from kspan.io.rows import RowSource
from kspan.io.spreadsheets import read_xlsx
from kspan.io.table import Grid, refuse
from kspan.io.text import STANDARD_INPUT, read_text


@dataclass(frozen=True)
class Kind:
    """A kind of file; either `load` or `stream` is enough.

    Attributes
    ----------
    name : what to call it
    load : reads the file at a path as a whole; by default what `stream` finds is put together
    stream : opens the rows of a file that need not fit in memory
    options : of `read_table`, those that they take
    may_be_compressed : whether the ending may be followed by .gz or .bz2
    is_folder : whether it is a folder
    has_text : whether there may be columns of text: then readers take `aside` and `only`, the names
        of columns that are no features, and of all that are
    """

    name: str
    load: Callable[..., Grid] | None = None
    stream: Callable[..., RowSource] | None = None
    options: tuple[str, ...] = ()
    may_be_compressed: bool = False
    is_folder: bool = False
    has_text: bool = False


_TEXT = Kind(
    "text",
    load=read_text,
    options=("delimiter", "header", "index"),
    may_be_compressed=True,
    has_text=True,
)
_PARQUET = Kind("Parquet", stream=ParquetSource, options=("index",), has_text=True)
_EXCEL = Kind("Excel", load=read_xlsx, options=("header", "index", "key"), has_text=True)
_TENX = Kind("10x", load=read_matrix_market, is_folder=True)
_HDF5 = Kind("HDF5", stream=open_hdf5, options=("key",))

ENDINGS = {
    ".csv": _TEXT,
    ".tsv": _TEXT,
    ".txt": _TEXT,
    ".tab": _TEXT,
    ".dat": _TEXT,
    ".xlsx": _EXCEL,
    ".parquet": _PARQUET,
    ".pq": _PARQUET,
    ".npy": Kind("NumPy", stream=open_npy),
    ".npz": Kind("NumPy archive", load=read_npz, options=("key",)),
    ".mtx": Kind("MatrixMarket", load=read_matrix_market, may_be_compressed=True),
    ".mat": Kind("MATLAB", load=read_matlab, options=("key",)),
    ".h5ad": Kind("AnnData", load=read_anndata, options=("layer",)),
    ".h5": _HDF5,
    ".hdf5": _HDF5,
    ".zarr": Kind("zarr", stream=open_zarr, options=("key",), is_folder=True),
}
COMPRESSED = (".gz", ".bz2")


def known_endings() -> list[str]:
    """Return the endings of the files that are read; text and MatrixMarket may be compressed.

    Examples
    --------
    >>> known_endings()[:3]
    ['.csv', '.tsv', '.txt']
    """
    return list(ENDINGS)


def kind_of(path: str) -> Kind:
    """Return the kind of a file, by its ending; standard input is text, a folder may be of 10x."""
    if path == STANDARD_INPUT:
        return _TEXT
    if is_tenx(path):
        return _TENX
    ending = Path(path).suffix.lower()
    squeezed = ending in COMPRESSED
    if squeezed:
        ending = Path(Path(path).stem).suffix.lower()
    kind = ENDINGS.get(ending)
    if kind is None:
        what = f"the ending {ending!r} is not known" if ending else "the name has no ending"
        if Path(path).is_dir():
            what = "is a folder, and none of 10x, as there is no matrix.mtx in it"
        raise refuse(path, f"{what}; known are {', '.join(ENDINGS)}.")
    if squeezed and not kind.may_be_compressed:
        raise refuse(path, f"{kind.name} files are not read compressed; unpack it first.")
    return kind
