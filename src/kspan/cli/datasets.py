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
        Path | None, typer.Option("--out", "-o", help="Where to write it, as CSV.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """List the data sets that can be named in place of a file, or write one as CSV.

    Example: kspan datasets breast_cancer --out breast_cancer.csv
    """
    from kspan.cli.show import write_json, write_rows
    from kspan.datasets import dataset_names, load_dataset

    if name is not None:
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

    table = Table()
    for column in ("name", "samples", "features", ""):
        table.add_column(column, justify="left" if column in ("name", "") else "right")
    for row in rows:
        table.add_row(*(str(cell) for cell in row.values()))
    console = Console()
    console.print(table)
    if any("KSPAN_DATA" in str(row["note"]) for row in rows):
        console.print(
            "Data sets that are not here are read from the folder that the environment variable "
            "KSPAN_DATA names.", style="dim",
        )  # fmt: skip


def _describe(name: str) -> dict[str, object]:
    from kspan.datasets import is_at_hand, load_dataset

    if not is_at_hand(name):
        note = "not here (see KSPAN_DATA)"
        return {"name": name, "samples": "", "features": "", "note": note}
    found = load_dataset(name)
    if found.covariance is not None:
        note = "a covariance matrix"
        return {"name": name, "samples": "", "features": len(found.covariance), "note": note}
    n, d = found.X.shape
    note = "sparse" if hasattr(found.X, "toarray") else ""
    return {"name": name, "samples": n, "features": d, "note": note}
