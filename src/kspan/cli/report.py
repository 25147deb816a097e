"""``kspan report``: a page from a record, without data and without fitting."""

from pathlib import Path
from typing import Annotated

import typer

from kspan.cli.errors import check_outputs, guarded, require


@guarded
def report(
    record: Annotated[Path, typer.Argument(help="What kspan fit --out wrote.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The page.", show_default="the record's name, .html"),
    ] = None,
) -> None:
    """Write the HTML report of a record: one file that opens anywhere, offline.

    Example: kspan report fit.kspan -o fit.html
    """
    from kspan.records import FitRecord
    from kspan.report import write_report

    require("jinja2", "plotly", extra="report", what="A report")
    place = record.with_suffix(".html") if out is None else out
    check_outputs(place, source=str(record))
    write_report(FitRecord.load(record), place)
    typer.echo(f"report: {place}")
