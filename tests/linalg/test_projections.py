"""Projections against their definition: the nearest point of the set."""

import cvxpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from kspan.linalg.projections import (
    SharedAims,
    fantope_shift,
    fill_capped,
    negative_part,
    project_fantope,
)
from kspan.linalg.tracking import EigenTracker

seeds = st.integers(0, 2**32 - 1)


def largest(rank):
    return EigenTracker(largest=True, rank=rank)


def smallest(rank):
    return EigenTracker(largest=False, rank=rank)


def symmetric(rng, n, spread=1.0):
    M = rng.standard_normal((n, n)) * spread
    return 0.5 * (M + M.T)


# --- the Fantope


def fantope_by_root_finding(M, m):
    """All eigenvalues, and θ from another root finder."""
    values, vectors = np.linalg.eigh(M)

    def excess(theta):
        return np.clip(values - theta, 0, 1).sum() - m

    theta = brentq(excess, values[0] - 1, values[-1], xtol=1e-14)
    return (vectors * np.clip(values - theta, 0, 1)) @ vectors.T


@given(seeds, st.integers(2, 12), st.integers(1, 6), st.integers(1, 20), st.sampled_from([0.1, 3]))
def test_fantope_projection(seed, n, m, guess, spread):
    m = min(m, n - 1)
    M = symmetric(np.random.default_rng(seed), n, spread)
    tracker = largest(guess)
    P = project_fantope(M, m, tracker)
    np.testing.assert_allclose(P, fantope_by_root_finding(M, m), atol=1e-10)
    values = np.linalg.eigvalsh(P)
    assert np.trace(P) == pytest.approx(m, abs=1e-10)
    assert values[0] >= -1e-12
    assert values[-1] <= 1 + 1e-12
    assert tracker.rank >= (values > 1e-9).sum()


@given(seeds)
def test_fantope_projection_is_the_nearest_point(seed):
    """⟨M - P, Q - P⟩ ≤ 0 for every Q of the set: projectors are its corners."""
    rng = np.random.default_rng(seed)
    M = symmetric(rng, 6)
    P = project_fantope(M, 2, largest(3))
    for _ in range(10):
        Q = np.linalg.qr(rng.standard_normal((6, 2)))[0]
        assert ((M - P) * (Q @ Q.T - P)).sum() <= 1e-9


@pytest.mark.parametrize("guess", [1, 3, 40])
def test_fantope_with_equal_eigenvalues(guess):
    """A multiple of the identity: every eigenvalue of P is m/n, however few are asked for."""
    tracker = largest(guess)
    P = project_fantope(2.0 * np.eye(40), 3, tracker)
    np.testing.assert_allclose(P, 3 / 40 * np.eye(40), atol=1e-12)
    assert tracker.rank == 40


def test_fantope_of_few_dimensions_is_the_identity():
    M = symmetric(np.random.default_rng(0), 3)
    for m in (3, 5):
        np.testing.assert_array_equal(project_fantope(M, m, largest(2)), np.eye(3))


def test_a_projector_is_its_own_projection():
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((30, 3)))[0]
    P = project_fantope(Q @ Q.T, 3, largest(4))
    np.testing.assert_allclose(P, Q @ Q.T, atol=1e-12)


def test_float32_stays_float32():
    M = symmetric(np.random.default_rng(0), 30).astype(np.float32)
    P = project_fantope(M, 3, largest(5))
    assert P.dtype == np.float32
    assert negative_part(M, smallest(5)).dtype == np.float32
    np.testing.assert_allclose(P, fantope_by_root_finding(M.astype(float), 3), atol=1e-4)


# --- the PSD cone


@given(seeds, st.integers(1, 12), st.integers(1, 20))
def test_negative_part(seed, n, guess):
    M = symmetric(np.random.default_rng(seed), n)
    N = negative_part(M, smallest(guess))
    values, vectors = np.linalg.eigh(M)
    np.testing.assert_allclose(
        M + N @ N.T, (vectors * np.maximum(values, 0)) @ vectors.T, atol=1e-10
    )
    assert N.shape == (n, (values < 0).sum())


