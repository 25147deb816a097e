"""What a figure is made of: plain dictionaries that plotly draws.

Colours are tokens such as ``"@accent"``, which the page's script replaces with those of the theme.
Axes of features are numbers with names written beside them, so that two features of the same name
stay two.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kspan.report.wording import label

Spec = dict[str, Any]

# Features that a figure shows.
MOST_FEATURES = 60

# Characters of a name beside an axis, in a wide window and in a narrow one.
WIDE, NARROW = 30, 17


@dataclass(frozen=True)
class Figure:
    """A figure with its words.

    Attributes
    ----------
    key : str
        Identifies it on the page.
    title, caption : str
        Above and below it.
    data, layout : what plotly takes
    height : int
        In pixels, and `min_width` below which its box scrolls.
    narrow : dict
        What the layout has instead in a narrow window.
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
        "automargin": True,
        "tickvals": list(range(len(names))),
        "range": [len(names) - 0.5, -0.5],
        "showgrid": False,
        "zeroline": False,
    }
    wide = {**fixed, "ticktext": [label(name, WIDE) for name in names]}
    return wide, {**fixed, "ticktext": [label(name, NARROW) for name in names]}


def significant(values: Any, digits: int = 5) -> list[Any]:
    """Return numbers for a picture: rounded, as a page has to carry them."""
    return [float(f"{value:.{digits}g}") for value in np.asarray(values, dtype=float)]


def area(x: Sequence[float], lower: Sequence[float], upper: Sequence[float], name: str) -> Spec:
    """Return the band between two curves."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [*x, *x[::-1]],
        "y": [*upper, *lower[::-1]],
        "fill": "toself",
        "fillcolor": "@band",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "name": name,
    }


def line(x: Sequence[float], y: Sequence[float], name: str, **more: Any) -> Spec:
    """Return a curve; `more` replaces what it has."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": x,
        "y": y,
        "name": name,
        "line": {"color": "@accent", "width": 2},
        "marker": {"color": "@accent", "size": 6},
        **more,
    }
