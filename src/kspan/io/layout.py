"""How a text file is laid out, from its first lines: delimiter, decimal mark, header, index."""

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import TypeVar

from kspan.io.table import refuse

# Of the file, for all that is found out: lines, and bytes (but three lines, however long).
SAMPLE_LINES, SAMPLE_BYTES = 40, 1 << 18
# Cells looked at in a line: first and last ones.
FIRST_CELLS, LAST_CELLS = 200, 20

# One space: stands for any white space between cells.
WHITE = " "
DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", WHITE: "white space"}
_SPELLED = {"\\t": "\t", "tab": "\t", "space": WHITE, "whitespace": WHITE}
# What stands above a column of names, where a header's own names may be numbers.
_CORNERS = {
    "", "id", "index", "name", "names", "rowname", "rownames", "row", "sample", "samples",
    "sample_id", "feature", "features", "gene", "genes", "gene_id", "gene_name", "symbol", "probe",
    "probe_id", "id_ref", "cell", "cells", "barcode",
}  # fmt: skip

# What columns of classes are called: these name no rows.
CLASS_WORDS = {
    "batch", "category", "class", "classes", "cluster", "cohort", "condition", "diagnosis", "group",
    "kind", "label", "labels", "outcome", "species", "subtype", "target", "treatment", "type", "y",
}  # fmt: skip

MISSING = (
    "", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "-NaN", "-nan", "<NA>", "NULL", "null",
    "Null", "None", "none", "?",
)  # fmt: skip
NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity)\s*", re.I | re.A)
_WITH_COMMA = re.compile(r"\s*[+-]?(\d+,\d*|,\d+)(e[+-]?\d+)?\s*", re.I | re.A)
_THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+\s*", re.A)

Line = tuple[int, list[str]]
Cell = TypeVar("Cell")


def is_number(cell: str, decimal: str = ".") -> bool:
    """Return whether a cell is a number as pyarrow reads them."""
    if decimal == "," and "." in cell:
        return False
    return NUMBER.fullmatch(cell) is not None or (decimal == "," and has_decimal_comma(cell))


def has_decimal_comma(cell: str) -> bool:
    """Return whether a cell is a number with a comma in it."""
    return _WITH_COMMA.fullmatch(cell) is not None


def is_text(cell: str, decimal: str = ".") -> bool:
    """Return whether a cell is neither a number nor missing."""
    return not is_number(cell, decimal) and cell.strip() not in MISSING


def records(data: bytes, delimiter: str, *, skip_spaces: bool = False) -> Iterator[Line]:
    """Yield the lines that are not blank: the number of the last line read, and the cells."""
    text = (line.decode("utf-8") for line in BytesIO(data))
    reader = csv.reader(text, delimiter=delimiter, skipinitialspace=skip_spaces)
    for cells in reader:
        if cells:
            yield reader.line_num, cells


