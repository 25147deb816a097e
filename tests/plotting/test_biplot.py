import numpy as np
import pytest

from kspan import FeatureSparsePCA
from kspan.plotting import BiplotDisplay


def test_points_are_the_scores(fitted, data):
    display = BiplotDisplay.from_estimator(fitted, data)
    (points,) = display.points_
    np.testing.assert_allclose(points.get_offsets(), fitted.transform(data), atol=1e-12)


def test_arrows_are_the_loadings_up_to_the_scale_of_each_axis(fitted, data):
    display = BiplotDisplay.from_estimator(fitted, data)
    tips = np.array([arrow.xy for arrow in display.arrows_])
    ratio = tips / display.loadings[display.shown_]
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape))
    assert (ratio > 0).all()


def test_arrows_and_names_are_inside(fitted, data):
    display = BiplotDisplay.from_estimator(fitted, data)
    display.figure_.canvas.draw()
    (left, right), (low, high) = display.ax_.get_xlim(), display.ax_.get_ylim()
    for mark in (*display.arrows_, *display.labels_):
        for x, y in (mark.xy, mark.xyann):
            assert left <= x <= right
            assert low <= y <= high


def test_names_do_not_lie_on_each_other():
    """Twelve arrows in almost the same direction."""
    W = np.column_stack([np.full(12, 0.3), 0.3 + 1e-3 * np.arange(12)])
    display = BiplotDisplay(
        scores=np.random.default_rng(0).standard_normal((30, 2)), loadings=W,
        feature_names=[f"feature {i}" for i in range(12)],
    ).plot()  # fmt: skip
    display.figure_.draw_without_rendering()
    heights = np.sort([text.xyann[1] for text in display.labels_])
    pixels = np.diff(display.ax_.transData.transform([(0, h) for h in heights])[:, 1])
    size = 8 * display.figure_.dpi / 72
    assert (pixels >= 0.95 * size).all()
    assert pixels.size == 11


def test_at_most_twelve_arrows(rng):
    W = rng.standard_normal((50, 2))
    display = BiplotDisplay(
        scores=rng.standard_normal((5, 2)), loadings=W, feature_names=range(50)
    ).plot()
    lengths = np.linalg.norm(W, axis=1)
    assert set(display.shown_) == set(np.argsort(-lengths)[:12])
    assert "12 of 50" in display.ax_.get_title()


def test_classes_have_colours_and_markers(fitted, data):
    y = np.array(["_a", "b$", "c"])[np.arange(60) % 3]
    display = BiplotDisplay.from_estimator(fitted, data, y=y)
    assert [len(points.get_offsets()) for points in display.points_] == [20, 20, 20]
    shapes = {points.get_paths()[0].vertices.tobytes() for points in display.points_}
    assert len(shapes) == 3
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["_a", r"b\$", "c"]


def test_numbers_have_a_colour_bar(fitted, data):
    display = BiplotDisplay.from_estimator(fitted, data, y=np.linspace(0, 1, 60), y_name="$")
    np.testing.assert_array_equal(display.points_[0].get_array(), np.linspace(0, 1, 60))
    assert len(display.figure_.axes) == 2
    assert display.figure_.axes[1].get_ylabel() == r"\$"


def test_too_many_classes_and_wrong_length(fitted, data):
    with pytest.raises(ValueError, match="60 different values"):
        BiplotDisplay.from_estimator(fitted, data, y=[f"c{i}" for i in range(60)])
    with pytest.raises(ValueError, match="one value for each of the 60 samples"):
        BiplotDisplay.from_estimator(fitted, data, y=[1, 2])


def test_one_component_is_an_error(data, single):
    with pytest.raises(ValueError, match="needs two components"):
        BiplotDisplay.from_estimator(single, data)


def test_other_components(data):
    fit = FeatureSparsePCA(3, 6, random_state=0).fit(data)
    display = BiplotDisplay.from_estimator(fit, data, components=(1, 2))
    np.testing.assert_allclose(
        display.points_[0].get_offsets(), fit.transform(data)[:, 1:], atol=1e-12
    )
    assert display.ax_.get_xlabel().startswith("score on PC2")
    with pytest.raises(ValueError, match="two of 0 to 2"):
        display.plot(components=(0, 3))


def test_a_record_of_many_samples_takes_its_part_of_y(rng):
    from kspan.records import FitRecord

    X = rng.standard_normal((2500, 4)) * [3, 2, 1, 1]
    fit = FeatureSparsePCA(2, 3, random_state=0).fit(X)
    record = FitRecord.from_estimator(fit, X)
    y = (X[:, 0] > 0).astype(int)
    display = BiplotDisplay.from_record(record, y=y)
    assert display.y.size == len(record.scores) < 2500
    np.testing.assert_array_equal(display.y, y[record.samples])


def test_no_spread_at_all():
    BiplotDisplay(
        scores=np.zeros((3, 2)), loadings=[[1.0, 0.0]], feature_names=["a"]
    ).plot().figure_.canvas.draw()
