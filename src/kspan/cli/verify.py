"""``kspan verify``: check a record against the data, trusting nobody who made it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kspan.cli import options
from kspan.cli.errors import complain, guarded
from kspan.cli.inputs import Reading, load_table, reads_file, watched
from kspan.cli.progress import Watcher

if TYPE_CHECKING:
    from kspan.io import Table
    from kspan.records import FitRecord


@guarded
@reads_file
def verify(
    record: Annotated[Path, typer.Argument(help="What kspan fit --out wrote.")],
    data: options.Data,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
    *,
    how: Reading,
) -> None:
    """Check every claim of a record from the data alone: exit code 1 if one does not hold.

    Example: kspan verify fit.kspan expression.csv
    """
    from kspan.cli.show import write_json
    from kspan.proofs import CertificateError
    from kspan.records import FitRecord

    found = FitRecord.load(record)
    with Watcher(quiet) as watcher:
        watcher.stage(f"reading {data}")
        may_miss = found.parameters["missing"] != "raise"
        table, _, weights = load_table(data, how, allow_missing=may_miss)
        table = _without_label(table, found)
        try:
            done = found.verify(
                watched(table.X, watcher.on_rows), table.feature_names, sample_weight=weights
            )
        except CertificateError as error:
            if as_json:
                write_json({"holds": False, "error": str(error)})
            known, names = found.feature_names, table.feature_names
            more = [name for name in names or () if known is not None and name not in known]
            if more and set(names or ()) >= set(known or ()):
                some = ", ".join(map(repr, more[:8])) + (", ..." if len(more) > 8 else "")
                complain(f"{data} has columns that the fit had not: {some}; see --drop")
            raise
    *done, left = done  # the last line says what was not checked
    if as_json:
        write_json({"holds": True, "checked": done, "not_checked": left})
        return
    for line in done:
        typer.echo(f"✓ {line}")
    typer.echo(f"- {left}")
    if not found.certificates:
        typer.echo("The record has no certificate: nothing is claimed about the best possible.")


def _without_label(table: "Table", record: "FitRecord") -> "Table":
    """Leave out the column that the fit had its labels from, if it is of numbers."""
    from kspan.io.read import take_column

    name, names = record.label_name, record.feature_names
    if name is None or names is None or name in names or name not in (table.feature_names or ()):
        return table
    return take_column(table, name)[1]
