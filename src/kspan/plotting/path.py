"""`PathDisplay`: how much k features explain, for every k."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kspan.plotting.common import (
    ACCENT,
    INK,
    LIGHT,
    MIDDLE,
    NORMAL,
    THIN,
    bare,
    make_axes,
    percent_axis,
)
from kspan.records import FitRecord
from kspan.selection import SparsityPath, sparsity_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# More points than this are drawn without markers.
FEW_POINTS = 60


class PathDisplay:
    """Explained variance against the number of features, with the band that holds the optimum.

    Use `from_path`, `from_record` or `from_estimator` rather than the class itself.

    Parameters
    ----------
    k : (t,) array
        Numbers of features, ascending.
    objective : (t,) array
        Variance that the features found explain: the lower edge of the band.
    full : float
        What plain PCA explains with as many components and all features.
    upper : (t,) array, optional
        What no k features can exceed.
    chosen : int, optional
        The k to mark.
    n_components : int, optional
        For the label of the axis.

    Attributes
    ----------
    ax_, figure_ : axes and figure
    line_ : the objective
    band_ : the band up to `upper`, or None
    chosen_ : the mark at the chosen k, or None

    Examples
    --------
    >>> display = PathDisplay(k=[2, 3], objective=[1.5, 1.8], full=2.0, upper=[1.6, 1.8])
    >>> display.share
    array([0.75, 0.9 ])
    """

    ax_: "Axes"
    figure_: "Figure"
    line_: "Line2D"
    band_: "PolyCollection | None"
    chosen_: "Line2D | None"

    def __init__(
        self,
        *,
        k: ArrayLike,
        objective: ArrayLike,
        full: float,
        upper: ArrayLike | None = None,
        chosen: int | None = None,
        n_components: int | None = None,
    ):
        self.k = np.asarray(k)
        self.objective = np.asarray(objective, dtype=np.float64)
        self.full = full
        self.upper = None if upper is None else np.asarray(upper, dtype=np.float64)
        self.chosen = chosen
        self.n_components = n_components

    @property
    def share(self) -> Any:
        """Share of what plain PCA explains."""
        return self.objective / self.full

    @classmethod
    def from_path(
        cls,
        path: SparsityPath,
        *,
        chosen: int | None = None,
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> Self:
        """Draw what `kspan.sparsity_path` returned.

        Parameters
        ----------
        path : SparsityPath
        chosen : the k to mark, if any
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        display = cls(
            k=path.k, objective=path.objective, full=path.full, upper=path.upper, chosen=chosen,
            n_components=path.n_components,
        )  # fmt: skip
        return display.plot(ax, **kwargs)

    @classmethod
    def from_record(cls, record: FitRecord, *, ax: "Axes | None" = None, **kwargs: Any) -> Self:
        """Draw the path in a record, with its fit marked.

        Parameters
        ----------
        record : FitRecord with a path
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        if record.path is None:
            raise ValueError(
                "The record has no path: make it with "
                "FitRecord.from_estimator(..., path=kspan.sparsity_path(X, ...))."
            )
        chosen = record.support.size if record.is_row_sparse else None
        return cls.from_path(record.path, chosen=chosen, ax=ax, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, ax: "Axes | None" = None, **kwargs: Any
    ) -> Self:
        """Compute the path with the estimator's own parameters, and draw it with its fit marked.

        Parameters
        ----------
        estimator : fitted FeatureSparsePCA or FeatureSparseSelector
        X : the data of the fit
        ax : where to draw; a new figure by default
        **kwargs : as in `plot`
        """
        check_is_fitted(estimator)
        asked = estimator.get_params()
        if "n_features_to_select" not in asked or "include" not in asked:
            raise ValueError(
                f"A path over k is about features that all components share; "
                f"{type(estimator).__name__} has others for each. Use FeatureSparsePCA."
            )
        if X is None:
            raise ValueError(
                "An estimator does not keep the path: pass the data of the fit as X, or use "
                "from_path with what kspan.sparsity_path(X, ...) returns."
            )
        path = sparsity_path(
            X,
            estimator.n_components_,
            include=asked["include"],
            exclude=asked["exclude"],
            scale=asked["scale"],
            covariance=asked["covariance"],
            random_state=asked["random_state"],
        )
        return cls.from_path(path, chosen=estimator.n_features_to_select_, ax=ax, **kwargs)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        line_kw: Mapping[str, Any] | None = None,
        band_kw: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : where to draw; a new figure by default
        line_kw, band_kw : for matplotlib's `plot` and `fill_between`
        """
        self.ax_, self.figure_ = ax, _ = make_axes(ax, (6.4, 4.0))
        from matplotlib.ticker import MaxNLocator

        top = float(self.share.max())
        self.band_ = None
        if self.upper is not None:
            ceiling = self.upper / self.full
            top = max(top, float(ceiling.max()))
            self.band_ = ax.fill_between(
                self.k, self.share, ceiling,
                **{"color": LIGHT, "lw": 0, "label": "the best possible is in here",
                   **(band_kw or {})},
            )  # fmt: skip
            # Its edge is seen where the band itself is thinner than a line.
            ax.plot(self.k, ceiling, color=MIDDLE, lw=THIN, ls="--")
        marker = "o" if self.k.size <= FEW_POINTS else ""
        (self.line_,) = ax.plot(
            self.k, self.share,
            **{"color": INK, "lw": NORMAL, "marker": marker, "ms": 3.5, "label": "found",
               **(line_kw or {})},
        )  # fmt: skip
        ax.axhline(1.0, color="black", lw=THIN, ls=":", label="plain PCA, all features")
        self.chosen_ = self._mark(ax)
        m = self.n_components
        of = "" if m is None else f" with {m} component{'s' if m > 1 else ''}"
        ax.set(
            xlabel="number of features k",
            ylabel=f"share of the variance that\nplain PCA explains{of}",
            ylim=(0, max(1.06, 1.02 * top)),
        )
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        percent_axis(ax.yaxis)
        ax.legend(loc="lower right", frameon=False)
        bare(ax)
        return self

    def _mark(self, ax: "Axes") -> "Line2D | None":
        """Mark the chosen k, if the path has it."""
        places = np.flatnonzero(self.k == self.chosen)
        if self.chosen is None or not places.size:
            return None
        height = float(self.share[places[0]])
        (mark,) = ax.plot(
            [self.chosen], [height], ls="none", marker="D", ms=9, mfc="white", mec=ACCENT, mew=2,
            label=f"chosen: k = {self.chosen}, {height:.1%}", zorder=3,
        )  # fmt: skip
        return mark
