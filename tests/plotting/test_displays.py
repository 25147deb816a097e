"""What holds for every display."""

import sys
from dataclasses import fields

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from kspan import (
    ElementSparsePCA,
    FeatureSparsePCA,
    NonnegativeSparsePCA,
    StiefelSparsePCA,
    plotting,
)
from kspan.plotting import (
    BiplotDisplay,
    GapDisplay,
    ImageDisplay,
    LoadingsDisplay,
    PathDisplay,
    ScreeDisplay,
    SpannogramDisplay,
    StabilityDisplay,
)
from kspan.plotting.display import label

# What a record needs to be told beside itself.
FROM_RECORD = {
    BiplotDisplay: {},
    GapDisplay: {},
    ImageDisplay: {"image_shape": (2, 4)},
    LoadingsDisplay: {},
    PathDisplay: {},
    ScreeDisplay: {},
    StabilityDisplay: {},
}
EVERY = pytest.mark.parametrize(
    ("Display", "options"), FROM_RECORD.items(), ids=[Display.__name__ for Display in FROM_RECORD]
)


def drawn(display):
    display.figure_.canvas.draw()
    return display


def texts(display):
    from matplotlib.text import Text

    return [text.get_text() for text in display.figure_.findobj(Text) if text.get_text()]


def test_all_displays_are_here():
    assert {Display.__name__ for Display in (*FROM_RECORD, SpannogramDisplay)} == {
        name for name in plotting.__all__ if name.endswith("Display")
    }


@EVERY
def test_a_new_figure_is_made_and_returned(Display, options, record):
    display = Display.from_record(record, **options)
    assert isinstance(display, Display)
    assert plt.get_fignums() == [display.figure_.number]
    assert display.ax_.figure is display.figure_


@EVERY
def test_given_axes_are_used_and_no_figure_is_made(Display, options, record, ax):
    display = Display.from_record(record, ax=ax, **options)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert plt.get_fignums() == [ax.figure.number]


@EVERY
def test_axes_of_a_subfigure_are_used(Display, options, record):
    figure = plt.figure()
    ax = figure.subfigures(1, 2)[0].subplots()
    display = Display.from_record(record, ax=ax, **options)
    assert display.figure_ is figure


@EVERY
def test_axes_without_pyplot_are_used(Display, options, record):
    from matplotlib.figure import Figure

    Display.from_record(record, ax=Figure().subplots(), **options)
    assert plt.get_fignums() == []


@EVERY
def test_plot_draws_again_and_returns_itself(Display, options, record):
    display = Display.from_record(record, **options)
    first = display.ax_
    assert display.plot() is display
    assert display.ax_ is not first


@EVERY
def test_axes_are_labelled(Display, options, record):
    display = Display.from_record(record, **options)
    if Display is ImageDisplay:
        assert display.colorbar_.ax.get_ylabel().startswith("loading")
    else:
        assert display.ax_.get_xlabel()
        assert display.ax_.get_ylabel()


@EVERY
def test_an_estimator_gives_what_its_record_gives(Display, options, fitted, data, record):
    one = Display.from_estimator(fitted, data, **options)
    other = Display.from_record(record, **options)
    for field in fields(Display):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


@EVERY
def test_an_estimator_must_be_fitted(Display, options, data):
    with pytest.raises(NotFittedError):
        Display.from_estimator(FeatureSparsePCA(), data, **options)
    assert plt.get_fignums() == []


@EVERY
def test_names_are_neither_mathematics_nor_markup(Display, options, record):
    """Drawing `$` as mathematics would fail, as these names are no formulas."""
    display = drawn(Display.from_record(record, **options))
    if Display in (LoadingsDisplay, BiplotDisplay, StabilityDisplay):
        shown = texts(display)
        used = set(record.selected_names)
        assert r"cost in \$" in shown or "cost in $" not in used
        assert "<b>bold</b>" in shown or "<b>bold</b>" not in used
        assert used & {"cost in $", "price $ per $"}
        assert not any("x" * 40 in text for text in shown)


def test_dollars_are_drawn_as_they_are(ax):
    """The picture of an escaped name is that of the name without any mathematics."""
    import matplotlib.text

    name = "price $ per $"
    shown = matplotlib.text.Text(0, 0, label(name))
    plain = matplotlib.text.Text(0, 0, name, parse_math=False)
    for text in (shown, plain):
        text.set_figure(ax.figure)
    renderer = ax.figure.canvas.get_renderer()
    assert shown._preprocess_math(shown.get_text()) == (name, False)
    assert shown.get_window_extent(renderer).width == plain.get_window_extent(renderer).width


