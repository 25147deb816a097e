"""How the figures of pages are written: with as many digits as they have, and never too good."""

import math
from collections.abc import Callable, Iterable, Sequence

from benchmarks.pages import result

__all__ = ["Claim", "at_least", "at_most", "percent", "result", "span"]

# A sentence with holes, and a function that returns what belongs in them.
Claim = tuple[str, Callable[[], Sequence[object]]]


def at_most(value: float, digits: int = 0) -> str:
    """Return a number that is not less, unless by rounding of doubles."""
    return f"{math.ceil(value * 10**digits - 1e-9) / 10**digits:.{digits}f}"


def at_least(value: float, digits: int = 0) -> str:
    """Return a number that is not more, unless by rounding of doubles."""
    return f"{math.floor(value * 10**digits + 1e-9) / 10**digits:.{digits}f}"


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}"


def span(values: Iterable[float], digits: int = 0) -> tuple[str, str]:
    """Return the smallest and the largest."""
    values = list(values)
    return f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
