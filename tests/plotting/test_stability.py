import numpy as np
import pytest

from kspan.plotting import StabilityDisplay


def test_bars_are_sorted_frequencies(stability, record):
    display = StabilityDisplay.from_record(record)
    widths = np.array([bar.get_width() for bar in display.bars_])
    np.testing.assert_array_equal(widths, stability.frequencies[display.shown_])
    assert (np.diff(widths) <= 0).all()
    assert f"{stability.nogueira:.2f}" in display.ax_.get_title()
    assert "50 resamples" in display.ax_.get_xlabel()


def test_chosen_features_are_marked(record):
    display = StabilityDisplay.from_record(record)
    for bar, place in zip(display.bars_, display.shown_, strict=True):
        assert (bar.get_hatch() is None) == (place in record.support)
    assert set(record.support) <= set(display.shown_)


def test_without_a_choice_nothing_is_marked(stability):
    display = StabilityDisplay.from_stability(stability)
    assert display.ax_.get_legend() is None
    assert not any(bar.get_hatch() for bar in display.bars_)


def test_many_features(rng):
    frequencies = rng.uniform(0.01, 1, 300)
    display = StabilityDisplay(frequencies=frequencies).plot(max_features=25)
    assert len(display.bars_) == 25
    assert "25 of 300" in display.ax_.get_ylabel()
    with pytest.raises(ValueError, match="max_features"):
        display.plot(max_features=0)


def test_what_was_never_chosen_is_not_shown_unless_it_is_in_the_fit():
    display = StabilityDisplay(frequencies=[0.0, 0.5, 0.0, 0.5], chosen=[2, 3])
    assert display.order().tolist() == [3, 1, 2]
