"""What holds for the numbers of single figures."""

from dataclasses import replace

import numpy as np
import pytest

from kspan.figures import (
    BiplotFigure,
    GapFigure,
    ImageFigure,
    LoadingsFigure,
    NothingToDraw,
    PathFigure,
    ScreeFigure,
    StabilityFigure,
    StepsFigure,
)
from kspan.figures.figure import every_name
from tests.report import samples

FIGURES = (BiplotFigure, GapFigure, LoadingsFigure, PathFigure, ScreeFigure, StabilityFigure,
           StepsFigure)  # fmt: skip


@pytest.mark.parametrize("Figure", FIGURES, ids=lambda Figure: Figure.__name__)
def test_figures_are_plain_and_frozen(Figure):
    figure = Figure.from_record(samples.cancer())
    plain = (np.ndarray, list, str, float, int, bool, type(None))
    assert all(isinstance(value, plain) for value in vars(figure).values())
    with pytest.raises(AttributeError):
        figure.k = 1


@pytest.mark.parametrize(
    ("Figure", "missing"),
    [
        (BiplotFigure, {"scores": None}),
        (BiplotFigure, {"scores": np.empty((0, 2))}),
        (GapFigure, {"certificates": []}),
        (PathFigure, {"path": None}),
        (ScreeFigure, {"total_variance": 0.0}),
        (StabilityFigure, {"stability": None}),
        (StepsFigure, {"history": np.ones(1)}),
    ],
)
def test_what_a_record_does_not_have_cannot_be_drawn(Figure, missing):
    with pytest.raises(NothingToDraw):
        Figure.from_record(replace(samples.cancer(), **missing))


def test_a_path_of_nothing_cannot_be_drawn():
    with pytest.raises(NothingToDraw):
        PathFigure.from_path(replace(samples.cancer().path, full=0.0))


def test_a_path_marks_fits_that_can_lie_on_it():
    record = samples.cancer()
    figure = PathFigure.from_record(record)
    assert figure.chosen == 12
    assert figure.chosen_share == record.path.explained[record.path.k == 12]
    assert replace(figure, chosen=13).chosen_share is None
    assert figure.counted == "features"
    own = PathFigure.from_record(samples.with_own_path("orthonormal"))
    assert (own.chosen, own.counted, own.adds_up) == (4, "features in each component", True)
    record = samples.with_own_path("orthonormal")
    several = replace(record, parameters={**record.parameters, "n_nonzero_coefs": [4, 3]})
    assert PathFigure.from_record(several).chosen is None


def test_no_bound_is_drawn_where_none_is_proved():
    figure = PathFigure.from_record(samples.with_own_path("nonnegative"))
    assert figure.upper is figure.ceiling is figure.band is None
    assert not figure.adds_up


def test_a_band_claims_nothing_about_numbers_that_the_path_leaves_out():
    """Between 2 and 5 the optimum is at least what 2 reach, and at most the bound of 5."""
    low, high = [1.0, 3.0, 4.0], [2.0, 4.0, 4.0]
    x, lower, upper = PathFigure(np.array([2, 5, 6]), np.array(low), 4.0, np.array(high)).band
    assert x.tolist() == [2, 3, 4, 5, 6]
    assert (4 * lower).tolist() == [1, 1, 1, 3, 4]
    assert (4 * upper).tolist() == [2, 4, 4, 4, 4]


def test_a_path_that_goes_far_needs_another_axis():
    few = PathFigure(np.array([2, 80]), np.array([1.0, 2.0]), 2.0)
    assert not few.is_wide
    assert replace(few, k=np.array([2, 81])).is_wide


def test_steps_may_start_anew():
    assert not StepsFigure.from_record(samples.cancer()).starts_anew
    assert StepsFigure.from_record(samples.nonnegative()).starts_anew


def test_without_plain_pca_there_is_no_share_of_it():
    figure = ScreeFigure.from_record(replace(samples.cancer(), pca_variance=None))
    assert figure.pca_share is None
    assert figure.share.size == 3


def test_a_record_that_keeps_some_samples_says_so():
    figure = BiplotFigure.from_record(replace(samples.cancer(), n_samples=10_000))
    assert (len(figure.scores), figure.n_samples) == (569, 10_000)
    assert figure.sample_names[1] == "patient 1"


def test_components_of_pixels():
    record = samples.cancer()
    figure = ImageFigure.from_record(record, image_shape=(5, 6))
    assert figure.image_shape == (5, 6)
    np.testing.assert_array_equal(np.flatnonzero(figure.support), record.support)
    np.testing.assert_array_equal(
        figure.components.reshape(3, 30)[:, record.support], record.loadings.T
    )


def test_names_of_features():
    assert every_name(None, 2) == ["0", "1"]
    assert every_name([7, "b"], 2) == ["7", "b"]
    with pytest.raises(ValueError, match="1 feature_names for 2 features"):
        every_name(["a"], 2)
