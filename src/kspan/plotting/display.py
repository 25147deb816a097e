"""What displays share: how they look, on a screen and from a black-and-white printer.

A `Display` is a figure that can draw itself.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from kspan.figures.appearance import LIGHT, shorten
from kspan.records import FitRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

# What was found, what is proved, what it is compared with: see `kspan.figures.appearance`.
FOUND, PROVED, OTHER, BAND = (LIGHT[name] for name in ("accent", "ink", "other", "band"))

# Beside what it is about.
MIDDLE = "#8c8c8c"

SEQUENTIAL = "cividis"
THIN, NORMAL = 0.8, 1.6
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "*")
SMALL = 8.0  # points, of text inside the axes

# Bars of what the fit is compared with.
HATCHED: dict[str, Any] = {"facecolor": "white", "edgecolor": OTHER, "hatch": "////", "lw": THIN}

# Of a band, where no certificate bounds it.
UNPROVED: dict[str, Any] = {"facecolor": "none", "edgecolor": MIDDLE, "hatch": "////", "lw": 0}

# Of a feature's name; what is longer is cut in the middle.
LONGEST_NAME = 28


def label(name: Any, longest: int = LONGEST_NAME) -> str:
    r"""Return a name as it may be drawn: on one line, not too long, and not read as mathematics.

    Examples
    --------
    >>> label("cost in $ per\nday")
    'cost in \\$ per day'
    """
    return shorten(str(name), longest).replace("$", r"\$")


def diverging(cmap: "str | Colormap | None") -> "Colormap":
    """Return a colour map: that of signed loadings if None is asked for."""
    import matplotlib as mpl
    from matplotlib.colors import LinearSegmentedColormap

    if cmap is None:
        ends = [LIGHT[name] for name in ("negative", "zero", "positive")]
        return LinearSegmentedColormap.from_list("loadings", ends)
    return mpl.colormaps.get_cmap(cmap)


def name_rows(ax: "Axes", names: list[str]) -> None:
    """Write names beside rows, in small letters if there are many."""
    small = SMALL if len(names) > 12 else None
    ax.set_yticks(range(len(names)), [label(name) for name in names], fontsize=small)


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


class Display:
    """A figure of `kspan.figures`, to which it adds what matplotlib drew.

    Attributes
    ----------
    ax_, figure_ : axes and figure
    """

    # Which figure, and what it asks for beside a record or an estimator.
    figure_type: ClassVar[Any]
    asks: ClassVar[tuple[str, ...]] = ()

    ax_: "Axes"
    figure_: "Figure"

    __repr__ = object.__repr__  # a notebook need not show all the numbers

    @classmethod
    def from_figure(cls, figure: Any, *, ax: "Axes | None" = None, **kwargs: Any) -> Self:
        """Draw a figure of `kspan.figures`; else as `from_record`."""
        return cls(**vars(figure)).plot(ax, **kwargs)

    @classmethod
    def from_record(cls, record: FitRecord, *, ax: "Axes | None" = None, **kwargs: Any) -> Self:
        """Draw a saved fit.

        Parameters
        ----------
        record : FitRecord
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`, and what the class says under Other Parameters
        """
        asked = cls._asked(kwargs)
        return cls.from_figure(cls.figure_type.from_record(record, **asked), ax=ax, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        feature_names: Sequence[str] | None = None,
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator of kspan
        X : the data of the fit, for numbers that an estimator does not keep
        feature_names : names of all features, if the data has none
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`, and what the class says under Other Parameters
        """
        make, asked = cls.figure_type.from_estimator, cls._asked(kwargs)
        return cls.from_figure(
            make(estimator, X, feature_names=feature_names, **asked), ax=ax, **kwargs
        )

    @classmethod
    def _asked(cls, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Take from the keywords those that are not for `plot`."""
        return {name: kwargs.pop(name) for name in cls.asks if name in kwargs}

    def plot(self, *args: Any, **kwargs: Any) -> Self:
        """Draw."""
        raise NotImplementedError

    def _axes(self, ax: "Axes | None", size: tuple[float, float]) -> "Axes":
        """Return the axes to draw on, those of a new figure of that size in inches if None."""
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
        self.ax_, self.figure_ = ax, figure
        return ax