@pytest.mark.parametrize(
    ("Display", "message"),
    [
        (PathDisplay, "path=kspan.sparsity_path"),
        (StabilityDisplay, "stability=kspan.selection_stability"),
        (ScreeDisplay, "pca_variance="),
        (GapDisplay, "fit with certify="),
        (BiplotDisplay, "no scores"),
    ],
)
def test_what_a_record_does_not_have_is_asked_for(Display, message, bare_record):
    with pytest.raises(ValueError, match=message):
        Display.from_record(bare_record)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("Display", [PathDisplay, StabilityDisplay, ScreeDisplay, BiplotDisplay])
def test_what_an_estimator_does_not_keep_needs_the_data(Display, fitted):
    with pytest.raises(ValueError, match="pass the data of the fit as X"):
        Display.from_estimator(fitted)


def test_only_shared_features_have_a_stability(data):
    fit = ElementSparsePCA(2, 3).fit(data)
    with pytest.raises(ValueError, match="Use FeatureSparsePCA"):
        StabilityDisplay.from_estimator(fit, data)


@pytest.mark.parametrize(
    ("fit", "bounded"),
    [
        (StiefelSparsePCA(2, n_nonzero_coefs=3, disjoint=True, random_state=0), True),
        (ElementSparsePCA(2, 3, random_state=0), False),
        (ElementSparsePCA(1, 3, random_state=0), True),
        (NonnegativeSparsePCA(2, 3, random_state=0), False),
    ],
)
def test_features_of_their_own_have_a_path(fit, bounded, data):
    display = PathDisplay.from_estimator(fit.fit(data), data)
    assert (display.band_ is not None) == (display.ceiling_ is not None) == bounded
    each = " in each component" if fit.n_components > 1 else ""
    assert display.ax_.get_xlabel() == f"number of features{each} k"
    assert ("added up" in display.ax_.get_ylabel()) == isinstance(fit, StiefelSparsePCA)
    assert display.chosen == 3


@EVERY
def test_names_given_later_and_no_names_at_all(Display, options, data, nameless):
    display = Display.from_estimator(nameless, data.to_numpy(), **options)
    if hasattr(display, "feature_names"):
        assert all(name.isdigit() for name in display.feature_names)
        named = [f"n{i}" for i in range(8)]
        display = Display.from_estimator(nameless, data.to_numpy(), feature_names=named, **options)
        assert all(name.startswith("n") for name in display.feature_names)


@pytest.mark.parametrize("Display", [LoadingsDisplay, ScreeDisplay, GapDisplay, ImageDisplay])
def test_a_single_component(Display, data, single):
    drawn(Display.from_estimator(single, data, **FROM_RECORD[Display]))


@EVERY
def test_a_display_is_its_figure(Display, options, record):
    figure = Display.figure_type.from_record(record, **options)
    display = Display.from_figure(figure)
    for name, value in vars(figure).items():
        np.testing.assert_array_equal(getattr(display, name), value, err_msg=name)
        with pytest.raises(AttributeError):
            setattr(display, name, value)
    assert len({display, Display.from_figure(figure)}) == 2
    assert len(repr(display)) < 100  # a notebook shows it


def test_float32(data):
    X = data.astype(np.float32)
    fit = FeatureSparsePCA(2, 5, random_state=0).fit(X)
    assert LoadingsDisplay.from_estimator(fit).loadings.dtype == np.float64
    drawn(BiplotDisplay.from_estimator(fit, X))


def test_without_matplotlib_the_extra_is_named(record, monkeypatch):
    for module in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, module, None)
    for Display, options in FROM_RECORD.items():
        with pytest.raises(ImportError, match=r'pip install "kspan\[plot\]"'):
            Display.from_record(record, **options)
    with pytest.raises(ImportError, match=r'pip install "kspan\[plot\]"'):
        SpannogramDisplay.from_covariance(np.eye(3), 1)


def test_a_saved_record_draws_the_same(record, tmp_path):
    from kspan.records import FitRecord

    record.save(tmp_path / "fit.npz")
    again = FitRecord.load(tmp_path / "fit.npz")
    one, other = GapDisplay.from_record(record), GapDisplay.from_record(again)
    np.testing.assert_array_equal(one.seconds, other.seconds)
    np.testing.assert_array_equal(
        LoadingsDisplay.from_record(record).image_.get_array(),
        LoadingsDisplay.from_record(again).image_.get_array(),
    )


def test_a_record_of_a_covariance(data):
    from kspan.records import FitRecord

    A = np.cov(data.to_numpy().T)
    fit = FeatureSparsePCA(2, 5, covariance="precomputed", random_state=0).fit(A)
    record = FitRecord.from_estimator(fit, A)
    ScreeDisplay.from_record(record)
    PathDisplay.from_estimator(fit, A)
    with pytest.raises(ValueError, match="has no samples"):
        BiplotDisplay.from_record(record)
