"""``kspan demo``: real data in seconds, with the proof."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kspan.cli.errors import guarded

# Characters: of a component in the table, and of what stands beside all of them.
COLUMN, BESIDE = 8, 36


@guarded
def demo(
    n_components: Annotated[
        int, typer.Option("--components", "-m", min=1, max=64, help="Number of components.")
    ] = 5,
    n_features: Annotated[
        int, typer.Option("--features", "-k", min=1, max=64, help="Number of features to use.")
    ] = 16,
) -> None:
    """Fit real data in seconds, and prove it: the pixels of handwritten digits that matter most.

    The record goes to kspan-demo.kspan in this folder, or to a temporary one if that cannot be.

    Example: kspan demo -m 3 -k 10
    """
    from kspan.demo import DATA, run_demo, save_demo, verify_demo

    console = Console()
    if n_features < n_components:
        typer.echo(
            f"kspan: --features {n_features} must be at least --components {n_components}.",
            err=True,
        )
        raise typer.Exit(2)
    result = run_demo(n_components, n_features)

    console.print()
    console.print(
        f"[bold]{result.n_samples}[/] handwritten digits, [bold]{result.n_features}[/] pixels "
        f"each: PCA with [bold]{result.n_components}[/] components that may use only "
        f"[bold]{len(result.selected)}[/] of the pixels.\n"
    )

    chosen = Table(title="Chosen features and their loadings", title_justify="left")
    chosen.add_column("feature", style="bold")
    shown = min(result.n_components, max((console.width - BESIDE) // COLUMN, 1))
    for i in range(shown):
        chosen.add_column(f"PC{i + 1}", justify="right")
    for name, row in zip(result.selected, result.loadings, strict=True):
        chosen.add_row(name, *(f"{loading:+.2f}" for loading in row[:shown]))
    if shown < result.n_components:
        chosen.caption = f"the first {shown} of {result.n_components} components"

    picture = Text("\n").join(
        Text(" ").join(
            Text("■", style="bold green") if pixel else Text("·", style="dim") for pixel in row
        )
        for row in result.picture
    )
    # The picture stands beside the table when the terminal is wide enough, else below it.
    console.print(Columns([chosen, Panel(picture, title="where they are", expand=False)]))

    full = result.rivals[0].explained_variance
    compared = Table(title="Explained variance", title_justify="left")
    compared.add_column("method")
    for heading in ("features", "variance", "of all", "of plain PCA's"):
        compared.add_column(heading, justify="right")
    for rival in result.rivals:
        compared.add_row(
            rival.name,
            str(rival.n_features),
            f"{rival.explained_variance:.1f}",
            f"{rival.explained_variance / result.total_variance:.1%}",
            f"{rival.explained_variance / full:.1%}",
            style="bold green" if rival.name == "kspan" else None,
        )
    console.print(compared)
    console.print(
        f"\n{len(result.selected)} of {result.n_features} pixels can be chosen in "
        f"{result.n_choices:,} ways. After {result.seconds:.2f} s of search and proof:",
        highlight=False,
    )
    console.print(Text(result.proved, style="bold green"))

    place = save_demo(result.record)
    verify_demo(place)
    kspan = _command()
    console.print(
        "\nThe record of all this was saved, read again, and verified from the data alone:",
        highlight=False,
    )
    # Commands and places are to be copied: they are not wrapped.
    again = f"{kspan} verify {place} {DATA}"
    console.print(Text(f"  {place}"), soft_wrap=True)
    console.print("\nNext, with a file of your own, samples in rows:", highlight=False)
    for line in (
        f"{kspan} path yours.csv --components 3 --scale",
        f"{kspan} fit yours.csv --components 3 --scale --certify --out fit.kspan",
        f"{kspan} verify fit.kspan yours.csv",
    ):
        console.print(Text(f"  {line}", style="bold"), soft_wrap=True)
    console.print(Text(f"\n(This record again: {again})\n", style="dim"), soft_wrap=True)


def _command() -> str:
    """Return what to type for kspan: as it was typed, unless its name is enough."""
    typed = Path(sys.argv[0])
    return "kspan" if typed.stem != "kspan" or shutil.which("kspan") else str(typed)
