import numpy as np
import pytest

from kspan.plotting import PathDisplay


def test_line_band_and_mark(path):
    display = PathDisplay.from_path(path, chosen=4)
    share = path.objective / path.full
    np.testing.assert_array_equal(display.line_.get_xdata(), path.k)
    np.testing.assert_array_equal(display.line_.get_ydata(), share)
    corners = display.band_.get_paths()[0].vertices
    for k, low, high in zip(path.k, share, path.upper / path.full, strict=True):
        heights = corners[corners[:, 0] == k, 1]
        assert heights.min() == pytest.approx(low)
        assert heights.max() == pytest.approx(high)
    assert display.chosen_.get_xdata() == [4]
    assert display.chosen_.get_ydata() == share[path.k == 4]


def test_without_bounds_and_choice():
    display = PathDisplay(k=[1, 2, 3], objective=[1.0, 1.5, 2.0], full=2.0).plot()
    assert display.band_ is None
    assert display.chosen_ is None
    assert display.ax_.get_ylim()[1] > 1


def test_a_choice_off_the_path_is_not_marked(path):
    assert PathDisplay.from_path(path, chosen=99).chosen_ is None


def test_options_reach_the_artists(path):
    display = PathDisplay.from_path(path, line_kw={"color": "red"}, band_kw={"alpha": 0.5})
    assert display.line_.get_color() == "red"
    assert display.band_.get_alpha() == 0.5


def test_a_single_k():
    PathDisplay(k=[3], objective=[1.0], full=2.0, upper=[1.2]).plot().figure_.canvas.draw()


def test_many_k_have_no_markers():
    k = np.arange(1, 200)
    display = PathDisplay(k=k, objective=k / 200, full=1.0).plot()
    assert display.line_.get_marker() == ""
