"""Tables of methods, made from what the methods say of themselves."""

import re
from collections.abc import Callable
from textwrap import fill
from typing import TypeVar

import kspan.solving  # noqa: F401 - adds its own method to those that are listed
from kspan.problem import (
    ElementSparseProblem,
    NonnegativeProblem,
    RepresentProblem,
    RowSparseProblem,
    StiefelProblem,
)
from kspan.solvers.registry import methods_for

# What the documentation calls the kinds of problems.
KINDS = {
    "row-sparse": RowSparseProblem,
    "element-sparse": ElementSparseProblem,
    "stiefel": StiefelProblem,
    "nonnegative": NonnegativeProblem,
    "represent": RepresentProblem,
}

Documented = TypeVar("Documented", bound=type)


def lists_methods(problem: type) -> Callable[[Documented], Documented]:
    """Put the list of methods in the place of ``{methods}`` in a docstring; a decorator.

    Parameters
    ----------
    problem : the kind of problem that the methods solve
    """

    def fill_in(documented: Documented) -> Documented:
        if documented.__doc__ is not None:  # there is none under python -OO
            listed = method_list(problem).replace("\n", "\n    ")
            documented.__doc__ = documented.__doc__.replace("{methods}", listed)
        return documented

    return fill_in


def method_list(problem: type) -> str:
    """Return the methods for a kind of problem, one paragraph each, as reStructuredText."""
    lines = ["The methods:", ""]
    for name, method in methods_for(problem).items():
        text = f'- "{name}" (`{method.__name__}`): {_plain(method.summary)}'
        if method.guarantee != "–":
            text += f"; guarantee: {_plain(method.guarantee)}"
        lines.append(fill(f"{text}.", 90, subsequent_indent="  ", break_on_hyphens=False))
    return "\n".join(lines)


def method_table(problem: type) -> str:
    """Return the methods for a kind of problem as a Markdown table."""
    rows = ["| `solver=` | what it does | guarantee | from |", "|---|---|---|---|"]
    for name, method in methods_for(problem).items():
        cells = (f"`{name}`", method.summary, method.guarantee, method.reference)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def method_names(problem: type) -> list[str]:
    """Return what methods for a kind of problem are called."""
    return list(methods_for(problem))


def _plain(text: str) -> str:
    """Return a text without Markdown's code marks."""
    return re.sub(r"`([^`]*)`", r"\1", text)
