"""Matplotlib and the page show the same numbers, in the same order and the same colours."""

import subprocess
import sys
from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

from kspan.figures import PathFigure
from kspan.figures.appearance import DARK, LIGHT
from kspan.plotting import (
    BiplotDisplay,
    GapDisplay,
    LoadingsDisplay,
    PathDisplay,
    ScreeDisplay,
    StabilityDisplay,
)
from kspan.plotting.display import label
from kspan.report.charts import charts
from kspan.report.charts import path as path_chart
from kspan.report.wording import hover
from tests.report import samples

# A page carries five digits or more.
CLOSE = {"rtol": 1e-4, "atol": 1e-12}

RECORDS = {
    "cancer": samples.cancer,
    "nonnegative": samples.nonnegative,
    "element": samples.element,
    "stiefel": samples.stiefel,
    "nasty names": samples.nasty,
    "many features": lambda: many(),
}
EVERY = pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)


def many():
    """More features than are shown, most of them alike."""
    rng = np.random.default_rng(0)
    W = np.linalg.qr(rng.normal(size=(100, 3)).round(1))[0]
    frequencies = rng.integers(0, 5, 200) / 4
    stability = replace(samples.cancer().stability, frequencies=frequencies, feature_names=None)
    return replace(
        samples.cancer(), n_features=200, support=np.arange(100) * 2, loadings=W,
        feature_names=None, stability=stability,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def tidy():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def chart(record, key):
    (found,) = [chart for chart in charts(record) if chart.key == key]
    return found


def trace(made, name):
    (found,) = [trace for trace in made.data if trace["name"].startswith(name)]
    return found


@EVERY
def test_loadings(record):
    made, display = chart(record(), "loadings"), LoadingsDisplay.from_record(record())
    (heat,) = made.data
    assert_allclose(heat["z"], display.image_.get_array().filled(0.0), **CLOSE)
    assert (heat["zmin"], heat["zmax"]) == display.image_.get_clim()
    ticks = [text.get_text() for text in display.ax_.get_yticklabels()]
    names = [display.feature_names[row] for row in display.shown_]
    assert ticks == [label(name) for name in names]
    assert [row[0] for row in heat["customdata"]] == [hover(name) for name in names]
    assert made.layout["xaxis"]["ticktext"] == [t.get_text() for t in display.ax_.get_xticklabels()]
    # What is written in a cell has the same sign, and is there for the same cells.
    written = {place: text[0] for place, text in np.ndenumerate(heat["text"]) if text}
    cells = {text.get_position()[::-1]: text.get_text()[0] for text in display.texts_}
    assert written == cells


@EVERY
def test_variances(record):
    made, display = chart(record(), "variance"), ScreeDisplay.from_record(record())
    for name, bars in (("these", display.bars_), ("plain", display.pca_bars_)):
        assert_allclose(trace(made, name)["y"], [bar.get_height() for bar in bars], **CLOSE)
    assert trace(made, "these")["x"] == [text.get_text() for text in display.ax_.get_xticklabels()]


@pytest.mark.parametrize("factor", [1, 100])
def test_path(factor):
    record = samples.cancer()
    path = replace(record.path, k=np.append(record.path.k[:-1], 30 * factor))
    record = replace(record, path=path)
    made, display = chart(record, "path"), PathDisplay.from_record(record)
    for name, line in (("found", display.line_), ("proved", display.ceiling_)):
        assert trace(made, name)["x"] == line.get_xdata().tolist()
        assert_allclose(trace(made, name)["y"], line.get_ydata(), **CLOSE)
    band, corners = trace(made, "the best"), display.band_.get_paths()[0].vertices
    shown = np.column_stack([band["x"], band["y"]])
    assert_allclose(*(np.unique(points.round(5), axis=0) for points in (shown, corners)), **CLOSE)
    mark = trace(made, "k = 12")
    assert mark["x"] == list(display.chosen_.get_xdata())
    assert_allclose(mark["y"], display.chosen_.get_ydata(), **CLOSE)
    assert made.layout["xaxis"].get("type", "linear") == display.ax_.get_xscale()


@pytest.mark.parametrize(
    ("certified", "stretches"),
    [
        ([True] * 5, []),
        ([False] * 5, [(3, 12)]),
        ([True, True, False, True, True], [(4, 7)]),
        ([False, True, True, True, False], [(3, 4), (11, 12)]),
    ],
)
def test_stretches_without_a_certificate(certified, stretches):
    numbers = {
        "k": [3, 4, 6, 11, 12], "objective": [1, 2, 3, 4, 5], "full": 6.0,
        "upper": [1.5, 2.5, 3.5, 5, 5.5], "certified": certified,
    }  # fmt: skip
    display, made = PathDisplay(**numbers).plot(), path_chart(PathFigure(**numbers))
    drawn = [part.get_paths()[0].vertices for part in display.uncertified_]
    assert [(part[:, 0].min(), part[:, 0].max()) for part in drawn] == stretches
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    says = "bounded by variances and eigenvalues only"
    assert legend.count(says) == bool(stretches)
    assert ("hatched" in made.caption) == bool(stretches)
    if not stretches:
        assert all(each["name"] != says for each in made.data)
        return
    marked = trace(made, says)
    points = np.array([(np.nan, np.nan) if x is None else (x, y) for x, y in
                       zip(marked["x"], marked["y"], strict=True)])  # fmt: skip
    parts = np.split(points, np.flatnonzero(np.isnan(points[:, 0])))
    for shown, corners in zip(parts, drawn, strict=True):
        shown = shown[~np.isnan(shown[:, 0])]
        assert_allclose(
            *(np.unique(each.round(5), axis=0) for each in (shown, corners)), **CLOSE
        )  # fmt: skip


def test_a_path_says_which_of_it_is_certified():
    path = samples.cancer().path
    assert PathFigure.from_path(path).certified.tolist() == path.certified.tolist()
    apart = samples.with_own_path("nonnegative").path
    assert PathFigure.from_path(apart).uncertified == []


@EVERY
def test_biplot(record):
    made, display = chart(record(), "biplot"), BiplotDisplay.from_record(record())
    (points,) = made.data
    (scatter,) = display.points_
    assert_allclose(np.column_stack([points["x"], points["y"]]), scatter.get_offsets(), **CLOSE)
    notes = made.layout["annotations"]
    arrows, names = notes[::2], notes[1::2]
    tips = [arrow.xy for arrow in display.arrows_]
    assert_allclose([(arrow["x"], arrow["y"]) for arrow in arrows], tips)
    assert_allclose([(name["x"], name["y"]) for name in names], tips)
    assert [name["xanchor"] for name in names] == [text.get_ha() for text in display.labels_]
    shown = [display.feature_names[row] for row in display.shown_]
    assert [name["hovertext"] for name in names] == [hover(name) for name in shown]
    assert [text.get_text() for text in display.labels_] == [label(name) for name in shown]
    for axis in "xy":
        title = made.layout[f"{axis}axis"]["title"]["text"]
        assert title == getattr(display.ax_, f"get_{axis}label")()


def test_gap():
    record = samples.cancer()
    made, display = chart(record, "gap"), GapDisplay.from_record(record)
    for name, line in (("lower", display.lower_), ("upper", display.upper_)):
        assert_allclose(trace(made, name)["x"], line.get_xdata(), **CLOSE)
        assert_allclose(trace(made, name)["y"], line.get_ydata(), rtol=1e-9)
        assert trace(made, name)["line"]["shape"] == "hv"
        assert line.get_drawstyle() == "steps-post"
    band, corners = trace(made, "the best"), display.band_.get_paths()[0].vertices
    assert_allclose([min(band["y"]), max(band["y"])], [*corners.min(0)[1:], *corners.max(0)[1:]])


def test_gaps_of_several_proofs():
    record = samples.nonnegative()
    made = chart(record, "gap")
    assert len(made.data) == 2
    for j, line in enumerate(made.data):
        display = GapDisplay.from_record(record, component=j)
        assert_allclose(line["x"], display.lower_.get_xdata(), **CLOSE)
        lower, upper = display.lower_.get_ydata(), display.upper_.get_ydata()
        assert_allclose(line["y"], (upper - lower) / upper, **CLOSE)


@pytest.mark.parametrize("name", ["cancer", "nasty names", "many features"])
def test_stability(name):
    record = RECORDS[name]()
    made, display = chart(record, "stability"), StabilityDisplay.from_record(record)
    rows = len(display.bars_)
    shares, hatched, names = np.empty(rows), np.zeros(rows, dtype=bool), [""] * rows
    for bars in made.data:
        shares[bars["y"]] = bars["x"]
        hatched[bars["y"]] = "pattern" in bars["marker"]
        for row, name in zip(bars["y"], bars["customdata"], strict=True):
            names[row] = name
    assert names == [hover(display.feature_names[place]) for place in display.shown_]
    assert_allclose(shares, [bar.get_width() for bar in display.bars_], **CLOSE)
    assert hatched.tolist() == [bar.get_hatch() is not None for bar in display.bars_]


def test_a_sign_has_the_same_colour():
    """The page paints with the palette: tests/report/test_render.py; here matplotlib does."""
    W = np.array([[0.8, -0.8], [0.6, 0.0]])
    display = LoadingsDisplay(loadings=W, feature_names=["a", "b"]).plot()
    positive, negative = display.image_.to_rgba(np.array([0.8, -0.8]))
    assert mpl.colors.to_hex(positive) == LIGHT["positive"]
    assert mpl.colors.to_hex(negative) == LIGHT["negative"]
    # Blue is positive: more blue than red, in both themes.
    for theme in (LIGHT, DARK):
        red, _, blue = mpl.colors.to_rgb(theme["positive"])
        assert blue > red
        red, _, blue = mpl.colors.to_rgb(theme["negative"])
        assert red > blue


def test_one_meaning_has_one_colour():
    record = samples.cancer()

    def token(value):
        return LIGHT[value.removeprefix("@")]

    def same(artist_colour, value):
        alpha = len(token(value)) == 9
        assert mpl.colors.to_hex(artist_colour, keep_alpha=alpha) == token(value)

    path, drawn = chart(record, "path"), PathDisplay.from_record(record)
    same(drawn.line_.get_color(), trace(path, "found")["line"]["color"])
    same(drawn.ceiling_.get_color(), trace(path, "proved")["line"]["color"])
    same(drawn.band_.get_facecolor()[0], trace(path, "the best")["fillcolor"])
    same(drawn.chosen_.get_markeredgecolor(), trace(path, "k =")["marker"]["line"]["color"])
    gap, drawn = chart(record, "gap"), GapDisplay.from_record(record)
    same(drawn.lower_.get_color(), trace(gap, "lower")["line"]["color"])
    same(drawn.upper_.get_color(), trace(gap, "upper")["line"]["color"])
    scree, drawn = chart(record, "variance"), ScreeDisplay.from_record(record)
    same(drawn.bars_[0].get_facecolor(), trace(scree, "these")["marker"]["color"])
    same(drawn.pca_bars_[0].get_edgecolor(), trace(scree, "plain")["marker"]["color"])
    points, drawn = chart(record, "biplot"), BiplotDisplay.from_record(record)
    same(drawn.points_[0].get_facecolor()[0], trace(points, "samples")["marker"]["color"])
    often, drawn = chart(record, "stability"), StabilityDisplay.from_record(record)
    for bar, place in zip(drawn.bars_, drawn.shown_, strict=True):
        inside = place in record.support
        value = trace(often, "in this" if inside else "not in")["marker"]["color"]
        same(bar.get_facecolor() if inside else bar.get_edgecolor(), value)


def test_importing_the_painters_imports_no_extra():
    extras = {"jinja2", "matplotlib", "plotly"}
    code = f"import sys, kspan.plotting, kspan.report; print({extras} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
