"""``kspan datasets``: what there is to try things on."""

from pathlib import Path
from typing import Annotated

import typer

from kspan.cli import options
from kspan.cli.errors import check_output, guarded


@guarded
def datasets(
    name: Annotated[
        str | None, typer.Argument(help="A data set to write to a file.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where to write it, as CSV.", show_default="NAME.csv"),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """List the data sets that can be named in place of a file, or write one as CSV.

    Example: kspan datasets breast_cancer --out breast_cancer.csv
    """
    from kspan.cli.show import write_json, write_rows
    from kspan.datasets import dataset_names, load_dataset

    if name is not None:
        if out is None and Path(f"{name}.csv").exists():
            raise ValueError(f"{name}.csv is there already: name another place, or this, by --out.")
        check_output(out or Path(f"{name}.csv"))
        found = load_dataset(name)
        values = found.X if found.covariance is None else found.covariance
        if hasattr(values, "toarray"):
            raise ValueError(f"{name} is sparse: as CSV it would be mostly zeros.")
        names = found.feature_names or [str(j) for j in range(values.shape[1])]
        place = out or Path(f"{name}.csv")
        write_rows(place, list(names), [[repr(float(x)) for x in row] for row in values])
        typer.echo(f"{name}: {values.shape[0]} x {values.shape[1]}, written to {place}")
        return
    rows = [_describe(each) for each in dataset_names()]
    if as_json:
        write_json(rows)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console, table = Console(), Table()
    table.add_column("name", style="bold")
    table.add_column("rows x columns", justify="right", no_wrap=True)
    table.add_column("what it is, and where it comes from")
    for row in rows:
        if row["here"]:
            table.add_row(str(row["name"]), size_of(row), Text(f"{row['what']} ({row['from']})"))
    console.print(table)
    console.print("Any of them stands in place of a file: kspan fit wine -m 2 -k 5 --scale")
    away = [row for row in rows if not row["here"]]
    if not away:
        return
    named = ", ".join(f"{row['name']} ({size_of(row)})" for row in away)
    text = (
        f"Not on this machine: {named}. They are read from the folder that the environment "
        f"variable KSPAN_DATA names{_downloads(away)}"
    )
    console.print(Text(text), style="dim")


def size_of(row: dict[str, object]) -> str:
    """Return the size of a table; covariances are square."""
    columns = row["features"]
    return f"{columns if row['samples'] is None else row['samples']} x {columns}"


def _downloads(rows: list[dict[str, object]]) -> str:
    """Return the end of a sentence: which of them can be downloaded."""
    names = [str(row["name"]) for row in rows if row["download"]]
    if not names:
        return "."
    return f"; {' and '.join(names)} are downloaded from OpenML when they are named."


def _describe(name: str) -> dict[str, object]:
    from kspan.datasets import about, is_at_hand

    its, here = about(name), is_at_hand(name)
    return {
        "name": name, "samples": its.n_samples, "features": its.n_features, "what": its.what,
        "from": its.origin, "here": here, "download": not here and its.openml is not None,
    }  # fmt: skip
