"""Witnesses of single bounds: traces, the dual bound, two for wide data, one for every k."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.problem import Choice, RowSparseProblem
from kspan.problem.choice import is_count
from kspan.proofs.check.bounds import (
    Bound,
    Cones,
    dual_bound,
    low_rank_dual_bound,
    sample_bound,
    split_bound,
    trace_bound,
)
from kspan.proofs.check.claims import Part, Problem, Witness, feature_numbers, follow, need
from kspan.proofs.check.known import KnownFactor, KnownMatrix, KnownVariances
from kspan.proofs.check.screening import cut_levels


@dataclass(frozen=True)
class TraceWitness(Witness):
    """The k largest variances: B = A. Needs nothing but the diagonal."""

    label: ClassVar[str] = "trace"

    @property
    def is_free(self) -> bool:
        """See `Witness.is_free`."""
        return True

    def evaluate(self, problem: Problem) -> float:
        """See `Witness.evaluate`."""
        known = KnownVariances.of(problem)
        return trace_bound(known, problem.n_components, problem.choice).value * known.scale


@dataclass(frozen=True)
class DualWitness(Witness):
    """``B = factor factor'`` on all allowed features, for `bounds.dual_bound`.

    With `on_data` the bound is computed from few samples, without a matrix of all features.
    """

    label: ClassVar[str] = "shifted eigenvalues"

    scale: float
    features: Index
    factor: FloatArray
    on_data: bool = False

    @property
    def is_free(self) -> bool:
        """See `Witness.is_free`. With B = 0 it is the sum of the leading eigenvalues."""
        return self.factor.shape[1] == 0

    def evaluate(self, problem: Problem) -> float:
        """See `Witness.evaluate`."""
        features = _all_features(problem, self.features, self.factor)
        if self.on_data:
            return self.bound(KnownFactor.of(problem, features, self.scale), problem)
        return self.bound(KnownMatrix.of(problem, features, self.scale), problem)

    def bound(self, known: KnownMatrix | KnownFactor, problem: Problem) -> float:
        """Return the bound from A, or X, on the features that may be chosen."""
        m, choice = problem.n_components, problem.choice.on(self.features)
        if isinstance(known, KnownFactor):
            return low_rank_dual_bound(known, self.factor, m, choice).value * known.scale
        return dual_bound(known, self.factor, m, choice).value * known.scale


@dataclass(frozen=True)
class SplitWitness(Witness):
    """``B = factor factor'`` and cones on the features `inside`, for `bounds.split_bound`."""

    label: ClassVar[str] = "split"

    scale: float
    inside: Index
    factor: FloatArray
    cones: Cones

    def evaluate(self, problem: Problem) -> float:
        """See `Witness.evaluate`."""
        require_signs(problem, self.cones, "witness")
        return self._bound(problem).value * self.scale

    def levels(self, problem: Problem) -> FloatArray:
        """See `Witness.levels`."""
        require_signs(problem, self.cones, "witness")
        with_it, _ = cut_levels(self._bound(problem), problem.choice)
        return np.where(problem.choice.allowed, with_it * self.scale, -np.inf)

    def _bound(self, problem: Problem) -> Bound:
        inside = feature_numbers(self.inside, problem.n_features, "witness")
        known = KnownMatrix.of(problem, inside, self.scale)
        return self.bound(known, KnownVariances.of(problem, self.scale), problem)

    def bound(self, known: KnownMatrix, everywhere: KnownVariances, problem: Problem) -> Bound:
        """Return the bound in units of the scale, for A on the features inside."""
        m, choice = problem.n_components, problem.choice
        return split_bound(known, everywhere, self.inside, self.factor, self.cones, m, choice)


@dataclass(frozen=True)
class SampleWitness(Witness):
    """Vectors ``p_i`` of the `active` features, a factor of Λ, and τ: for `bounds.sample_bound`."""

    label: ClassVar[str] = "sample space"

    scale: float
    active: Index
    vectors: FloatArray
    common: FloatArray
    floor: float

    def evaluate(self, problem: Problem) -> float:
        """See `Witness.evaluate`."""
        feature_numbers(self.active, problem.n_features, "witness")
        return self.bound(KnownFactor.of(problem, scale=self.scale), problem) * self.scale

    def bound(self, known: KnownFactor, problem: Problem) -> float:
        """Return the bound in units of the scale, for X on all features."""
        m, choice = problem.n_components, problem.choice
        return sample_bound(known, self.active, self.vectors, self.common, self.floor, m, choice)


