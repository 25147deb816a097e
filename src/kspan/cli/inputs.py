"""From what the user named to a table of numbers."""

import difflib
import functools
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kspan.cli import options
from kspan.cli.errors import complain

if TYPE_CHECKING:
    from kspan.io import Table


@dataclass(frozen=True)
class Reading:
    """How to read a file: what the options say, None for what is to be detected."""

    transpose: options.Transpose = False
    delimiter: options.Delimiter = None
    header: options.Header = None
    index: options.IndexColumn = None
    key: options.Key = None
    layer: options.Layer = None
    weights: options.Weights = None


def reads_file(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Reading` in the place of its last parameter, `how`."""
    signature, read = inspect.signature(command), inspect.signature(Reading).parameters
    own = [parameter for name, parameter in signature.parameters.items() if name != "how"]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        command(how=Reading(**{name: given.pop(name) for name in read}), **given)

    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*own, *read.values()]
    )
    return run


def load_table(
    data: str, how: Reading, *, quiet: bool = True, precomputed: bool = False,
    allow_missing: bool = False,
) -> tuple["Table", bool, Any]:  # fmt: skip
    """Return the table of a file or of a data set, whether it is a covariance, and the weights."""
    table, is_covariance = _load(data, how, quiet=quiet, allow_missing=allow_missing)
    if how.weights is None:
        return table, is_covariance or precomputed, None
    if is_covariance or precomputed:
        raise ValueError("--weights needs data: a covariance matrix has no samples left to weigh.")
    from kspan.io.read import read_sample_numbers

    weights, table = read_sample_numbers(table, how.weights)
    return table, False, weights


def _load(data: str, how: Reading, *, quiet: bool, allow_missing: bool) -> tuple["Table", bool]:
    from kspan.datasets import dataset_names, load_dataset
    from kspan.io import Table, read_table

    if os.sep not in data and data in dataset_names() and not os.path.exists(data):
        if replace(how, weights=None) != Reading():
            raise ValueError(f"{data} is a data set; options for reading files do not apply.")
        found = load_dataset(data)
        is_covariance = found.covariance is not None
        X = found.covariance if is_covariance else found.X
        return Table(X, found.feature_names, None, data, ()), is_covariance
    given = {name: value for name, value in vars(how).items() if name != "weights"}
    table = read_table(data, **given, allow_missing=allow_missing)
    if table.notes and not quiet:
        complain(f"{data}: {'; '.join(table.notes)}")
    return table, False


def feature_places(names: Sequence[str] | None, option: str, table: "Table") -> list[int] | None:
    """Turn names, or else indices, of features into their places."""
    if not names:
        return None
    every = table.feature_names or ()
    known = {name: place for place, name in enumerate(every)}
    places = []
    for name in names:
        if every.count(name) > 1:
            raise ValueError(f"{option} {name!r} is the name of several features; give an index.")
        if name in known:
            places.append(known[name])
        elif name.isdecimal():
            places.append(int(name))
        else:
            near = difflib.get_close_matches(name, known, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{option} {name!r} is not a feature of {table.source}.{hint}")
    return places


def watched(X: Any, on_rows: Any) -> Any:
    """Let data that is read in blocks tell how far it is."""
    from kspan.io import open_data

    data = open_data(X)
    if data.rows is not None:
        data.rows.on_rows = on_rows
    return data.values
