import numpy as np
import pytest

from kspan.plotting.common import label, shorten, signed, spread


@pytest.mark.parametrize("longest", [3, 10, 28])
@pytest.mark.parametrize("length", [1, 9, 10, 11, 28, 29, 300])
def test_shortened_names_fit_and_keep_both_ends(length, longest):
    name = "".join(chr(ord("a") + i % 26) for i in range(length))
    short = shorten(name, longest)
    assert len(short) <= longest
    if length > longest:
        assert len(short) == longest
        assert name.startswith(short.split("…")[0])
        assert name.endswith(short.split("…")[1])
    else:
        assert short == name


def test_labels_are_one_line_and_no_mathematics():
    assert label("a\n  b\tc") == "a b c"
    assert label("$x$") == r"\$x\$"
    assert label(7) == "7"
    # Cut first, escaped then: half an escape would be worse than none.
    assert label("$" * 100, 5) == r"\$\$…\$\$"


def test_a_sign_is_always_written():
    assert signed(0.5) == "+0.50"
    assert signed(-0.25) == "\N{MINUS SIGN}0.25"


def test_spread_keeps_order_and_distance(rng):
    for _ in range(20):
        places = rng.standard_normal(rng.integers(1, 15))
        gap = rng.uniform(0, 1)
        moved = spread(places, gap)
        order = np.argsort(places)
        assert (np.diff(moved[order]) >= gap - 1e-12).all()
        assert moved.mean() == pytest.approx(places.mean())  # least squares moves nothing overall
    apart = np.array([0.0, 5.0, 10.0])
    np.testing.assert_array_equal(spread(apart, 1.0), apart)
    assert spread(np.empty(0), 1.0).size == 0
