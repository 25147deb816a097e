"""The geometry against finite differences and against pymanopt's manifold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymanopt.manifolds import Stiefel

from kspan.linalg.stiefel import distance_to_orthonormal, polar, qf, retraction_slope, to_tangent
from kspan.solvers.stiefel.pattern import orthonormal_on

seeds = st.integers(0, 2**32 - 1)
shapes = st.tuples(st.integers(2, 9), st.integers(1, 4)).filter(lambda s: s[0] >= s[1])


def draw(seed, shape):
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal(shape))[0]
    return rng, V, to_tangent(V, rng.standard_normal(shape))


def manifold(shape):
    return Stiefel(*shape, retraction="qr")


@given(seeds, shapes)
def test_the_tangent_projection_gradient_and_transport_are_pymanopts(seed, shape):
    rng, V, ζ = draw(seed, shape)
    theirs = manifold(shape)
    Z = rng.standard_normal(shape)
    np.testing.assert_allclose(to_tangent(V, Z), theirs.projection(V, Z), atol=1e-12)
    np.testing.assert_allclose(
        to_tangent(V, Z), theirs.euclidean_to_riemannian_gradient(V, Z), atol=1e-12
    )
    W = qf(V + 0.3 * ζ)[0]
    np.testing.assert_allclose(to_tangent(W, ζ), theirs.transport(V, W, ζ), atol=1e-12)
    assert np.linalg.norm(to_tangent(W, ζ)) <= np.linalg.norm(ζ) * (1 + 1e-12)
    skew = V.T @ ζ
    np.testing.assert_allclose(skew, -skew.T, atol=1e-12)


@given(seeds, shapes)
def test_the_retraction_is_pymanopts(seed, shape):
    _, V, ζ = draw(seed, shape)
    ours, R = qf(V + ζ)
    np.testing.assert_allclose(ours, manifold(shape).retraction(V, ζ), atol=1e-10)
    np.testing.assert_allclose(ours.T @ ours, np.eye(shape[1]), atol=1e-12)
    assert (np.diag(R) > 0).all()


@given(seeds, shapes, st.floats(0, 2))
def test_the_slope_agrees_with_finite_differences(seed, shape, t):
    rng, V, ζ = draw(seed, shape)
    ζ /= max(np.linalg.norm(ζ), 1e-3)
    F = rng.standard_normal((shape[0], shape[0]))
    S, N = F @ F.T / shape[0], rng.standard_normal(shape)

    def value(t):
        Q = qf(V + t * ζ)[0]
        return -0.5 * np.sum(Q * (S @ Q)) - np.sum(Q * N)

    Q, R = qf(V + t * ζ)
    ours = retraction_slope(Q, R, ζ, -(S @ Q) - N)
    # Fourth-order differences: error near 1e-11.
    h = 1e-3
    theirs = (8 * (value(t + h) - value(t - h)) - value(t + 2 * h) + value(t - 2 * h)) / (12 * h)
    assert ours == pytest.approx(theirs, abs=1e-8)


@given(seeds, shapes)
def test_at_the_start_the_slope_is_the_inner_product_with_the_riemannian_gradient(seed, shape):
    rng, V, ζ = draw(seed, shape)
    G = rng.standard_normal(shape)
    Q, R = qf(V)
    assert retraction_slope(Q, R, ζ, G) == pytest.approx(np.sum(to_tangent(V, G) * ζ), abs=1e-10)


@given(seeds, shapes, st.sampled_from([1e-150, 1.0, 1e150]), st.booleans())
def test_polar_is_the_nearest_point(seed, shape, scale, singular):
    rng, V, _ = draw(seed, shape)
    M = rng.standard_normal(shape)
    if singular and shape[1] > 1:
        M[:, -1] = M[:, 0]
    P = polar(M * scale)
    np.testing.assert_allclose(P.T @ P, np.eye(shape[1]), atol=1e-12)
    # ⟨M, P⟩ is the sum of the singular values, the largest that any V reaches.
    assert np.sum(M * P) == pytest.approx(np.linalg.norm(M, "nuc"), rel=1e-9)
    assert np.sum(M * V) <= np.sum(M * P) + 1e-9


@pytest.mark.parametrize("condition", [1e2, 3e3, 1e5, 1e9])
def test_polar_of_badly_conditioned_matrices(rng, condition):
    U = np.linalg.qr(rng.standard_normal((8, 3)))[0]
    M = (U * [1.0, condition**-0.5, 1 / condition]) @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    P = polar(M)
    left, _, right = np.linalg.svd(M, full_matrices=False)
    np.testing.assert_allclose(P.T @ P, np.eye(3), atol=1e-13)
    np.testing.assert_allclose(P, left @ right, atol=1e-6)


@given(seeds, shapes)
def test_orthonormal_columns_with_the_same_zeros_are_as_near_as_promised(seed, shape):
    """Of matrices that are a little off, on random patterns."""
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < 0.7
    V = orthonormal_on(rng.standard_normal(shape), mask)
    if V is None:
        return
    W = V + 10.0 ** -rng.uniform(2, 12) * mask * rng.standard_normal(shape)
    distance = distance_to_orthonormal(W)
    if np.isfinite(distance):
        found = orthonormal_on(W, W != 0)  # the nearest, to first order
        assert found is not None
        assert np.linalg.norm(found - W) <= distance + 1e-9


def test_columns_without_orthonormal_ones_near():
    """A feature that both have, and that one of them must not."""
    for size in (1e-3, 1e-6, 1e-9):
        W = np.array([[1.0, 0.0], [size, size], [0.0, 1.0]])
        assert distance_to_orthonormal(W) == np.inf
        W[1, 1] = 0.0
        assert distance_to_orthonormal(W) < 1e-5
