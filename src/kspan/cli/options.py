"""Options that commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

DATA_HELP = (
    "A file with samples in rows and features in columns, - for standard input, or the name of a "
    "data set."
)

READING = "Reading the file"
PANEL = "Which features go together"
PROVING = "Proof"
WRITING = "Output"

Data = Annotated[str, typer.Argument(help=DATA_HELP, show_default=False)]

Transpose = Annotated[
    bool,
    typer.Option(
        "--transpose", "-t", help="Features are in rows, as in most tables of genes.",
        rich_help_panel=READING,
    ),
]  # fmt: skip
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="Between cells of a text file: a character, 'tab' or 'whitespace'. Detected.",
        rich_help_panel=READING,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", help="Whether the first line has names. Detected.",
        rich_help_panel=READING, show_default=False,
    ),
]  # fmt: skip
IndexColumn = Annotated[
    str | None,
    typer.Option(
        "--index", metavar="COLUMN", rich_help_panel=READING, show_default=False,
        help="The column that names the rows, by its name. Detected, if it is the first.",
    ),
]  # fmt: skip
NoIndex = Annotated[
    bool, typer.Option("--no-index", help="No column names the rows.", rich_help_panel=READING)
]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", rich_help_panel=READING,
        help="To which class each sample belongs, in words or numbers: pictures are coloured by "
        "it. A column of the table (then no feature), or of .obs of an H5AD file, or a file with a "
        "label for each sample.",
    ),
]  # fmt: skip
Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN", rich_help_panel=READING,
        help="A column that is no feature, whatever it holds; several as in id,date. May be "
        "repeated.",
    ),
]  # fmt: skip
Key = Annotated[
    str | None,
    typer.Option(
        help="Which table of an NPZ, MAT, HDF5 or zarr file, or sheet of an Excel file.",
        rich_help_panel=READING,
    ),
]
Layer = Annotated[
    str | None, typer.Option(help="Which layer of an H5AD file.", rich_help_panel=READING)
]

Components = Annotated[int, typer.Option("--components", "-m", min=1, help="Number of components.")]


def components_or_share(text: str) -> int | float:
    """Read a number of components, or a share of the variance between 0 and 1."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if 0 < number < 1:
        return number
    if number < 1 or not number.is_integer():
        raise typer.BadParameter(f"{text!r} is neither a whole number nor between 0 and 1.")
    return int(number)


ComponentsOrShare = Annotated[
    Any,
    typer.Option(
        "--components", "-m", parser=components_or_share, metavar="M|SHARE",
        help="Number of components; or, as in 0.9, as many as plain PCA needs for that share of "
        "the variance.",
    ),
]  # fmt: skip
Scale = Annotated[
    bool, typer.Option("--scale", help="Divide every feature by its standard deviation.")
]
Precomputed = Annotated[
    bool, typer.Option("--precomputed", help="The table is a covariance matrix, not data.")
]
Weights = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", rich_help_panel=READING,
        help="What each sample counts: a column of the table (then no feature), or of .obs of an "
        "H5AD file, or a file with one number for each sample.",
    ),
]  # fmt: skip


class Missing(StrEnum):
    """What to do about missing values."""

    RAISE = "raise"
    MEAN = "mean"
    PAIRWISE = "pairwise"


class Psd(StrEnum):
    """What to do about a matrix that is not positive semidefinite."""

    MEND = "mend"
    RAISE = "raise"


