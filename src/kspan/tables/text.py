"""Text files: CSV, TSV and their like, read by pyarrow, which loops over cells in C++."""

import bz2
import csv
import gzip
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from kspan.tables.cells import MISSING, WHITE, is_missing, is_text, records, squeeze_white_space
from kspan.tables.layout import Layout, find_layout
from kspan.tables.stores import columns_to_array
from kspan.tables.table import Grid, TableError, missing, refuse

# pyarrow works on so many bytes at a time; few blocks are quick if there are many columns.
_BLOCK_BYTES = 1 << 28

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


def read_text(path: str, delimiter: str | None, header: bool | None, index: bool | None) -> Grid:
    """Read a text file; what is not told about it is found out."""
    data, notes = _as_utf8(path, _content(path))
    layout = find_layout(path, data, delimiter=delimiter, header=header, index=index)
    if layout.delimiter == WHITE:
        data = squeeze_white_space(data)
    try:
        columns = _columns(data, layout)
    except ValueError as error:  # of pyarrow: it says what, but not on which line
        _explain(path, data, layout, error)
    names = tuple(columns.pop(0).to_pylist()) if layout.index else None
    if layout.trailing and (last := columns.pop()).null_count < len(last):
        row = last.is_valid().to_pylist().index(True)
        line = _line_of_row(data, layout, row)
        raise refuse(path, f"lines end with a delimiter, but on line {line} a number follows it.")
    grid = Grid(columns_to_array(columns), names, layout.header, (*notes, *layout.notes))
    rows, places = np.nonzero(np.isnan(grid.values))
    if rows.size:
        line = _line_of_row(data, layout, int(rows[0]))
        raise missing(
            path, rows.size, int(rows[0]), int(places[0]), grid, line=line, n_before=layout.index
        )
    return grid


def _content(path: str) -> bytes:
    """Return the bytes of a file, unpacked."""
    opener: Callable[..., Any] = open
    if path.lower().endswith(".gz"):
        opener = gzip.open
    elif path.lower().endswith(".bz2"):
        opener = bz2.open
    try:
        with opener(path, "rb") as file:
            content: bytes = file.read()
    except (OSError, EOFError) as error:
        raise refuse(path, f"could not be unpacked: {error}.") from None
    return content


def _as_utf8(path: str, data: bytes) -> tuple[bytes, list[str]]:
    """Return text as UTF-8 without a mark at its beginning, and what was done to it."""
    notes = []
    for signature, what in _SIGNATURES.items():
        if data.startswith(signature):
            raise refuse(path, f"is not text, but {what}.")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            data = data.decode("utf-16").encode("utf-8")
        except UnicodeDecodeError as error:
            raise refuse(path, f"is not the UTF-16 text that it begins as: {error}.") from None
        notes.append("encoding: UTF-16")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\x00" in data:
        line = data.count(b"\n", 0, data.index(b"\x00")) + 1
        raise refuse(path, f"is not text: there is a zero byte on line {line}.")
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            data = data.decode("latin-1").encode("utf-8")
            notes.append("encoding: not UTF-8, read as Latin-1")
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")  # as old Macs ended lines
    return data, notes


def _columns(data: bytes, layout: Layout) -> list[Any]:
    """Return the columns below the header, with the index as text and all else as numbers."""
    from kspan.covariance.sources import _extra

    pyarrow = _extra("pyarrow", "pyarrow", "text files")
    arrow_csv = _extra("pyarrow.csv", "pyarrow", "text files")
    names = [str(j) for j in range(layout.width)]  # those of the header may repeat
    types = dict.fromkeys(names, pyarrow.float64())
    if layout.index:
        types["0"] = pyarrow.string()
    start = _position(data, layout.start)
    longest_seen = data.find(b"\n", start) - start
    table = arrow_csv.read_csv(
        pyarrow.BufferReader(pyarrow.py_buffer(data).slice(start)),
        read_options=arrow_csv.ReadOptions(
            column_names=names, block_size=max(_BLOCK_BYTES, 4 * longest_seen)
        ),
        parse_options=arrow_csv.ParseOptions(
            delimiter=layout.delimiter, newlines_in_values=b'"' in data
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types, null_values=list(MISSING), decimal_point=layout.decimal
        ),
    )
    columns: list[Any] = table.columns
    return columns


def _position(data: bytes, n_lines: int) -> int:
    """Return where a line begins."""
    position = 0
    for _ in range(n_lines):
        position = data.find(b"\n", position) + 1
    return position


def _body(data: bytes, layout: Layout) -> Any:
    """Return the lines below the header, with their numbers."""
    start = _position(data, layout.start)
    return ((layout.start + line, cells) for line, cells in records(data[start:], layout.delimiter))


def _line_of_row(data: bytes, layout: Layout, row: int) -> int:
    for i, (line, _) in enumerate(_body(data, layout)):
        if i == row:
            return int(line)
    raise AssertionError("pyarrow and csv do not agree on what a line is.")


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
                if j < layout.index:
                    continue
                if is_text(cell, layout.decimal) or (is_missing(cell) and cell not in MISSING):
                    raise _text_in(path, layout, line, j, cell, hint)
    except csv.Error as wrong:
        said = f"{wrong}{hint}"
        if "new-line" in said:
            said = "there is a carriage return outside of quotes."
        raise refuse(path, f"line {line + 1}: {said}") from None
    raise refuse(path, f"could not be read as text: {error}") from error


def _text_in(path: str, layout: Layout, line: int, j: int, cell: str, hint: str) -> TableError:
    """Return the error about a cell that is no number."""
    name = "" if layout.header is None else f" {layout.header[j - layout.index]!r}"
    if is_missing(cell):
        return refuse(path, f"column {j + 1}{name} has a missing value on line {line}.")
    short = cell if len(cell) <= 40 else f"{cell[:37]}..."
    if j == 0 and hint == ".":
        hint = "; does it name the rows?"
    return refuse(path, f"column {j + 1}{name} has text: {short!r} on line {line}{hint}")
