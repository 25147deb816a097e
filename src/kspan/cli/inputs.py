"""From what the user named to a table of numbers."""

import csv
import difflib
import functools
import inspect
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kspan.cli import options
from kspan.cli.errors import complain

if TYPE_CHECKING:
    from kspan.io import Table


@dataclass(frozen=True)
class FileReading:
    """How to read a file: what the options say, None for what is to be detected."""

    transpose: options.Transpose = False
    delimiter: options.Delimiter = None
    header: options.Header = None
    index: options.IndexColumn = None
    no_index: options.NoIndex = False
    key: options.Key = None
    layer: options.Layer = None

    def __post_init__(self) -> None:
        if self.index is not None and self.no_index:
            raise ValueError("Give --index or --no-index, not both.")

    @property
    def asked(self) -> dict[str, Any]:
        """What `kspan.io.read_table` is asked for."""
        given = {name: getattr(self, name) for name in ("transpose", "delimiter", "header")}
        index: str | bool | None = False if self.no_index else self.index
        return {**given, "index": index, "key": self.key, "layer": self.layer}


@dataclass(frozen=True)
class Reading(FileReading):
    """The same, and which columns are no features."""

    label: options.Label = None
    drop: options.Drop = None
    weights: options.Weights = None

    @property
    def asked(self) -> dict[str, Any]:
        """What `kspan.io.read_table` is asked for; names with a comma may be between quotes."""
        dropped = [name.strip() for row in csv.reader(self.drop or ()) for name in row]
        return {**super().asked, "label": self.label, "drop": [name for name in dropped if name]}


