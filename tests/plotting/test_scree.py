import numpy as np
import pytest
from sklearn.decomposition import PCA

from kspan.plotting import ScreeDisplay


def test_bars_are_shares_of_the_variance(fitted, data):
    display = ScreeDisplay.from_estimator(fitted, data)
    heights = [bar.get_height() for bar in display.bars_]
    np.testing.assert_allclose(heights, fitted.explained_variance_ratio_)
    plain = [bar.get_height() for bar in display.pca_bars_]
    np.testing.assert_allclose(plain, PCA(2).fit(data).explained_variance_ratio_)


def test_bars_differ_without_colour(record):
    display = ScreeDisplay.from_record(record)
    assert display.bars_[0].get_hatch() != display.pca_bars_[0].get_hatch()
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["sparse (5 features)", "plain PCA (all 8)"]


@pytest.mark.parametrize("m", [1, 20])
def test_any_number_of_components(m):
    values = np.linspace(1, 0.1, m)
    display = ScreeDisplay(explained_variance=values, pca_variance=values, total_variance=30.0)
    display.plot().figure_.canvas.draw()
    assert len(display.ax_.get_xticks()) == m
