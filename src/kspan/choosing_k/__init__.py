"""Choosing k: the path over k, a suggestion with reasons, and how stable a selection is."""

from kspan.choosing_k.budgets import BudgetPath, budget_path
from kspan.choosing_k.panel import Panel
from kspan.choosing_k.path import sparsity_path
from kspan.choosing_k.result import ComponentPath, SparsityPath
from kspan.choosing_k.stability import Stability, selection_stability
from kspan.choosing_k.suggestion import Suggestion, suggest_k

__all__ = [
    "BudgetPath",
    "ComponentPath",
    "Panel",
    "SparsityPath",
    "Stability",
    "Suggestion",
    "budget_path",
    "selection_stability",
    "sparsity_path",
    "suggest_k",
]
