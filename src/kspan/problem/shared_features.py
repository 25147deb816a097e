"""What problems have in common in which all components share their features."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.covariance import Covariance
from kspan.problem.choice import Choice, HasChoice, as_count
from kspan.problem.solution import Candidate, LoadingsSolution, Solution


def require_sizes(m: int, k: int, d: int) -> None:
    """Raise `ValueError` unless 1 ≤ m ≤ k ≤ d."""
    if not 1 <= m <= d:
        raise ValueError(f"n_components={m} must be between 1 and n_features={d}.")
    if not m <= k <= d:
        raise ValueError(
            f"n_features_to_select={k} must be between n_components={m} and n_features={d}."
        )


@dataclass(frozen=True, init=False, eq=False)
class SharedFeatures(HasChoice, ABC):
    """Choose k features that all m components use.

    Parameters
    ----------
    covariance : Covariance
    n_components : int
    n_features_to_select : int or Choice
    include, exclude : sequences of int
    """

    kind: ClassVar[str]
    nonnegative: ClassVar[bool] = False

    covariance: Covariance
    n_components: int
    choice: Choice

    def __init__(
        self,
        covariance: Covariance,
        n_components: int,
        n_features_to_select: int | Choice,
        include: Sequence[int] | Index = (),
        exclude: Sequence[int] | Index = (),
    ):
        d, m = covariance.n_features, as_count("n_components", n_components)
        given = n_features_to_select if isinstance(n_features_to_select, Choice) else None
        if given is not None and len(include) + len(exclude):
            raise ValueError("include and exclude are parts of the Choice that was given.")
        k = as_count("n_features_to_select", given.size if given else n_features_to_select)
        require_sizes(m, k, d)
        choice = Choice.of(d, k, include, exclude) if given is None else given.at_least(m)
        if choice.n_features != d or choice.is_empty:
            raise ValueError(f"The choice has no {k} of the {d} features.")
        for name, value in (("covariance", covariance), ("n_components", m), ("choice", choice)):
            object.__setattr__(self, name, value)

    @property
    def options(self) -> dict[str, Any]:
        """What else the problem is made from."""
        return {}

    def changed(
        self, *, covariance: Covariance | None = None, n_components: int | None = None,
        choice: Choice | None = None,
    ) -> Self:  # fmt: skip
        """Return the problem with another covariance, number of components, or choice."""
        return type(self)(
            self.covariance if covariance is None else covariance,
            self.n_components if n_components is None else n_components,
            self.choice if choice is None else choice,
            **self.options,
        )

    def at(self, size: int) -> Self:
        """Return the problem with another number of features."""
        return self.changed(choice=self.choice.resized(size))

    @property
    def allowed(self) -> Mask:
        """Which features may be chosen."""
        return self.choice.allowed

    def select(self, scores: FloatArray) -> Index:
        """Return the feasible support with the largest sum of (nonnegative) scores.

        Ties go to smaller indices. Constant features come after all others, whatever their
        score, and scores of rounding size count as zero.
        """
        keys = np.where(scores > np.finfo(float).eps * scores.max(initial=0.0), scores, 0.0)
        keys[self.covariance.diagonal() <= 0] = -1.0
        return self.choice.select(keys)

    def point_of(self, solution: Solution | LoadingsSolution) -> Candidate:
        """Return the best point on the support of a solution, after checking that it fits."""
        if not isinstance(solution, Solution):
            raise TypeError(f"A {type(self).__name__} needs a Solution.")
        if solution.n_features != self.n_features:
            raise ValueError("The solution belongs to a problem with another number of features.")
        support = np.sort(solution.support)
        if (wrong := self.choice.objection(support)) is not None:
            raise ValueError(f"The solution is not one of this problem: its support {wrong}.")
        return self.refit(support)

    def claimed_value(self, support: Index, weights: FloatArray) -> float:
        """Return what weights on a support explain at least; `ValueError` if not feasible."""
        if (wrong := self.choice.objection(support)) is not None:
            raise ValueError(f"support: {wrong}")
        return self.explained_at_least(support, weights)

    @abstractmethod
    def explained_at_least(self, support: Index, weights: FloatArray) -> float:
        """Return what weights on a support explain, rounded downwards; `ValueError` if not."""

    @abstractmethod
    def refit(self, support: Index) -> Candidate:
        """Return the best point on a support."""

    @abstractmethod
    def refit_all(self, supports: Sequence[Index]) -> list[Candidate]:
        """Return `refit` of every support."""
