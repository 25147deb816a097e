"""`Patterns` against the enumeration of all of them."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kspan.problem import Patterns


def all_patterns(patterns: Patterns) -> list[np.ndarray]:
    """Return every feasible pattern, by trying all masks."""
    d, r = patterns.n_features, patterns.n_components
    masks = (np.array(bits, dtype=bool).reshape(d, r) for bits in product((0, 1), repeat=d * r))
    return [mask for mask in masks if patterns.objection(mask) is None]


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize(("coefs", "total"), [(2, None), ([1, 3], None), (None, 4), (3, 3)])
def test_select_is_the_best_pattern(coefs, total, disjoint):
    patterns = Patterns.of(4, 2, coefs, total, disjoint=disjoint)
    everything = all_patterns(patterns)
    for seed in range(5):
        scores = np.random.default_rng(seed).uniform(0.1, 1, size=(4, 2))
        chosen = patterns.select(scores)
        assert patterns.objection(chosen) is None
        best = max(float(scores[mask].sum()) for mask in everything)
        if not (disjoint and total is not None):  # there it is a good one
            assert float(scores[chosen].sum()) == pytest.approx(best, rel=1e-12)


def test_a_total_limits_each_component():
    patterns = Patterns.of(10, 3, n_nonzero_total=5)
    assert_array_equal(patterns.limits, [3, 3, 3])
    assert not patterns.counts_each
    assert Patterns.of(10, 3, 2).counts_each


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Give n_nonzero_coefs"),
        ({"n_nonzero_coefs": [2, 2, 2]}, "has 3 numbers for n_components=2"),
        ({"n_nonzero_coefs": 0}, "between 1 and n_features=5"),
        ({"n_nonzero_coefs": 6}, "between 1 and n_features=5"),
        ({"n_nonzero_coefs": 1.5}, "must be an integer"),
        ({"n_nonzero_coefs": [2, True]}, "must be an integer"),
        ({"n_nonzero_total": 1}, "between n_components=2"),
        ({"n_nonzero_total": 11}, "between n_components=2"),
    ],
)
def test_bad_counts_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Patterns.of(5, 2, **arguments)


def test_more_components_than_features_cannot_be_orthonormal():
    with pytest.raises(ValueError, match="need as many features"):
        Patterns.of(2, 3, 1)


def test_disjoint_supports_share_nothing():
    patterns = Patterns.of(3, 2, 2, disjoint=True)
    assert patterns.total == 3
    assert "two components" in patterns.objection(np.array([[1, 1], [0, 0], [0, 0]], dtype=bool))
