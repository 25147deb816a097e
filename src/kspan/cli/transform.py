"""``kspan transform``: scores of samples, old or new, from a record and the chosen features."""

from pathlib import Path
from typing import Annotated

import typer

from kspan.cli import options
from kspan.cli.errors import check_outputs, complain, guarded
from kspan.cli.inputs import FileReading, find_table, reads_file, watched
from kspan.cli.progress import Watcher


@guarded
@reads_file
def transform(
    record: Annotated[Path, typer.Argument(help="What kspan fit --out wrote.")],
    data: Annotated[
        str,
        typer.Argument(
            help="Samples in rows: a file with the chosen features by name, in any order (other "
            "columns do not matter), or without names all columns or just the chosen ones.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Where to write the scores, as CSV.",
            show_default="standard output", rich_help_panel=options.WRITING,
        ),
    ] = None,
    quiet: options.Quiet = False,
    *,
    how: FileReading,
) -> None:  # fmt: skip
    """Write the scores of samples by a record: only the chosen features have to be measured.

    Example: kspan transform fit.kspan new_patients.csv --out scores.csv
    """
    from kspan.cli.show import csv_text, write_rows
    from kspan.io.table import refuse
    from kspan.records import FitRecord

    check_outputs(out, source=data, record=record)
    found = FitRecord.load(record)
    with Watcher(quiet) as watcher:
        watcher.stage(f"reading {data}")
        names = [] if found.feature_names is None else found.selected_names
        # The record minds what is missing, of the chosen features.
        table, is_covariance = find_table(data, how, quiet=quiet, allow_missing=True, only=names)
        if is_covariance:
            raise ValueError(f"{data} is a covariance matrix: it has no samples.")
        try:
            scores = found.transform(watched(table.X, watcher.on_rows), table.feature_names)
        except ValueError as error:
            raise refuse(data, error) from None
        samples = table.sample_names
        if samples is None and hasattr(table.X, "sample_names"):
            samples = table.X.sample_names()
    if found.of_covariance and not quiet:
        complain(
            f"{record}: the fit was to a covariance matrix, which knows no means: the columns of "
            f"{data} are taken to be centred"
        )
    alone = table.X.shape[1] == len(found.selected_names)
    if table.feature_names is None and alone and names and not quiet:
        first = ", ".join(names[:3])
        complain(
            f"{data} has no names: its columns are taken in the order of the table: {first}, …"
        )
    header = [f"PC{j + 1}" for j in range(found.n_components)]
    rows = [[repr(float(score) + 0.0) for score in row] for row in scores]
    if samples is not None:
        header = ["sample", *header]
        rows = [[name, *row] for name, row in zip(samples, rows, strict=True)]
    if out is None:
        typer.echo(csv_text(header, rows), nl=False)
        return
    write_rows(out, header, rows)
    typer.echo(f"scores of {len(rows):,} samples: {out}")
