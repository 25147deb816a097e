"""Results as notebooks show them: a card of HTML that needs nothing but itself.

It has no script and no colours of its own, so that it reads in light and in dark notebooks.
"""

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

MINUS, DOTS = "\N{MINUS SIGN}", "\N{HORIZONTAL ELLIPSIS}"
NAMELESS = "(no name)"

# A card shows no more rows of a table, and no longer names.
MOST_ROWS = 15
LONGEST = 60

_RULE = "1px solid rgba(128,128,128,.4)"
_CARD = f"border:{_RULE};border-radius:4px;padding:.6em .9em;max-width:46em;display:inline-block"
_CELL = f"padding:.15em .7em;text-align:right;border-bottom:{_RULE}"
_MUTED = "opacity:.75;font-size:.9em"


def at_most(share: float) -> str:
    """Return a share in percent rounded up, so that "no more than" stays true.

    Examples
    --------
    >>> at_most(0.0351), at_most(0.0), at_most(0.0000123)
    ('3.6%', '0.0%', '0.002%')
    """
    if share <= 0:
        return "0.0%"
    decimals = 1 if share >= 0.001 else 1 - math.floor(math.log10(max(share, 1e-12) * 1000))
    step = 10.0**-decimals
    return f"{math.ceil(100 * share / step) * step:.{decimals}f}%"


def counted(number: int, noun: str) -> str:
    """Return the number with its noun: "1 feature", "12 features"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


@dataclass(frozen=True)
class Grid:
    """A short table: headings, and rows of texts of which the first names the row."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = field(default="", kw_only=True)


def some_rows(count: int) -> list[int]:
    """Return places of rows that stand for all: the first, the last, and some between.

    Examples
    --------
    >>> some_rows(3), len(some_rows(1000)), some_rows(1000)[-1]
    ([0, 1, 2], 15, 999)
    """
    shown = min(count, MOST_ROWS)
    return [round(i * (count - 1) / max(shown - 1, 1)) for i in range(shown)]


def card(
    title: str, result: str, sentences: Iterable[str] = (), facts: Iterable[tuple[str, str]] = (),
    grid: Grid | None = None,
) -> str:  # fmt: skip
    """Return a card as HTML.

    Parameters
    ----------
    title : what it is about, in small
    result : what there is to know, first and in bold
    sentences : more of it
    facts : names and values
    grid : a table below
    """
    parts = [
        f'<div style="{_MUTED}">{_text(title)}</div>',
        f'<div style="font-weight:600;margin:.2em 0">{_text(result)}</div>',
        *(f'<div style="margin:.2em 0">{_text(sentence)}</div>' for sentence in sentences),
    ]
    lines = [
        f'<tr><th scope="row" style="{_CELL};text-align:left;font-weight:400">{_text(name)}</th>'
        f'<td style="{_CELL}">{_text(value)}</td></tr>'
        for name, value in facts
    ]
    if lines:
        parts.append(_table("".join(lines)))
    if grid is not None:
        parts.append(_grid(grid))
    whole = f'<div class="kspan-card" style="{_CARD}">{"".join(parts)}</div>'
    # A name may hold half a character, which no page can.
    return whole.encode("utf-8", "replace").decode("utf-8")


def _grid(grid: Grid) -> str:
    head = "".join(
        f'<th scope="col" style="{_CELL}{"" if place else ";text-align:left"}">{_text(name)}</th>'
        for place, name in enumerate(grid.columns)
    )
    body = "".join(
        f'<tr><th scope="row" style="{_CELL};text-align:left;font-weight:400">{_text(first)}</th>'
        + "".join(f'<td style="{_CELL}">{_text(value)}</td>' for value in others)
        + "</tr>"
        for first, *others in grid.rows
    )
    note = f'<div style="{_MUTED}">{_text(grid.note)}</div>' if grid.note else ""
    return _table(f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>") + note


def _table(inside: str) -> str:
    style = "border-collapse:collapse;margin:.5em 0;font-variant-numeric:tabular-nums"
    return f'<table style="{style}">{inside}</table>'


def _text(text: str) -> str:
    return html.escape(" ".join(text.split()))


def one_line(name: str) -> str:
    """Return a name without line breaks; a text that says so if it is empty."""
    return " ".join(name.split()) or NAMELESS


def shorten(name: str, longest: int) -> str:
    """Return a name on one line, cut in the middle if it is long: names differ at their ends.

    Examples
    --------
    >>> shorten("mean concave points", 11)
    'mean …oints'
    """
    name = one_line(name)
    if len(name) <= longest:
        return name
    tail = (longest - 1) // 2
    return f"{name[: longest - 1 - tail]}{DOTS}{name[len(name) - tail :]}"


def signed(value: float, decimals: int = 3) -> str:
    """Return a loading, always with its sign: a sign must not need a colour.

    Examples
    --------
    >>> signed(0.25), signed(0.25, 2), signed(2e-9), signed(0.0)
    ('+0.250', '+0.25', '+2e−9', '0')
    """
    if value == 0:
        return "0"
    small = abs(value) < 0.5 * 10.0**-decimals
    text = f"{value:+.0e}" if small else f"{value:+.{decimals}f}"
    return text.replace("e-0", "e-").replace("-", MINUS)


def unsigned_zero(text: str) -> str:
    """Return a number as it is, but without the sign of a zero.

    Examples
    --------
    >>> unsigned_zero("-0.0%"), unsigned_zero("-0.01")
    ('0.0%', '-0.01')
    """
    return text[1:] if text[:1] == "-" and not text.strip("-0.%") else text
