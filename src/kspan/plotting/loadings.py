"""`LoadingsDisplay`: which feature enters which component, and how."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from kspan.arrays import Index
from kspan.plotting.common import (
    DIVERGING,
    MINUS,
    SMALL,
    Fit,
    at_most,
    component_names,
    fit_of_estimator,
    fit_of_record,
    label,
    make_axes,
    signed,
)
from kspan.records import FitRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.text import Text

# With more components the cells are too narrow for numbers; signs take their place.
MOST_NUMBERS = 8


class LoadingsDisplay:
    """Heat map of the loadings, features in rows and components in columns.

    Features are grouped by the component in which they weigh most. A loading of zero is blank,
    every other one has its number or, with many components, its sign.

    Parameters
    ----------
    loadings : (k, m) array
    feature_names : k names

    Attributes
    ----------
    ax_, figure_ : axes and figure
    image_ : the heat map
    texts_ : list of what is written in the cells
    shown_ : rows of `loadings`, from top to bottom

    Examples
    --------
    >>> display = LoadingsDisplay(
    ...     loadings=[[0.6, 0.0], [0.0, 1.0], [0.8, 0.0]], feature_names=["a", "b", "c"]
    ... )
    >>> display.order()
    array([2, 0, 1])
    """

    ax_: "Axes"
    figure_: "Figure"
    image_: "AxesImage"
    texts_: "list[Text]"
    shown_: Index

    def __init__(self, *, loadings: ArrayLike, feature_names: Sequence[str]):
        self.loadings = np.asarray(loadings, dtype=np.float64)
        self.feature_names = list(feature_names)

    @classmethod
    def from_record(cls, record: FitRecord, *, ax: "Axes | None" = None, **kwargs: Any) -> Self:
        """Draw the loadings of a saved fit.

        Parameters
        ----------
        record : FitRecord
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        return cls._from_fit(fit_of_record(record)).plot(ax, **kwargs)

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
        """Draw the loadings of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator of kspan
        X : not needed
        feature_names : names of all features, if the data had none
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        return cls._from_fit(fit_of_estimator(estimator, feature_names)).plot(ax, **kwargs)

    @classmethod
    def _from_fit(cls, fit: Fit) -> Self:
        return cls(loadings=fit.loadings, feature_names=fit.names)

    def order(self, max_features: int = 40) -> Index:
        """Return the rows to show: those with the largest loadings, grouped by component."""
        sizes = np.abs(self.loadings)
        kept = np.argsort(-np.linalg.norm(sizes, axis=1), kind="stable")[:max_features]
        kept = np.sort(kept)
        most = sizes[kept]
        return kept[np.lexsort((-most.max(axis=1), most.argmax(axis=1)))]

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        max_features: int = 40,
        cmap: str = DIVERGING,
        colorbar: bool = True,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : where to draw; a new figure by default
        max_features : the most rows; those with the largest loadings are shown
        cmap : a diverging colour map
        colorbar : whether to draw a colour bar
        """
        if max_features < 1:
            raise ValueError(f"max_features must be at least 1, got {max_features}.")
        self.shown_ = self.order(max_features)
        table = self.loadings[self.shown_]
        rows, m = table.shape
        self.ax_, self.figure_ = ax, figure = make_axes(
            ax, (3.2 + 0.65 * m, max(2.4, 1.0 + 0.24 * rows))
        )
        largest = float(np.abs(table).max()) or 1.0
        self.image_ = ax.imshow(
            np.ma.masked_equal(table, 0.0), cmap=cmap, vmin=-largest, vmax=largest, aspect="auto",
            interpolation="nearest",
        )  # fmt: skip
        self.texts_ = self._write(ax, table, largest)
        ax.set_xticks(range(m), component_names(m))
        ax.set_yticks(
            range(rows), [label(self.feature_names[row]) for row in self.shown_],
            fontsize=SMALL if rows > 12 else None,
        )  # fmt: skip
        # Thin lines between the cells tell a blank one from its neighbours.
        ax.set_xticks(np.arange(m + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="0.85", lw=0.6)
        ax.tick_params(which="both", length=0)
        ax.spines[:].set_visible(False)
        ax.set(
            xlabel="component",
            ylabel=f"feature{at_most(rows, len(self.loadings), 'with the largest loadings')}",
        )
        if colorbar:
            figure.colorbar(self.image_, ax=ax, label="loading (blank: 0)", shrink=0.9)
        return self

    def _write(self, ax: "Axes", table: Any, largest: float) -> "list[Text]":
        """Write numbers, or signs when there is no room, into the cells that are not zero."""
        numbers = table.shape[1] <= MOST_NUMBERS
        size = SMALL if len(table) <= 25 else SMALL - 1
        return [
            ax.text(
                j, i, signed(table[i, j]) if numbers else MINUS if table[i, j] < 0 else "+",
                ha="center", va="center", fontsize=size,
                color="white" if abs(table[i, j]) > 0.62 * largest else "black",
            )
            for i, j in np.argwhere(table != 0)
        ]  # fmt: skip
