"""Text files: CSV, TSV and their like, read by pyarrow, which loops over cells in C++."""

import bz2
import csv
import gzip
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from kspan.io.layout import (
    MISSING,
    WHITE,
    Layout,
    Line,
    find_layout,
    is_number,
    records,
    squeeze_white_space,
)
from kspan.io.row_files import columns_to_array
from kspan.io.table import Grid, import_extra, refuse

# pyarrow works on so many bytes at a time; few blocks are quick if there are many columns.
_BLOCK_BYTES = 1 << 28

# Cells without a number, also after a delimiter and a space.
_MISSING = [*MISSING, *(f" {cell}" for cell in MISSING)]

# How files begin that are no text.
_SIGNATURES = {
    b"\x1f\x8b": "gzip-compressed: its name should end with .gz",
    b"BZh": "bzip2-compressed: its name should end with .bz2",
    b"PK\x03\x04": "a zip archive, or a spreadsheet; export it as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet; export it as CSV",
    b"PAR1": "a Parquet file: its name should end with .parquet",
    b"\x93NUMPY": "a NumPy file: its name should end with .npy",
    b"\x89HDF": "an HDF5 file: its name should end with .h5",
}


def read_text(
    path: str, delimiter: str | None = None, header: bool | None = None, index: bool | None = None
) -> Grid:
    """Read a text file; what is not told about it is found out."""
    data, notes = _as_utf8(path, _content(path))
    layout = find_layout(path, data, delimiter=delimiter, header=header, index=index)
    if layout.delimiter == WHITE:
        data = squeeze_white_space(data)
    try:
        columns = _columns(data, layout)
    except ValueError as error:  # of pyarrow: it says what, but not on which line
        _explain(path, data, layout, error)
    line_of = partial(_line_of_row, data, layout)
    names = tuple(columns.pop(0).to_pylist()) if layout.index else None
    if layout.trailing and (last := columns.pop()).null_count < len(last):
        line = line_of(last.is_valid().to_pylist().index(True))
        raise refuse(path, f"lines end with a delimiter, but on line {line} a number follows it.")
    return Grid(
        columns_to_array(columns), names, layout.header, (*notes, *layout.notes), layout.n_before,
        line_of,
    )  # fmt: skip


def _content(path: str) -> bytes:
    """Return the bytes of a file, unpacked."""
    unpack = {".gz": gzip.decompress, ".bz2": bz2.decompress}.get(Path(path).suffix.lower(), bytes)
    try:
        return unpack(Path(path).read_bytes())
    except (OSError, EOFError, ValueError) as error:
        raise refuse(path, f"could not be unpacked: {error}.") from None


def _as_utf8(path: str, data: bytes) -> tuple[bytes, list[str]]:
    """Return text as UTF-8 without a mark at its beginning, and what was done to it."""
    for signature, what in _SIGNATURES.items():
        if data.startswith(signature):
            raise refuse(path, f"is not text, but {what}.")
    notes = []
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            data = data.decode("utf-16").encode("utf-8")
            notes.append("encoding: UTF-16")
    except UnicodeDecodeError as error:
        raise refuse(path, f"is not the UTF-16 text that it begins as: {error}.") from None
    if b"\x00" in data:
        line = data.count(b"\n", 0, data.index(b"\x00")) + 1
        raise refuse(path, f"is not text: there is a zero byte on line {line}.")
    if not _is_utf8(data):
        data = data.decode("latin-1").encode("utf-8")
        notes.append("encoding: not UTF-8, read as Latin-1")
    data = data.removeprefix(b"\xef\xbb\xbf")
    # Between quotes a carriage return may be a part of a name, unless it ends all lines.
    if b"\r" in data and (b'"' not in data or b"\n" not in data):
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if not data or data.isspace():
        raise refuse(path, "the file is empty: it has no lines but blank ones.")
    return data, notes


def _is_utf8(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _columns(data: bytes, layout: Layout) -> list[Any]:
    """Return the columns below the header, with the index as text and all else as numbers."""
    pyarrow = import_extra("pyarrow", extra="io", what="Reading text files")
    arrow_csv = import_extra("pyarrow.csv", extra="io", what="Reading text files")
    names = [str(j) for j in range(layout.width)]  # those of the header may repeat
    types = dict.fromkeys(names, pyarrow.float64())
    if layout.index:
        types["0"] = pyarrow.string()
    start = sum(map(len, islice(BytesIO(data), layout.start)))
    table = arrow_csv.read_csv(
        pyarrow.BufferReader(pyarrow.py_buffer(data).slice(start)),
        read_options=arrow_csv.ReadOptions(column_names=names, block_size=_BLOCK_BYTES),
        parse_options=arrow_csv.ParseOptions(
            delimiter=layout.delimiter, newlines_in_values=b'"' in data
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types,
            null_values=_MISSING,
            decimal_point=layout.decimal,
        ),
    )
    columns: list[Any] = table.columns
    return columns


def _body(data: bytes, layout: Layout) -> Iterator[Line]:
    """Yield the lines below the header, with their numbers."""
    lines = records(data, layout.delimiter)
    return ((line, cells) for line, cells in lines if line > layout.start)


def _line_of_row(data: bytes, layout: Layout, row: int) -> int:
    return next(islice(_body(data, layout), row, None))[0]


def _explain(path: str, data: bytes, layout: Layout, error: Exception) -> NoReturn:
    """Raise the error that names the first line which is not as it should be."""
    line = layout.start
    hint = "; is a quote left open?" if data.count(b'"') % 2 else "."
    try:
        for line, cells in _body(data, layout):
            if len(cells) != layout.width:
                fields = "1 field" if len(cells) == 1 else f"{len(cells)} fields"
                raise refuse(path, f"line {line} has {fields}, expected {layout.width}{hint}")
            for j, cell in enumerate(cells):
                known = cell in _MISSING or is_number(cell, layout.decimal)
                if j >= layout.n_before and not known:
                    raise refuse(path, _text_in(layout, line, j, cell, hint))
    except csv.Error as wrong:
        raise refuse(path, f"line {line + 1}: {wrong}{hint}") from None
    raise refuse(path, f"could not be read as text: {error}") from error


def _text_in(layout: Layout, line: int, j: int, cell: str, hint: str) -> str:
    """Say that a cell is no number."""
    name = "" if layout.header is None else f" {layout.header[j - layout.n_before]!r}"
    short = cell if len(cell) <= 40 else f"{cell[:37]}..."
    if j == 0 and hint == ".":
        hint = "; does it name the rows?"
    return f"column {j + 1}{name} has text: {short!r} on line {line}{hint}"
