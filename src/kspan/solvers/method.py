"""What a method is: an object with typed options that says what it needs and runs on a problem.

A method of one's own is a frozen dataclass: its fields are its options, `run` is the method, and
`kspan.solve(problem, MyMethod(...))` or ``FeatureSparsePCA(solver=MyMethod(...))`` runs it. Those
in the folders beside this file are also known by their names (`kspan.solvers.registry`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from kspan.problem import (
    ElementSparseProblem,
    LoadingsSolution,
    NonnegativeProblem,
    RepresentProblem,
    RowSparseProblem,
    Solution,
    StiefelProblem,
    require_count,
)
from kspan.progress import Monitor

Problem = TypeVar("Problem", contravariant=True)
Answer = TypeVar("Answer", covariant=True)
Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class Method(ABC, Generic[Problem, Answer]):
    """A way to solve one kind of problem.

    Attributes
    ----------
    name : str
        What users call it.
    solves : type
        The kind of problem.
    summary, guarantee, reference : str
        What it does, what it promises, where it is from: a few words for tables.
    starts : tuple of str
        Names that its option `init` may have, if it has one.
    proof_level : str or None
        The level of `kspan.certify` that belongs to it: its answer is the proved one.
    takes_look : bool
        Whether `run` has a parameter `look`: it bounds a problem, and tells the search when it is
        done.
    """

    name: ClassVar[str]
    solves: ClassVar[type]
    summary: ClassVar[str]
    guarantee: ClassVar[str] = "–"
    reference: ClassVar[str] = "–"
    starts: ClassVar[tuple[str, ...]] = ()
    proof_level: ClassVar[str | None] = None
    takes_look: ClassVar[bool] = False

    def __post_init__(self) -> None:
        init = getattr(self, "init", None)
        if isinstance(init, str) and init not in self.starts:
            raise ValueError(f"init must be one of {list(self.starts)} or an array, got {init!r}.")
        for option in fields(self):
            value, check = getattr(self, option.name), option.metadata.get("check")
            if check and not (value is None and isinstance(None, option.type)):  # type: ignore[arg-type]
                check(option.name, value)
        self.check_options()

    def check_options(self) -> None:
        """Raise `ValueError` about options that make no sense, before any work is done.

        What can be said of one option alone is said where it is declared: see `checked`.
        """

    @property
    def makes_many_products(self) -> bool:
        """Whether it multiplies by A so often that A should be formed first, if that is cheap."""
        return True

    def searching(self) -> "Method[Problem, Answer]":
        """Return the method that finds what a proof is then about: itself, as a rule."""
        return self

    @classmethod
    def options(cls) -> list[str]:
        """Return the names of its options."""
        return [option.name for option in fields(cls)]

    @abstractmethod
    def run(self, problem: Problem, monitor: Monitor, rng: np.random.Generator) -> Answer:
        """Solve a problem.

        Parameters
        ----------
        problem : of the kind that it solves
        monitor : told after every step, asked whether to stop
        rng : the only source of random numbers
        """


class RowSparseMethod(Method[RowSparseProblem, Solution]):
    """All components share their features."""

    solves = RowSparseProblem


class ElementSparseMethod(Method[ElementSparseProblem, LoadingsSolution]):
    """Every component has features of its own."""

    solves = ElementSparseProblem


class StiefelMethod(Method[StiefelProblem, LoadingsSolution]):
    """Components with features of their own that stay orthonormal."""

    solves = StiefelProblem


class NonnegativeMethod(Method[NonnegativeProblem, LoadingsSolution]):
    """Components with features of their own and no negative loading."""

    solves = NonnegativeProblem


class RepresentMethod(Method[RepresentProblem, Solution]):
    """Features from which all others can be told."""

    solves = RepresentProblem


AnyMethod = Method[Any, Any]


class Unaffordable(ValueError):
    """A method refuses work beyond a limit of its own."""


def checked(default: Value, check: Callable[[str, Any], None]) -> Value:
    """Declare an option that is checked when a method is made.

    Parameters
    ----------
    default : of the option
    check : called with the option's name and value; not with None, if its type allows that
    """
    return field(default=default, metadata={"check": check})


def counted(default: Value, *, least: int) -> Value:
    """Declare an option that is a whole number, `least` or more."""
    return checked(default, partial(require_count, least=least))


def require_not_negative(name: str, value: float) -> None:
    """Raise `ValueError` unless an option is zero or more."""
    if not value >= 0:
        raise ValueError(f"{name} must not be negative, got {value!r}.")
