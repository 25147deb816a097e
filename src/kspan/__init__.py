"""Sparse PCA with proof: the k features that span the most variance.

The public names load on first use, so that ``import kspan`` itself is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Which module a public name is from; below, the same for type checkers.
_HOME = {
    "Certificate": "kspan.proofs",
    "CertificateError": "kspan.proofs",
    "ElementSparsePCA": "kspan.estimators",
    "FeatureSparsePCA": "kspan.estimators",
    "FeatureSparseSelector": "kspan.estimators",
    "FitRecord": "kspan.records",
    "Memory": "kspan.covariance",
    "NonnegativeProblem": "kspan.problem",
    "NonnegativeSparsePCA": "kspan.estimators",
    "Panel": "kspan.choosing_k",
    "RepresentProblem": "kspan.problem",
    "RowSparseProblem": "kspan.problem",
    "Solution": "kspan.problem.solution",
    "StiefelSparsePCA": "kspan.estimators",
    "as_covariance": "kspan.covariance",
    "budget_path": "kspan.choosing_k",
    "certify": "kspan.solving",
    "selection_stability": "kspan.choosing_k",
    "solve": "kspan.solving",
    "sparsity_path": "kspan.choosing_k",
    "suggest_k": "kspan.choosing_k",
    "verify": "kspan.proofs",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'kspan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


if TYPE_CHECKING:
    from kspan.choosing_k import Panel as Panel
    from kspan.choosing_k import budget_path as budget_path
    from kspan.choosing_k import selection_stability as selection_stability
    from kspan.choosing_k import sparsity_path as sparsity_path
    from kspan.choosing_k import suggest_k as suggest_k
    from kspan.covariance import Memory as Memory
    from kspan.covariance import as_covariance as as_covariance
    from kspan.estimators import ElementSparsePCA as ElementSparsePCA
    from kspan.estimators import FeatureSparsePCA as FeatureSparsePCA
    from kspan.estimators import FeatureSparseSelector as FeatureSparseSelector
    from kspan.estimators import NonnegativeSparsePCA as NonnegativeSparsePCA
    from kspan.estimators import StiefelSparsePCA as StiefelSparsePCA
    from kspan.problem import NonnegativeProblem as NonnegativeProblem
    from kspan.problem import RepresentProblem as RepresentProblem
    from kspan.problem import RowSparseProblem as RowSparseProblem
    from kspan.problem.solution import Solution as Solution
    from kspan.proofs import Certificate as Certificate
    from kspan.proofs import CertificateError as CertificateError
    from kspan.proofs import verify as verify
    from kspan.records import FitRecord as FitRecord
    from kspan.solving import certify as certify
    from kspan.solving import solve as solve
