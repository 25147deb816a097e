"""Excel files: a sheet is read as the text that it would be as CSV, and so by the same rules."""

import csv
import io
import warnings
from collections.abc import Collection
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from kspan.io.table import Grid, import_extra, refuse
from kspan.io.text import read_bytes


def read_xlsx(
    path: str, header: bool | None = None, index: bool | str | None = None,
    key: str | None = None, aside: Collection[str] = (), only: Collection[str] = (),
) -> Grid:  # fmt: skip
    """Read a sheet of an ``.xlsx`` file: that of a name, or the first with anything in it.

    Of formulas it is the values that were stored with them.
    """
    openpyxl = import_extra("openpyxl", extra="io", what="Reading Excel files")
    with open(path, "rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and the like, which numbers do not have
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        except Exception as error:
            raise refuse(path, f"is not an Excel file: {error}") from None
        names = [sheet.title for sheet in book.worksheets]
        if key is not None and key not in names:
            raise refuse(path, f"has no sheet {key!r}; it has {', '.join(map(repr, names))}.")
        for name in names if key is None else [key]:
            lines = _lines(book[name])
            if any(lines):
                break
        else:
            raise refuse(path, "the file is empty: there is nothing in its cells.")
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(lines)
    grid = read_bytes(path, text.getvalue().encode(), ",", header, index, aside, only)
    others = f" of {', '.join(map(repr, names))}" if len(names) > 1 else ""
    # What separates cells was not found out.
    notes = (f"sheet: {name!r}{others}", *grid.notes[1:])
    return replace(grid, notes=notes)


def _lines(sheet: Any) -> list[list[str]]:
    """Return the cells of all rows as text, without columns that are empty; so are blank rows."""
    sheet.reset_dimensions()  # what the file says of its size need not be true
    rows = [[_as_text(cell) for cell in row] for row in sheet.iter_rows(values_only=True)]
    width = max(map(len, rows), default=0)
    rows = [row + [""] * (width - len(row)) for row in rows]
    used = [j for j in range(width) if any(row[j] for row in rows)]
    return [[row[j] for j in used] if any(row) else [] for row in rows]


def _as_text(cell: Any) -> str:
    """Return a cell as CSV has it."""
    if cell is None:
        return ""
    if isinstance(cell, datetime | date):
        return cell.isoformat()
    return repr(cell) if isinstance(cell, float) else str(cell)
