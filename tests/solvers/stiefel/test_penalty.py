import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan.solvers.stiefel.splitting import Penalty

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("kind", ["l1", "l21"])
@given(seed=seeds, threshold=st.floats(0, 2))
def test_shrinking_is_the_proximal_map(kind, seed, threshold):
    """No nearby point, and no random one, has a lower value."""
    rng = np.random.default_rng(seed)
    penalty = Penalty(kind)
    Z = rng.standard_normal((5, 3))
    Y = penalty.shrink(Z, threshold)

    def cost(Y):
        return threshold * penalty.value(Y) + 0.5 * np.sum((Y - Z) ** 2)

    for size in (1e-4, 1e-2, 1.0):
        for _ in range(10):
            assert cost(Y) <= cost(Y + size * rng.standard_normal(Y.shape)) + 1e-12
    assert cost(Y) <= cost(np.zeros_like(Y))


@pytest.mark.parametrize("kind", ["l1", "l21"])
def test_a_stack_is_its_members(rng, kind):
    penalty = Penalty(kind)
    stack = rng.standard_normal((4, 6, 2))
    for method in (lambda Z: penalty.shrink(Z, 0.3), penalty.subgradient, penalty.pattern):
        np.testing.assert_array_equal(method(stack), np.stack([method(Z) for Z in stack]))
    np.testing.assert_allclose(penalty.value(stack), [penalty.value(Z) for Z in stack])


@pytest.mark.parametrize("kind", ["l1", "l21"])
def test_the_subgradient_agrees_with_finite_differences(rng, kind):
    penalty = Penalty(kind)
    V, D = rng.standard_normal((2, 5, 3))
    slope = (penalty.value(V + 1e-6 * D) - penalty.value(V - 1e-6 * D)) / 2e-6
    assert np.sum(penalty.subgradient(V) * D) == pytest.approx(slope, rel=1e-6)
    assert not penalty.subgradient(np.zeros((3, 2))).any()


def test_l21_leaves_whole_rows_out():
    Y = np.array([[0.0, 1.0], [0.0, 0.0], [2.0, 0.0]])
    assert Penalty("l21").pattern(Y).tolist() == [[True, True], [False, False], [True, True]]
    assert Penalty("l1").pattern(Y).tolist() == [[False, True], [False, False], [True, False]]


def test_unknown_penalty():
    with pytest.raises(ValueError, match="penalty must be one of"):
        Penalty("l0")
