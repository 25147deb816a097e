"""The charts of a page, in their order: of the fit, of the choice of k, of the proof."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kspan import figures
from kspan.arrays import FloatArray
from kspan.figures import (
    BiplotFigure,
    GapFigure,
    LoadingsFigure,
    NothingToDraw,
    PathFigure,
    ScreeFigure,
    StabilityFigure,
    StepsFigure,
)
from kspan.figures.appearance import SEQUENCE, component_names, one_line, signed
from kspan.figures.biplot import Arrows
from kspan.figures.choosing import UNCERTIFIED
from kspan.records import FitRecord
from kspan.report.spec import (
    HATCHED,
    SOLID,
    Chart,
    Spec,
    axis,
    band,
    hatched,
    line,
    named_axis,
    significant,
)
from kspan.report.wording import hover, label

# Pixels: of the biplot's inside, and of a name in it; characters of such a name. How far names are
# from the tips, as a share of how far the samples reach.
PLOT_HEIGHT, NAME_HEIGHT, ARROW_NAME, MARGIN = 400, 17, 22, 0.04

# Marks of classes, which differ without colours too, and the colours of numbers.
CLASS_SYMBOLS = (
    "circle", "triangle-up", "square", "diamond", "triangle-down", "cross", "x", "triangle-left",
    "triangle-right", "star",
)  # fmt: skip
COLOUR_SCALE = [[i / (len(SEQUENCE) - 1), colour] for i, colour in enumerate(SEQUENCE)]

# Variances that differ by more than this are drawn on a logarithmic scale.
DECADES = 300.0

# Pixels that a cell of the heat map needs for its number.
CELL = 58


def loadings(figure: LoadingsFigure) -> Chart:
    """A heat map of features and components; the sign is written, as grey shows none."""
    shown = figure.order()
    values = figure.loadings[shown]
    (k, m), rows = figure.loadings.shape, shown.size
    names = [figure.feature_names[i] for i in shown]
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    data: list[Spec] = [
        {
            "type": "heatmap",
            "z": [significant(row) for row in values],
            "x": list(range(m)),
            "y": list(range(rows)),
            "text": [[signed(value) if value else "" for value in row] for row in values],
            "texttemplate": "%{text}",
            "textfont": {"color": "@ink"},
            "customdata": [[hover(name)] * m for name in names],
            "hovertemplate": "%{customdata}<br>loading %{z:.4f}<extra></extra>",
            "colorscale": "@loadings",
            "zmin": -largest, "zmax": largest, "xgap": 2, "ygap": 2,
            "colorbar": {"title": {"text": "loading"}, "thickness": 10, "outlinewidth": 0},
        }
    ]  # fmt: skip
    wide, narrow = named_axis(names)
    components = axis(
        "component", side="top", showgrid=False, zeroline=False, range=[-0.5, m - 0.5],
        tickvals=list(range(m)), ticktext=component_names(m),
    )  # fmt: skip
    caption = (
        "Each row is a feature, beside others that weigh most in the same component; a number is "
        "its loading."
    )
    if k > rows:
        caption += f" Only the {rows} largest of {k:,} are shown; the table has all."
    return Chart(
        "loadings", "Loadings", caption, data, {"yaxis": wide, "xaxis": components},
        height=110 + 26 * rows, min_width=CELL * m + 130 if m > 3 else 0, narrow={"yaxis": narrow},
    )  # fmt: skip


def variances(figure: ScreeFigure) -> Chart:
    """Explained variance of each component beside that of plain PCA."""
    m = figure.share.size
    bars = [("these components", figure.share, figure.explained_variance, SOLID)]
    caption = "What each component explains of the variance of all features."
    if figure.pca_share is not None and figure.pca_variance is not None:
        bars.append(("plain PCA, all features", figure.pca_share, figure.pca_variance, HATCHED))
        caption += " Plain PCA, with all features, is the most that is possible in total."
    data = [
        {
            "type": "bar", "name": name, "x": component_names(m), "y": significant(shares),
            "marker": marker, "customdata": significant(values, 6),
            "hovertemplate": "%{x}: %{y:.2%}, variance %{customdata}<extra>" + name + "</extra>",
        }
        for name, shares, values, marker in bars
    ]  # fmt: skip
    layout = {
        "barmode": "group", "bargap": 0.35, "bargroupgap": 0.08,
        "xaxis": axis("component", showgrid=False),
        "yaxis": axis("share of total variance", tickformat=".0%", rangemode="tozero"),
    }  # fmt: skip
    shown = np.concatenate([shares[shares > 0] for _, shares, _, _ in bars])
    if shown.size and shown.max() > DECADES * shown.min():
        layout["yaxis"] = axis("share of total variance", type="log", tickformat="~p", dtick=1)
        caption += " The scale is logarithmic: each line is ten times the one below."
    width = 60 * m if m > 6 else 0
    return Chart("variance", "Explained variance", caption, data, layout, min_width=width)


def samples(figure: BiplotFigure) -> Chart:
    """Samples in the plane of the first two components, with the features that span it."""
    if figure.scores.shape[1] == 1:
        return _histogram(figure)
    arrows = figure.arrows()
    data = _points(figure)
    reach = np.abs(figure.scores).max(axis=0)
    layout = {
        "xaxis": axis(figure.axis_title(0)), "yaxis": axis(figure.axis_title(1)),
        "showlegend": len(data) > 1, "hovermode": "closest",
        "annotations": _arrows(arrows, reach, ARROW_NAME),
    }  # fmt: skip
    narrow = {"annotations": _arrows(arrows, reach, ARROW_NAME // 2)}
    shown, every = arrows.rows.size, len(figure.loadings)
    some = f"; the {shown} longest of {every:,} are drawn" if shown < every else ""
    caption = (
        "Each point is a sample. An arrow shows the loadings of a feature, to a scale of their own "
        f"on each axis{some}.{_coloured(figure)}{_part(figure)}"
    )
    return Chart("biplot", "Samples and features", caption, data, layout, height=520, narrow=narrow)


def _points(figure: BiplotFigure) -> list[Spec]:
    """Return the samples: all alike, or by class, or by number."""
    names = [hover(name) for name in figure.sample_names or []]
    plain: Spec = {"color": "@accent", "size": 6, "opacity": 0.55}
    marked: Spec = {"size": 7, "opacity": 0.8, "line": {"color": "@ink", "width": 0.5}}
    every, of = np.ones(len(figure.scores), dtype=bool), ""
    classes = figure.classes()
    if classes is not None:
        of = "%{fullData.name}"
        groups = [
            (label(each.name), each.rows, {**marked, "color": each.colour, "symbol": symbol})
            for each, symbol in zip(classes, CLASS_SYMBOLS, strict=False)
        ]
    elif figure.y is not None:
        bar = {"title": {"text": label(figure.y_name)}, "thickness": 10, "outlinewidth": 0}
        values = [None if value != value else value for value in significant(figure.y)]
        numbers = {"color": values, "colorscale": COLOUR_SCALE, "showscale": True, "colorbar": bar}
        groups = [("samples", every, {**marked, **numbers})]
    else:
        groups = [("samples", every, plain)]
    return [
        {
            "type": "scatter", "mode": "markers", "name": name,
            "x": significant(figure.scores[rows, 0]), "y": significant(figure.scores[rows, 1]),
            "marker": marker,
            "customdata": [names[place] for place in np.flatnonzero(rows)] if names else [],
            "hovertemplate": "%{customdata}<br>PC1 %{x:.4g}, PC2 %{y:.4g}<extra>" + of + "</extra>",
        }
        for name, rows, marker in groups
    ]  # fmt: skip


def _coloured(figure: BiplotFigure) -> str:
    """Say what colours mean."""
    if figure.y is None:
        return ""
    if figure.classes() is None:
        return f" Colours show {one_line(figure.y_name)}."
    return f" Colours and marks show {one_line(figure.y_name)}."


def _part(figure: BiplotFigure) -> str:
    """Say when the record keeps some of many samples."""
    n, every = len(figure.scores), figure.n_samples
    return f" {n:,} of {every:,} samples are shown." if every and n < every else ""


def _arrows(arrows: Arrows, reach: FloatArray, width: int) -> list[Spec]:
    """Return an arrow for each feature, and a name with a line to its tip."""
    gap = NAME_HEIGHT * 2 * reach[1] / PLOT_HEIGHT
    places = arrows.name_places(gap, MARGIN * reach[0]).tolist()
    from_origin = {
        "ax": 0, "ay": 0, "text": "", "arrowhead": 2, "arrowwidth": 1.6, "arrowcolor": "@ink",
    }  # fmt: skip
    drawn: list[Spec] = []
    for name, (x, y), (name_x, name_y) in zip(
        arrows.names, arrows.tips.tolist(), places, strict=True
    ):
        from_name = {
            "ax": name_x, "ay": name_y, "text": label(name, width), "hovertext": hover(name),
            "captureevents": True, "xanchor": "left" if x >= 0 else "right", "arrowhead": 0,
            "arrowwidth": 0.8, "arrowcolor": "@ink", "bgcolor": "@veil", "borderpad": 1,
            "font": {"size": 12, "color": "@ink"},
        }  # fmt: skip
        tip = {"x": x, "y": y, "axref": "x", "ayref": "y", "showarrow": True}
        drawn += [{**tip, **from_origin}, {**tip, **from_name}]
    return drawn


def _histogram(figure: BiplotFigure) -> Chart:
    """One component has no plane: how its scores are spread."""
    classes = figure.classes() if figure.y is not None else None
    every = np.ones(len(figure.scores), dtype=bool)
    groups: list[tuple[str, Any, Spec]] = [("samples", every, SOLID)]
    if classes is not None:
        line = {"color": "@ink", "width": 0.5}
        groups = [
            (label(each.name), each.rows, {"color": each.colour, "line": line}) for each in classes
        ]
    data: list[Spec] = [
        {
            "type": "histogram", "x": significant(figure.scores[rows, 0]), "marker": marker,
            "hovertemplate": "%{y} samples, PC1 in %{x}<extra></extra>", "name": name,
        }
        for name, rows, marker in groups
    ]  # fmt: skip
    layout = {
        "xaxis": axis(figure.axis_title(0)), "yaxis": axis("samples"), "bargap": 0.04,
        "showlegend": len(data) > 1, "barmode": "stack",
    }  # fmt: skip
    coloured = "" if classes is None else _coloured(figure)
    caption = f"Where the samples lie along the component.{coloured}{_part(figure)}"
    return Chart("biplot", "Samples along the component", caption, data, layout)


def steps(figure: StepsFigure) -> Chart:
    """The objective after every step of the solver."""
    x = list(range(1, figure.objective.size + 1))
    data = [line(x, significant(figure.objective, 9), "objective", "step %{x}: %{y:.8g}")]
    layout = {"xaxis": axis("step"), "yaxis": axis(figure.what), "showlegend": False}
    caption = "What the solver had found after each of its steps."
    if figure.starts_anew:
        caption += " It may find components one after the other: then the curve starts anew."
    return Chart("steps", "Steps of the solver", caption, data, layout, height=300)


# Lines that differ without colours too.
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
BY_FACTORS = {"type": "log", "dtick": "D2"}
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")


def path(figure: PathFigure) -> Chart:
    """Explained variance against k, with the band that holds the optimum."""
    k, lower = figure.k.tolist(), significant(figure.share, 6)
    have = "have" if figure.adds_up else "explain"
    data = [line(k, lower, "found", f"%{{x}} {figure.counted} {have} %{{y:.2%}}")]
    if figure.band is not None:
        x, low, high = figure.band
        upper = significant(high, 6)
        says = f"no %{{x}} {figure.counted} {have} more than %{{y:.2%}}"
        limit = line(x.tolist(), upper, "proved limit", says, colour="@ink", dash="dash")
        inside = band(x.tolist(), significant(low, 6), upper)
        unproved = [hatched(figure.uncertified, UNCERTIFIED)] if figure.uncertified else []
        data = [inside, *unproved, {**limit, "mode": "lines"}, *data]
    caption = _about_path(figure)
    if figure.uncertified:
        caption += (
            " Where the band is hatched no certificate bounds the best possible, only variances "
            "and eigenvalues do."
        )
    layout: Spec = {
        "xaxis": axis(f"number of {figure.counted} k", **(BY_FACTORS if figure.is_wide else {})),
        "yaxis": axis("share of plain PCA", tickformat=".0%", rangemode="tozero"),
    }
    if figure.chosen is not None:
        layout["shapes"] = [_dotted(figure.chosen)]
        caption += f" The dotted line is this fit, with {figure.chosen} {figure.counted}."
    if figure.chosen_share is not None:
        data.append(_diamond(figure.chosen, figure.chosen_share))
    return Chart("path", "How many features are needed", caption, data, layout)


def _about_path(figure: PathFigure) -> str:
    """Say what the curves are, and what is proved of them."""
    share = "as a share of what plain PCA explains"
    if figure.ceiling is None:
        return (
            f"What components with at most k features each explain together, {share}. They were "
            "found one after the other: nothing is proved about what they explain together, only "
            "about each of them."
        )
    if figure.adds_up:
        return (
            "The variances of all components, added up although they share some, "
            f"{share}: the best possible with at most k features in each lies between the lines."
        )
    return (
        "What the best choice of k features explains, as a share of what plain PCA does, lies "
        "between the two lines."
    )


def _dotted(k: int) -> Spec:
    return {
        "type": "line", "xref": "x", "yref": "paper", "x0": k, "x1": k, "y0": 0, "y1": 1,
        "layer": "below",
        "line": {"color": "@muted", "width": 1.5, "dash": "dot"},
    }  # fmt: skip


def _diamond(k: int | None, share: float) -> Spec:
    return {
        "type": "scatter", "mode": "markers", "name": f"k = {k}, {share:.1%}", "x": [k],
        "y": significant([share], 6), "hoverinfo": "skip",
        "marker": {
            "symbol": "diamond", "size": 12, "color": "@paper",
            "line": {"color": "@other", "width": 2},
        },
    }  # fmt: skip


def worth_drawing(record: FitRecord) -> list[GapFigure]:
    """Return the history of each certificate, if any of them has more than its end."""
    if not any(len(proof.history) > 1 for proof in record.certificates):
        raise NothingToDraw("No proof took its time.")
    return [GapFigure.from_certificate(proof) for proof in record.certificates]


def gaps(figures: list[GapFigure]) -> Chart:
    """How lower and upper bound approached each other, in one proof or in several."""
    return _one_gap(figures[0]) if len(figures) == 1 else _several_gaps(figures)


def _one_gap(figure: GapFigure) -> Chart:
    x = significant(figure.seconds)
    low, high = significant(figure.lower, 10), significant(figure.upper, 10)
    data = [
        band(x, low, high, steps=True),
        line(
            x, high, "upper: proved limit", "upper %{y:.7g} after %{x:.3g} s", colour="@ink",
            dash="dash", symbol="diamond", steps=True,
        ),
        line(x, low, "lower: found", "lower %{y:.7g} after %{x:.3g} s", steps=True),
    ]  # fmt: skip
    layout = {"xaxis": axis("seconds", rangemode="tozero"), "yaxis": axis(figure.what)}
    caption = "The proof brings the two lines together; between them is the best possible choice."
    return Chart("gap", "How the proof closed in", caption, data, layout)


def _several_gaps(figures: list[GapFigure]) -> Chart:
    """Several certificates are about different things: only their gaps fit in one chart."""
    data = [
        line(
            significant(figure.seconds), significant(figure.gap), f"component {j + 1}",
            f"component {j + 1}: %{{y:.3%}} after %{{x:.3g}} s", steps=True,
            colour="@accent" if j % 2 == 0 else "@other", dash=DASHES[j % len(DASHES)],
            symbol=SYMBOLS[j % len(SYMBOLS)],
        )
        for j, figure in enumerate(figures)
    ]  # fmt: skip
    layout = {
        "xaxis": axis("seconds", rangemode="tozero"),
        "yaxis": axis("gap", tickformat=".1%", rangemode="tozero"),
    }
    caption = "What may be missing of the best possible, at most, while the proofs went on."
    return Chart("gap", "How the proofs closed in", caption, data, layout)


def stability(figure: StabilityFigure) -> Chart:
    """How often each feature was chosen when the fit was repeated."""
    shown = figure.order()
    names = [figure.feature_names[place] for place in shown]
    shares, inside = significant(figure.frequencies[shown]), figure.in_fit[shown]
    data: list[Spec] = []
    for name, chosen in (("in this fit", True), ("not in this fit", False)):
        rows = [row for row in range(shown.size) if inside[row] == chosen]
        data.append(
            {
                "type": "bar", "orientation": "h", "name": name, "y": rows,
                "marker": SOLID if chosen else HATCHED, "x": [shares[row] for row in rows],
                "customdata": [hover(names[row]) for row in rows],
                "hovertemplate": "%{customdata}<br>chosen in %{x:.1%}<extra></extra>",
            }
        )  # fmt: skip
    wide, narrow = named_axis(names)
    layout = {
        "barmode": "overlay", "bargap": 0.3, "yaxis": wide,
        "xaxis": axis("share of the repeats", range=[0, 1.02], tickformat=".0%"),
    }  # fmt: skip
    caption = (
        f"In which share of {figure.n_resamples} repeats, on other samples of the data each, a "
        f"feature was chosen. The choices agree to {figure.nogueira:.2f}, where 1 is always and 0 "
        "is chance."
    )
    if (figure.frequencies > 0).sum() > shown.size:
        caption += f" The {shown.size} most frequent are shown."
    return Chart(
        "stability", "How stable the choice is", caption, data, layout, 130 + 22 * shown.size,
        narrow={"yaxis": narrow},
    )  # fmt: skip


# What is drawn, and what paints it.
_CHARTS: tuple[tuple[Callable[[FitRecord], Any], Callable[[Any], Chart]], ...] = (
    (figures.LoadingsFigure.from_record, loadings),
    (figures.ScreeFigure.from_record, variances),
    (figures.PathFigure.from_record, path),
    (figures.BiplotFigure.from_record, samples),
    (worth_drawing, gaps),
    (figures.StabilityFigure.from_record, stability),
    (figures.StepsFigure.from_record, steps),
)


def charts(record: FitRecord) -> list[Chart]:
    """Return every chart that the record has the numbers for."""
    made = []
    for numbers_of, paint in _CHARTS:
        try:
            numbers = numbers_of(record)
        except figures.NothingToDraw:
            continue
        made.append(paint(numbers))
    return made
