import numpy as np
import pytest

from kspan.plotting import GapDisplay


def test_lines_are_the_history(fitted):
    certificate = fitted.certificate_
    display = GapDisplay.from_estimator(fitted)
    history = certificate.history
    np.testing.assert_array_equal(display.lower_.get_ydata()[:-1], history[:, 1])
    np.testing.assert_array_equal(display.upper_.get_ydata()[:-1], history[:, 2])
    np.testing.assert_array_equal(display.lower_.get_xdata()[:-1], history[:, 0])
    assert display.lower_.get_ydata()[-1] == certificate.lower
    assert display.upper_.get_ydata()[-1] == certificate.upper
    assert display.gap[-1] == certificate.gap
    assert certificate.status.value in display.ax_.get_title()


def test_the_band_is_between_the_lines():
    display = GapDisplay(seconds=[0, 1, 3], lower=[1, 2, 2], upper=[5, 4, 2]).plot()
    corners = display.band_.get_paths()[0].vertices
    assert corners[:, 1].min() == 1
    assert corners[:, 1].max() == 5
    assert corners[:, 0].max() == 3


def test_logarithmic_time_begins_after_zero(fitted):
    display = GapDisplay.from_estimator(fitted, log_time=True)
    assert display.ax_.get_xscale() == "log"
    assert (display.lower_.get_xdata() > 0).all()
    display.figure_.canvas.draw()


@pytest.mark.parametrize("kind", ["nonnegative", "separate"])
def test_each_component_has_its_own(kind, request):
    fit = request.getfixturevalue(kind)
    for j, certificate in enumerate(fit.certificates_):
        display = GapDisplay.from_estimator(fit, component=j)
        assert display.upper[-1] == certificate.upper
    with pytest.raises(ValueError, match="certificates 0 to 1"):
        GapDisplay.from_estimator(fit, component=2)


def test_a_history_of_nothing(fitted):
    from dataclasses import replace

    empty = replace(fitted.certificate_, history=np.empty((0, 3)))
    display = GapDisplay.from_certificate(empty)
    assert display.seconds.size == 1
    display.figure_.canvas.draw()
