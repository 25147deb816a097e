"""scikit-learn estimators, one file each."""

from kspan.estimators.feature_sparse_pca import FeatureSparsePCA
from kspan.estimators.feature_sparse_selector import FeatureSparseSelector

__all__ = ["FeatureSparsePCA", "FeatureSparseSelector"]
