"""What a chart is made of: plain dictionaries that plotly draws.

Colours are tokens such as ``"@accent"``, names of `kspan.figures.appearance`, which the page's
script replaces with those of the theme. Axes of features are numbers with names written beside
them, so that two features of the same name stay two.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kspan.report.wording import label

Spec = dict[str, Any]

# Characters of a name beside an axis, in a wide window and in a narrow one.
WIDE, NARROW = 30, 17

# Points of a curve that get a mark each.
MOST_MARKS = 40


@dataclass(frozen=True)
class Chart:
    """A figure as the page shows it.

    Attributes
    ----------
    key : identifies it on the page
    title, caption : above and below it
    data, layout : what plotly takes
    height, min_width : in pixels; in less width its box scrolls
    narrow : what the layout has instead in a narrow window
    """

    key: str
    title: str
    caption: str
    data: list[Spec]
    layout: Spec
    height: int = 380
    min_width: int = 0
    narrow: Spec = field(default_factory=dict)


# Bars that differ without colours too.
SOLID: Spec = {"color": "@accent"}
HATCHED: Spec = {
    "color": "@other",
    "line": {"color": "@other", "width": 1.5},
    "pattern": {"shape": "/", "bgcolor": "@paper", "fgcolor": "@other", "size": 7, "solidity": 0.4},
}


def axis(title: str, **more: Any) -> Spec:
    """Return an axis with a title."""
    return {"title": {"text": title}, "automargin": True, **more}


def named_axis(names: Sequence[str]) -> tuple[Spec, Spec]:
    """Return a vertical axis with a name at 0, 1, …, the first on top; wide and narrow."""
    fixed = {
        "automargin": True, "tickvals": list(range(len(names))),
        "range": [len(names) - 0.5, -0.5], "showgrid": False, "zeroline": False,
    }  # fmt: skip
    wide = {**fixed, "ticktext": [label(name, WIDE) for name in names]}
    return wide, {**fixed, "ticktext": [label(name, NARROW) for name in names]}


def significant(values: Any, digits: int = 5) -> list[Any]:
    """Return numbers for a picture: rounded, as a page has to carry them."""
    return [float(f"{value:.{digits}g}") for value in np.asarray(values, dtype=float)]


def band(
    x: Sequence[float], lower: Sequence[float], upper: Sequence[float], *, steps: bool = False
) -> Spec:
    """Return what is between two curves; with `steps`, curves that are level and then jump."""
    if steps:
        x = [value for value in x for _ in range(2)][1:]
        lower, upper = ([value for value in y for _ in range(2)][:-1] for y in (lower, upper))
    return {
        "type": "scatter", "mode": "lines", "name": "the best possible lies here",
        "x": [*x, *x[::-1]], "y": [*upper, *lower[::-1]],
        "fill": "toself", "fillcolor": "@band", "line": {"width": 0}, "hoverinfo": "skip",
    }  # fmt: skip


def hatched(stretches: Sequence[tuple[Any, Any, Any]], name: str) -> Spec:
    """Return parts of a band that are marked, all under one name.

    Parameters
    ----------
    stretches : for each part its places, lower and upper edges
    name : in the legend
    """
    x, y = list[Any](), list[Any]()
    for places, lower, upper in stretches:
        some = list(places.tolist())
        x += [None, *some, *some[::-1]]  # None parts one from the next
        y += [None, *significant(upper, 6), *significant(lower, 6)[::-1]]
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": x[1:], "y": y[1:],
        "fill": "toself", "line": {"width": 0}, "hoverinfo": "skip",
        "fillpattern": {
            "shape": "/", "fillmode": "replace", "fgcolor": "@muted", "bgcolor": "rgba(0,0,0,0)",
            "size": 7, "solidity": 0.2,
        },
    }  # fmt: skip


def line(
    x: Sequence[float],
    y: Sequence[float],
    name: str,
    says: str,
    *,
    colour: str = "@accent",
    dash: str = "solid",
    symbol: str = "circle",
    steps: bool = False,
) -> Spec:
    """Return a curve, with a mark at each point unless there are many.

    A point `says` something, in plotly's notation; with `steps` the curve is level and then jumps.
    """
    return {
        "type": "scatter", "name": name, "x": x, "y": y,
        "mode": "lines" if len(x) > MOST_MARKS else "lines+markers",
        "hovertemplate": f"{says}<extra></extra>",
        "line": {
            "color": colour, "width": 2, "dash": dash, "shape": "hv" if steps else "linear",
        },
        "marker": {"color": colour, "size": 6, "symbol": symbol},
    }  # fmt: skip
