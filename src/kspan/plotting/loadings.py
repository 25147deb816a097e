"""`LoadingsDisplay`: which feature enters which component, and how."""

from typing import TYPE_CHECKING, Self

import numpy as np

from kspan.arrays import FloatArray
from kspan.figures import LoadingsFigure
from kspan.figures.appearance import MINUS, component_names, signed
from kspan.figures.components import MOST_FEATURES
from kspan.plotting import display
from kspan.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.text import Text

# With more components the cells are too narrow for numbers; signs take their place.
MOST_NUMBERS = 8


class LoadingsDisplay(Display, LoadingsFigure):
    """Heat map of the loadings, features in rows and components in columns.

    Features are grouped by the component in which they weigh most. A loading of zero is blank,
    every other one has its number or, with many components, its sign.

    Parameters are those of `kspan.figures.LoadingsFigure`.

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

    figure_type = LoadingsFigure

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        max_features: int = MOST_FEATURES,
        cmap: "str | Colormap | None" = None,
        colorbar: bool = True,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : where to draw; a new figure by default
        max_features : the most rows; those with the largest loadings are shown
        cmap : a diverging colour map; by default positive is blue and negative brown
        colorbar : whether to draw a colour bar
        """
        self.shown_ = self.order(max_features)
        table = self.loadings[self.shown_]
        rows, m = table.shape
        ax = self._axes(ax, (3.2 + 0.65 * m, max(2.4, 1.0 + 0.24 * rows)))
        largest = float(np.abs(table).max()) or 1.0
        self.image_ = ax.imshow(
            np.ma.masked_equal(table, 0.0), cmap=display.diverging(cmap), vmin=-largest,
            vmax=largest,
            aspect="auto", interpolation="nearest",
        )  # fmt: skip
        self.texts_ = self._write(ax, table)
        ax.set_xticks(range(m), component_names(m))
        display.name_rows(ax, [self.feature_names[row] for row in self.shown_])
        # Thin lines between the cells tell a blank one from its neighbours.
        ax.set_xticks(np.arange(m + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="0.85", lw=0.6)
        ax.tick_params(which="both", length=0)
        ax.spines[:].set_visible(False)
        every = len(self.loadings)
        ax.set(
            xlabel="component",
            ylabel=f"feature{display.at_most(rows, every, 'with the largest loadings')}",
        )
        if colorbar:
            self.figure_.colorbar(self.image_, ax=ax, label="loading (blank: 0)", shrink=0.9)
        return self

    def _write(self, ax: "Axes", table: FloatArray) -> "list[Text]":
        """Write numbers, or signs when there is no room, into the cells that are not zero."""
        numbers = table.shape[1] <= MOST_NUMBERS
        size = display.SMALL if len(table) <= 25 else display.SMALL - 1
        lightness = self.image_.to_rgba(table)[..., :3] @ [0.3, 0.59, 0.11]
        return [
            ax.text(
                j, i, signed(table[i, j], 2) if numbers else MINUS if table[i, j] < 0 else "+",
                ha="center", va="center", fontsize=size,
                color="white" if lightness[i, j] < 0.45 else "black",
            )
            for i, j in np.argwhere(table != 0)
        ]  # fmt: skip
