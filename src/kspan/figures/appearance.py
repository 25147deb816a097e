"""How both painters write names and numbers, and their colours: one meaning, one colour.

Colours are ``#rrggbb`` or ``#rrggbbaa``:

- paper, sheet: behind everything, and behind boxes
- ink, muted: texts; what is proved is drawn in ink
- line, edge: rules and frames
- accent: what was found, and what belongs to the fit
- other: what it is compared with: plain PCA, features not chosen
- band: where the best possible lies
- veil: behind names that lie on points
- negative, zero, positive: loadings; numbers in ink can be read on all three
- focus: around what the keyboard is at

What differs in colour differs in lightness, mark, hatch or a written sign too.
"""

import numpy as np

from kspan.cards import MINUS as MINUS
from kspan.cards import NAMELESS as NAMELESS
from kspan.cards import one_line as one_line
from kspan.cards import shorten as shorten
from kspan.cards import signed as signed

# Matplotlib draws with the light one.
LIGHT = {
    "paper": "#fdfcfa", "sheet": "#f4f2ed", "ink": "#1d2126", "muted": "#565d66",
    "line": "#d9d5cc", "edge": "#837c6f", "accent": "#1c5a96", "other": "#b5701a",
    "band": "#1c5a9629", "veil": "#fdfcfad1", "focus": "#b3470b",
    "negative": "#c07a3e", "zero": "#f8f6f2", "positive": "#5e9fd6",
}  # fmt: skip

DARK = {
    "paper": "#15181c", "sheet": "#1e2329", "ink": "#e6e4df", "muted": "#a5abb3",
    "line": "#343b44", "edge": "#7b848f", "accent": "#7fb4e8", "other": "#e0a458",
    "band": "#7fb4e838", "veil": "#15181ccc", "focus": "#ffb86b",
    "negative": "#8a4a14", "zero": "#20252b", "positive": "#2b659e",
}  # fmt: skip


# From dark to light, for numbers and for classes in their order; readable without colours
# (matplotlib calls it cividis).
SEQUENCE = (
    "#00224e", "#083370", "#35456c", "#4f576c", "#666970", "#7d7c78", "#948e77", "#aea371",
    "#c8b866", "#e5cf52", "#fee838",
)  # fmt: skip


def class_colours(count: int) -> list[str]:
    """Return a colour for each class, in steps of lightness.

    Examples
    --------
    >>> class_colours(2)
    ['#042a5f', '#d6c45c']
    """
    steps = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in SEQUENCE])
    at, known = np.linspace(0.05, 0.85, max(count, 2)), np.linspace(0, 1, len(SEQUENCE))
    channels = np.array([np.interp(at, known, channel) for channel in steps.T]).round().astype(int)
    return ["#{:02x}{:02x}{:02x}".format(*colour) for colour in channels.T[:count]]


def component_names(m: int) -> list[str]:
    """Return PC1, PC2 and so on."""
    return [f"PC{j + 1}" for j in range(m)]
