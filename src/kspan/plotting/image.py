"""`ImageDisplay`: components of pixels, as pictures."""

from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from kspan.arrays import FloatArray, Mask
from kspan.plotting.common import (
    DIVERGING,
    SMALL,
    Fit,
    component_names,
    fit_of_estimator,
    fit_of_record,
    make_axes,
)
from kspan.records import FitRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage


class ImageDisplay:
    """Components as images, and the pixels that they use.

    One colour scale for all, centred at zero; negative pixels are hatched, so that the sign is seen
    without colour. The last panel shows the pixels that any component uses, in black.

    Parameters
    ----------
    components : (m, d) array
    image_shape : (rows, columns)
        With rows × columns = d.

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

    ax_: "Axes"
    figure_: "Figure"
    axes_: Any
    images_: "list[AxesImage]"
    support_: "AxesImage"
    colorbar_: "Colorbar"

    def __init__(self, *, components: ArrayLike, image_shape: tuple[int, int]):
        table = np.atleast_2d(np.asarray(components, dtype=np.float64))
        if len(image_shape) != 2 or prod(image_shape) != table.shape[1]:
            raise ValueError(
                f"image_shape={tuple(image_shape)} does not hold {table.shape[1]} pixels, one for "
                "each feature."
            )
        self.image_shape = tuple(image_shape)
        self.components: FloatArray = table.reshape(-1, *self.image_shape)

    @property
    def support(self) -> Mask:
        """The pixels that any component uses."""
        return np.asarray(self.components.any(axis=0))

    @classmethod
    def from_record(
        cls,
        record: FitRecord,
        *,
        image_shape: tuple[int, int],
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the components of a saved fit to pixels.

        Parameters
        ----------
        record : FitRecord
        image_shape : (rows, columns)
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        return cls._from_fit(fit_of_record(record), image_shape).plot(ax, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        image_shape: tuple[int, int],
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the components of an estimator fitted to pixels.

        Parameters
        ----------
        estimator : fitted estimator of kspan
        X : not needed
        image_shape : (rows, columns)
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        return cls._from_fit(fit_of_estimator(estimator), image_shape).plot(ax, **kwargs)

    @classmethod
    def _from_fit(cls, fit: Fit, image_shape: tuple[int, int]) -> Self:
        components = np.zeros((fit.loadings.shape[1], fit.n_features))
        components[:, fit.support] = fit.loadings.T
        return cls(components=components, image_shape=image_shape)

    def plot(
        self, ax: "Axes | None" = None, *, n_columns: int | None = None, cmap: str = DIVERGING
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : where to draw, all panels inside it; a new figure by default
        n_columns : panels in a row; four, or fewer for few components
        cmap : a diverging colour map
        """
        m = len(self.components)
        columns = min(m + 1, 4) if n_columns is None else max(1, min(n_columns, m + 1))
        rows = -(-(m + 1) // columns)
        self.ax_, self.figure_ = ax, figure = make_axes(ax, (1.75 * columns + 1.2, 1.95 * rows))
        ax.set_axis_off()
        panels = [
            ax.inset_axes(
                (0.88 * (i % columns) / columns, 1 - (i // columns + 1) / rows,
                 0.88 * 0.92 / columns, 0.84 / rows)
            )
            for i in range(m + 1)
        ]  # fmt: skip
        self.axes_ = np.array(panels, dtype=object)
        largest = float(np.abs(self.components).max()) or 1.0
        self.images_ = []
        for panel, image, name in zip(panels, self.components, component_names(m), strict=False):
            self.images_.append(
                panel.imshow(image, cmap=cmap, vmin=-largest, vmax=largest, interpolation="nearest")
            )
            _hatch(panel, image < 0)
            panel.set_title(f"{name}: {np.count_nonzero(image)} pixels", fontsize=SMALL + 1)
        self.support_ = panels[-1].imshow(
            self.support, cmap="Greys", vmin=0, vmax=1, interpolation="nearest"
        )
        used = np.count_nonzero(self.support)
        panels[-1].set_title(f"used: {used} of {self.support.size}", fontsize=SMALL + 1)
        for panel in panels:
            panel.set(xticks=[], yticks=[])
        scale = ax.inset_axes((0.9, 0.08, 0.025, 0.8))
        self.colorbar_ = figure.colorbar(self.images_[0], cax=scale)
        negative = bool((self.components < 0).any())
        self.colorbar_.set_label("loading" + (" (hatched: negative)" if negative else ""))
        return self


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