def squeeze_white_space(data: bytes) -> bytes:
    """Return the text with one space for any white space, outside of quotes."""
    parts = data.replace(b"\r\n", b"\n").split(b'"')
    for i in range(0, len(parts), 2):
        part = parts[i].replace(b"\t", b" ")
        while b"  " in part:
            part = part.replace(b"  ", b" ")
        parts[i] = part.replace(b"\n ", b"\n").replace(b" \n", b"\n")
    return b'"'.join(parts).strip(b" ")


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
    index : why the first cell of a row is its name; empty if it is not
    trailing : whether rows end with a delimiter, after which there is nothing
    doubtful : which cells of a row are text in some of the first lines, counted from 0
    """

    delimiter: str
    decimal: str
    header: tuple[str, ...] | None
    start: int
    width: int
    index: str
    trailing: bool
    doubtful: frozenset[int] = frozenset()

    @property
    def n_before(self) -> int:
        """The number of cells before the first number."""
        return int(bool(self.index))

    @property
    def names(self) -> list[str]:
        """What the columns are called: by their numbers, from 1, if there is no header."""
        last = self.width - self.trailing
        numbered = [str(j + 1) for j in range(self.n_before, last)]
        return numbered if self.header is None else list(self.header)

    @property
    def notes(self) -> tuple[str, ...]:
        """The same, for people."""
        delimiter = DELIMITERS.get(self.delimiter, repr(self.delimiter))
        found = [f"delimiter: {'none, a single column' if self.width == 1 else delimiter}"]
        if self.decimal == ",":
            found.append("decimal mark: comma")
        found.append("header: none" if self.header is None else f"header: line {self.start}")
        found.append(f"index: the first column ({self.index})" if self.index else "index: none")
        if self.trailing:
            found.append("dropped an empty last column: lines end with a delimiter")
        return tuple(found)


def find_layout(
    source: str, data: bytes, *, delimiter: str | None, header: bool | None,
    index: bool | str | None, told: Collection[str] = (),
) -> Layout:  # fmt: skip
    """Find out what is not told about the text of a file, in UTF-8; see `read_table`.

    `told` are names of columns that somebody has named, and that are not found to be an index.
    """
    sample = _beginning(data)
    delimiter = _best_delimiter(sample) if delimiter is None else _one(source, delimiter)
    lines = _sample_lines(sample, delimiter)
    if not lines:
        raise refuse(source, "the first line cannot be split into cells: is a quote left open?")
    rows = [cells for _, cells in lines]
    decimal = _decimal_mark(rows, delimiter)
    if header is None:
        header = _has_header(rows, decimal)
    names, body = (rows[0], rows[1:]) if header else (None, rows)
    if not body:
        raise refuse(source, "there is a header, but no row of numbers below it.")
    width = _usual_width(body, names)
    trailing = _has_trailing(names, body, width, decimal)
    inner = width - trailing
    if names is not None and trailing and len(names) == width:
        names = names[:-1]
    fitting_rows = [row for row in body if len(row) == width]
    if isinstance(index, bool):
        why = "as told" if index else ""
    elif (names[0] if names else "1") in told and len(names or ()) != inner - 1:
        why = ""
    else:
        may_be_text = index is None
        why = _why_index(names, [row[0] for row in fitting_rows], inner, decimal, may_be_text)
    start = lines[0][0] if header else 0
    fitting = None if names is None else _fit_names(source, start, names, inner, bool(why))
    doubtful = _doubtful(fitting_rows, bool(why), inner, decimal)
    return Layout(delimiter, decimal, fitting, start, width, why, trailing, doubtful)


def _doubtful(rows: list[list[str]], first: int, last: int, decimal: str) -> frozenset[int]:
    """Return which columns have text, of those that are looked at."""
    places = _some(range(first, last))
    return frozenset(
        j for j in places if any(not _is_float(row[j]) and is_text(row[j], decimal) for row in rows)
    )


def _is_float(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


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


def _sample_lines(sample: bytes, delimiter: str) -> list[Line]:
    """Return the first lines; spaces after a delimiter belong to nobody's name."""
    if delimiter == WHITE:
        sample = squeeze_white_space(sample)
    found: list[Line] = []
    with suppress(csv.Error):  # a quote that does not end: whoever reads on will say so
        found.extend(islice(records(sample, delimiter, skip_spaces=True), SAMPLE_LINES))
    # A name of several lines may be cut off at the end.
    if len(found) > 2 and sample.count(b'"') % 2:
        found.pop()
    return found


def _some(cells: Sequence[Cell]) -> Sequence[Cell]:
    """Return enough cells of a line to judge it by."""
    if len(cells) <= FIRST_CELLS + LAST_CELLS:
        return cells
    return [*cells[:FIRST_CELLS], *cells[-LAST_CELLS:]]


def _usual_width(body: list[list[str]], names: list[str] | None) -> int:
    """Return how long most rows are; of two lengths as common, that of the header."""
    counts = Counter(map(len, body))
    return max(counts, key=lambda width: (counts[width], width == len(names or ())))


def _best_delimiter(sample: bytes) -> str:
    """Return the delimiter that gives the most numbers, in lines of the most equal length."""
    return max(DELIMITERS, key=lambda delimiter: _score(sample, delimiter))


def _score(sample: bytes, delimiter: str) -> float:
    rows = [cells for _, cells in _sample_lines(sample, delimiter)]
    body = rows[1:] or rows
    width = _usual_width(body, None) if body else 1
    if width == 1:
        return 0.0
    equal = sum(len(row) == width for row in rows) / len(rows)
    return equal * sum(_share_good(row, delimiter) for row in body) / len(body)


def _share_good(row: list[str], delimiter: str) -> float:
    """Return the share of cells that are what cells should be: numbers, but for a first name."""
    first = not any(other in row[0] for other in "\t;|" if other != delimiter)
    decimals = delimiter != ","
    cells = _some(row[1:])
    good = sum(not is_text(cell) or (decimals and has_decimal_comma(cell)) for cell in cells)
    return (first + good) / (1 + len(cells))


