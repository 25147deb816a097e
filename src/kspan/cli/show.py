"""What a record looks like: tables for people, JSON for machines, CSV for spreadsheets."""

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kspan.cards import signed, unsigned_zero
from kspan.storage import replacing

if TYPE_CHECKING:
    from kspan.records import FitRecord

# A table on the screen shows no more features; --csv, --json and the report have all.
MOST_ROWS = 40


def write_json(value: Any) -> None:
    """Write to standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def write_csv(record: "FitRecord", path: Path) -> None:
    """Write the chosen features and their loadings, in full precision."""
    axes = [f"PC{j + 1}" for j in range(record.n_components)]
    rows = [
        [name, int(place), *(repr(float(number) + 0.0) for number in loadings)]
        for name, place, loadings in zip(
            record.selected_names, record.support, record.loadings, strict=True
        )
    ]
    write_rows(path, ["feature", "index", *axes], rows)


def write_rows(path: Path, header: list[str], rows: list[list[Any]]) -> None:
    """Write a table as CSV, whole or not at all."""
    with replacing(path) as file:
        file.write(csv_text(header, rows).encode())


def csv_text(header: list[str], rows: list[list[Any]]) -> str:
    """Return a table as CSV."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def print_fit(record: "FitRecord", files: dict[str, str]) -> None:
    """Write to the screen what was found, and how good it is."""
    from kspan.report.wording import question, told

    console = Console()
    console.print()
    rows = "a covariance" if record.n_samples is None else f"{record.n_samples:,} samples"
    console.print(
        Text.assemble(
            (record.source, "bold"), f": {rows}, {record.n_features:,} features. ",
            (str(record.support.size), "bold"), " chosen for ",
            (str(record.n_components), "bold"),
            f" component{'s' if record.n_components > 1 else ''}.",
        )
    )  # fmt: skip
    console.print(Text(question(record)))
    for line in record.remarks():
        console.print(Text(line))
    console.print()
    console.print(_loadings(record))
    hidden = record.support.size - MOST_ROWS
    if hidden > 0:
        console.print(f"and {hidden} more; --csv, --json and --report have them all", style="dim")
    console.print(_variances(record))
    console.print()
    for line in told(record):
        console.print(Text(line))
    console.print()
    for line in verdict(record):
        console.print(Text(line))
    if record.is_row_sparse and not record.tells_all and record.support.size < record.n_features:
        console.print(
            Text("For features that tell the most about all others: --criterion represent."),
            style="dim",
        )
    for what, place in files.items():
        console.print(Text(f"{what}: {place}"))
    if record.seconds is not None:
        console.print(f"Fitted in {record.seconds:.2f} s by {record.solver}.", style="dim")


def verdict(record: "FitRecord") -> list[str]:
    """Say in words how good the choice is."""
    if not record.certificates:
        if record.is_asked_to_prove:
            return [f"Nothing is proved: the fit ended before a proof was begun ({record.status})."]
        if record.is_provable:
            return ["How close to the best possible choice this is: ask with --certify."]
        return [
            "Where a penalty says how sparse the components are there is no proof: give -k, "
            "--counts or --total, and --certify."
        ]
    lines = []
    for j, proof in enumerate(record.certificates):
        best = "the best possible"
        what = "Choice:"
        if record.tells_all:
            what, best = "Choice: tells", "what the best one could tell"
        if not record.is_row_sparse:
            # The table has other numbers: what components share is left out there.
            about = record.proof_is_about(j)
            of = "" if record.is_joint and record.n_components > 1 else "variance "
            what = f"{about[0].upper()}{about[1:]}: {of}{proof.lower:.5g},"
        if proof.status.value == "optimal":
            line = f"{what.removesuffix(' tells')} proved optimal."
        else:
            line = f"{what} at least {1 - proof.gap:.2%} of {best}, proved. {proof.advice}"
        if proof.confidence < 1:
            line += f" With probability {proof.confidence:.4g}."
        lines.append(line)
    return lines


def _loadings(record: "FitRecord") -> Table:
    table = Table(title="Chosen features and their loadings", title_justify="left")
    table.add_column("feature", style="bold", overflow="fold")
    for j in range(record.n_components):
        table.add_column(f"PC{j + 1}", justify="right")
    order = np.argsort(-(record.loadings**2).sum(axis=1), kind="stable")[:MOST_ROWS]
    names = record.selected_names
    for row in order:
        numbers = (signed(value) if value else "·" for value in record.loadings[row])
        table.add_row(Text(names[row]), *numbers)
    return table


def _variances(record: "FitRecord") -> Table:
    title = "Variance told of all features" if record.tells_all else "Explained variance"
    if not record.is_row_sparse and record.n_components > 1:
        title += ": what each component adds to those before it"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for j in range(record.n_components):
        table.add_column(f"PC{j + 1}", justify="right")
    table.add_column("sum", justify="right")
    table.add_column("of all", justify="right")
    total = record.total_variance
    size = record.support.size
    lines = [(f"{size} feature{'s' if size > 1 else ''}", record.explained_variance)]
    if record.pca_variance is not None:
        lines.append((f"plain PCA, {record.n_features:,} features", record.pca_variance))
    for name, values in lines:
        cells = [unsigned_zero(f"{value:.4g}") for value in (*values, values.sum())]
        table.add_row(name, *cells, f"{values.sum() / total:.1%}")
    return table
