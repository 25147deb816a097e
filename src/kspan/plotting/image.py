"""`ImageDisplay`: components of pixels, as pictures."""

from typing import TYPE_CHECKING, Self

import numpy as np

from kspan.arrays import Mask
from kspan.figures import ImageFigure
from kspan.figures.appearance import component_names
from kspan.plotting import display
from kspan.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap


class ImageDisplay(Display, ImageFigure):
    """Components as images, and the pixels that they use.

    One colour scale for all, centred at zero; negative pixels are hatched, so that the sign is seen
    without colour. The last panel shows the pixels that any component uses, in black.

    Parameters are those of `kspan.figures.ImageFigure`; `from_record` and `from_estimator` ask for
    `image_shape`, the numbers of rows and columns.

    Attributes
    ----------
    ax_, figure_ : axes that hold everything, and figure
    axes_ : (m + 1,) array of the panels
    images_ : list of the m images
    support_ : the image of the support
    colorbar_ : the shared colour bar

    Examples
    --------
    >>> display = ImageDisplay(components=[[0.0, 0.6, -0.8, 0.0]], image_shape=(2, 2))
    >>> display.support
    array([[False,  True],
           [ True, False]])
    """

    figure_type = ImageFigure
    asks = ("image_shape",)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        n_columns: int | None = None,
        cmap: "str | Colormap | None" = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : where to draw, all panels inside it; a new figure by default
        n_columns : panels in a row; four, or fewer for few components
        cmap : a diverging colour map; by default positive is blue and negative brown
        """
        components, support = self.components, self.support
        m = len(components)
        *panels, last = self._panels(ax, m + 1, n_columns)
        colours, largest = display.diverging(cmap), float(np.abs(components).max()) or 1.0
        self.images_ = []
        for panel, image, name in zip(panels, components, component_names(m), strict=True):
            self.images_.append(
                panel.imshow(
                    image, cmap=colours, vmin=-largest, vmax=largest, interpolation="nearest"
                )
            )
            _hatch(panel, image < 0)
            panel.set_title(f"{name}: {np.count_nonzero(image)} pixels", fontsize=display.SMALL + 1)
        self.support_ = last.imshow(support, cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
        used = np.count_nonzero(support)
        last.set_title(f"used: {used} of {support.size}", fontsize=display.SMALL + 1)
        scale = self.ax_.inset_axes((0.9, 0.08, 0.025, 0.8))
        self.colorbar_ = self.figure_.colorbar(self.images_[0], cax=scale)
        negative = " (hatched: negative)" if (components < 0).any() else ""
        self.colorbar_.set_label(f"loading{negative}", fontsize=display.SMALL)
        return self

    def _panels(self, ax: "Axes | None", count: int, n_columns: int | None) -> "list[Axes]":
        """Return axes for the pictures, in rows."""
        columns = min(count, 4) if n_columns is None else max(1, min(n_columns, count))
        rows = -(-count // columns)
        ax = self._axes(ax, (1.75 * columns + 1.2, 1.95 * rows))
        ax.set_axis_off()
        panels = [
            ax.inset_axes(
                (0.88 * (i % columns) / columns, 1 - (i // columns + 1) / rows,
                 0.88 * 0.92 / columns, 0.84 / rows),
                xticks=[], yticks=[],
            )
            for i in range(count)
        ]  # fmt: skip
        self.axes_ = np.array(panels, dtype=object)
        return panels


def _hatch(ax: "Axes", pixels: Mask) -> None:
    """Hatch some pixels of an image."""
    from matplotlib.collections import PolyCollection

    places = np.argwhere(pixels)[:, ::-1]
    if not len(places):
        return
    corners = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
    squares = places[:, None, :] + corners
    ax.add_collection(
        PolyCollection(
            list(squares), facecolors="none", edgecolors="black", linewidths=0, hatch="/////"
        ),
        autolim=False,
    )