@pytest.mark.parametrize("guess", [1, 5])
def test_negative_part_of_a_large_matrix_finds_all_of_it(guess):
    """More negative eigenvalues than guessed, where the partial solver is used."""
    M = symmetric(np.random.default_rng(1), 60)
    N = negative_part(M, smallest(guess))
    values = np.linalg.eigvalsh(M)
    assert N.shape[1] == (values < 0).sum()
    assert np.linalg.eigvalsh(M + N @ N.T)[0] >= -1e-12


def test_a_psd_matrix_has_no_negative_part():
    assert negative_part(np.eye(5), smallest(2)).shape == (5, 0)


# --- top-k steps


def fill_by_bisection(target, curvature, k, fixed, outside):
    """z of the first group from the price of a unit, found by another search."""
    free = target[~fixed]
    need = k - fixed.sum()

    def demand(price):
        inside = np.clip(free - price / curvature, 0, 1).sum()
        return inside, (outside > price).sum(), (outside >= price).sum()

    low, high = -1e3, 1e3
    for _ in range(200):
        price = 0.5 * (low + high)
        inside, fewest, _ = demand(price)
        low, high = (price, high) if inside + fewest > need else (low, price)
    z = np.ones_like(target)
    z[~fixed] = np.clip(free - high / curvature, 0, 1)
    return z


@given(seeds, st.integers(1, 6), st.integers(0, 5), st.sampled_from([0.5, 2.0]))
def test_fill_capped(seed, n, n_outside, curvature):
    rng = np.random.default_rng(seed)
    target, outside = rng.uniform(-0.5, 1.5, n), rng.uniform(0, 2, n_outside)
    fixed = rng.random(n) < 0.2
    k = int(rng.integers(fixed.sum(), n + n_outside + 1))
    z = fill_capped(target, curvature, k, fixed, outside)
    assert (z[fixed] == 1).all()
    assert (z >= 0).all()
    assert (z <= 1).all()
    # The rest of the k units fits outside.
    assert k - n_outside - 1e-9 <= z.sum() <= k + 1e-9
    np.testing.assert_allclose(
        z, fill_by_bisection(target, curvature, k, fixed, outside), atol=1e-9
    )


@given(seeds)
def test_fill_capped_is_the_best_choice(seed):
    """No feasible pair (z, rewards taken) costs less: random ones and all corners of rewards."""
    rng = np.random.default_rng(seed)
    target, outside, k, c = rng.uniform(-0.5, 1.5, 5), rng.uniform(0, 2, 3), 3, 1.3
    best_rewards = np.concatenate([[0.0], np.cumsum(np.sort(outside)[::-1])])

    def cost(z):
        spent = np.clip(k - z.sum(), 0, 3)  # whole units first, then a share of the next
        reward = np.interp(spent, np.arange(4), best_rewards)
        return c / 2 * ((z - target) ** 2).sum() - reward

    z = fill_capped(target, c, k, np.zeros(5, bool), outside)
    for _ in range(50):
        other = rng.uniform(0, 1, 5)
        other *= min(1.0, k / other.sum())
        assert cost(z) <= cost(other) + 1e-9
        near = np.clip(z + 0.05 * rng.standard_normal(5), 0, 1)
        near *= min(1.0, k / max(near.sum(), 1e-9))
        assert cost(z) <= cost(near) + 1e-9


def test_fill_capped_without_an_outside_is_the_capped_simplex():
    z = fill_capped(np.array([0.9, 0.8, 0.1]), 1.0, 2, np.zeros(3, bool), np.empty(0))
    assert z.sum() == pytest.approx(2.0, abs=1e-12)
    # The missing 0.2 is shared by all; in the second case the first one is capped.
    np.testing.assert_allclose(z, [0.9 + 0.2 / 3, 0.8 + 0.2 / 3, 0.1 + 0.2 / 3], atol=1e-12)
    z = fill_capped(np.array([1.5, 0.8, 0.1]), 1.0, 2, np.zeros(3, bool), np.empty(0))
    np.testing.assert_allclose(z, [1.0, 0.85, 0.15], atol=1e-12)