@dataclass(frozen=True)
class PathWitness(Part):
    """A full-size B, with its diagonal and its Ky Fan sum: it bounds the optimum of every k."""

    scale: float
    features: Index
    factor: FloatArray
    scores: FloatArray
    ky_fan: float
    cones: Cones | None = None

    @classmethod
    def of(
        cls, problem: Problem, known: KnownMatrix, factor: FloatArray, cones: Cones | None
    ) -> "PathWitness":
        """Compute the scores and the sum of a factor, for A on all allowed features."""
        features, m = problem.choice.features, problem.n_components
        choice = problem.choice.on(features)
        bound = dual_bound(known, factor, m, choice, cones, any_size=True)
        return cls(known.scale, features, factor, bound.scores, bound.ky_fan, cones)

    def reach(self, choice: Choice) -> int:
        """The largest number of features that it bounds."""
        return choice.largest_size

    def with_room(self, known: KnownMatrix, m: int) -> "PathWitness":
        """Return it with room for `Uncertainty.noise`."""
        return replace(self, scores=self.scores + 2 * known.uncertainty.scores(m))

    def check(self, problem: Problem, what: str) -> None:
        """Compute the scores and the sum again, and compare."""
        features = _all_features(problem, self.features, self.factor)
        require_signs(problem, self.cones, "witness")
        known = KnownMatrix.of(problem, features, self.scale)
        again = PathWitness.of(problem, known, self.factor, self.cones)
        need(
            self.scores.shape == again.scores.shape and self.scores.dtype == np.float64,
            f"{what}: not one score for each feature",
        )
        choice = problem.choice
        for k in range(max(problem.n_components, choice.include.size), choice.largest_size + 1):
            follow(f"{what} at k={k}", again.upper_at(choice, k), self.upper_at(choice, k))

    def upper_at(self, choice: Choice, k: int) -> float:
        """Return the bound for k features of a choice."""
        best = choice.on(self.features).resized(k).best_sum(self.scores)
        return self.scale * (self.ky_fan + best)


@dataclass(frozen=True)
class SplitPathWitness(Part):
    """A split bound with scores of all features and a sum: it holds for every k up to `most`.

    A row of P has at most k - 1 entries beside the diagonal, so cones with room for more of them
    bound fewer features too; and only positive eigenvalues are counted, as the rank of what is
    inside may be below m.
    """

    split: SplitWitness
    most: int
    scores: FloatArray
    ky_fan: float

    @classmethod
    def of(
        cls, problem: Problem, split: SplitWitness, most: int, known: KnownMatrix,
        everywhere: KnownVariances,
    ) -> "SplitPathWitness":  # fmt: skip
        """Compute scores and sum, for A on the features inside, and the variances of all."""
        bound = split.bound(known, everywhere, _at(problem, most))
        return cls(split, most, bound.scores, bound.ky_fan)

    def with_room(self, everywhere: KnownVariances, m: int) -> "SplitPathWitness":
        """Return it with room for `Uncertainty.noise`."""
        return replace(self, scores=self.scores + 2 * everywhere.uncertainty.scores(m))

    def reach(self, choice: Choice) -> int:
        """The largest number of features that it bounds."""
        return min(self.most, choice.largest_size)

    def check(self, problem: Problem, what: str) -> None:
        """Compute scores and sum again, and compare."""
        inside, scale = self.split.inside, self.split.scale
        require_signs(problem, self.split.cones, "witness")
        choice, m = problem.choice, problem.n_components
        fewest = max(m, choice.include.size, 1)
        possible = is_count(self.most) and fewest <= self.most <= choice.largest_size
        need(possible, f"{what}: is for a number of features that cannot be")
        known = KnownMatrix.of(problem, feature_numbers(inside, problem.n_features, what), scale)
        everywhere = KnownVariances.of(problem, scale)
        again = SplitPathWitness.of(problem, self.split, self.most, known, everywhere)
        need(
            self.scores.shape == again.scores.shape and self.scores.dtype == np.float64,
            f"{what}: not one score for each feature",
        )
        for k in range(fewest, self.most + 1):
            follow(f"{what} at k={k}", again.upper_at(choice, k), self.upper_at(choice, k))

    def upper_at(self, choice: Choice, k: int) -> float:
        """Return the bound for k features of a choice, up to `most`."""
        value = self.ky_fan + choice.resized(k).best_sum(self.scores)
        return self.split.scale * max(value, 0.0)


def _at(problem: Problem, size: int) -> Any:
    """Return the problem with another number of features."""
    assert isinstance(problem, RowSparseProblem)
    return problem.at(size)


def require_signs(problem: Problem, cones: Cones | None, what: str) -> None:
    """Require that multipliers of P ≥ 0 are used for nonnegative problems only."""
    allowed = cones is None or not cones.signs.size or problem.nonnegative
    need(allowed, f"{what}: has multipliers of signs, but loadings may have any sign")


def _all_features(problem: Problem, named: Index, factor: FloatArray) -> Index:
    """Return the features of a witness, which must be all that are allowed."""
    features = feature_numbers(named, problem.n_features, "witness")
    need(np.array_equal(features, problem.choice.features), "witness: lacks a feature")
    fits = factor.ndim == 2 and len(factor) == features.size >= factor.shape[1]
    need(fits, "witness: the factor has a wrong shape")
    return features
