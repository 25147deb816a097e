import numpy as np
import pytest

from kspan import as_covariance
from kspan.figures.spannogram import angle_range, regions
from kspan.plotting import SpannogramDisplay


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize(
    "V",
    [
        np.zeros((4, 2)),
        np.outer([1.0, 2.0, -3.0, 0.5], [1.0, 0.0]),  # rank one
        np.repeat([[1.0, 0.5], [0.2, -1.0]], 3, axis=0),  # ties everywhere
        np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]),
        1e-150 * np.eye(2).repeat(2, axis=0),
    ],
    ids=["zero", "rank one", "duplicates", "opposites", "tiny"],
)
def test_degenerate_rows(V, nonnegative):
    found = regions(V, 2, nonnegative=nonnegative)
    low, high = angle_range(nonnegative)
    assert sum(region.high - region.low for region in found) == pytest.approx(high - low)
    assert len(found) < 20
    display = SpannogramDisplay(V=V, k=2, nonnegative=nonnegative).plot()
    if nonnegative:
        display.figure_.canvas.draw()


def test_many_features_are_quick_and_some_are_drawn(rng):
    V = rng.standard_normal((2000, 2))
    display = SpannogramDisplay(V=V, k=10).plot()
    assert len(display.curves_.get_segments()) == 200
    used = np.unique(np.concatenate([region.support for region in display.regions]))
    assert set(used) <= set(display.shown_)
    assert "200 of 2000" in display.curves_.get_label()


@pytest.mark.parametrize("nonnegative", [False, True])
def test_curves_are_the_entries(nonnegative, rng):
    V = rng.standard_normal((6, 2))
    display = SpannogramDisplay(V=V, k=2, nonnegative=nonnegative).plot()
    for row, segment in zip(V, display.curves_.get_segments(), strict=True):
        angles, values = np.asarray(segment).T
        entries = row[0] * np.cos(angles) + row[1] * np.sin(angles)
        np.testing.assert_allclose(values, entries if nonnegative else np.abs(entries), atol=1e-12)
    widths = [bar.get_width() for bar in display.strip_]
    np.testing.assert_allclose(widths, [r.high - r.low for r in display.regions])
    assert display.best_.get_xdata() == [display.best.angle] * 2
    # At every angle k curves are thick, or as many as are positive.
    assert len(display.top_.get_segments()) == sum(r.support.size for r in display.regions)


def test_from_covariance_cuts_to_rank_two(data):
    A = np.cov(data.to_numpy().T)
    display = SpannogramDisplay.from_covariance(A, 3)
    values, vectors = np.linalg.eigh(A)
    cut = (vectors[:, -2:] * values[-2:]) @ vectors[:, -2:].T
    np.testing.assert_allclose(display.V @ display.V.T, cut, atol=1e-8)
    same = SpannogramDisplay.from_covariance(as_covariance(data), 3)
    np.testing.assert_allclose(same.V, display.V, atol=1e-6)
    assert display.best.value == pytest.approx(same.best.value)
    assert display.best.value <= values[-1]


def test_the_best_features_are_named(data):
    names = list(data.columns)
    display = SpannogramDisplay.from_covariance(data.cov(), 3)
    assert display.feature_names == names
    assert len(display.names_.get_text().splitlines()) == 4
    display.figure_.canvas.draw()
    many = SpannogramDisplay(V=np.random.default_rng(0).standard_normal((40, 2)), k=20).plot()
    assert many.names_.get_text().endswith("and 8 more")


def test_labels_and_given_axes(ax, rng):
    display = SpannogramDisplay(V=rng.standard_normal((5, 2)), k=2).plot(ax)
    assert display.ax_ is ax
    assert "radians" in ax.get_xlabel()
    assert "units" in ax.get_ylabel()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"V": np.ones((3, 3)), "k": 1}, "two columns"),
        ({"V": np.ones((3, 2)), "k": 4}, "between 1 and"),
        ({"V": np.ones((3, 2)), "k": 0}, "between 1 and"),
        ({"V": np.ones((3, 2)), "k": 1, "feature_names": ["a"]}, "1 feature_names for 3"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        SpannogramDisplay(**options)


def test_one_feature():
    SpannogramDisplay.from_covariance([[2.0]], 1).figure_.canvas.draw()