def test_fill_capped_with_everything_fixed():
    z = fill_capped(np.array([0.2, 0.3]), 1.0, 2, np.ones(2, bool), np.array([5.0]))
    np.testing.assert_array_equal(z, [1.0, 1.0])


# --- θ of the Fantope, exactly


@given(
    st.lists(st.floats(-3, 3), min_size=2, max_size=12),
    st.floats(0.01, 0.99),
    st.booleans(),
)
def test_the_shift_solves_its_equation(values, share, round_them):
    """Against a bisection, with ties when the values are rounded."""
    values = np.sort(np.round(values) if round_them else np.array(values))
    m = max(1.0, np.floor(share * len(values)))
    theta = fantope_shift(values, m)
    assert np.clip(values - theta, 0, 1).sum() == pytest.approx(m, abs=1e-12)
    low, high = values[0] - 1.0, values[-1]
    for _ in range(200):
        middle = (low + high) / 2
        if np.clip(values - middle, 0, 1).sum() > m:
            low = middle
        else:
            high = middle
    # Where the sum is flat many θ solve it; all clip alike.
    np.testing.assert_allclose(
        np.clip(values - theta, 0, 1), np.clip(values - high, 0, 1), atol=1e-10
    )


def test_too_few_values_are_all_clipped_to_one():
    assert fantope_shift(np.array([0.5, 2.0]), 3) == -0.5


# --- features that several components may share


@given(seeds, st.integers(1, 6), st.integers(2, 3), st.floats(0.1, 0.9), st.booleans())
def test_shared_features_are_spent_at_the_nearest_point(seed, n, cap, share, fix):
    """Against a solver of quadratic programs, by what is reached."""
    rng = np.random.default_rng(seed)
    a, b, y = rng.uniform(-1.5, 2.0, (3, n))
    weights = tuple(rng.uniform(0.3, 2.0, 3))
    fixed = np.zeros(n, dtype=bool)
    fixed[0] = fix and n > 1
    total = max(share * cap * n, cap * fixed.sum())
    aims = SharedAims(a, b, y, weights)
    near, copy = rng.uniform(0.0, 1.0) * (seed % 2), rng.uniform(0, cap, n)
    p, w, z, own = aims.spend(total, cap, fixed, (near, copy))
    assert (own >= 0).all()
    assert (own <= weights[1] * np.maximum(p + b - w, 0) + 1e-12).all()
    assert z.sum() <= total + 1e-6
    assert (z >= 0).all()
    assert (z <= cap).all()
    assert (w <= np.minimum(z, 1) + 1e-12).all()
    assert (z[fixed] == cap).all()

    def cost(p, w, z):
        return (
            weights[0] * (p - a) ** 2 + weights[1] * (w - p - b) ** 2
            + weights[2] * (z - p - y) ** 2 + near * (z - copy) ** 2
        ).sum()  # fmt: skip

    # Spending all of it or less: the sum is a limit where the relaxation uses it.
    variables = cvxpy.Variable(n), cvxpy.Variable(n), cvxpy.Variable(n)
    P, W, Z = variables
    goal = (
        weights[0] * cvxpy.sum_squares(P - a)
        + weights[1] * cvxpy.sum_squares(W - P - b)
        + weights[2] * cvxpy.sum_squares(Z - P - y)
        + near * cvxpy.sum_squares(Z - copy)
    )
    rules = [cap * fixed <= Z, cap >= Z, W <= 1, W <= Z, cvxpy.sum(Z) <= total]
    if z.sum() >= total - 1e-6:
        rules[-1] = cvxpy.sum(Z) == total
    best = cvxpy.Problem(cvxpy.Minimize(goal), rules).solve(solver="CLARABEL")
    assert cost(p, w, z) <= best + 1e-5 * (1 + best)
