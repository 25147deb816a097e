"""Sparse PCA with proof: the k features that span the most variance.

The public names load on first use, so that ``import kspan`` itself is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Certificate": "kspan.proofs",
    "CertificateError": "kspan.proofs",
    "ElementSparsePCA": "kspan.estimators",
    "FeatureSparsePCA": "kspan.estimators",
    "FeatureSparseSelector": "kspan.estimators",
    "FitRecord": "kspan.records",
    "NonnegativeProblem": "kspan.problem",
    "NonnegativeSparsePCA": "kspan.estimators",
    "RowSparseProblem": "kspan.problem",
    "Solution": "kspan.problem.solution",
    "StiefelSparsePCA": "kspan.estimators",
    "as_covariance": "kspan.covariance",
    "certify": "kspan.solving",
    "selection_stability": "kspan.choosing_k",
    "solve": "kspan.solving",
    "sparsity_path": "kspan.choosing_k",
    "suggest_k": "kspan.choosing_k",
    "verify": "kspan.proofs",
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
    from kspan.choosing_k import selection_stability, sparsity_path, suggest_k
    from kspan.covariance import as_covariance
    from kspan.estimators import (
        ElementSparsePCA,
        FeatureSparsePCA,
        FeatureSparseSelector,
        NonnegativeSparsePCA,
        StiefelSparsePCA,
    )
    from kspan.problem import NonnegativeProblem, RowSparseProblem
    from kspan.problem.solution import Solution
    from kspan.proofs import Certificate, CertificateError, verify
    from kspan.records import FitRecord
    from kspan.solving import certify, solve
