"""Both V-steps on f(V) = -½tr(V'SV) - ⟨V, N⟩, against pymanopt and against their own promises."""

import numpy as np
import pymanopt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymanopt.manifolds import Stiefel
from pymanopt.optimizers import TrustRegions

from kspan.linalg.stiefel import to_tangent
from kspan.solvers.stiefel.splitting import (
    DECREASE,
    FLATTER,
    _line_search,
    _Point,
    conjugate_gradient,
    polar_steps,
)

seeds = st.integers(0, 2**32 - 1)


def draw(seed, d=8, r=3):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((d, d))
    S = F @ F.T
    S /= np.linalg.eigvalsh(S)[-1]
    N = rng.standard_normal((d, r)) * rng.choice([0.0, 0.01, 1.0, 30.0])
    return S, N, np.linalg.qr(rng.standard_normal((d, r)))[0]


def value(S, N, V):
    return -0.5 * np.sum(V * (S @ V)) - np.sum(V * N)


@given(seeds, st.integers(1, 4))
def test_polar_steps_never_increase(seed, r):
    S, N, V = draw(seed, r=r)
    before = value(S, N, V)
    for _ in range(5):
        V, SV = polar_steps(lambda W: S @ W, V, S @ V, N)
        np.testing.assert_allclose(SV, S @ V, atol=1e-12)
        np.testing.assert_allclose(V.T @ V, np.eye(r), atol=1e-12)
        after = value(S, N, V)
        assert after <= before + 1e-12 * (1 + abs(before))
        before = after


@given(seeds, st.integers(1, 4))
def test_conjugate_gradients_never_increase_and_come_to_rest(seed, r):
    S, N, V = draw(seed, r=r)
    before = value(S, N, V)
    V, SV = conjugate_gradient(lambda W: S @ W, V, S @ V, N, max_iter=1000, tol=1e-7)
    np.testing.assert_allclose(SV, S @ V, atol=1e-8)
    np.testing.assert_allclose(V.T @ V, np.eye(r), atol=1e-10)
    assert value(S, N, V) <= before + 1e-12 * (1 + abs(before))
    gradient = to_tangent(V, -(S @ V + N))
    # Fletcher and Reeves may take small steps for long: only the limit is promised.
    assert np.linalg.norm(gradient) <= 1e-2 * (1 + np.linalg.norm(N))


@given(seeds)
def test_the_line_search_meets_the_strong_wolfe_conditions(seed):
    S, N, V = draw(seed)
    gradient = to_tangent(V, -(S @ V + N))
    direction = -gradient
    start = _Point(0.0, value(S, N, V), -float(np.sum(gradient**2)), V, S @ V)
    point = _line_search(start, direction, S @ direction, N, 1.0)
    assert point is not None
    assert point.value <= start.value + DECREASE * point.t * start.slope + 1e-12
    assert abs(point.slope) <= -FLATTER * start.slope + 1e-12
    # What it carries along without a product is the product.
    np.testing.assert_allclose(point.SV, S @ point.V, atol=1e-10)
    assert point.value == pytest.approx(value(S, N, point.V), abs=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_both_end_where_pymanopt_ends(seed):
    """With a strong linear part the minimum is unique in practice."""
    S, _, V = draw(seed)
    N = 3.0 * np.random.default_rng(seed + 100).standard_normal(V.shape)
    manifold = Stiefel(*V.shape, retraction="qr")

    @pymanopt.function.numpy(manifold)
    def cost(W):
        return value(S, N, W)

    @pymanopt.function.numpy(manifold)
    def gradient(W):
        return -(S @ W + N)

    @pymanopt.function.numpy(manifold)
    def hessian(W, H):
        return -(S @ H)

    problem = pymanopt.Problem(
        manifold, cost, euclidean_gradient=gradient, euclidean_hessian=hessian
    )
    theirs = TrustRegions(verbosity=0, min_gradient_norm=1e-9).run(problem, initial_point=V).cost

    def image(W):
        return S @ W

    for step, options in ((polar_steps, {}), (conjugate_gradient, {"tol": 1e-9})):
        W, _ = step(image, V, S @ V, N, max_iter=2000, **options)
        assert value(S, N, W) == pytest.approx(theirs, rel=1e-8)
