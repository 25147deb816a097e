"""Features shared out to components: the assignment of scipy is the oracle."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from kspan.linalg.assignment import share_out
from kspan.problem import Patterns


def random_case(rng):
    r = int(rng.integers(1, 6))
    n = int(rng.integers(r, 40))
    limits = rng.integers(0, 8, size=r)
    while limits.sum() > n:
        limits = np.maximum(limits - 1, 0)
    scores = rng.standard_normal((n, r)) ** 2
    if rng.random() < 0.5:  # everybody wants the same features
        scores = scores[:, :1] * rng.uniform(0.9, 1.0, size=r) + 0.01 * scores
    return scores, limits


def test_the_sum_is_the_largest_there_is(rng):
    for _ in range(300):
        scores, limits = random_case(rng)
        owner = share_out(scores, limits)
        taken = np.flatnonzero(owner >= 0)
        np.testing.assert_array_equal(np.bincount(owner[taken], minlength=limits.size), limits)
        places = np.repeat(np.arange(limits.size), limits)
        rows, columns = linear_sum_assignment(-scores[:, places])
        best = scores[rows, places[columns]].sum()
        assert scores[taken, owner[taken]].sum() == pytest.approx(best, rel=1e-12)


def test_features_that_are_all_alike_are_shared_out_too():
    owner = share_out(np.ones((12, 3)), np.array([4, 4, 4]))
    assert np.bincount(owner).tolist() == [4, 4, 4]


def test_large_disjoint_patterns_have_the_largest_sum(rng):
    scores = rng.uniform(0.1, 1.0, size=(90, 1)) * rng.uniform(0.8, 1.0, size=(90, 3))
    limits = np.array([30, 20, 10])
    mask = Patterns.of(90, 3, limits.tolist(), disjoint=True).select(scores)
    np.testing.assert_array_equal(mask.sum(axis=0), limits)
    assert mask.sum(axis=1).max() == 1
    rows, columns = linear_sum_assignment(-np.repeat(scores, limits, axis=1))
    places = np.repeat(np.arange(3), limits)
    assert scores[mask].sum() == pytest.approx(scores[rows, places[columns]].sum(), rel=1e-12)