@dataclass(frozen=True)
class Rules:
    """Which features go together: what the options say."""

    groups: options.Groups = None
    together: options.Together = False
    n_groups: options.NGroups = None
    max_per_group: options.MaxPerGroup = None
    costs: options.Costs = None
    budget: options.Budget = None
    max_correlation: options.MaxCorrelation = None

    @property
    def is_plain(self) -> bool:
        """Whether nothing is said."""
        return self == Rules()

    def require_shared(self, estimator: options.Estimator) -> None:
        """Raise `ValueError` where components have features of their own."""
        if not self.is_plain and estimator is not options.Estimator.FEATURES:
            raise ValueError(
                "--groups, --costs and --max-correlation need --estimator "
                f"{options.Estimator.FEATURES}."
            )

    def require_whole(self) -> None:
        """Raise `ValueError` about options that need others, before anything is read."""
        for name, needs in (
            ("together", "groups"), ("max_per_group", "groups"), ("n_groups", "together"),
            ("costs", "budget"), ("budget", "costs"),
        ):  # fmt: skip
            if getattr(self, name) and not getattr(self, needs):
                raise ValueError(f"{_option(name)} needs {_option(needs)}.")
        if self.groups and not (self.together or self.max_per_group):
            raise ValueError("--groups needs --together or --max-per-group.")
        if self.together and self.max_per_group:
            raise ValueError("Give --together or --max-per-group, not both.")

    def parameters(self, table: "Table") -> dict[str, Any]:
        """Return the parameters of an estimator, with what files say."""
        from kspan.io.feature_values import read_feature_values
        from kspan.io.table import refuse

        costs: list[float] | None = None
        if self.costs is not None:
            costs = []
            names = table.feature_names or [str(i) for i in range(table.X.shape[1])]
            for name, text in zip(names, read_feature_values(table, self.costs), strict=True):
                try:
                    cost = float(text or "nan")
                except ValueError:
                    cost = float("nan")
                if not 0 <= cost < float("inf"):
                    raise refuse(self.costs, f"{name!r} costs {text!r}: not a number, 0 or more.")
                costs.append(cost)
        groups = None if self.groups is None else read_feature_values(table, self.groups)
        return {
            "groups": groups, "group_rule": "together" if self.together else None,
            "n_groups": self.n_groups, "max_per_group": self.max_per_group, "costs": costs,
            "budget": self.budget, "max_correlation": self.max_correlation,
        }  # fmt: skip


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def reads_file(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that its parameters `how` and `rules` are made of.

    In their place: what they are is what their annotations say.
    """
    signature = inspect.signature(command)
    bundles: dict[str, tuple[Callable[..., Any], Mapping[str, inspect.Parameter]]] = {
        name: (parameter.annotation, inspect.signature(parameter.annotation).parameters)
        for name, parameter in sorted(signature.parameters.items(), reverse=True)
        if parameter.annotation in (Rules, Reading, FileReading)
    }
    own = [parameter for name, parameter in signature.parameters.items() if name not in bundles]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        made = {
            name: bundle(**{part: given.pop(part) for part in parts})
            for name, (bundle, parts) in bundles.items()
        }
        command(**made, **given)

    more = [parameter for _, parts in bundles.values() for parameter in parts.values()]
    run.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    return run


def load_table(
    data: str, how: Reading, *, quiet: bool = True, as_json: bool = False,
    precomputed: bool = False, allow_missing: bool = False,
) -> tuple["Table", bool, Any]:  # fmt: skip
    """Return the table of a file or of a data set, whether it is a covariance, and the weights."""
    if how.weights is not None and precomputed:
        raise ValueError("--weights needs data: a covariance matrix has no samples left to weigh.")
    if how.label is not None and precomputed:
        raise ValueError("--label needs data: a covariance matrix has no samples.")
    table, is_covariance = find_table(
        data, how, quiet=quiet, as_json=as_json, allow_missing=allow_missing
    )
    weights = None
    if how.weights is not None:
        if is_covariance:
            raise ValueError("--weights needs data: a covariance matrix has no samples.")
        from kspan.io.read import read_sample_numbers

        weights, table = read_sample_numbers(table, how.weights)
    is_covariance = is_covariance or precomputed
    if not quiet and how.label is None and not is_covariance:
        from kspan.io.class_columns import class_columns

        for name, count in class_columns(table):
            option = shlex.quote(name)
            complain(
                f"{table.source}: column {name!r} has {count} distinct whole numbers: if it is a "
                f"label, use --label {option}"
            )
    return table, is_covariance, weights


def find_table(
    data: str, how: FileReading, *, quiet: bool, as_json: bool = False, allow_missing: bool,
    only: Sequence[str] = (),
) -> tuple["Table", bool]:  # fmt: skip
    """Return the table of a file or of a data set, and whether it is a covariance.

    What was found out about the file is said, unless `quiet` or `as_json`; which columns were left
    out, unless `quiet`.
    """
    from kspan.datasets import dataset_names, load_dataset
    from kspan.io import Table, read_table

    if os.sep not in data and data in dataset_names() and not os.path.exists(data):
        plain = type(how)()
        asked = replace(how, weights=None) if isinstance(how, Reading) else how
        if asked != plain:
            raise ValueError(f"{data} is a data set; options for reading files do not apply.")
        found = load_dataset(data)
        is_covariance = found.covariance is not None
        X = found.covariance if is_covariance else found.X
        return Table(X, found.feature_names, None, data, ()), is_covariance
    if not Path(data).suffix and data != "-" and not os.path.exists(data.partition("::")[0]):
        near = difflib.get_close_matches(data, dataset_names(), 1)
        hint = f" Did you mean {near[0]!r}?" if near else " kspan datasets lists them."
        raise ValueError(f"{data}: there is no such file, and no data set of that name.{hint}")
    require_meaning(data, how)
    table = read_table(data, **how.asked, allow_missing=allow_missing, only=only)
    if table.notes and not quiet and not as_json:
        complain(f"{table.source}: {'; '.join(table.notes)}")
    if table.text_columns and not quiet:
        names = ", ".join(map(repr, table.text_columns))
        complain(f"{table.source}: left out, as they are text: {names}; see --label and --drop")
    return table, False


def require_meaning(data: str, how: FileReading) -> None:
    """Refuse options that files of a kind do not have, before anything is read."""
    from kspan.io.endings import kind_of

    kind = kind_of(data.partition("::")[0])
    for name, value in how.asked.items():
        known = ("transpose", "label", "drop", *kind.options)
        by_name = name == "index" and isinstance(value, str)
        if value is not None and name not in known and not by_name:
            option = "--no-index" if name == "index" else _option(name)
            raise ValueError(f"{option} has no meaning for {data}, a file of kind {kind.name}.")


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
