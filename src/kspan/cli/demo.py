"""``kspan demo``: real data in seconds."""

from typing import Annotated

import typer
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kspan.cli.errors import guarded


@guarded
def demo(
    n_components: Annotated[
        int, typer.Option("--components", "-m", min=1, max=64, help="Number of components.")
    ] = 5,
    n_features: Annotated[
        int, typer.Option("--features", "-k", min=1, max=64, help="Number of features to use.")
    ] = 16,
) -> None:
    """Fit real data in seconds: the pixels of handwritten digits that matter most.

    Example: kspan demo -m 3 -k 10
    """
    from kspan.demo import run_demo

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
    for i in range(result.n_components):
        chosen.add_column(f"PC{i + 1}", justify="right")
    for name, row in zip(result.selected, result.loadings, strict=True):
        chosen.add_row(name, *(f"{loading:+.2f}" for loading in row))

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
    console.print(f"\nFitted in {result.seconds:.2f} s.\n")
