"""Choosing k: the path over k, a suggestion with reasons, and how stable a selection is."""

from kspan.selection.path import sparsity_path
from kspan.selection.result import SparsityPath
from kspan.selection.smallest import STOPPED_EARLY, QuickSolver, smallest_support
from kspan.selection.stability import Stability, selection_stability
from kspan.selection.suggestion import Suggestion, suggest_k

__all__ = [
    "STOPPED_EARLY",
    "QuickSolver",
    "SparsityPath",
    "Stability",
    "Suggestion",
    "selection_stability",
    "smallest_support",
    "sparsity_path",
    "suggest_k",
]
