import numpy as np
import pytest

from kspan import NonnegativeSparsePCA
from kspan.plotting import LoadingsDisplay


def test_cells_hold_the_loadings_and_zeros_are_blank(fitted, nonnegative):
    for estimator in (fitted, nonnegative):
        display = LoadingsDisplay.from_estimator(estimator)
        support = estimator.get_support(indices=True)[display.shown_]
        expected = estimator.components_[:, support].T
        image = display.image_.get_array()
        np.testing.assert_array_equal(image.filled(0.0), expected)
        np.testing.assert_array_equal(image.mask, expected == 0)
        assert len(display.texts_) == np.count_nonzero(expected)
        low, high = display.image_.get_clim()
        assert low == -high


def test_numbers_are_those_of_their_cells(fitted):
    display = LoadingsDisplay.from_estimator(fitted)
    image = display.image_.get_array()
    for text in display.texts_:
        j, i = text.get_position()
        written = float(text.get_text().replace("\N{MINUS SIGN}", "-"))
        assert written == pytest.approx(image[i, j], abs=0.005)


def test_rows_are_grouped_by_component(rng):
    W = rng.standard_normal((30, 4))
    order = LoadingsDisplay(loadings=W, feature_names=range(30)).order()
    groups = np.abs(W[order]).argmax(axis=1)
    assert (np.diff(groups) >= 0).all()
    for j in range(4):
        assert (np.diff(np.abs(W[order][groups == j]).max(axis=1)) <= 0).all()


def test_many_features_show_the_largest_and_say_so(rng):
    W = rng.standard_normal((113, 3))
    display = LoadingsDisplay(loadings=W, feature_names=[f"f{i}" for i in range(113)]).plot()
    assert display.image_.get_array().shape == (40, 3)
    largest = np.argsort(-np.linalg.norm(W, axis=1))[:40]
    assert set(display.shown_) == set(largest)
    assert "40 of 113" in display.ax_.get_ylabel()
    assert "of" not in display.plot(max_features=200).ax_.get_ylabel()
    with pytest.raises(ValueError, match="max_features"):
        display.plot(max_features=0)


def test_with_many_components_signs_take_the_place_of_numbers(rng):
    W = rng.standard_normal((12, 9))
    display = LoadingsDisplay(loadings=W, feature_names=range(12)).plot()
    assert {text.get_text() for text in display.texts_} == {"+", "\N{MINUS SIGN}"}


def test_rows_are_named(fitted):
    display = LoadingsDisplay.from_estimator(fitted, feature_names=None, colorbar=False)
    shown = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert len(shown) == 5
    assert len(display.figure_.axes) == 1  # no colour bar


def test_wrong_number_of_names(data):
    fit = NonnegativeSparsePCA(1, 2, random_state=0).fit(data.to_numpy())
    with pytest.raises(ValueError, match="2 feature_names for 8 features"):
        LoadingsDisplay.from_estimator(fit, feature_names=["a", "b"])
