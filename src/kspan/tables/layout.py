"""How a text file is laid out, from its first lines: delimiter, decimal mark, header, index."""

import csv
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from kspan.tables.cells import (
    WHITE,
    has_decimal_comma,
    is_number,
    is_text,
    may_be_thousands,
    records,
    squeeze_white_space,
)
from kspan.tables.table import refuse

# Of the file, for all that is found out: lines, and bytes (but three lines, however long).
SAMPLE_LINES, SAMPLE_BYTES = 40, 1 << 18
# Cells looked at in a line: first and last ones.
FIRST_CELLS, LAST_CELLS = 200, 20

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", WHITE: "white space"}
_SPELLED = {"\\t": "\t", "tab": "\t", "space": WHITE, "whitespace": WHITE, "comma": ",",
            "semicolon": ";", "bar": "|", "pipe": "|"}  # fmt: skip
# What stands above a column of names, where a header's own names may be numbers.
_CORNERS = {
    "id", "index", "name", "names", "rowname", "rownames", "row", "sample", "samples", "sample_id",
    "feature", "features", "gene", "genes", "gene_id", "gene_name", "symbol", "probe", "probe_id",
    "id_ref", "cell", "cells", "barcode",
}  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """Where things are in a text file.

    Attributes
    ----------
    delimiter : one character; a space stands for any white space
    decimal : "." or ","
    header : names in the first line, without that of the index; None if it has none
    start : the number of lines before the first row of numbers
    width : the number of cells in a row, with index
    index : whether the first cell of a row is its name
    trailing : whether rows end with a delimiter, after which there is nothing
    notes : the same, for people
    """

    delimiter: str
    decimal: str
    header: tuple[str, ...] | None
    start: int
    width: int
    index: bool
    trailing: bool
    notes: tuple[str, ...]


def find_layout(
    source: str, data: bytes, *, delimiter: str | None, header: bool | None, index: bool | None
) -> Layout:
    """Find out what is not told.

    Parameters
    ----------
    source : the name of the file
    data : its text, as UTF-8
    delimiter, header, index : what is told; see `read_table`

    Raises
    ------
    TableError
        There are no rows, or the header does not fit them.
    """
    sample = _beginning(data)
    delimiter = _best_delimiter(sample) if delimiter is None else _one(source, delimiter)
    lines = _sample_records(sample, delimiter)
    if not data or data.isspace():
        raise refuse(source, "the file is empty: it has no lines but blank ones.")
    if not lines:
        raise refuse(
            source, "the first line cannot be split into cells: it has a quote left open, or a "
            "carriage return outside of quotes.",
        )  # fmt: skip
    comma = _has_decimal_commas([cells for _, cells in lines], delimiter)
    decimal = "," if comma else "."
    single = all(len(cells) == 1 for _, cells in lines)
    found = "none, a single column" if single else DELIMITERS.get(delimiter, repr(delimiter))
    notes = [f"delimiter: {found}"]
    if comma:
        notes.append("decimal mark: comma")

    # Numbers after a space mean that the names may come after one too: a, b, c.
    spaced = delimiter != WHITE and any(
        len(cells) > 1 and all(c.startswith(" ") for c in cells[1:FIRST_CELLS])
        for _, cells in lines[1:]
    )
    if spaced:
        lines = _sample_records(sample, delimiter, skip_spaces=True)
    rows = [cells for _, cells in lines]
    if header is None:
        header = _has_header(rows, decimal)
    body = rows[1:] if header else rows
    if not body:
        raise refuse(source, "there is a header, but no row of numbers below it.")
    names = rows[0] if header else None
    width = _usual_width(body, names)
    trailing = width > 1 and all(len(row) == width and row[-1].strip() == "" for row in body)
    if trailing and names is not None and len(names) == width:
        # One name that is nothing: the header ends with a delimiter as well.
        trailing = names[-1].strip() == ""
        names = names[:-1] if trailing else names
    elif trailing and names is not None and len(names) == width - 1:
        trailing = not any(is_text(row[0], decimal) for row in body)  # else as R writes it
    inner = width - trailing
    if index is None:
        index, why = _find_index(names, [row for row in body if len(row) == width], inner, decimal)
    else:
        why = "as told" if index else ""
    if names is not None:
        names = _fit_names(source, lines[0][0], names, inner, index)
        notes.append(f"header: line {lines[0][0]}")
    else:
        notes.append("header: none")
    notes.append(f"index: the first column ({why})" if index else "index: none")
    if trailing:
        notes.append("dropped an empty last column: lines end with a delimiter")
    start = lines[0][0] if header else 0
    layout_names = None if names is None else tuple(names)
    return Layout(delimiter, decimal, layout_names, start, width, index, trailing, tuple(notes))


def _one(source: str, delimiter: str) -> str:
    delimiter = _SPELLED.get(delimiter, delimiter)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise refuse(source, f"a delimiter is one character, but {delimiter!r} was given.")
    return delimiter


def _beginning(data: bytes) -> bytes:
    """Return some first lines."""
    end = 0
    for line in range(SAMPLE_LINES):
        if end >= SAMPLE_BYTES and line >= 3:
            break
        end = data.find(b"\n", end) + 1
        if end == 0:
            return data
    return data[:end]