def _decimal_mark(rows: list[list[str]], delimiter: str) -> str:
    """Return a comma if numbers are written 1,5: with a comma, and never with a point."""
    cells = [cell for row in rows for cell in _some(row)]
    if delimiter == "," or any("." in cell and is_number(cell) for cell in cells):
        return "."
    found = [cell for cell in cells if has_decimal_comma(cell)]
    # Who writes 1,5 writes semicolons; elsewhere 1,234 may be a thousand, and is refused.
    sure = delimiter == ";" or not all(map(_THOUSANDS.fullmatch, found))
    return "," if found and sure else "."


def _has_header(rows: list[list[str]], decimal: str) -> bool:
    """Return whether the first line is text where later ones are numbers."""
    first, body = rows[0], rows[1:]
    if not body:
        return not any(is_number(cell, decimal) for cell in first)
    width = _usual_width(body, first)
    body = [row for row in body if len(row) == width]
    below = [row[0] for row in body]
    has_names = any(is_text(cell, decimal) for cell in below)
    if len(first) == width - 1:
        # R writes no name above those of the rows. If all are numbers, a number is lost.
        return has_names or any(is_text(cell, decimal) for cell in _some(first))
    # A number like 0.5 is hardly a name: then it is a row with text in it.
    no_names = sum(is_number(c, decimal) and not c.strip().isdigit() for c in _some(first))
    if _text_above_numbers(first, body, decimal) > no_names:
        return True
    # All names may be numbers: of samples below "gene", or of pandas, which counts from 0.
    corner = first[0].strip().lower() in _CORNERS
    return corner and (has_names or _counts(first[1:]) or _counts(below))


def _text_above_numbers(first: list[str], body: list[list[str]], decimal: str) -> int:
    """Return how many cells of the first line are text in a column of numbers."""
    columns = zip(_some(first), *map(_some, body), strict=False)
    return sum(
        is_text(name, decimal) and any(is_number(cell, decimal) for cell in cells)
        for name, *cells in columns
    )


def _counts(cells: list[str]) -> bool:
    return bool(cells) and cells == [str(i) for i in range(len(cells))]


def _has_trailing(names: list[str] | None, body: list[list[str]], width: int, decimal: str) -> bool:
    """Return whether lines end with a delimiter, after which there is nothing."""
    if width == 1 or any(len(row) != width or row[-1].strip() for row in body):
        return False
    if names is not None and len(names) == width:
        return not names[-1].strip()
    if names is not None and len(names) == width - 1:
        return not any(is_text(row[0], decimal) for row in body)  # else as R writes it
    return True


def _why_index(
    names: list[str] | None, first: list[str], inner: int, decimal: str, may_be_text: bool
) -> str:
    """Return why the first column names the rows; nothing if it does not.

    Parameters
    ----------
    names : of the first line, if it has any
    first : cells of the first column
    inner : the number of cells of a row
    decimal : mark
    may_be_text : whether text is a reason; then not if the same stands in most rows, as classes do
    """
    if names is not None and len(names) == inner - 1:
        return "the header has one name fewer than there are columns"
    if inner == 1:
        return ""
    if names is not None and not names[0].strip():
        return "it has no name"
    if names is not None and names[0] == "Unnamed: 0" and _counts(first):
        return "of pandas, it counts the rows"
    # What may be a thousand, 1,234, is no name: it is for the reader to refuse.
    n_names = sum(is_text(cell, decimal) and not has_decimal_comma(cell) for cell in first)
    above = "" if names is None else names[0].strip().lower()
    repeat = len(set(first)) < len(first) and above in CLASS_WORDS
    differ = above in _CORNERS or (len(set(first)) * 2 > len(first) and not repeat)
    return "it is text" if may_be_text and differ and n_names * 2 > len(first) else ""


def _fit_names(
    source: str, line: int, names: list[str], inner: int, index: bool
) -> tuple[str, ...]:
    """Return the names of the columns of numbers."""
    if index and len(names) == inner:
        return tuple(names[1:])
    if len(names) != inner - index:
        raise refuse(
            source, f"line {line}: the header has {len(names)} fields, but the rows have {inner}."
        )
    return tuple(names)
