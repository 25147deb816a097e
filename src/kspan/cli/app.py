"""The commands, put together."""

from typing import Annotated

import typer

import kspan
from kspan.cli import datasets, demo, fit, path, report, transform, verify
from kspan.cli.options import ListsMethods

HELP = """Sparse PCA with proof: the k features that span the most variance.

DATA is a file with samples in rows and features in columns: CSV or TSV (also .gz), Excel, \
Parquet, NPY, NPZ, MatrixMarket, MAT, H5AD, HDF5 or zarr, a folder of 10x, or - for CSV or TSV on \
standard input. Or the name of a data set: see kspan datasets.
"""

EPILOG = (
    "Exit codes: 0 done; 1 a claim does not hold, or the work was interrupted; 2 wrong input. "
    "Example: kspan fit breast_cancer -m 3 -k 12 --scale --certify --report fit.html"
)

app = typer.Typer(
    help=HELP,
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command("fit", cls=ListsMethods)(fit.fit)
app.command("path")(path.path)
app.command("report")(report.report)
app.command("verify")(verify.verify)
app.command("transform")(transform.transform)
app.command("datasets")(datasets.datasets)
app.command("demo")(demo.demo)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kspan {kspan.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version),
    ] = False,
) -> None: ...


_common.__doc__ = HELP


def main() -> None:
    """Run the command line."""
    app()
