"""Numbers and names as people read them, on the page and inside figures."""

import html
import math
import re
import textwrap
from typing import Any

NAMELESS = "(no name)"
MINUS, DOTS = "\N{MINUS SIGN}", "\N{HORIZONTAL ELLIPSIS}"


def count(number: int, noun: str) -> str:
    """Return the number with its noun: "1 feature", "12 features"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def number(value: float, digits: int = 6) -> str:
    """Return a number with so many digits that matter."""
    return f"{value:.{digits}g}".replace("-", MINUS)


def signed(value: float) -> str:
    """Return a loading: three decimals and always a sign, for a sign must not need a colour."""
    if value == 0:
        return "0"
    small = abs(value) < 0.0005
    text = f"{value:+.0e}" if small else f"{value:+.3f}"
    return text.replace("-", MINUS, 1).replace("e-0", "e-").replace("e-", f"e{MINUS}")


def percent(share: float, decimals: int = 1) -> str:
    """Return a share in percent; what is a little less than all is never shown as all of it."""
    text = f"{100 * share:.{decimals}f}"
    if share < 1 - 1e-9 and float(text) >= 100:
        return f"more than {100 - 10**-decimals:.{decimals}f}%"
    return f"{text}%".replace("-", MINUS)


def at_most(share: float) -> str:
    """Return a share in percent rounded up, so that "no more than" stays true."""
    decimals = 1 if share >= 0.001 else 1 - math.floor(math.log10(max(share, 1e-12) * 1000))
    step = 10.0**-decimals
    return f"{math.ceil(100 * share / step) * step:.{decimals}f}%"


def at_least(share: float) -> str:
    """Return a share in percent rounded down, so that "at least" stays true."""
    return f"{math.floor(1000 * share) / 10:.1f}%"


def seconds(value: float | None) -> str:
    """Return a time, in minutes and hours when it is long."""
    if value is None:
        return "not recorded"
    if value < 120:
        return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def plain(value: Any) -> str:
    """Return a parameter as a line of text."""
    if isinstance(value, dict):
        return ", ".join(f"{key} = {plain(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(plain(item) for item in value) or "none"
    if isinstance(value, str):
        return place(value)
    return repr(value)


def place(text: str) -> str:
    """Return a text as it is, but of an absolute path only the file's name.

    A page is passed on, and folders tell about the machine and its user.
    """
    if re.match(r"[/~\\]|[A-Za-z]:[/\\]", text):
        return re.split(r"[/\\]+", text.rstrip("/\\"))[-1]
    return text


def short(name: str, width: int) -> str:
    """Return the name, its middle left out if it is long: names often begin alike."""
    name = " ".join(name.split()) or NAMELESS
    if len(name) <= width:
        return name
    tail = (width - 1) // 3
    return name[: width - 1 - tail] + DOTS + name[len(name) - tail :]


def label(name: str, width: int = 30) -> str:
    """Return a name for a figure, where plotly would read ``<b>`` and ``&lt;`` as HTML."""
    return html.escape(short(name, width), quote=False)


def hover(name: str) -> str:
    """Return the whole name for a hover box, in lines."""
    lines = textwrap.wrap((" ".join(name.split()) or NAMELESS)[:600], 50)
    return "<br>".join(html.escape(line, quote=False) for line in lines)
