import numpy as np
import pytest

from kspan.figures import BiplotFigure
from kspan.figures.biplot import REACH, spread


@pytest.fixture
def figure(rng):
    scores, loadings = rng.standard_normal((20, 3)) * [5.0, 1.0, 0.1], rng.standard_normal((30, 3))
    return BiplotFigure(scores, loadings, [f"f{i}" for i in range(30)])


@pytest.mark.parametrize("pair", [(0, 1), (2, 0)])
def test_arrows_are_loadings_within_the_reach_of_the_samples(figure, pair):
    arrows = figure.arrows(8, pair)
    W = figure.loadings[:, list(pair)]
    assert arrows.rows.tolist() == np.argsort(-np.linalg.norm(W, axis=1))[:8].tolist()
    assert arrows.names == [f"f{row}" for row in arrows.rows]
    ratio = arrows.tips / W[arrows.rows]
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape))
    reach = np.abs(figure.scores[:, list(pair)]).max(axis=0)
    assert np.linalg.norm(arrows.tips / reach, axis=1).max() == pytest.approx(REACH)


def test_names_stand_beyond_the_tips_and_apart(figure):
    arrows = figure.arrows(12)
    places = arrows.name_places(0.3, 1.0)
    for side, sign in ((arrows.to_right, 1), (~arrows.to_right, -1)):
        assert (sign * arrows.tips[side, 0]).max() <= (sign * places[side, 0]).min() - 1.0 + 1e-12
        assert (np.diff(np.sort(places[side, 1])) >= 0.3 - 1e-12).all()


def test_features_without_loadings_have_no_arrow():
    figure = BiplotFigure(np.eye(2), np.array([[0.0, 0.0], [1.0, 0.0]]), ["a", "b"])
    assert figure.arrows().names == ["b"]


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
