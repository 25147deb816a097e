"""``kspan path``: what every number of features would explain, and which to take."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from kspan.cli import options
from kspan.cli.checks import check_numbers, check_sizes
from kspan.cli.errors import FAILED, check_outputs, complain, guarded, require
from kspan.cli.inputs import Reading, Rules, feature_places, load_table, reads_file, watched
from kspan.cli.options import Estimator
from kspan.cli.progress import Watcher


@guarded
@reads_file
def path(
    data: options.Data,
    n_components: options.Components = 2,
    ks: Annotated[
        str | None,
        typer.Option("--features", "-k", help="Numbers of features: 5,10,20 or 2:40 or 2:40:4."),
    ] = None,
    share: Annotated[
        float, typer.Option(help="Of what plain PCA explains, to be kept by the suggestion.")
    ] = 0.9,
    estimator: Annotated[
        Estimator,
        typer.Option(
            help="features: all components share k features. The others have k features in each "
            "component: nonnegative, orthonormal, or separate (one after the other).",
        ),
    ] = Estimator.FEATURES,
    disjoint: Annotated[
        bool,
        typer.Option("--disjoint", help="Orthonormal: no two components share a feature."),
    ] = False,
    criterion: options.Question = options.Criterion.VARIANCE,
    ridge: options.Ridge = None,
    scale: options.Scale = False,
    precomputed: options.Precomputed = False,
    missing: options.MissingRule = options.Missing.RAISE,
    psd: options.PsdRule = options.Psd.MEND,
    include: options.Include = None,
    exclude: options.Exclude = None,
    seed: options.Seed = 0,
    time_limit: options.TimeLimit = None,
    certify: Annotated[
        bool,
        typer.Option(
            "--certify/--no-certify", help="Prove what no choice can exceed.",
            rich_help_panel=options.PROVING,
        ),
    ] = True,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw it: PNG, PDF or SVG.", rich_help_panel=options.WRITING),
    ] = None,
    csv: options.Table = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
    *,
    rules: Rules,
    how: Reading,
) -> None:  # fmt: skip
    """Show what m components explain with every number of features, and suggest one.

    For example:

      kspan path expression.csv -m 3

      kspan path breast_cancer -m 3 --scale --plot path.png

      kspan path wine -m 2 --scale --estimator orthonormal
    """
    import kspan

    rules.require_shared(estimator)
    rules.require_whole()
    if disjoint and estimator is not Estimator.ORTHONORMAL:
        raise ValueError(f"--disjoint needs --estimator {Estimator.ORTHONORMAL}.")
    if (include or exclude) and estimator is not Estimator.FEATURES:
        raise ValueError(f"--include and --exclude need --estimator {Estimator.FEATURES}.")
    check_numbers(
        share=share, time_limit=time_limit, max_correlation=rules.max_correlation,
        budget=rules.budget,
    )  # fmt: skip
    numbers = _numbers(ks)
    sizes = partial(check_sizes, estimator, n_components, numbers or ())
    sizes()
    asked_for = options.asked_for(criterion, ridge, estimator)
    if plot is not None:
        require("matplotlib", extra="plot", what="--plot")
        if plot.suffix.lower() not in (".png", ".pdf", ".svg"):
            raise ValueError(f"--plot {plot}: the ending must be .png, .pdf or .svg.")
    check_outputs(plot, csv, source=data)
    with Watcher(quiet) as watcher:
        watcher.stage(f"reading {data}")
        table, is_covariance, weights = load_table(
            data, how, quiet=quiet, as_json=as_json, precomputed=precomputed,
            allow_missing=missing is not options.Missing.RAISE,
        )  # fmt: skip
        sizes(n_features=table.X.shape[1], source=table.source)
        found = kspan.sparsity_path(
            watched(table.X, watcher.on_rows),
            n_components,
            estimator=str(estimator),
            disjoint=disjoint,
            ks=numbers,
            include=feature_places(include, "--include", table),
            exclude=feature_places(exclude, "--exclude", table),
            panel=kspan.Panel(**rules.parameters(table)),
            scale=scale,
            covariance="precomputed" if is_covariance else None,
            sample_weight=weights,
            missing=str(missing),
            psd="raise" if psd is options.Psd.RAISE else "mend",
            certify=certify,
            random_state=seed,
            time_limit=time_limit,
            callback=watcher.on_step,
            **asked_for,
        )
        suggestion = kspan.suggest_k(found, share=share)
        if plot is not None:
            _draw(found, suggestion.k, plot)
    rows = found.rows()
    if csv is not None:
        from kspan.cli.show import write_rows

        write_rows(csv, list(rows[0]), [list(row.values()) for row in rows])
    if as_json:
        from kspan.cli.show import write_json

        _add_features(rows, found, table.feature_names)
        advice = {"k": suggestion.k, "reasons": suggestion.reasons}
        asked = {"estimator": str(estimator)}
        write_json({**asked, "path": rows, "status": found.status, "suggestion": advice})
    else:
        _print(found, rows, suggestion)
    if found.status in ("interrupted", "time limit"):
        complain(f"{found.status}: this is what was done by then")
    if found.status == "interrupted":
        raise typer.Exit(FAILED)


def _numbers(text: str | None) -> list[int] | None:
    """Read ``5,10,20``, ``2:40`` or ``2:40:4``; ranges include their end."""
    if text is None:
        return None
    found: list[int] = []
    try:
        for part in text.split(","):
            first, last, step = _range(*(int(number) for number in part.split(":")))
            found += range(first, last + 1, step)
    except (TypeError, ValueError):
        found = []
    if not found:
        raise ValueError(f"--features {text!r}: give numbers as in 5,10,20 or 2:40 or 2:40:4.")
    return sorted(set(found))


def _range(first: int, last: int | None = None, step: int = 1) -> tuple[int, int, int]:
    return first, first if last is None else last, step


def _add_features(rows: list[dict[str, Any]], found: Any, names: Sequence[str] | None) -> None:
    """Add the features of every k, and those of each component if it has its own."""
    for place, (row, support) in enumerate(zip(rows, found.supports, strict=True)):
        named = [names[j] if names else int(j) for j in support]
        row["selected"] = named
        if found.kind != Estimator.FEATURES:
            row["components"] = [
                [name for name, weight in zip(named, column, strict=True) if weight]
                for column in found.loadings[place].T
            ]


def _print(found: Any, rows: list[dict[str, Any]], suggestion: Any) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from kspan.report.wording import told_along

    console = Console()
    what = f"{found.measured[0].upper()}{found.measured[1:]}"
    table = Table(
        title=f"{what} by number of {found.counted}", title_justify="left",
        padding=(0, 1 if len(rows[0]) <= 7 else 0),  # that it fits on a narrow screen
    )  # fmt: skip
    for column in rows[0]:
        heading = HEADINGS.get(column, column.replace("_", " of "))
        table.add_column(heading, justify="right", min_width=max(map(len, heading.split())))
    for row in rows:
        chosen = row["features"] == suggestion.k
        cells = [_cell(column, value) for column, value in row.items()]
        table.add_row(*cells, style="bold green" if chosen else None)
    console.print(table)
    if found.represented is not None:
        console.print(Text(told_along(found)))
    if not found.is_bounded:
        console.print(
            "Each gap is proved of one component, given those before it; of what they explain "
            "together nothing is proved."
        )
    console.print(f"\nSuggested: [bold]{suggestion.k}[/] {found.counted}.")
    for reason in suggestion.reasons:
        console.print(Text(f"- {reason}"))


# What the columns of a path are called on the screen.
HEADINGS = {
    "features": "features",
    "explained_variance": "variance",
    "variance_sum": "variances",
    "variance_told": "told",
    "share_of_pca": "of plain PCA's",
    "represented": "scores tell",
    "panel": "features tell",
    "at_most": "at most",
    "gap": "gap",
}


def _cell(column: str, value: Any) -> str:
    if value is None:
        return "not proved"
    if column == "features":
        return str(value)
    if column in ("represented", "panel"):
        return f"{value:.1%}"
    return f"{value:.2%}" if column.startswith(("gap", "share")) else f"{value:.4g}"


def _draw(found: Any, k: int, place: Path) -> None:
    from matplotlib.figure import Figure

    from kspan.plotting import PathDisplay
    from kspan.storage import replacing

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    PathDisplay.from_path(found, chosen=k, ax=figure.subplots())
    with replacing(place) as file:
        figure.savefig(file, format=place.suffix[1:].lower(), dpi=150)
