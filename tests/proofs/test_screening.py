"""Screening: a feature of every optimal support stays, a feature that is fixed is in all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan.proofs.check.bounds import Bound, dual_bound
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.check.screening import cut_levels, screen
from kspan.proofs.search.relaxation import Relaxation
from tests.effort import examples
from tests.proofs.helpers import KINDS, all_values, any_of, choice_of, random_psd

PLAIN = tuple(kind for kind in KINDS if kind not in ("tiny", "huge"))


@st.composite
def screened(draw, max_d=8):
    """A matrix with a random or a relaxed witness, and the values of all supports."""
    d = draw(st.integers(2, max_d))
    m = draw(st.integers(1, d - 1))
    k = draw(st.integers(m, d - 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    A = random_psd(rng, d, draw(st.sampled_from(PLAIN)))
    A /= np.abs(A).max()
    forced = np.arange(d) < draw(st.integers(0, k - 1))
    F = rng.standard_normal((d, d)) * 10.0 ** rng.integers(-4, 1)
    if m < k and draw(st.booleans()):
        relax = Relaxation(A, m, choice_of(forced, k))
        relax.run(draw(st.integers(0, 15)))
        F = relax.witness() if relax.witness() is not None else F
    bound = dual_bound(KnownMatrix.exact(A), F, m, choice_of(forced, k))
    supports, values = all_values(A, m, k, np.flatnonzero(forced))
    return d, k, forced, bound, supports, values


@examples(100)
@given(screened())
def test_cut_levels_bound_every_support_they_speak_of(case):
    d, k, forced, bound, supports, values = case
    with_it, without = cut_levels(bound, choice_of(forced, k))
    rounding = 1e-13  # of enumeration, on matrices with entries up to 1
    for support, value in zip(supports, values, strict=True):
        inside = np.isin(np.arange(d), support)
        assert (with_it[inside & ~forced] >= value - rounding).all()
        assert (without[~inside] >= value - rounding).all()
    assert (with_it <= bound.value).all()
    assert (without <= bound.value).all()


@examples(100)
@given(screened(), st.sampled_from([1.0, 1.0, 0.999, 0.9, 0.5]))
def test_no_good_support_is_lost(case, share):
    """With an incumbent at or below the optimum, every support at least as good survives."""
    _, k, forced, bound, supports, values = case
    lower = share * values.max()
    cut = screen(bound, choice_of(forced, k), lower)
    for support in supports[values >= lower]:
        assert not np.isin(cut.removed, support).any()
        assert np.isin(cut.fixed, support).all()
    assert not forced[cut.removed].any()
    assert not forced[cut.fixed].any()
    assert np.intersect1d(cut.removed, cut.fixed).size == 0
    assert cut.level < lower
    # What is left is still a question: enough features, and not too many fixed ones.
    assert forced.size - cut.removed.size >= k
    assert int(forced.sum()) + cut.fixed.size <= k


def test_the_rule_by_hand():
    """v = 10, scores 5, 3, 2, 1 with k = 2: with feature 3 at most 10 - 3 + 1 = 8, and so on."""
    bound = Bound(10.0, np.array([5.0, 3.0, 2.0, 1.0]), 2.0)
    with_it, without = cut_levels(bound, any_of(4, 2))
    np.testing.assert_allclose(with_it, [10, 10, 9, 8], rtol=1e-13)
    np.testing.assert_allclose(without, [7, 9, 10, 10], rtol=1e-13)
    cut = screen(bound, any_of(4, 2), 8.5)
    np.testing.assert_array_equal(cut.removed, [3])
    np.testing.assert_array_equal(cut.fixed, [0])
    assert cut.level == pytest.approx(8.0)


def test_a_tie_is_not_below():
    bound = Bound(10.0, np.array([5.0, 3.0, 2.0, 1.0]), 2.0)
    cut = screen(bound, any_of(4, 2), 8.0)
    assert cut.removed.size == 0


def test_forced_features_take_their_share():
    """With feature 3 forced one place is left, for feature 0; the others come after it."""
    bound = Bound(10.0, np.array([5.0, 3.0, 2.0, 1.0]), 4.0)
    forced = np.array([False, False, False, True])
    with_it, without = cut_levels(bound, choice_of(forced, 2))
    np.testing.assert_allclose(with_it, [10, 8, 7, 10], rtol=1e-13)
    np.testing.assert_allclose(without, [8, 10, 10, 10], rtol=1e-13)


@pytest.mark.parametrize(("n_forced", "k"), [(2, 2), (0, 4)])
def test_nothing_is_cut_when_nothing_is_left_to_choose(n_forced, k):
    bound = Bound(10.0, np.array([5.0, 3.0, 2.0, 1.0]), 0.0)
    cut = screen(bound, choice_of(np.arange(4) < n_forced, k), 9.9)
    assert cut.removed.size == cut.fixed.size == 0
    assert cut.level == -np.inf


def test_a_smaller_bound_from_elsewhere_would_lose_features():
    """Why the value must be that of the same witness (§12.3): here it would cut the optimum."""
    A = np.diag([1.0, 0.9, 0.8])
    bound = dual_bound(KnownMatrix.exact(A), np.sqrt(np.diag([0.0, 0.0, 0.5])), 1, any_of(3, 1))
    best = 1.0
    assert not np.isin(0, screen(bound, any_of(3, 1), best).removed)
    mixed = Bound(best, bound.scores, bound.ky_fan)
    assert np.isin(0, screen(mixed, any_of(3, 1), best).removed)
