"""A label or a price for each feature or sample, from a small file or a column of an H5AD file."""

import csv
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

from kspan.io.table import NoSuchFileError, Table, import_extra, refuse

SEPARATORS = ",\t;"


def read_feature_values(table: Table, name: str) -> list[str | None]:
    """Return a text for each feature of a table, None where there is none.

    Parameters
    ----------
    table : from `read_table`
    name : of a file with a feature's name and its value in each line (or, for tables without names,
        one value a line, in the order of the features); or of a column of ``.var`` of an H5AD file
    """
    found = _column_of(table, name, "var")
    if found is not None:
        return found
    return _values(name, table.X.shape[1], table.feature_names, "feature")


def read_sample_values(table: Table, name: str) -> list[str | None]:
    """Return a text for each sample of a table, None where there is none.

    Parameters
    ----------
    table : from `read_table`
    name : of a file with a sample's name and its value in each line (or one value a line, in the
        order of the samples); or of a column of ``.obs`` of an H5AD file
    """
    found = _column_of(table, name, "obs")
    if found is not None:
        return found
    if not os.path.exists(name):
        raise refuse(table.source, f"has no column {name!r}, and there is no file of that name.")
    return _values(name, table.X.shape[0], table.sample_names, "sample")


def _values(path: str, count: int, names: Sequence[str] | None, what: str) -> list[str | None]:
    """Read a value for each of some things from a file."""
    if not os.path.exists(path):
        raise NoSuchFileError(f"{path}: there is no such file.")
    lines = _lines(path)
    if all(len(cells) == 1 for _, cells in lines):
        values = [cells[0] for _, cells in lines]
        if len(values) == count + 1:  # a heading
            values = values[1:]
        if len(values) != count:
            raise refuse(path, f"has {len(values)} values for {count} {what}s.")
        return [value or None for value in values]
    return _by_name(path, lines, [str(i) for i in range(count)] if names is None else names, what)


def _lines(path: str) -> list[tuple[int, list[str]]]:
    """Return the cells of all lines that are not empty, with their numbers."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise refuse(path, f"cannot be read: {error}") from None
    first = text.partition("\n")[0]
    separator = max(SEPARATORS, key=first.count)
    rows = list(csv.reader(text.splitlines(), delimiter=separator))
    lines = [(i + 1, [cell.strip() for cell in row]) for i, row in enumerate(rows) if any(row)]
    if not lines:
        raise refuse(path, "the file is empty.")
    return lines


def _by_name(
    path: str, lines: Sequence[tuple[int, list[str]]], names: Sequence[str], what: str
) -> list[str | None]:
    """Return the values in the order of the names; a first line with other names is a heading.

    Everything has to be there, once.
    """
    places = {name: place for place, name in enumerate(names)}
    found: dict[str, str] = {}
    for number, cells in lines:
        if len(cells) != 2:
            raise refuse(path, f"line {number}: expected a {what} and its value.")
        name, value = cells
        if name not in places:
            if number == lines[0][0]:
                continue
            raise refuse(path, f"line {number}: {name!r} is not a {what}.")
        if name in found:
            raise refuse(path, f"line {number}: {name!r} is there twice.")
        found[name] = value
    missing = [name for name in names if name not in found]
    if missing:
        more = f" and {len(missing) - 1} other {what}s" if len(missing) > 1 else ""
        raise refuse(path, f"has nothing for {missing[0]!r}{more}.")
    return [found[name] or None for name in names]


def _column_of(table: Table, name: str, side: str) -> list[str | None] | None:
    """Return a column of ``.var`` or ``.obs`` of an ``.h5ad`` file; None if there is none."""
    if not table.source.endswith(".h5ad"):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anndata = import_extra("anndata", extra="io", what="Reading AnnData files")
        columns = getattr(anndata.read_h5ad(table.source, backed="r"), side)
    if name not in columns:
        return None
    column = columns[name].astype(object)
    return [
        None if missing else str(value)
        for value, missing in zip(column, column.isna(), strict=True)
    ]
