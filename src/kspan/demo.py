"""The numbers behind ``kspan demo``: a fit on real data beside its two obvious rivals."""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kspan.covariance import as_covariance
from kspan.datasets import load_dataset
from kspan.estimators import FeatureSparsePCA
from kspan.linalg.selection import top_k
from kspan.problem import RowSparseProblem


@dataclass(frozen=True)
class Rival:
    """A way to get m components, how many features it needs and what it explains."""

    name: str
    n_features: int
    explained_variance: float


@dataclass(frozen=True)
class DemoResult:
    """What the demo found, ready to be shown."""

    n_samples: int
    n_features: int
    n_components: int
    selected: list[str]
    loadings: NDArray[np.float64]
    picture: NDArray[np.bool_]
    rivals: list[Rival]
    total_variance: float
    seconds: float


def run_demo(n_components: int = 5, n_features_to_select: int = 16) -> DemoResult:
    """Fit the handwritten digits that ship with scikit-learn (1797 pictures of 8×8 pixels)."""
    data = load_dataset("digits")
    d = data.X.shape[1]
    started = time.perf_counter()
    model = FeatureSparsePCA(n_components, n_features_to_select, random_state=0).fit(data.X)
    seconds = time.perf_counter() - started

    covariance = as_covariance(data.X)
    problem = RowSparseProblem(covariance, n_components, n_features_to_select)
    by_variance = problem.refit(top_k(covariance.diagonal(), n_features_to_select))
    support = model.get_support(indices=True)
    names = data.feature_names or tuple(str(j) for j in range(d))
    return DemoResult(
        n_samples=data.X.shape[0],
        n_features=d,
        n_components=n_components,
        selected=[names[j] for j in support],
        loadings=model.components_[:, support].T,
        picture=model.get_support().reshape(8, 8),
        rivals=[
            Rival("plain PCA", d, float(covariance.leading(n_components).values.sum())),
            Rival("kspan", n_features_to_select, model.objective_),
            Rival("highest variances", n_features_to_select, by_variance.objective),
        ],
        total_variance=covariance.trace(),
        seconds=seconds,
    )
