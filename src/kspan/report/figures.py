"""The figures of a page: loadings, variances, samples, the steps of the solver."""

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.records import FitRecord
from kspan.report import proof_figures, tables
from kspan.report.spec import (
    HATCHED,
    MOST_FEATURES,
    SOLID,
    Figure,
    Spec,
    axis,
    line,
    named_axis,
    significant,
)
from kspan.report.wording import hover, label, signed

# Arrows and points of the biplot.
MOST_ARROWS, MOST_POINTS = 8, 2000

# Pixels: of the biplot's inside, and of a name in it; characters of such a name.
PLOT_HEIGHT, NAME_HEIGHT, ARROW_NAME = 400, 17, 22

# Pixels that a cell of the heat map needs for its number.
CELL = 58


def figures(record: FitRecord) -> list[Figure]:
    """Return every figure that the record has the numbers for."""
    made = [
        loadings(record),
        variances(record),
        proof_figures.path(record),
        biplot(record),
        proof_figures.gap(record),
        proof_figures.stability(record),
        steps(record),
    ]
    return [figure for figure in made if figure is not None]


def loadings(record: FitRecord) -> Figure:
    """A heat map of features and components; the sign is written, as grey shows none."""
    m, k = record.n_components, record.support.size
    shown = tables.order(record)[:MOST_FEATURES]
    names = [record.selected_names[i] for i in shown]
    values = record.loadings[shown]
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    data: list[Spec] = [
        {
            "type": "heatmap",
            "z": [significant(row) for row in values],
            "x": list(range(m)),
            "y": list(range(len(names))),
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
    layout = {
        "yaxis": wide,
        "xaxis": {
            "title": {"text": "component"}, "side": "top", "automargin": True, "showgrid": False,
            "zeroline": False, "range": [-0.5, m - 0.5], "tickvals": list(range(m)),
            "ticktext": [f"PC{j + 1}" for j in range(m)],
        },
    }  # fmt: skip
    caption = "Each row is a feature, the largest contribution on top; a number is its loading."
    if k > len(names):
        caption += f" Only the {len(names)} largest of {k:,} are shown; the table has all."
    return Figure(
        "loadings", "Loadings", caption, data, layout, height=110 + 26 * len(names),
        min_width=CELL * m + 130 if m > 3 else 0, narrow={"yaxis": narrow},
    )  # fmt: skip


def variances(record: FitRecord) -> Figure | None:
    """Explained variance of each component beside that of plain PCA."""
    if record.total_variance <= 0:
        return None
    names = [f"PC{j + 1}" for j in range(record.n_components)]
    bars = [("these components", record.explained_variance, SOLID)]
    if record.pca_variance is not None:
        bars.append(("plain PCA, all features", record.pca_variance, HATCHED))
    data = [
        {
            "type": "bar", "name": name, "x": names, "marker": marker,
            "y": significant(values / record.total_variance),
            "customdata": significant(values, 6),
            "hovertemplate": "%{x}: %{y:.2%}, variance %{customdata}<extra>" + name + "</extra>",
        }
        for name, values, marker in bars
    ]  # fmt: skip
    layout = {
        "barmode": "group", "bargap": 0.35, "bargroupgap": 0.08,
        "xaxis": axis("component", showgrid=False),
        "yaxis": axis("share of total variance", tickformat=".0%", rangemode="tozero"),
    }  # fmt: skip
    caption = "What each component explains of the variance of all features."
    if record.pca_variance is not None:
        caption += " Plain PCA, with all features, is the most that is possible in total."
    width = 60 * record.n_components if record.n_components > 6 else 0
    return Figure("variance", "Explained variance", caption, data, layout, min_width=width)


def biplot(record: FitRecord) -> Figure | None:
    """Samples in the plane of the first two components, with the features that span it."""
    scores = record.scores
    if scores is None or not len(scores):
        return None
    every = -(-len(scores) // MOST_POINTS)
    places = range(0, len(scores), every)
    names = record.sample_names or [f"sample {i}" for i in record.samples]
    if record.n_components == 1:
        return _histogram(scores)
    points = scores[::every, :2]
    data: list[Spec] = [
        {
            "type": "scatter", "mode": "markers", "name": "samples",
            "x": significant(points[:, 0]), "y": significant(points[:, 1]),
            "marker": {"color": "@accent", "size": 6, "opacity": 0.55},
            "customdata": [hover(names[i]) for i in places],
            "hovertemplate": "%{customdata}<br>PC1 %{x:.4g}, PC2 %{y:.4g}<extra></extra>",
        }
    ]  # fmt: skip
    pulling = _longest(record)
    layout = {
        "xaxis": axis("PC1"), "yaxis": axis("PC2"), "showlegend": False, "hovermode": "closest",
        "annotations": _arrows(record, pulling, points, ARROW_NAME),
    }  # fmt: skip
    narrow = {"annotations": _arrows(record, pulling, points, ARROW_NAME // 2)}
    caption = (
        f"Each point is a sample. An arrow shows where a feature pulls: the {len(pulling)} "
        f"longest, on a scale of their own."
    )
    if every > 1:
        caption += f" One of {every} samples is shown."
    return Figure(
        "biplot", "Samples and features", caption, data, layout, height=520, narrow=narrow
    )


def _longest(record: FitRecord) -> Index:
    """Return the places of the features that pull most in the plane, the longest first."""
    lengths = np.linalg.norm(_pulls(record), axis=1)
    return np.argsort(-lengths, kind="stable")[:MOST_ARROWS]


def _pulls(record: FitRecord) -> FloatArray:
    """Return loadings times standard deviations: how a feature goes along with a component."""
    return record.loadings[:, :2] * np.sqrt(np.maximum(record.explained_variance[:2], 0.0))


def _arrows(record: FitRecord, pulling: Index, points: FloatArray, width: int) -> list[Spec]:
    """Return an arrow and a name for each feature; names on a side are moved apart."""
    vectors = _pulls(record)[pulling]
    room = np.abs(points).max(axis=0)
    # As long as the points leave room for, in both directions.
    fill = float((np.abs(vectors) / np.where(room > 0, room, np.inf)).max(initial=0.0))
    tips = vectors * (0.75 / fill if fill > 0 else 1.0)
    shifts = _apart(tips, float(room[1]) or 1.0)
    arrows: list[Spec] = []
    for i, (x, y), shift in zip(pulling, tips, shifts, strict=True):
        arrows.append(
            {
                "x": float(x), "y": float(y), "ax": 0, "ay": 0, "axref": "x", "ayref": "y",
                "text": "", "showarrow": True, "arrowhead": 2, "arrowwidth": 1.6,
                "arrowcolor": "@ink",
            }
        )  # fmt: skip
        arrows.append(
            {
                "x": float(x), "y": float(y), "text": label(record.selected_names[i], width),
                "hovertext": hover(record.selected_names[i]), "captureevents": True,
                "showarrow": False, "xanchor": "left" if x >= 0 else "right",
                "xshift": 5 if x >= 0 else -5, "yshift": float(shift), "borderpad": 1,
                "bgcolor": "@veil", "font": {"size": 12, "color": "@ink"},
            }
        )  # fmt: skip
    return arrows


def _apart(tips: FloatArray, room: float) -> FloatArray:
    """Return by how many pixels to move names up or down so that they do not overlap."""
    wanted = tips[:, 1] / room * (PLOT_HEIGHT / 2)
    placed = wanted.copy()
    for side in (tips[:, 0] >= 0, tips[:, 0] < 0):
        rows = np.flatnonzero(side)
        rows = rows[np.argsort(wanted[rows], kind="stable")]
        for _ in range(100):
            short = np.maximum(NAME_HEIGHT - np.diff(placed[rows]), 0.0) / 2
            if not short.any():
                break
            placed[rows[:-1]] -= short
            placed[rows[1:]] += short
    return np.round(placed - wanted)


def _histogram(scores: FloatArray) -> Figure:
    """One component has no plane: how its scores are spread."""
    data: list[Spec] = [
        {
            "type": "histogram", "x": significant(scores[:, 0]), "marker": SOLID,
            "hovertemplate": "%{y} samples, PC1 in %{x}<extra></extra>", "name": "samples",
        }
    ]  # fmt: skip
    layout = {"xaxis": axis("PC1"), "yaxis": axis("samples"), "bargap": 0.04, "showlegend": False}
    caption = "Where the samples lie along the component."
    return Figure("biplot", "Samples along the component", caption, data, layout)


def steps(record: FitRecord) -> Figure | None:
    """The objective after every step of the solver."""
    if record.history.size < 2:
        return None
    x = list(range(1, record.history.size + 1))
    mode = "lines" if record.history.size > 100 else "lines+markers"
    data = [
        line(
            x, significant(record.history, 9), "objective", mode=mode,
            hovertemplate="step %{x}: %{y:.8g}<extra></extra>",
        )
    ]  # fmt: skip
    layout = {"xaxis": axis("step"), "yaxis": axis("explained variance"), "showlegend": False}
    caption = "What the solver had found after each of its steps."
    if not record.is_row_sparse and record.n_components > 1:
        caption += " It may find components one after the other: then the curve starts anew."
    return Figure("steps", "Steps of the solver", caption, data, layout, height=300)
