"""Figures about the proof and the choice of k: the path, the gap, the stability."""

import numpy as np

from kspan.records import FitRecord
from kspan.report import tables
from kspan.report.spec import (
    HATCHED,
    MOST_FEATURES,
    SOLID,
    Figure,
    area,
    axis,
    line,
    named_axis,
    significant,
)
from kspan.report.wording import hover

# Lines that differ without colours too.
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")

# Points of a curve that get a mark each.
MOST_MARKS = 40

# The number of features from the fewest to the most: beyond this factor the axis is logarithmic.
WIDE_RANGE = 40


def path(record: FitRecord) -> Figure | None:
    """Explained variance against k, with the band that holds the optimum."""
    found = record.path
    if found is None or found.k.size < 2 or not found.full > 0:
        return None
    k = [int(value) for value in found.k]
    lower = significant(found.objective / found.full, 6)
    upper = significant(found.upper / found.full, 6)
    many = k[-1] / k[0] > WIDE_RANGE
    mode = "lines" if len(k) > MOST_MARKS else "lines+markers"
    here = record.support.size
    data = [
        area(k, lower, upper, "the best possible lies here"),
        line(
            k, upper, "proved limit", mode="lines",
            line={"color": "@ink", "width": 1.5, "dash": "dash"},
            hovertemplate="no %{x} features explain more than %{y:.2%}<extra></extra>",
        ),
        line(
            k, lower, "found", mode=mode,
            hovertemplate="%{x} features explain %{y:.2%}<extra></extra>",
        ),
    ]  # fmt: skip
    layout = {
        "xaxis": axis("number of features k", type="log" if many else "linear"),
        "yaxis": axis("share of plain PCA", tickformat=".0%"),
        "shapes": [
            {
                "type": "line", "xref": "x", "yref": "paper", "x0": here, "x1": here,
                "y0": 0, "y1": 1, "line": {"color": "@muted", "width": 1.5, "dash": "dot"},
            }
        ],
    }  # fmt: skip
    caption = (
        f"What the best choice of k features explains, as a share of what plain PCA does, lies "
        f"between the two lines. The dotted line is this fit, with {here} features."
    )
    return Figure("path", "How many features are needed", caption, data, layout)


def gap(record: FitRecord) -> Figure | None:
    """How lower and upper bound approached each other."""
    proofs = [proof for proof in record.certificates if len(proof.history) > 1]
    if not proofs:
        return None
    if len(record.certificates) > 1:
        return _gaps(record)
    time, lower, upper = proofs[0].history.T
    x, low, high = significant(time), significant(lower, 10), significant(upper, 10)
    mode = "lines" if len(x) > MOST_MARKS else "lines+markers"
    data = [
        area(_steps_x(x), _steps_y(low), _steps_y(high), "the best possible lies here"),
        line(
            x, high, "upper: proved limit", mode=mode,
            line={"color": "@ink", "width": 1.5, "dash": "dash", "shape": "hv"},
            marker={"color": "@ink", "size": 6, "symbol": "diamond"},
            hovertemplate="upper %{y:.7g} after %{x:.3g} s<extra></extra>",
        ),
        line(
            x, low, "lower: found", mode=mode,
            line={"color": "@accent", "width": 2, "shape": "hv"},
            hovertemplate="lower %{y:.7g} after %{x:.3g} s<extra></extra>",
        ),
    ]  # fmt: skip
    layout = {"xaxis": axis("seconds", rangemode="tozero"), "yaxis": axis("explained variance")}
    caption = "The proof brings the two lines together; between them is the best possible choice."
    return Figure("gap", "How the proof closed in", caption, data, layout)


def _gaps(record: FitRecord) -> Figure:
    """Several certificates are about different things: only their gaps fit in one figure."""
    data = []
    for j, proof in enumerate(record.certificates):
        time, lower, upper = proof.history.T
        share = np.where(upper > 0, (upper - lower) / np.where(upper > 0, upper, 1), 0.0)
        style = {"dash": DASHES[j % len(DASHES)], "shape": "hv", "width": 2}
        data.append(
            line(
                significant(time), significant(share), f"component {j + 1}",
                line={"color": "@accent" if j % 2 == 0 else "@other", **style},
                marker={
                    "color": "@accent" if j % 2 == 0 else "@other", "size": 7,
                    "symbol": SYMBOLS[j % len(SYMBOLS)],
                },
                hovertemplate=f"component {j + 1}: %{{y:.3%}} after %{{x:.3g}} s<extra></extra>",
            )
        )  # fmt: skip
    layout = {
        "xaxis": axis("seconds", rangemode="tozero"),
        "yaxis": axis("gap", tickformat=".1%", rangemode="tozero"),
    }
    caption = "What may be missing of the best possible, at most, while the proofs went on."
    return Figure("gap", "How the proofs closed in", caption, data, layout)


def _steps_x(x: list[float]) -> list[float]:
    """Return the corners of a curve that is level and then jumps."""
    return [value for value in x for _ in range(2)][1:]


def _steps_y(y: list[float]) -> list[float]:
    return [value for value in y for _ in range(2)][:-1]


def stability(record: FitRecord) -> Figure | None:
    """How often each feature was chosen when the fit was repeated."""
    often, made = tables.frequencies(record), record.stability
    if often is None or made is None:
        return None
    chosen = np.zeros(record.n_features, dtype=bool)
    chosen[record.support] = True
    # Of features chosen equally often, those of this fit first.
    ranked = np.lexsort((~chosen, -often))
    shown = ranked[: min(MOST_FEATURES, int(np.count_nonzero((often > 0) | chosen)))]
    names = [record.feature_names[i] if record.feature_names else str(i) for i in shown]
    data = []
    for name, inside in (("in this fit", True), ("not in this fit", False)):
        rows = [row for row, feature in enumerate(shown) if chosen[feature] == inside]
        data.append(
            {
                "type": "bar", "orientation": "h", "name": name, "y": rows,
                "marker": SOLID if inside else HATCHED,
                "x": significant(often[shown[rows]]),
                "customdata": [hover(names[row]) for row in rows],
                "hovertemplate": "%{customdata}<br>chosen in %{x:.1%}<extra></extra>",
            }
        )  # fmt: skip
    wide, narrow = named_axis(names)
    layout = {
        "barmode": "overlay", "bargap": 0.3, "yaxis": wide,
        "xaxis": axis("share of the repeats", range=[0, 1.02], tickformat=".0%"),
    }  # fmt: skip
    left = int(np.count_nonzero(often > 0)) - len(shown)
    caption = (
        f"In which share of {made.n_resamples} repeats, on other samples of the data each, a "
        f"feature was chosen. The choices agree to {made.nogueira:.2f}, where 1 is always and 0 "
        "is chance."
    )
    if left > 0:
        caption += f" The {len(shown)} most frequent are shown."
    height = 130 + 22 * len(shown)
    return Figure(
        "stability", "How stable the choice is", caption, data, layout, height,
        narrow={"yaxis": narrow},
    )  # fmt: skip
