"""`read_table`: a table of numbers from a file, with its names, whatever the file is.

Only this package knows file formats. What it cannot read it refuses with a `TableError`: one line
that says what is wrong, and where.
"""

from kspan.tables.read import known_endings, read_table
from kspan.tables.table import Table, TableError

__all__ = ["Table", "TableError", "known_endings", "read_table"]
