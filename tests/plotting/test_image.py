import numpy as np
import pytest

from kspan import FeatureSparsePCA
from kspan.plotting import ImageDisplay


@pytest.mark.parametrize("kind", ["fitted", "nonnegative"])
def test_panels_are_the_components(kind, request):
    estimator = request.getfixturevalue(kind)
    display = ImageDisplay.from_estimator(estimator, image_shape=(2, 4))
    for image, component in zip(display.images_, estimator.components_, strict=True):
        np.testing.assert_array_equal(image.get_array(), component.reshape(2, 4))
        low, high = image.get_clim()
        assert low == -high == -np.abs(estimator.components_).max()
    np.testing.assert_array_equal(
        display.support_.get_array().astype(bool), estimator.get_support().reshape(2, 4)
    )
    assert len(display.axes_) == 3


def test_negative_pixels_are_hatched():
    display = ImageDisplay(components=[[0.5, -0.5, 0.0, -0.7]], image_shape=(2, 2)).plot()
    (hatched,) = display.axes_[0].collections
    assert hatched.get_hatch()
    centres = {tuple(path.vertices[:4].mean(axis=0)) for path in hatched.get_paths()}
    assert centres == {(1.0, 0.0), (1.0, 1.0)}
    assert "negative" in display.colorbar_.ax.get_ylabel()


def test_without_negative_pixels_nothing_is_hatched(nonnegative):
    display = ImageDisplay.from_estimator(nonnegative, image_shape=(4, 2))
    assert not any(panel.collections for panel in display.axes_)
    assert "negative" not in display.colorbar_.ax.get_ylabel()


def test_panels_do_not_overlap(rng):
    display = ImageDisplay(components=rng.standard_normal((6, 12)), image_shape=(3, 4))
    for columns in (None, 1, 50):
        display.plot(n_columns=columns).figure_.draw_without_rendering()
        boxes = [panel.get_window_extent() for panel in display.axes_]
        for i, one in enumerate(boxes):
            assert not any(one.overlaps(other) for other in boxes[i + 1 :])


def test_a_wrong_shape(data, fitted):
    with pytest.raises(ValueError, match=r"image_shape=\(3, 3\) does not hold 8 pixels"):
        ImageDisplay.from_estimator(fitted, image_shape=(3, 3))
    fit = FeatureSparsePCA(1, 2, random_state=0).fit(data)
    assert ImageDisplay.from_estimator(fit, image_shape=(1, 8)).components.shape == (1, 1, 8)
