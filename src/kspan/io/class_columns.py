"""Columns of numbers that look like classes, which people leave among the features by mistake."""

import re
from typing import Any

import numpy as np

from kspan.io.layout import CLASS_WORDS
from kspan.io.table import Table

# The most classes, and the fewest samples of each on average: of a column that is called so, and of
# one that is not.
MOST_CLASSES, NAMED_EACH, SAMPLES_EACH = 10, 2, 5


def class_columns(table: Table) -> list[tuple[str, int]]:
    """Return which columns look like classes, and how many distinct whole numbers they have.

    Such a column has 2 to 10 distinct whole numbers, and is either called so (class, target, y,
    ...) with two samples or more for each, or the first or last of the table with five for each,
    the only one with so few, while at least half of the others are not of whole numbers.

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
    few = [j for j, count in counts.items() if 2 <= count <= MOST_CLASSES]
    called = [j for j in few if CLASS_WORDS & set(re.split(r"\W|_", table.columns[j].casefold()))]
    found = [j for j in called if counts[j] * NAMED_EACH <= len(X)]
    alone = len(few) == 1 and few[0] in (0, len(whole) - 1) and not found
    if alone and (~whole).sum() * 2 >= len(whole) - 1 and not whole.all():
        found = [j for j in few if counts[j] * SAMPLES_EACH <= len(X)]
    return [(table.columns[j], counts[j]) for j in found]
