import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan.progress import Monitor
from kspan.solvers.stiefel.joint import on_pattern
from kspan.solvers.stiefel.pattern import descend, drop_lone_overlaps, orthonormal_on
from kspan.solvers.stiefel.splitting import Penalty
from tests.effort import examples
from tests.oracles import random_covariance

seeds = st.integers(0, 2**32 - 1)


def draw(seed, d=14, r=3, share=0.5):
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal((d, r)))[0]
    mask = rng.uniform(size=(d, r)) < share
    mask[np.arange(r), np.arange(r)] = True
    return rng, V, mask


@given(seeds)
def test_orthonormal_and_zero_outside_the_pattern(seed):
    _, U, mask = draw(seed)
    V = on_pattern(U, mask)
    np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-10)
    allowed = mask | np.broadcast_to(mask.any(axis=1)[:, None], mask.shape)
    assert not V[~allowed].any()


@given(seeds)
def test_newton_stays_within_the_pattern_when_it_succeeds(seed):
    _, U, mask = draw(seed, share=0.7)
    V = orthonormal_on(U, mask)
    if V is not None:
        np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-10)
        assert not V[~mask].any()


def test_newton_rarely_fails_on_generous_patterns():
    failed = 0
    for seed in range(200):
        _, U, mask = draw(seed, d=30, share=0.6)
        failed += orthonormal_on(U, mask) is None
    assert failed <= 4


def test_a_full_pattern_is_the_polar_factor(rng):
    U = rng.standard_normal((6, 2))
    left, _, right = np.linalg.svd(U, full_matrices=False)
    np.testing.assert_allclose(orthonormal_on(U, np.ones((6, 2), bool)), left @ right, atol=1e-12)


def test_an_empty_column_has_no_orthonormal_loadings(rng):
    mask = np.ones((5, 2), dtype=bool)
    mask[:, 1] = False
    assert orthonormal_on(rng.standard_normal((5, 2)), mask) is None


def test_columns_that_share_one_feature_give_it_up():
    U = np.array([[0.9, 0.0], [0.4, 0.2], [0.0, 0.9]])
    mask = np.array([[True, False], [True, True], [False, True]])
    smaller = drop_lone_overlaps(U, mask)
    assert smaller.tolist() == [[True, False], [True, False], [False, True]]
    V = on_pattern(U, mask)
    np.testing.assert_allclose(V.T @ V, np.eye(2), atol=1e-12)


@pytest.mark.parametrize("kind", ["l1", "l21"])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
@examples(15)
@given(seed=seeds)
def test_descent_lowers_the_objective_within_the_pattern(kind, alpha, seed):
    rng, U, mask = draw(seed, share=0.8)
    penalty = Penalty(kind)
    if kind == "l21":
        mask = np.broadcast_to(mask.any(axis=1)[:, None], mask.shape)
    V = orthonormal_on(U, mask)
    if V is None:
        return
    S = random_covariance(rng, 14)
    S /= np.linalg.eigvalsh(S)[-1]

    def objective(V):
        return -0.5 * np.sum(V * (S @ V)) + alpha * penalty.value(V)

    W, value = descend(lambda W: S @ W, V, mask, alpha, penalty, monitor=Monitor("x"))
    assert value == pytest.approx(objective(W), abs=1e-12)
    assert value <= objective(V) + 1e-12
    np.testing.assert_allclose(W.T @ W, np.eye(3), atol=1e-9)
    assert not W[~mask].any()


def test_without_a_pattern_or_a_penalty_descent_is_pca(rng):
    S = random_covariance(rng, 9)
    S /= np.linalg.eigvalsh(S)[-1]
    V = np.linalg.qr(rng.standard_normal((9, 2)))[0]
    mask = np.ones((9, 2), dtype=bool)
    _, value = descend(
        lambda W: S @ W, V, mask, 0.0, Penalty("l1"), max_iter=3000, tol=1e-14, monitor=Monitor("x")
    )
    assert -2 * value == pytest.approx(np.linalg.eigvalsh(S)[-2:].sum(), rel=1e-6)
