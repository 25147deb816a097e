"""Text files: CSV, TSV and their like, read by pyarrow, which loops over cells in C++.

Columns that are text by the rule of `text_columns` are no features.
"""

import bz2
import csv
import gzip
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from kspan.io.layout import (
    WHITE,
    Layout,
    Line,
    find_layout,
    is_number,
    records,
    squeeze_white_space,
)
from kspan.io.row_files import columns_to_array
from kspan.io.table import Grid, import_extra, refuse, several
from kspan.io.text_columns import NO_CELL, is_text_column

# pyarrow works on so many bytes at a time; few blocks are quick if there are many columns.
_BLOCK_BYTES = 1 << 28

# Less than this is read by one thread: others may still run when a file is refused, and a process
# that ends then is aborted.
_ONE_THREAD_BYTES = 1 << 22

# The name of standard input in place of that of a file.
STANDARD_INPUT = "-"

# How files begin that are no text.
_SIGNATURES = {
    b"\x1f\x8b": "gzip-compressed: its name should end with .gz",
    b"BZh": "bzip2-compressed: its name should end with .bz2",
    b"PK\x03\x04": "a zip archive, or a spreadsheet: its name should end with .xlsx",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet; export it as CSV",
    b"PAR1": "a Parquet file: its name should end with .parquet",
    b"\x93NUMPY": "a NumPy file: its name should end with .npy",
    b"\x89HDF": "an HDF5 file: its name should end with .h5",
}


def read_text(
    path: str, delimiter: str | None = None, header: bool | None = None,
    index: bool | str | None = None, aside: Collection[str] = (), only: Collection[str] = (),
) -> Grid:  # fmt: skip
    """Read a text file; what is not told about it is found out.

    `aside` are columns that are no features, whatever they hold; with `only`, all that it does not
    name.
    """
    name = "standard input" if path == STANDARD_INPUT else path
    return read_bytes(name, _content(path), delimiter, header, index, aside, only)


def read_bytes(
    path: str, content: bytes, delimiter: str | None, header: bool | None,
    index: bool | str | None, aside: Collection[str] = (), only: Collection[str] = (),
) -> Grid:  # fmt: skip
    """Read the content of a text file."""
    data, notes = _as_utf8(path, content)
    layout = find_layout(
        path, data, delimiter=delimiter, header=header, index=index, told={*aside, *only}
    )
    if layout.delimiter == WHITE:
        data = squeeze_white_space(data)
    before, names = layout.n_before, layout.names
    if layout.header is not None and not set(only).isdisjoint(names):
        aside = {*aside, *names}.difference(only)
    kept_text = {before + j for j, name in enumerate(names) if name in aside}
    wanted = {before + j for j, name in enumerate(names) if name in only}
    columns, text = _columns_and_text(path, data, layout, kept_text, wanted)
    line_of = partial(_line_of_row, data, layout)
    rows = tuple(columns.pop(0).to_pylist()) if layout.index else None
    if layout.trailing and (last := columns.pop()).null_count < len(last):
        line = line_of(last.is_valid().to_pylist().index(True))
        raise refuse(path, f"lines end with a delimiter, but on line {line} a number follows it.")
    kept = [j for j in range(len(names)) if before + j not in text]
    words = [(name, columns[j]) for j, name in enumerate(names) if before + j in text]
    return Grid(
        columns_to_array([columns[j] for j in kept]), rows,
        None if layout.header is None else tuple(names[j] for j in kept),
        (*notes, *layout.notes),
        numbers=[before + j + 1 for j in kept],
        line_of=line_of,
        text=_readers(path, words),
    )  # fmt: skip


def _readers(path: str, columns: Sequence[tuple[str, Any]]) -> dict[str, Callable[[], Any]]:
    """Return what reads the cells of columns of text; those of a name that repeats cannot be."""
    found: dict[str, Callable[[], Any]] = {}

    def refused(name: str) -> NoReturn:
        raise several(path, name)

    for name, column in columns:
        found[name] = partial(refused, name) if name in found else column.to_pylist
    return found


def _columns_and_text(
    path: str, data: bytes, layout: Layout, aside: Collection[int], wanted: Collection[int]
) -> tuple[list[Any], frozenset[int]]:
    """Return the columns below the header, and which are text: all `aside`, none of `wanted`."""
    text, suspects = frozenset(aside), layout.doubtful.difference(aside)
    skipped = frozenset(range(layout.width))  # until columns are known, it is the lines
    try:
        try:
            columns = _columns(data, layout, text | suspects)
        except ValueError:  # text below the first lines, in any column
            last = layout.width - layout.trailing
            suspects = frozenset(range(layout.n_before, last)) - text
            columns = _columns(data, layout, text | suspects)
        every = text | suspects
        suspects = suspects.difference(wanted)
        text = skipped = text | {j for j in suspects if is_text_column(columns[j])}
        # Again, if some are of numbers: what is wrong with them is found now.
        return (columns if text == every else _columns(data, layout, text)), text
    except ValueError as error:  # of pyarrow: it says what, but not on which line
        _explain(path, data, layout, error, skipped)


def _content(path: str) -> bytes:
    """Return the bytes of a file, or of standard input, unpacked."""
    unpack = {".gz": gzip.decompress, ".bz2": bz2.decompress}.get(Path(path).suffix.lower(), bytes)
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read()
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


def _columns(data: bytes, layout: Layout, text: Collection[int]) -> list[Any]:
    """Return the columns below the header: the index and some others as text, else numbers."""
    pyarrow = import_extra("pyarrow", extra="io", what="Reading text files")
    arrow_csv = import_extra("pyarrow.csv", extra="io", what="Reading text files")
    names = [str(j) for j in range(layout.width)]  # those of the header may repeat
    types = dict.fromkeys(names, pyarrow.float64())
    for j in [*range(layout.n_before), *text]:
        types[str(j)] = pyarrow.string()
    start = sum(map(len, islice(BytesIO(data), layout.start)))
    table = arrow_csv.read_csv(
        pyarrow.BufferReader(pyarrow.py_buffer(data).slice(start)),
        read_options=arrow_csv.ReadOptions(
            column_names=names, block_size=_BLOCK_BYTES, use_threads=len(data) > _ONE_THREAD_BYTES
        ),
        parse_options=arrow_csv.ParseOptions(
            delimiter=layout.delimiter, newlines_in_values=b'"' in data
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types,
            null_values=NO_CELL,
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


def _explain(
    path: str, data: bytes, layout: Layout, error: Exception, aside: Collection[int]
) -> NoReturn:
    """Raise the error that names the first line which is not as it should be."""
    line = layout.start
    hint = "; is a quote left open?" if data.count(b'"') % 2 else "."
    try:
        for line, cells in _body(data, layout):
            if len(cells) != layout.width:
                fields = "1 field" if len(cells) == 1 else f"{len(cells)} fields"
                raise refuse(path, f"line {line} has {fields}, expected {layout.width}{hint}")
            for j, cell in enumerate(cells):
                known = cell in NO_CELL or is_number(cell, layout.decimal)
                if j >= layout.n_before and j not in aside and not known:
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
    elif hint == ".":
        hint = ". If it is no feature, drop it."
    return f"column {j + 1}{name} has text: {short!r} on line {line}{hint}"
