"""Data as it comes: files by their endings, rows in blocks, and the names of features.

Only this package knows file formats: `endings.ENDINGS` is the table of them. What it cannot read it
refuses with a `TableError`: one line that says what is wrong, and where.
"""

from kspan.io.endings import known_endings
from kspan.io.read import Opened, open_data, read_table
from kspan.io.rows import RowSource
from kspan.io.table import Table, TableError

__all__ = [
    "Opened", "RowSource", "Table", "TableError", "known_endings", "open_data", "read_table",
]  # fmt: skip
