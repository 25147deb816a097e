"""Coordinates along sparse components, and back."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from kspan.arrays import FloatArray
from kspan.covariance import as_source


class SparseProjection(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
):
    """`transform` and `inverse_transform` of an estimator with `components_`."""

    components_: NDArray[np.floating]
    mean_: FloatArray
    scale_: FloatArray | None
    _support_mask: NDArray[np.bool_]
    _check_features: Callable[..., None]

    def transform(self, X: Any) -> NDArray[np.floating]:
        """Return the coordinates of X along the components, using the chosen features only."""
        check_is_fitted(self)
        rows = as_source(X)
        if rows is None:
            X = validate_data(
                self, X, reset=False, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32)
            )
        else:  # in blocks
            self._check_features(rows, reset=False)
        support = np.flatnonzero(self._support_mask)
        axes = self.components_[:, support].T
        if self.scale_ is not None:
            axes = axes / self.scale_[support, None]
        origin = self.mean_[support] @ axes
        if rows is not None:
            return rows.project(support, axes, origin)
        return np.asarray(X[:, support] @ axes - origin, dtype=X.dtype)

    def inverse_transform(self, X: Any) -> NDArray[np.floating]:
        """Return the points in feature space that have the given coordinates.

        Of all such points those nearest to the mean; features that are not used stay there.
        """
        check_is_fitted(self)
        X = check_array(X, dtype=(np.float64, np.float32))
        if X.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {X.shape[1]} columns, but {type(self).__name__} is expecting one for each "
                f"of its {self._n_features_out} components."
            )
        points = X @ self._decoder()
        if self.scale_ is not None:
            points = points * self.scale_
        return np.asarray(points + self.mean_, dtype=X.dtype)

    def _decoder(self) -> NDArray[np.floating]:
        """Return the (m, d) matrix that takes coordinates back: the components if orthonormal."""
        gram = self.components_ @ self.components_.T
        if np.abs(gram - np.eye(len(gram))).max() <= 1e-5:
            return self.components_
        return np.linalg.pinv(self.components_.astype(np.float64)).T

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
