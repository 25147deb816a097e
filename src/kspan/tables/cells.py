"""Cells of text files: what is a number, what is missing, where lines and cells end."""

import csv
import re
from collections.abc import Iterator
from io import BytesIO

# One space: stands for any white space between cells.
WHITE = " "

MISSING = (
    "", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "-NaN", "-nan", "<NA>", "NULL", "null",
    "Null", "None", "none", "?",
)  # fmt: skip
_NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity)\s*", re.I | re.A)
_WITH_COMMA = re.compile(r"\s*[+-]?(\d+,\d*|,\d+)(e[+-]?\d+)?\s*", re.I | re.A)
_THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+\s*", re.A)


def is_number(cell: str, decimal: str = ".") -> bool:
    """Return whether a cell is a number as pyarrow reads them."""
    if decimal == "," and "." in cell:
        return False
    return _NUMBER.fullmatch(cell) is not None or (decimal == "," and has_decimal_comma(cell))


def has_decimal_comma(cell: str) -> bool:
    """Return whether a cell is a number with a comma in it."""
    return _WITH_COMMA.fullmatch(cell) is not None


def may_be_thousands(cell: str) -> bool:
    """Return whether the comma of a number may stand for nothing: 1,234 is 1234."""
    return _THOUSANDS.fullmatch(cell) is not None


def is_text(cell: str, decimal: str = ".") -> bool:
    """Return whether a cell is neither a number nor missing."""
    return not is_number(cell, decimal) and not is_missing(cell)


def is_missing(cell: str) -> bool:
    """Return whether a cell says that there is no number."""
    return cell.strip() in MISSING


def records(
    data: bytes, delimiter: str, *, skip_spaces: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines that are not blank: the number of the last line read, and the cells."""
    reader = csv.reader(
        (line.decode("utf-8") for line in BytesIO(data)),
        delimiter=delimiter,
        skipinitialspace=skip_spaces,
    )
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
