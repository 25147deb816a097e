"""Columns of numbers that look like classes, which people leave among the features by mistake."""

import re
from typing import Any

import numpy as np

from kspan.io.layout import CLASS_WORDS
from kspan.io.table import Table

# The most classes, and the fewest samples of each on average.
MOST_CLASSES, SAMPLES_EACH = 10, 5


def class_columns(table: Table) -> list[tuple[str, int]]:
    """Return which columns look like classes, and how many distinct whole numbers they have.

    Such a column has 2 to 10 distinct whole numbers, five samples or more for each, and is either
    called so (class, target, y, ...), or the first or last of the table, the only one with so few,
    while at least half of the others are not of whole numbers.

    Examples
    --------
    >>> X = np.column_stack([np.linspace(0, 1, 20), np.arange(20) % 2])
    >>> class_columns(Table(X, ("a", "b"), None, "t.csv", columns=("a", "b")))
    [('b', 2)]
    """
    X: Any = table.X
    if not isinstance(X, np.ndarray) or table.columns is None or X.shape[1] != len(table.columns):
        return []
    whole = np.array([bool((column == np.floor(column)).all()) for column in X.T])
    counts = {j: np.unique(X[:, j]).size for j in np.flatnonzero(whole)}
    few = [
        j for j, count in counts.items()
        if 2 <= count <= MOST_CLASSES and count * SAMPLES_EACH <= len(X)
    ]  # fmt: skip
    found = [j for j in few if CLASS_WORDS & set(re.split(r"\W|_", table.columns[j].casefold()))]
    alone = len(few) == 1 and few[0] in (0, len(whole) - 1)
    if alone and not found and (~whole).sum() * 2 >= len(whole) - 1 and not whole.all():
        found = few
    return [(table.columns[j], counts[j]) for j in found]
