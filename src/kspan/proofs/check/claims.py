"""What a proof is made of, and how a claim is compared with what follows from the data.

Feature numbers are those of the problem. Matrices are in units of ``scale``, a power of four:
dividing by it and by its root is exact, and 1e-150 and 1e150 are as good as 1.
"""

import math
from abc import ABC, abstractmethod
from itertools import takewhile
from typing import ClassVar, Protocol, TypeVar

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.problem import (
    ElementSparseProblem,
    NonnegativeProblem,
    RepresentProblem,
    RowSparseProblem,
    StiefelProblem,
)

Problem = RowSparseProblem | NonnegativeProblem | StiefelProblem | RepresentProblem

# Two computations of one number differ by rounding, on machines that add in another order: by less
# than this share of it. A claim may be this much better than what follows, and no more.
AGREEMENT = 1e-12


class CertificateError(ValueError):
    """A number of a certificate does not follow from the data and the witness."""


class Part:
    """Anything that a file with a proof may hold. A class is known to files once it is made."""

    known: ClassVar[list[type]] = []

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Part.known.append(cls)


class Witness(Part, ABC):
    """Arrays from which an upper bound follows: all that a certificate asks to be believed.

    A wrong one can only make the bound loose, or fail; never make it false.
    """

    label: ClassVar[str] = ""  # of the bound, in reports

    @abstractmethod
    def evaluate(self, problem: Problem) -> float:
        """Return the upper bound on the optimum, in the units of the problem, rounded upwards.

        Raises `CertificateError` or `FloatingPointError` when the arrays give none.
        """

    @property
    def method(self) -> str:
        """What the bound is called."""
        return self.label

    @property
    def confidence(self) -> float:
        """The probability that the bound holds."""
        return 1.0

    @property
    def any_size(self) -> bool:
        """Whether the bound holds for every number of features."""
        return False

    @property
    def is_free(self) -> bool:
        """Whether the bound says no more than variances of features, or eigenvalues, do."""
        return False

    def levels(self, problem: Problem) -> FloatArray:
        """Return, for every feature, a bound on all supports that have it, in the problem's units.

        Minus infinity for those that may not be chosen. Raises `CertificateError` where the bound
        says nothing about single features.
        """
        raise CertificateError(f"witness: {self.method} settles no features")

    def settled(self, lower: float) -> tuple[Index, Index]:
        """Return the features in every, and in no, selection that explains `lower` or more."""
        nothing = np.empty(0, dtype=np.intp)
        return nothing, nothing


def provable(problem: Problem | ElementSparseProblem) -> Problem:
    """Return the problem that proofs are about.

    A component with features of its own is a problem with features to share and one to share them.
    """
    if isinstance(problem, ElementSparseProblem) and not isinstance(problem, NonnegativeProblem):
        found: Problem = problem.single()
        return found
    return problem


class HasLevel(Protocol):
    """A cut of a search: nothing that it takes away is above its level."""

    @property
    def level(self) -> float:
        """In units of the search's scale."""


Cut = TypeVar("Cut", bound=HasLevel)


def cuts_below(cuts: list[Cut], lower: float) -> list[Cut]:
    """Return the cuts of a node that take nothing away of what reaches `lower`.

    Up to the first one that may: what comes after it is about what it leaves, not about all.
    """
    return list(takewhile(lambda cut: cut.level < lower, cuts))


# --- comparing


def need(condition: bool, message: str) -> None:
    """Raise unless a claim holds."""
    if not condition:
        raise CertificateError(message)


def reach(what: str, follows: float, claimed: float, room: float) -> None:
    """Require that a claimed value is no larger than the one that follows.

    And not smaller by more than the room that an honest claim leaves: it would be about other data.
    """
    slack = AGREEMENT * max(abs(follows), abs(claimed))
    need(
        math.isfinite(claimed) and follows - 2 * (slack + room) <= claimed <= follows + slack,
        f"{what}: claimed {claimed!r}, but {follows!r} follows",
    )


def follow(what: str, follows: float, claimed: float, room: float = 0.0) -> None:
    """Require that a claimed bound is no smaller than the one that follows; it may be larger.

    With room, for what nothing is read from but to find where a proof goes wrong.
    """
    slack = AGREEMENT * max(abs(follows), abs(claimed)) + room
    need(
        # No slack makes a bound of what is unbounded.
        math.isfinite(claimed) and follows < math.inf and follows <= claimed + slack,
        f"{what}: claimed {claimed!r}, but only {follows!r} follows",
    )


def feature_numbers(values: Index, d: int, what: str) -> Index:
    """Return a list of features, each named once and one of d; a file may hold anything."""
    array = np.asarray(values)
    need(array.ndim == 1, f"{what}: not a list of feature numbers")
    if array.size == 0:
        return np.empty(0, dtype=np.intp)
    need(array.dtype.kind in "iu", f"{what}: not feature numbers")
    need(array.min() >= 0 and array.max() < d, f"{what}: out of range")
    need(np.unique(array).size == array.size, f"{what}: a feature is named twice")
    return array.astype(np.intp)
