"""scikit-learn estimators, one file each."""

from kspan.estimators.element_sparse_pca import ElementSparsePCA
from kspan.estimators.feature_sparse_pca import FeatureSparsePCA
from kspan.estimators.feature_sparse_selector import FeatureSparseSelector
from kspan.estimators.nonnegative_sparse_pca import NonnegativeSparsePCA
from kspan.estimators.panel import PanelSelector, PanelTransformer
from kspan.estimators.stiefel_sparse_pca import StiefelSparsePCA

__all__ = [
    "ElementSparsePCA",
    "FeatureSparsePCA",
    "FeatureSparseSelector",
    "NonnegativeSparsePCA",
    "PanelSelector",
    "PanelTransformer",
    "StiefelSparsePCA",
]
