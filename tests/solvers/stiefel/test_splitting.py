"""The loop against Algorithms 1 and 2 written out with full matrices."""

import numpy as np
import pytest

from kspan.progress import Monitor, Status
from kspan.solvers.stiefel.splitting import Penalty, Settings, Split, split
from tests.oracles import random_covariance


def by_the_listing(S, V, alpha, settings, n_iter):
    """One start, the l1 penalty, one polar step, as the paper prints the rest."""
    Y, Omega, rho = V.copy(), np.zeros_like(V), settings.rho
    for _ in range(n_iter):
        left, _, right = np.linalg.svd(S @ V + rho * Y - Omega, full_matrices=False)
        V = left @ right
        t = settings.gamma if settings.stabilised else rho
        Z = V + Omega / t
        Y = np.sign(Z) * np.maximum(np.abs(Z) - alpha / t, 0)
        Omega = Omega + t * (V - Y)
        rho = min(settings.beta * rho, settings.rho_max)
    return V, Y


def draw(rng, d=10, r=2, s=3):
    S = random_covariance(rng, d)
    S /= np.linalg.eigvalsh(S)[-1]
    return S, np.stack([np.linalg.qr(rng.standard_normal((d, r)))[0] for _ in range(s)])


@pytest.mark.parametrize("stabilised", [True, False])
def test_a_batch_follows_the_listing(rng, stabilised):
    S, starts = draw(rng)
    settings = Settings(stabilised=stabilised, max_iter=25, tol=1e-12)
    state = split(lambda W: S @ W, Split.at(starts), 0.05, Penalty("l1"), settings, Monitor("test"))
    assert state.n_iter == 25
    assert not state.finished.any()
    assert state.status(0) is Status.MAX_ITER
    for V0, V, Y in zip(starts, state.V, state.Y, strict=True):
        V_listed, Y_listed = by_the_listing(S, V0, 0.05, settings, 25)
        np.testing.assert_allclose(V, V_listed, atol=1e-9)
        np.testing.assert_allclose(Y, Y_listed, atol=1e-9)


@pytest.mark.parametrize("v_step", ["polar", "cg"])
@pytest.mark.parametrize("kind", ["l1", "l21"])
def test_it_ends_where_both_halves_agree(rng, v_step, kind):
    S, starts = draw(rng)
    settings = Settings(v_step=v_step, max_iter=3000, tol=1e-7)
    state = split(lambda W: S @ W, Split.at(starts), 0.03, Penalty(kind), settings, Monitor("test"))
    assert state.finished.all()
    assert state.status(0) is Status.CONVERGED
    np.testing.assert_allclose(state.V, state.Y, atol=1e-4)
    for V in state.V:
        np.testing.assert_allclose(V.T @ V, np.eye(2), atol=1e-10)
        # Stationary: the gradient plus α times a subgradient has no tangent part on the support.
        if kind == "l1":
            G = -S @ V + 0.03 * np.sign(np.where(np.abs(V) > 1e-3, V, 0))
            multiplier = (V.T @ G + G.T @ V) / 2
            rest = np.where(np.abs(V) > 1e-3, G - V @ multiplier, 0)
            assert np.abs(rest).max() < 2e-2


def test_a_finished_start_leaves_the_batch(rng):
    S, starts = draw(rng, s=2)
    widths = []

    def product(W):
        widths.append(W.shape[1])
        return S @ W

    settings = Settings(max_iter=2000, tol=1e-6)
    split(product, Split.at(starts), 0.03, Penalty("l1"), settings, Monitor("test"))
    assert widths[0] == 4
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 0.0}, "gamma must be positive"),
        ({"rho": np.nan}, "rho must be positive"),
        ({"beta": 0.9}, "beta must be at least 1"),
        ({"rho": 20.0}, "rho=20.0 must be at most rho_max=10.0"),
        ({"v_step": "newton"}, "v_step must be one of"),
        ({"max_iter": 0}, "max_iter must be a whole number, 1 or more"),
        ({"v_iter": 1.5}, "v_iter must be a whole number"),
    ],
)
def test_settings_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        Settings(**options)


def test_callbacks_stop_it_and_the_keyboard_does(rng):
    S, starts = draw(rng)
    monitor = Monitor("test", lambda progress: progress.iteration == 3)
    state = split(lambda W: S @ W, Split.at(starts), 0.03, Penalty("l1"), Settings(), monitor)
    assert state.status(0) is Status.STOPPED
    assert state.n_iter == 3

    def press(progress):
        if progress.iteration == 2:
            raise KeyboardInterrupt

    state = split(
        lambda W: S @ W, Split.at(starts), 0.03, Penalty("l1"), Settings(), Monitor("test", press)
    )
    assert state.status(0) is Status.INTERRUPTED
    np.testing.assert_allclose(state.V[0].T @ state.V[0], np.eye(2), atol=1e-10)
