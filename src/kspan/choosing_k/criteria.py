"""What is asked of the chosen features, by the names that users give it."""

from collections.abc import Callable
from functools import partial
from typing import Any

from kspan.problem import RepresentProblem, RowSparseProblem, SharedFeatures
from kspan.problem.represent import RIDGE

CRITERIA: dict[str, type[SharedFeatures]] = {
    "variance": RowSparseProblem,
    "represent": RepresentProblem,
}


def asking(criterion: str, ridge: float | None = None) -> Callable[..., Any]:
    """Return what makes the problem of a criterion; `ValueError` for a ridge that has no place.

    Parameters
    ----------
    criterion : one of `CRITERIA`
    ridge : of "represent"; None for its default
    """
    if criterion not in CRITERIA:
        raise ValueError(f"criterion must be one of {list(CRITERIA)}, got {criterion!r}.")
    if criterion == "represent":
        return partial(RepresentProblem, ridge=RIDGE if ridge is None else ridge)
    if ridge is not None:
        raise ValueError("ridge needs criterion='represent'.")
    return CRITERIA[criterion]
