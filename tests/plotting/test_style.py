import matplotlib as mpl
import numpy as np

from kspan.figures.appearance import LIGHT
from kspan.plotting.display import diverging, label


def test_labels_are_one_line_and_no_mathematics():
    assert label("a\n  b\tc") == "a b c"
    assert label("$x$") == r"\$x\$"
    assert label(7) == "7"
    # Cut first, escaped then: half an escape would be worse than none.
    assert label("$" * 100, 5) == r"\$\$…\$\$"


def test_the_colour_map_of_loadings():
    cmap = diverging(None)
    ends = [mpl.colors.to_hex(cmap(place)) for place in (0.0, 1.0)]
    assert ends == [LIGHT["negative"], LIGHT["positive"]]
    assert diverging("PuOr") == mpl.colormaps["PuOr"]
    assert diverging(mpl.colormaps["PuOr"]) == mpl.colormaps["PuOr"]
    # As light on one side as on the other: what is larger is darker, whatever its sign.
    lightness = cmap(np.linspace(0, 1, 101))[:, :3] @ [0.3, 0.59, 0.11]
    assert (np.diff(lightness[:50]) > 0).all()
    assert (np.diff(lightness[51:]) < 0).all()
