"""The walk along the angle finds what enumeration and the exact search find."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from kspan.figures.spannogram import angle_range, directions, regions
from kspan.linalg.low_rank_enumeration import enumerate_supports, prepare

SHAPES = [(6, 1), (6, 2), (7, 3), (9, 4), (5, 5), (12, 2)]


def largest(V, k, angle, nonnegative):
    values = (V @ directions(np.array([angle])))[:, 0]
    values = values if nonnegative else np.abs(values)
    order = np.argsort(-values)[:k]
    return set(order[values[order] > 0])


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_regions_hold_the_largest_rows_at_every_angle(n, k, nonnegative, rng):
    V = rng.standard_normal((n, 2))
    found = regions(V, k, nonnegative=nonnegative)
    low, high = angle_range(nonnegative)
    assert found[0].low == low
    assert found[-1].high == high
    for one, following in pairwise(found):
        assert one.high == following.low
        assert set(one.support) != set(following.support)
    for angle in np.linspace(low, high, 500)[1:-1]:
        (region,) = [r for r in found if r.low < angle <= r.high]
        assert set(region.support) == largest(V, k, angle, nonnegative)


@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_the_best_nonnegative_support_is_that_of_the_exact_search(n, k, rng):
    V = rng.standard_normal((n, 2))
    best = max(regions(V, k, nonnegative=True), key=lambda region: region.value)
    exact = enumerate_supports(prepare(V, k))
    assert best.value == pytest.approx(exact.value)
    assert set(exact.support) == set(best.support)


@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_the_best_support_is_that_of_all(n, k, rng):
    V = rng.standard_normal((n, 2))
    best = max(regions(V, k), key=lambda region: region.value)
    all_values = {
        S: np.linalg.eigvalsh(V[list(S)].T @ V[list(S)])[-1] for S in combinations(range(n), k)
    }
    winner = max(all_values, key=all_values.get)
    assert set(best.support) == set(winner)
    assert best.value == pytest.approx(all_values[winner])
    assert np.sum((V[best.support] @ directions(np.array([best.angle]))) ** 2) == pytest.approx(
        best.value
    )
