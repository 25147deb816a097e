"""Some columns of a table in other tables: those that a fit chose are all that scores need."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kspan.arrays import Index
from kspan.io.read import Opened, open_data
from kspan.io.rows import RowSource, SomeColumns

# So many names are listed in a message.
MOST_LISTED = 8


@dataclass(frozen=True)
class Chosen:
    """Columns of a table, to be found in tables with all its columns, or with just these.

    Attributes
    ----------
    places : (k,) array
        Where they are in the table.
    n_features : how many columns it has
    names : the names of all its columns, or None
    """

    places: Index
    n_features: int
    names: Sequence[str] | None

    def open(
        self, X: Any, feature_names: Sequence[str] | None = None, *, allow_missing: bool = False
    ) -> Opened:
        """Open data and take the columns from it, in their order; the others may hold anything.

        By name, in any order, if both have names; else by place.

        Parameters
        ----------
        X : as for `kspan.io.open_data`
        feature_names : names of its columns, if X has none
        allow_missing : whether values may be missing; there may be some in other columns

        Examples
        --------
        >>> X = np.arange(6.0).reshape(2, 3)
        >>> Chosen(np.array([0, 2]), 3, ["a", "b", "c"]).open(X, ["c", "z", "a"]).values
        array([[2., 0.],
               [5., 3.]])
        """
        columns = _frame_columns(X)
        if columns is not None:  # what is not of numbers is left out before anyone minds
            places = self._find(columns if feature_names is None else feature_names)
            part = X.iloc[:, places] if hasattr(X, "iloc") else X[:, places.tolist()]
            return open_data(part, allow_missing=allow_missing)
        wanted = () if self.names is None else [self.names[place] for place in self.places]
        data = open_data(X, allow_missing=True, only=wanted)
        values: Any = data.values if hasattr(data.values, "shape") else np.asarray(data.values)
        names = data.feature_names if feature_names is None else feature_names
        if len(values.shape) != 2:
            raise ValueError(f"Expected 2D array, got {len(values.shape)}D array instead.")
        places = self._find([None] * values.shape[1] if names is None else names)
        if isinstance(values, RowSource):
            return Opened(SomeColumns(values, places), None)
        if getattr(values, "format", "csr") not in ("csr", "csc"):
            values = values.tocsr()
        return Opened(values[:, places], None)

    def _find(self, columns: Sequence[Any]) -> Index:
        """Return where the columns are among others."""
        k, d = self.places.size, self.n_features
        if self.names is None or not any(isinstance(name, str) for name in columns):
            if len(columns) == d:
                return self.places
            if len(columns) == k:
                return np.arange(k)
            all_of_them = "" if k == d else f", or all {d} of the table of the fit"
            raise ValueError(
                f"There are {len(columns)} columns, without names to find the chosen ones by: "
                f"expected the {k} chosen ones in their order{all_of_them}."
            )
        if list(columns) == list(self.names):
            return self.places
        wanted = [self.names[place] for place in self.places]
        counts = Counter(columns)
        missing = [name for name in wanted if name not in counts]
        if missing:
            raise ValueError(
                f"{len(missing)} of the {k} chosen features {'is' if len(missing) == 1 else 'are'} "
                f"missing: there is no column {_listed(missing)}."
            )
        own = Counter(self.names)
        twice = [name for name in wanted if counts[name] > 1 or own[name] > 1]
        if twice:
            raise ValueError(f"Several columns have the name {_listed(twice)}.")
        where = {name: place for place, name in enumerate(columns)}
        return np.array([where[name] for name in wanted], dtype=np.intp)


def as_plain(values: Any) -> Any:
    """Return a table as an array, sparse if it is; NaN where data frames of pandas have NA."""
    if hasattr(values, "tocsr"):
        return values
    if hasattr(values, "iloc"):
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(values)


def _frame_columns(X: Any) -> list[Any] | None:
    """Return the names of the columns of a data frame, whatever they are."""
    columns = getattr(X, "columns", None)
    if columns is None or callable(columns) or not hasattr(X, "dtypes"):
        return None
    return list(columns)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:MOST_LISTED]))
    more = len(names) - MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown
