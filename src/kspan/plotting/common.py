"""What all displays share: axes, labels, and a style that survives a black-and-white printer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from kspan.arrays import FloatArray, Index
from kspan.records import FitRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Dark, middle and light, so that they stay apart without colour.
INK, ACCENT, MIDDLE, LIGHT = "#14507d", "#d55e00", "#8c8c8c", "#dcdcdc"

# Blue to red through white: both ends are dark, so that a sign needs a mark as well.
DIVERGING = "RdBu_r"
SEQUENTIAL = "cividis"

THIN, NORMAL, THICK = 0.8, 1.6, 3.0
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "*")
HATCH = "////"
SMALL = 8.0  # points, of text inside the axes
MINUS = "\N{MINUS SIGN}"

# Of a feature's name; what is longer is cut in the middle.
LONGEST_NAME = 28


@dataclass(frozen=True)
class Fit:
    """The part of a fit that pictures are about.

    Attributes
    ----------
    support : (k,) places of the features that are used
    loadings : (k, m) array
    names : their names, or their places if they have none
    n_features : of the data
    """

    support: Index
    loadings: FloatArray
    names: list[str]
    n_features: int


def fit_of_record(record: FitRecord) -> Fit:
    """Return support, loadings and names of a saved fit."""
    return Fit(record.support, record.loadings, record.selected_names, record.n_features)


def fit_of_estimator(estimator: Any, feature_names: Sequence[str] | None = None) -> Fit:
    """Return support, loadings and names of a fitted estimator.

    Parameters
    ----------
    estimator : fitted estimator of kspan
    feature_names : names of all features, if the data had none
    """
    check_is_fitted(estimator)
    support = estimator.get_support(indices=True)
    names = getattr(estimator, "feature_names_in_", feature_names)
    d = estimator.components_.shape[1]
    if names is not None and len(names) != d:
        raise ValueError(f"There are {len(names)} feature_names for {d} features.")
    return Fit(
        support,
        estimator.components_[:, support].T.astype(np.float64),
        [str(place) if names is None else str(names[place]) for place in support],
        d,
    )


def record_of(
    estimator: Any, X: Any, needs: str, *, feature_names: Sequence[str] | None = None
) -> FitRecord:
    """Return the record of a fitted estimator and its data.

    Parameters
    ----------
    estimator : fitted estimator of kspan
    X : the data of the fit
    needs : what the picture needs the data for, as in "what plain PCA explains"
    feature_names : names of all features, if the data has none
    """
    check_is_fitted(estimator)
    if X is None:
        raise ValueError(
            f"An estimator does not keep {needs}: pass the data of the fit as X, or use "
            "from_record."
        )
    return FitRecord.from_estimator(estimator, X, feature_names=feature_names)


def make_axes(ax: "Axes | None", size: tuple[float, float]) -> "tuple[Axes, Figure]":
    """Return the axes to draw on and their figure; a new one, of that size in inches, if None."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Displays are drawn by matplotlib, which is not there: pip install "kspan[plot]"'
        ) from error
    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    figure = ax.get_figure(root=True)
    assert figure is not None
    return ax, figure


def shorten(name: str, longest: int = LONGEST_NAME) -> str:
    """Cut a long name in the middle, where names differ least.

    Examples
    --------
    >>> shorten("mean concave points", 11)
    'mean …oints'
    """
    if len(name) <= longest:
        return name
    tail = (longest - 1) // 2
    return f"{name[: longest - 1 - tail]}…{name[len(name) - tail :]}"


def label(name: Any, longest: int = LONGEST_NAME) -> str:
    r"""Return a name as it may be drawn: on one line, not too long, and not read as mathematics.

    Examples
    --------
    >>> label("cost in $ per\nday")
    'cost in \\$ per day'
    """
    return shorten(" ".join(str(name).split()), longest).replace("$", r"\$")


def component_names(m: int) -> list[str]:
    """Return PC1, PC2 and so on."""
    return [f"PC{j + 1}" for j in range(m)]


def signed(value: float) -> str:
    """Write a loading, with its sign."""
    return f"{value:+.2f}".replace("-", MINUS)


def spread(places: FloatArray, gap: float) -> FloatArray:
    """Move labels apart: the nearest places that are in the same order and at least `gap` apart.

    Parameters
    ----------
    places : where they should be
    gap : the smallest distance between two of them

    Examples
    --------
    >>> spread(np.array([5.0, 1.0, 1.0]), 1.0)
    array([5. , 0.5, 1.5])
    """
    if places.size < 2:
        return places.astype(np.float64)
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(places.size)
    moved = np.empty(places.size)
    moved[order] = isotonic_regression(places[order] - steps).x + steps
    return moved


def points_of(ax: "Axes") -> tuple[float, float]:
    """Return width and height of the axes in points, for distances between labels."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    box = ax.get_window_extent()
    return max(box.width * 72 / figure.dpi, 1.0), max(box.height * 72 / figure.dpi, 1.0)


def percent_axis(axis: Any) -> None:
    """Write the ticks of an axis as percentages."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{round(100 * share, 6):g}%"))


def at_most(count: int, total: int, what: str = "features") -> str:
    """Say how many are shown when it is not all of them."""
    return "" if count >= total else f" ({count} of {total} {what})"


def bare(ax: "Axes") -> None:
    """Take away the frame's upper and right side, which say nothing."""
    ax.spines[["top", "right"]].set_visible(False)