def _sample_records(
    sample: bytes, delimiter: str, *, skip_spaces: bool = False
) -> list[tuple[int, list[str]]]:
    if delimiter == WHITE:
        sample = squeeze_white_space(sample)
    found: list[tuple[int, list[str]]] = []
    with suppress(csv.Error):  # a quote that does not end: whoever reads on will say so
        found.extend(islice(records(sample, delimiter, skip_spaces=skip_spaces), SAMPLE_LINES))
    # A name of several lines may be cut off at the end.
    if len(found) > 2 and sample.count(b'"') % 2:
        found.pop()
    return found


def _some(cells: Sequence[str]) -> Sequence[str]:
    """Return enough cells of a line to judge it by."""
    if len(cells) <= FIRST_CELLS + LAST_CELLS:
        return cells
    return [*cells[:FIRST_CELLS], *cells[-LAST_CELLS:]]


def _best_delimiter(sample: bytes) -> str:
    """Return the delimiter that gives the most numbers, in lines of the most equal length."""
    best, best_score = ",", 0.0
    for delimiter in DELIMITERS:
        rows = [cells for _, cells in _sample_records(sample, delimiter)]
        if not rows:
            continue
        body = rows[1:] or rows
        width = _usual_width(body, None)
        if width == 1:
            continue
        equal = sum(len(row) == width for row in body) / len(body)
        good = sum(_is_good(row, delimiter) for row in body) / len(body)
        # The header may be one name short, as R writes it, but that is rare.
        fits = {width: 1.0, width - 1: 0.9}.get(len(rows[0]), 0.5)
        if equal * good * fits > best_score:
            best, best_score = delimiter, equal * good * fits
    return best


def _is_good(row: list[str], delimiter: str) -> float:
    """Return the share of cells that are what cells should be: numbers, but for a first name."""
    first = not any(other in row[0] for other in "\t;|" if other != delimiter)
    cells = _some(row[1:])
    good = sum(
        not is_text(cell) or (delimiter != "," and has_decimal_comma(cell)) for cell in cells
    )
    return (first + good) / (1 + len(cells))


def _has_decimal_commas(rows: list[list[str]], delimiter: str) -> bool:
    """Return whether numbers are written 1,5: with a comma, and never with a point."""
    cells = [cell for row in rows for cell in _some(row)]
    if delimiter == "," or any("." in cell and is_number(cell) for cell in cells):
        return False
    found = [cell for cell in cells if has_decimal_comma(cell)]
    # Who writes 1,5 writes semicolons; elsewhere 1,234 may be a thousand, and is refused.
    return bool(found) and (delimiter == ";" or not all(map(may_be_thousands, found)))


def _usual_width(body: list[list[str]], names: list[str] | None) -> int:
    """Return how long most rows are; of two lengths as common, that of the header."""
    counts = Counter(map(len, body))
    most = max(counts.values())
    common = [width for width, count in counts.items() if count == most]
    return len(names) if names is not None and len(names) in common else common[0]


def _has_header(rows: list[list[str]], decimal: str) -> bool:
    """Return whether the first line is text where later ones are numbers."""
    first, body = rows[0], rows[1:]
    if not body:
        # A line of its own: names, unless there is a number after the first cell.
        return not any(is_number(cell, decimal) for cell in first)
    width = _usual_width(body, first)
    body = [row for row in body if len(row) == width]
    below = [row[0] for row in body]
    text_below = any(is_text(cell, decimal) for cell in below)
    if len(first) == width - 1:
        # R writes no name above those of the rows. If all are numbers, a number is lost.
        return text_below or any(is_text(cell, decimal) for cell in _some(first))
    above_numbers = sum(
        is_text(cells[0], decimal) and any(is_number(cell, decimal) for cell in cells[1:])
        for cells in zip(_some(first), *map(_some, body), strict=False)
    )
    # A number like 0.5 is hardly a name: then it is a row with text in it.
    if above_numbers > sum(is_number(c, decimal) and not c.strip().isdigit() for c in _some(first)):
        return True
    if first[0].strip().lower() in _CORNERS and text_below:
        return True
    if first[0].strip() == "" and len(first) > 1 and all(c.strip() for c in first[1:]):
        # As pandas writes it, or a number that is missing: pandas counts from 0.
        counted = first[1:] == [str(j) for j in range(len(first) - 1)]
        return text_below or counted or below == [str(i) for i in range(len(below))]
    return False


def _find_index(
    names: list[str] | None, body: list[list[str]], inner: int, decimal: str
) -> tuple[bool, str]:
    """Return whether the first column names the rows, and why."""
    if names is not None and len(names) == inner - 1:
        return True, "the header has one name fewer than there are columns"
    if names is not None and inner > 1 and names[0].strip() == "":
        return True, "it has no name"
    first = [row[0] for row in body]
    counts = first == [str(i) for i in range(len(first))]
    if names is not None and inner > 1 and names[0] == "Unnamed: 0" and counts:
        return True, "of pandas, it counts the rows"
    # What may be a thousand, 1,234, is no name: it is for the reader to refuse.
    n_names = sum(is_text(cell, decimal) and not has_decimal_comma(cell) for cell in first)
    if inner > 1 and n_names * 2 > len(first):
        return True, "it is text"
    return False, ""


def _fit_names(source: str, line: int, names: list[str], inner: int, index: bool) -> list[str]:
    """Return the names of the columns of numbers."""
    if index and len(names) == inner:
        return names[1:]
    if len(names) != inner - index:
        raise refuse(
            source,
            f"line {line}: the header has {len(names)} fields, but the rows have {inner}.",
        )
    return names
