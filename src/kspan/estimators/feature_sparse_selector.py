"""`FeatureSparseSelector`: keep the k features that span the most variance."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from kspan.estimators.panel import PanelSelector
from kspan.estimators.shared_features import FeatureSparseEstimator
from kspan.io import open_data


class FeatureSparseSelector(SelectorMixin, FeatureSparseEstimator):  # type: ignore[misc]
    """Select the k features whose m principal components explain the most variance.

    The same choice as `FeatureSparsePCA`, with the same parameters (`memory` too, for searches) and
    fitted attributes; but `transform` returns the chosen columns themselves and
    `get_feature_names_out` their names.

    See Also
    --------
    FeatureSparsePCA : returns coordinates along the components.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kspan import FeatureSparseSelector
    >>> wine = load_wine(as_frame=True).data
    >>> selector = FeatureSparseSelector(2, 3, scale=True, random_state=0).fit(wine)
    >>> selector.transform(wine).shape
    (178, 3)
    >>> list(selector.get_feature_names_out())
    ['total_phenols', 'flavanoids', 'od280/od315_of_diluted_wines']
    """

    def transform(self, X: Any) -> Any:
        """Return the chosen columns of X; those of data in blocks are gathered block by block.

        Values that are missing stay so, where `missing` lets them: the columns are as they came.
        """
        data = open_data(X, allow_missing=self._allows_nan())
        if data.as_given:
            return super().transform(X)
        check_is_fitted(self)
        values = self._validated(
            data, reset=False, accept_sparse=("csr", "csc"),
            ensure_all_finite="allow-nan" if self._allows_nan() else True,
        )  # fmt: skip
        support = self.get_support(indices=True)
        if data.rows is None:
            return values[:, support]
        return np.concatenate([block.values for block in data.rows.blocks(support)])

    def panel(self) -> PanelSelector:
        """Return a fitted transformer of the chosen features alone: the same columns, in order.

        It takes tables that have no others, by name in any order.

        Returns
        -------
        kspan.estimators.PanelSelector
        """
        return PanelSelector._of(self)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        return FeatureSparseEstimator._get_support_mask(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
