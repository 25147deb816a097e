"""Sparse PCA with proof: the k features that span the most variance.

The public names load on first use, so that ``import kspan`` itself is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Certificate": "kspan.certificates",
    "CertificateError": "kspan.certificates",
    "ElementSparsePCA": "kspan.estimators",
    "FeatureSparsePCA": "kspan.estimators",
    "FeatureSparseSelector": "kspan.estimators",
    "FitRecord": "kspan.records",
    "NonnegativeProblem": "kspan.problem",
    "NonnegativeSparsePCA": "kspan.estimators",
    "RowSparseProblem": "kspan.problem",
    "Solution": "kspan.solution",
    "StiefelSparsePCA": "kspan.estimators",
    "as_covariance": "kspan.covariance",
    "certify": "kspan.methods",
    "selection_stability": "kspan.selection",
    "solve": "kspan.methods",
    "sparsity_path": "kspan.selection",
    "suggest_k": "kspan.selection",
    "verify": "kspan.certificates",
}

# Spelled out, so that type checkers and linters see the names too.
__all__ = [
    "Certificate",
    "CertificateError",
    "ElementSparsePCA",
    "FeatureSparsePCA",
    "FeatureSparseSelector",
    "FitRecord",
    "NonnegativeProblem",
    "NonnegativeSparsePCA",
    "RowSparseProblem",
    "Solution",
    "StiefelSparsePCA",
    "as_covariance",
    "certify",
    "selection_stability",
    "solve",
    "sparsity_path",
    "suggest_k",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'kspan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


if TYPE_CHECKING:
    from kspan.certificates import Certificate, CertificateError, verify
    from kspan.covariance import as_covariance
    from kspan.estimators import (
        ElementSparsePCA,
        FeatureSparsePCA,
        FeatureSparseSelector,
        NonnegativeSparsePCA,
        StiefelSparsePCA,
    )
    from kspan.methods import certify, solve
    from kspan.problem import NonnegativeProblem, RowSparseProblem
    from kspan.records import FitRecord
    from kspan.selection import selection_stability, sparsity_path, suggest_k
    from kspan.solution import Solution
