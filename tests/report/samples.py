"""Records of small fits, each made once."""

from dataclasses import replace
from functools import cache

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine

from kspan import (
    ElementSparsePCA,
    FeatureSparsePCA,
    NonnegativeSparsePCA,
    StiefelSparsePCA,
    selection_stability,
    sparsity_path,
)
from kspan.records import FitRecord

NASTY = [
    "<script>window.hacked = 1; alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    'comma, and "quotes"',
    "&amp; <b>bold</b> <a href='https://example.org'>link</a>",
    "größe ≥ 3 µm \u2028 名前 🧬",
    "=HYPERLINK(1)",
    "a name of far more than sixty characters that goes on and on without any end " * 2,
    "WithoutAnySpace" * 8,
    "@accent",
    "%{x} $x^2$ {{ 7 * 7 }}",
    "two\nlines",
    "",
    "two\nlines",
]


@cache
def cancer() -> FitRecord:
    """Everything there is: proved optimal, path, stability, scores, sample names."""
    X = load_breast_cancer(as_frame=True).data
    pca = FeatureSparsePCA(3, n_features_to_select=12, scale=True, certify="exact", random_state=0)
    path = sparsity_path(X, 3, ks=range(3, 31, 3), scale=True, random_state=0, certify="fast")
    stability = selection_stability(X, 3, 12, n_resamples=8, scale=True, random_state=0)
    return FitRecord.from_estimator(
        pca.fit(X), X, source="breast_cancer.csv", path=path, stability=stability, seconds=1.25,
        sample_names=[f"patient {i}" for i in range(len(X))],
    )  # fmt: skip


@cache
def wine(**changed: object) -> FitRecord:
    """Fit wine with `certify` and the like as given."""
    X = load_wine(as_frame=True).data
    asked = {"n_features_to_select": 5, "scale": True, "random_state": 0} | changed
    return FitRecord.from_estimator(FeatureSparsePCA(2, **asked).fit(X), X, source="wine")


@cache
def nasty() -> FitRecord:
    """Names that try to break out, in every place that shows names."""
    record = wine(n_features_to_select=13, certify="fast")
    X = load_wine().data
    stability = selection_stability(X, 2, 13, n_resamples=3, scale=True, random_state=0)
    count = len(record.samples)
    return replace(
        record, feature_names=NASTY, source=NASTY[0], stability=stability,
        sample_names=[NASTY[i % len(NASTY)] for i in range(count)],
    )  # fmt: skip


@cache
def nonnegative(certify: bool | str = "exact", m: int = 2) -> FitRecord:
    X = load_wine(as_frame=True).data
    pca = NonnegativeSparsePCA(m, 3, scale=True, certify=certify, random_state=0)
    return FitRecord.from_estimator(pca.fit(X), X, source="wine")


@cache
def stiefel() -> FitRecord:
    X = load_wine(as_frame=True).data
    pca = StiefelSparsePCA(3, n_nonzero_coefs=4, scale=True, random_state=0)
    return FitRecord.from_estimator(pca.fit(X), X, source="wine")


OWN = {
    "orthonormal": StiefelSparsePCA(2, n_nonzero_coefs=4, scale=True, certify=True, random_state=0),
    "separate": ElementSparsePCA(2, 4, scale=True, certify=True, random_state=0),
    "nonnegative": NonnegativeSparsePCA(2, 4, scale=True, certify=True, random_state=0),
}


@cache
def with_own_path(kind: str) -> FitRecord:
    """Components with features of their own, and a path of such."""
    X = load_wine(as_frame=True).data
    path = sparsity_path(X, 2, estimator=kind, ks=[2, 4, 7], scale=True, random_state=0)
    return FitRecord.from_estimator(OWN[kind].fit(X), X, source="wine", path=path)


@cache
def element(certify: bool | str = "exact") -> FitRecord:
    X = load_wine(as_frame=True).data
    pca = ElementSparsePCA(2, 4, scale=True, certify=certify, random_state=0)
    return FitRecord.from_estimator(pca.fit(X), X, source="wine")


@cache
def of_covariance() -> FitRecord:
    """Without samples, scores and names."""
    A = np.corrcoef(load_wine().data.T)
    pca = FeatureSparsePCA(1, n_features_to_select=4, covariance="precomputed", random_state=0)
    return FitRecord.from_estimator(pca.fit(A), A)