MissingRule = Annotated[
    Missing,
    typer.Option(
        "--missing", rich_help_panel=READING,
        help="Missing values: refuse them (raise), take the mean of their column, or compute every "
        "covariance from the rows that have both features (pairwise).",
    ),
]  # fmt: skip
PsdRule = Annotated[
    Psd,
    typer.Option(
        "--psd",
        help="A covariance matrix that is not positive semidefinite, as printed with few digits: "
        "make up for it in the bounds (mend), or refuse it (raise).",
    ),
]
Include = Annotated[
    list[str] | None,
    typer.Option(help="A feature that must be chosen, by name or index. May be repeated."),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(help="A feature that must not be chosen, by name or index. May be repeated."),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", rich_help_panel=PANEL,
        help="The group of each feature: a file with a name and a group in each line, or a column "
        "of .var of an H5AD file. Needs --together or --max-per-group.",
    ),
]  # fmt: skip
Together = Annotated[
    bool,
    typer.Option("--together", help="Choose whole groups.", rich_help_panel=PANEL),
]
NGroups = Annotated[
    int | None,
    typer.Option("--n-groups", min=1, help="The most whole groups.", rich_help_panel=PANEL),
]
MaxPerGroup = Annotated[
    int | None,
    typer.Option(
        "--max-per-group", min=1, help="The most features of each group.", rich_help_panel=PANEL
    ),
]
Costs = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", rich_help_panel=PANEL,
        help="What each feature costs: a file with a name and a price in each line, or a column of "
        ".var of an H5AD file. Needs --budget.",
    ),
]  # fmt: skip
Budget = Annotated[
    float | None,
    typer.Option(help="What all chosen features may cost together.", rich_help_panel=PANEL),
]
MaxCorrelation = Annotated[
    float | None,
    typer.Option(
        "--max-correlation", rich_help_panel=PANEL,
        help="No two chosen features are correlated more than this.",
    ),
]  # fmt: skip
Seed = Annotated[int, typer.Option(help="The same seed gives the same answer.", min=0)]
TimeLimit = Annotated[
    float | None, typer.Option(help="Seconds after which to stop with the best so far.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", help="Workers for searches, proofs and resamples; -1 for all cores.",
        show_default="1",
    ),
]  # fmt: skip
AsJson = Annotated[
    bool, typer.Option("--json", help="Write JSON to standard output.", rich_help_panel=WRITING)
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show no progress.", rich_help_panel=WRITING)
]
Table = Annotated[
    Path | None,
    typer.Option("--csv", help="Write the table as CSV.", rich_help_panel=WRITING),
]


class Estimator(StrEnum):
    """Which problem to solve."""

    FEATURES = "features"
    NONNEGATIVE = "nonnegative"
    ORTHONORMAL = "orthonormal"
    SEPARATE = "separate"


class Criterion(StrEnum):
    """What features are chosen for."""

    VARIANCE = "variance"
    REPRESENT = "represent"


Question = Annotated[
    Criterion,
    typer.Option(
        "--criterion",
        help="variance: features whose components have the most variance of their own. represent: "
        "features that tell the most about all of them.",
    ),
]
Ridge = Annotated[
    float | None,
    typer.Option(
        min=0.0, show_default="1e-5",
        help="Of represent: noise of each chosen feature, as a share of its variance.",
    ),
]  # fmt: skip

Solver = Annotated[
    str | None,
    typer.Option(help="Method, by name.", metavar="NAME", show_default="the estimator's own"),
]


class ListsMethods(TyperCommand):
    """A command with --solver. Its names are looked up when help is shown: that takes a second."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help, with the names of all methods."""
        from kspan.method_tables import KINDS, method_names

        kinds = ("row-sparse", "nonnegative", "stiefel", "element-sparse")
        listed = [
            *zip(Estimator, kinds, strict=True),
            (f"criterion {Criterion.REPRESENT}", "represent"),
        ]
        names = "; ".join(f"{who}: {', '.join(method_names(KINDS[kind]))}" for who, kind in listed)
        for param in self.params:
            if param.name == "solver":
                param.help = f"Method, by name. {names}."  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


class Level(StrEnum):
    """How hard to try to prove."""

    FAST = "fast"
    TIGHT = "tight"
    EXACT = "exact"


def asked_for(criterion: Criterion, ridge: float | None, estimator: Estimator) -> dict[str, Any]:
    """Return what is asked of shared features, as parameters; `ValueError` if it has no place."""
    if criterion is Criterion.VARIANCE:
        if ridge is not None:
            raise ValueError(f"--ridge needs --criterion {Criterion.REPRESENT}.")
        return {}
    if estimator is not Estimator.FEATURES:
        raise ValueError(f"--criterion {criterion} needs --estimator {Estimator.FEATURES}.")
    return {"criterion": str(criterion), "ridge": ridge}
