"""Data that only looks like numbers: masked, text, missing. Libraries convert it without a word."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# What may be computed with, or is refused elsewhere in words of its own (complex numbers).
_NUMBERS = "biufc"


def require_numeric(X: Any, *, allow_missing: bool = False) -> Any:
    """Return data whose every column is made of numbers; refuse it, by the column, if one is not.

    Parameters
    ----------
    X : array, masked array, data frame, scipy sparse array, or nested lists
    allow_missing : whether values of an array may be masked

    Returns
    -------
    The same; of a masked array its values, with NaN for what is masked.

    Examples
    --------
    >>> import numpy as np
    >>> require_numeric(np.array([[1, "2.5"]], dtype=object))
    Traceback (most recent call last):
    ValueError: The data must be numeric: could not convert string to float: '2.5', in column 1.
    """
    if isinstance(X, np.ma.MaskedArray):
        X = _unmasked(X, allow_missing)
    elif isinstance(X, list | tuple):
        _require_unmasked_rows(X)
    for place, name, values in _doubtful_columns(X):
        where, hint = f"column {place}", ""
        if name is not None:
            where += f" ({name!r})"
            how = f"columns=[{name!r}]" if hasattr(X, "iloc") else repr(name)
            hint = f" If it is no feature: X.drop({how})."
        for value in values:
            _require_number(value, where, hint)
    return X


def _unmasked(X: Any, allow_missing: bool) -> NDArray[Any]:
    hidden = np.ma.getmaskarray(X)
    if hidden.any() and allow_missing and X.dtype.kind in "biuf":
        return np.asarray(X.astype(np.promote_types(X.dtype, np.float32)).filled(np.nan))
    if hidden.any():
        columns = np.flatnonzero(hidden.any(axis=0)) if hidden.ndim == 2 else [0]
        raise ValueError(
            f"Input X is a masked array with {int(hidden.sum())} masked value(s) in "
            f"{len(columns)} column(s), the first being column {columns[0]}. Fill in or drop them "
            "first."
        )
    return np.asarray(X.data)


def _require_unmasked_rows(rows: Sequence[Any]) -> None:
    """Refuse masked values in lists: as an array they would be what the mask hides."""
    for place, row in enumerate(rows):
        if _hides(row):
            raise ValueError(
                f"Input X is a list with masked values, the first in row {place}. Fill in or drop "
                "them first."
            )


def _hides(row: Any) -> bool:
    if isinstance(row, np.ma.MaskedArray):
        return bool(np.ma.is_masked(row))
    if not isinstance(row, list | tuple):
        return False
    # Of plain numbers there are one or two types: these are looked at, not the numbers.
    doubtful = any(issubclass(kind, np.ma.MaskedArray) for kind in set(map(type, row)))
    return doubtful and any(np.ma.is_masked(value) for value in row)


def _doubtful_columns(X: Any) -> Iterator[tuple[int, Any, Any]]:
    """Yield place, name and values of columns that are not plainly numbers."""
    if isinstance(X, list | tuple):
        try:
            X = np.asarray(X)
        except ValueError:  # rows of different lengths: scikit-learn has words for that
            return
    columns = getattr(X, "columns", None)
    if columns is not None and not callable(columns) and hasattr(X, "dtypes"):
        for place, (name, dtype) in enumerate(zip(columns, X.dtypes, strict=True)):
            if not _is_number(dtype):
                values = X.iloc[:, place] if hasattr(X, "iloc") else X[:, place]
                yield place, name, np.asarray(values, dtype=object)
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind not in _NUMBERS:
        for place, values in enumerate(X.T):
            yield place, None, values


def _is_number(dtype: Any) -> bool:
    kind = getattr(dtype, "kind", None)  # of numpy's types and pandas' own
    if isinstance(kind, str):
        return kind in _NUMBERS
    numeric = getattr(dtype, "is_numeric", None)  # of polars'
    return numeric is not None and (numeric() or str(dtype) in ("Boolean", "Null"))


def _require_number(value: Any, where: str, hint: str) -> None:
    if isinstance(value, str | bytes):
        raise ValueError(
            f"The data must be numeric: could not convert string to float: {_short(value)}, "
            f"in {where}.{hint}"
        )
    if type(value).__name__ == "NAType":  # of pandas, which may not be there
        raise ValueError(f"Input X contains NaN: a value (NA) is missing in {where}.")
    if isinstance(value, np.datetime64 | np.timedelta64):  # these count in silence
        raise ValueError(f"The data must be numeric, but {where} holds times.{hint}")
    try:
        if value is not None:  # which is NaN, and refused as such
            float(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"The data must be numeric: {error}, in {where}.") from None


def _short(value: str | bytes) -> str:
    text = repr(str(value) if isinstance(value, str) else bytes(value))  # numpy's say more
    return text if len(text) <= 40 else f"{text[:37]}..."
