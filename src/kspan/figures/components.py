"""The components: which feature enters which, as a table or a picture, and what they explain."""

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.figures.figure import Figure, NothingToDraw, floats, require_some, texts
from kspan.records import FitRecord

# Features that a figure shows if it is not told otherwise.
MOST_FEATURES = 40


@dataclass(frozen=True, eq=False)
class LoadingsFigure(Figure):
    """Loadings of features (rows) in components.

    Parameters
    ----------
    loadings : (k, m) array
    feature_names : k names
    """

    loadings: FloatArray
    feature_names: list[str]

    def __post_init__(self) -> None:
        self._settle(loadings=floats, feature_names=texts)

    @classmethod
    def from_record(cls, record: Any) -> Self:
        """Return the loadings of a fit."""
        return cls(record.loadings, record.selected_names)

    def order(self, max_features: int = MOST_FEATURES) -> Index:
        """Return the rows to show, from top to bottom.

        Those with the largest loadings, grouped by the component in which they weigh most.
        """
        require_some(max_features)
        sizes = np.abs(self.loadings)
        kept = np.sort(np.argsort(-np.linalg.norm(sizes, axis=1), kind="stable")[:max_features])
        most = sizes[kept]
        return kept[np.lexsort((-most.max(axis=1), most.argmax(axis=1)))]


@dataclass(frozen=True, eq=False)
class ImageFigure(Figure):
    """Components as images.

    Parameters
    ----------
    components : (m, d) array; as an attribute (m, rows, columns)
    image_shape : (rows, columns), with rows × columns = d
    """

    components: FloatArray
    image_shape: tuple[int, int]

    def __post_init__(self) -> None:
        table = np.atleast_2d(floats(self.components))
        table = table.reshape(len(table), -1)
        if len(self.image_shape) != 2 or prod(self.image_shape) != table.shape[1]:
            raise ValueError(
                f"image_shape={tuple(self.image_shape)} does not hold {table.shape[1]} pixels, one "
                "for each feature."
            )
        self._settle(components=lambda _: table.reshape(-1, *self.image_shape), image_shape=tuple)

    @classmethod
    def from_record(cls, record: Any, *, image_shape: tuple[int, int]) -> Self:
        """Return the components of a fit to pixels."""
        components = np.zeros((record.loadings.shape[1], record.n_features))
        components[:, record.support] = record.loadings.T
        return cls(components, image_shape)

    @property
    def support(self) -> Mask:
        """The pixels that any component uses."""
        return np.asarray(self.components.any(axis=0))


@dataclass(frozen=True, eq=False)
class ScreeFigure(Figure):
    """Explained variances.

    Parameters
    ----------
    explained_variance : (m,) of the sparse components
    pca_variance : (m,) of those of plain PCA, or None if that is not known
    total_variance : of all features
    n_features_used, n_features : int or None
    """

    needs: ClassVar[str] = "what plain PCA explains"

    explained_variance: FloatArray
    pca_variance: FloatArray | None
    total_variance: float
    n_features_used: int | None = None
    n_features: int | None = None

    def __post_init__(self) -> None:
        self._settle(explained_variance=floats, pca_variance=floats)

    @classmethod
    def from_record(cls, record: FitRecord) -> Self:
        """Return the variances of a saved fit."""
        if record.total_variance <= 0:
            raise NothingToDraw("The data has no variance.")
        return cls(
            record.explained_variance, record.pca_variance, record.total_variance,
            record.support.size, record.n_features,
        )  # fmt: skip

    @property
    def share(self) -> FloatArray:
        """Share of the total variance of each sparse component."""
        return self.explained_variance / self.total_variance

    @property
    def pca_share(self) -> FloatArray | None:
        """Share of the total variance of each component of plain PCA."""
        return None if self.pca_variance is None else self.pca_variance / self.total_variance
