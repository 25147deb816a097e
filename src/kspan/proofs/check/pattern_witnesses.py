"""Bounds on components with supports of their own, from proofs about shared features.

Both hold for U with orthonormal columns and at most k_t features in column t. They need nothing but
the data, and so work at any width.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kspan.linalg.rounding import UNIT
from kspan.problem import Choice, RowSparseProblem
from kspan.proofs.check.claims import Problem, Witness, need
from kspan.proofs.check.pattern_tree import counted_patterns


def shared_problem(problem: Problem) -> RowSparseProblem:
    """Return the problem in which all components share as many features as they use together."""
    patterns, d = counted_patterns(problem), problem.n_features
    nothing, everything = np.zeros(d, dtype=bool), np.ones(d, dtype=bool)
    # More features never explain less, so that "at most" and "exactly" have the same optimum.
    choice = Choice(patterns.size, nothing, everything)
    return RowSparseProblem(problem.covariance, problem.n_components, choice)


def single_problem(problem: Problem, size: int) -> RowSparseProblem:
    """Return the problem of one component with so many features."""
    d = problem.n_features
    choice = Choice(size, np.zeros(d, dtype=bool), np.ones(d, dtype=bool))
    return RowSparseProblem(problem.covariance, 1, choice)


def single_sizes(problem: Problem) -> list[int]:
    """Return the limits of components, each once, largest first."""
    return [int(limit) for limit in np.unique(counted_patterns(problem).limits)[::-1]]


@dataclass(frozen=True)
class SharedWitness(Witness):
    """All supports together have at most K features: a bound for K features that all share."""

    label: ClassVar[str] = "shared features"

    shared: Witness

    def evaluate(self, problem: Problem) -> float:
        """See `Witness.evaluate`."""
        need(isinstance(self.shared, Witness), "witness: lacks its proof about shared features")
        return self.shared.evaluate(shared_problem(problem))


@dataclass(frozen=True)
class SumWitness(Witness):
    """Without orthogonality: the sum of bounds on single components, one for each limit."""

    label: ClassVar[str] = "single components"

    singles: list[Witness]

    def evaluate(self, problem: Problem) -> float:
        """See `Witness.evaluate`."""
        patterns, sizes = counted_patterns(problem), single_sizes(problem)
        need(len(self.singles) == len(sizes), "witness: lacks a proof about a component")
        total = 0.0
        for size, witness in zip(sizes, self.singles, strict=True):
            need(isinstance(witness, Witness), "witness: lacks a proof about a component")
            count = int((patterns.limits == size).sum())
            total += count * witness.evaluate(single_problem(problem, size))
        return total * (1 + 8 * (len(sizes) + 1) * UNIT)
