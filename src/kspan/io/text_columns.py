"""Which columns are text, and so no features: classes, names, descriptions.

A column is text if fewer than one in ten of its cells is a number or nearly one, cells without
anything left out. Any other column is of numbers, and a cell of it that is none is an error. Nearly
a number is what nobody writes who means text: 1,234 or <0.5 or 12% or $3.
"""

from typing import Any

from kspan.io.layout import MISSING, NUMBER
from kspan.io.table import import_extra

# One in so many cells has to be a number, or nearly, for a column to be of numbers.
ONE_IN = 10

_NEARLY = r"\s*[<>≤≥~$€£]?\s*[+-]?\d[\d.,' ]*(e[+-]?\d+)?\s*%?\s*"
_NUMBER_LIKE = rf"(?i)^({NUMBER.pattern}|{_NEARLY})$"

# Cells without a number, also after a delimiter and a space.
NO_CELL = [*MISSING, *(f" {cell}" for cell in MISSING)]


def is_text_column(column: Any) -> bool:
    """Return whether a column of pyarrow, of strings, is text by the rule above.

    Examples
    --------
    >>> import pyarrow
    >>> [is_text_column(pyarrow.array(cells)) for cells in (["a", "b"], ["1", "b"], ["1,5", "3%"])]
    [True, False, False]
    """
    compute = import_extra("pyarrow.compute", extra="io", what="Reading text")
    pyarrow = import_extra("pyarrow", extra="io", what="Reading text")
    gone = compute.is_in(column, value_set=pyarrow.array(NO_CELL))
    cells = column.filter(compute.invert(compute.or_(gone, compute.is_null(column))))
    if not len(cells):
        return False
    numbers = compute.sum(compute.match_substring_regex(cells, _NUMBER_LIKE)).as_py()
    return bool(numbers * ONE_IN < len(cells))
