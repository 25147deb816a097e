"""Labels of samples: what a record keeps of them, and that both painters tell the same classes."""

from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from kspan import FeatureSparsePCA, FitRecord
from kspan.figures import BiplotFigure
from kspan.figures.appearance import SEQUENCE, class_colours
from kspan.figures.biplot import MOST_CLASSES, OTHERS, values_of
from kspan.plotting import BiplotDisplay
from kspan.plotting.display import MARKERS
from kspan.report.charts import CLASS_SYMBOLS, charts
from kspan.report.page import render

KINDS = np.array(["rose", "<b>tulip</b>", "@accent"])[np.arange(60) % 3]


@pytest.fixture(autouse=True)
def tidy():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


@pytest.fixture
def fit(rng):
    X = rng.standard_normal((60, 5)) * [3, 2, 2, 1, 1]

    def make(labels, m=2, **more):
        model = FeatureSparsePCA(m, 3, random_state=0).fit(X)
        return FitRecord.from_estimator(model, X, labels=labels, **more)

    return make


def painted(record):
    (found,) = [chart for chart in charts(record) if chart.key == "biplot"]
    return found


def test_records_keep_labels(fit, tmp_path):
    record = fit(KINDS, label_name="kind")
    assert record.labels == list(KINDS)
    record.save(tmp_path / "fit.kspan")
    back = FitRecord.load(tmp_path / "fit.kspan")
    assert (back.labels, back.label_name) == (record.labels, "kind")
    assert fit(None).labels is fit(None).label_name is None
    with pytest.raises(ValueError, match="labels has 2 names, expected 60"):
        fit(["a", "b"])
    for wrong in ({"labels": ["a"]}, {"label_name": None}, {"labels": None}):
        replace(record, **wrong).save(tmp_path / "wrong.kspan")
        with pytest.raises(ValueError, match="label"):
            FitRecord.load(tmp_path / "wrong.kspan")


def test_labels_are_said_not_to_be_checked(rng):
    X = rng.standard_normal((30, 4))
    model = FeatureSparsePCA(1, 2, random_state=0).fit(X)
    record = FitRecord.from_estimator(model, X, labels=["a", "b"] * 15)
    assert record.verify(X)[-1].endswith("labels")


def test_of_many_samples_the_labels_of_those_that_are_kept(rng):
    X = rng.standard_normal((2500, 4)) * [3, 2, 1, 1]
    y = np.arange(2500)
    record = FitRecord.from_estimator(FeatureSparsePCA(2, 3, random_state=0).fit(X), X, labels=y)
    assert record.labels == [str(value) for value in y[record.samples]]
    np.testing.assert_array_equal(BiplotFigure.from_record(record).y, y[record.samples])


@pytest.mark.parametrize("m", [1, 2])
def test_both_painters_tell_the_same_classes(fit, m):
    record = fit(KINDS, m=m, label_name="kind & sort")
    made, names = painted(record), sorted(set(KINDS))
    assert [trace["name"] for trace in made.data] == ["&lt;b&gt;tulip&lt;/b&gt;", "@accent", "rose"]
    assert made.layout["showlegend"]
    assert made.caption.endswith("Colours and marks show kind & sort.")
    assert [trace["marker"]["color"] for trace in made.data] == class_colours(3)
    for name, trace in zip(sorted(names), sorted(made.data, key=lambda t: t["name"]), strict=True):
        np.testing.assert_allclose(trace["x"], record.scores[name == KINDS, 0], rtol=1e-4)
    if m == 1:
        return
    display = BiplotDisplay.from_record(record).plot()
    for trace, points in zip(made.data, display.points_, strict=True):
        np.testing.assert_allclose(points.get_offsets()[:, 0], trace["x"], rtol=1e-4)
        assert to_hex(points.get_facecolor()[0]) == trace["marker"]["color"]
    assert len({trace["marker"]["symbol"] for trace in made.data}) == 3
    assert display.ax_.get_legend().get_title().get_text() == "kind & sort"
    page = render(record)
    assert "<b>tulip" not in page
    assert "Colours and marks show kind &amp; sort." in page


def test_numbers_are_a_scale(fit):
    values = np.linspace(0, 1, 60)
    record = fit([*values[:-1], ""], label_name="age")
    (trace,) = painted(record).data
    assert trace["marker"]["color"][-1] is None
    np.testing.assert_allclose(trace["marker"]["color"][:-1], values[:-1], rtol=1e-4, atol=1e-12)
    assert trace["marker"]["colorbar"]["title"]["text"] == "age"
    display = BiplotDisplay.from_record(record).plot()
    np.testing.assert_allclose(display.points_[0].get_array()[:-1], values[:-1])
    assert display.figure_.axes[1].get_ylabel() == "age"
    assert render(record)


def test_what_is_asked_for_comes_first(fit):
    display = BiplotDisplay.from_record(fit(KINDS), y=np.arange(60) % 2)
    assert [each.name for each in display.classes()] == ["0", "1"]


def test_what_labels_become():
    np.testing.assert_array_equal(values_of(["2", "10", "2"]), [2, 10, 2])
    assert values_of(["2", "10"]).dtype.kind == "i"
    np.testing.assert_array_equal(values_of(["1.5", ""]), [1.5, np.nan])
    assert values_of(["", ""]).tolist() == ["", ""]
    assert values_of(["1", "b"]).tolist() == ["1", "b"]
    many = [f"c{i}" for i in range(30)] + ["c3"] * 5
    found = values_of(many)
    assert len(set(found)) == MOST_CLASSES
    assert (found == OTHERS).sum() == 30 - (MOST_CLASSES - 1)
    assert (found == "c3").sum() == 6


def test_samples_without_a_label_are_a_class(rng):
    scores = rng.standard_normal((4, 2))
    figure = BiplotFigure(scores, np.eye(2), ["a", "b"], y=[1.0, np.nan, 2.5, np.nan])
    assert [each.name for each in figure.classes()] == ["1", "2.5", ""]
    assert [each.rows.sum() for each in figure.classes()] == [1, 1, 2]


def test_colours_and_marks_are_enough_for_all_classes():
    assert len(MARKERS) == len(set(CLASS_SYMBOLS)) == len(CLASS_SYMBOLS) == MOST_CLASSES
    assert len(set(class_colours(MOST_CLASSES))) == MOST_CLASSES
    assert len(class_colours(1)) == 1
    scale = mpl.colormaps["cividis"](np.linspace(0, 1, len(SEQUENCE)))
    assert [to_hex(colour) for colour in scale] == list(SEQUENCE)
