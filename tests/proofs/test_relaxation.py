"""The relaxation: its value against a conic solver, its witness against enumeration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan.proofs.check.bounds import Cones, dual_bound, with_cones
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.search.relaxation import Relaxation, Snapshot
from tests.proofs.helpers import all_values, any_of, choice_of, random_psd

N_STEPS, PRECISION = 100, 1e-8


def relaxed(A, m, k, forced=None, **asked):
    choice = any_of(len(A), k) if forced is None else choice_of(forced, k)
    return Relaxation(A, m, choice, **asked)


def solved(A, m, k, **asked):
    relax = relaxed(A, m, k, **asked)
    relax.run(N_STEPS, precision=PRECISION * max(relax.upper, 1e-3))
    return relax


def by_clarabel(A, m, k, forced=None, offset=None):
    """max <A, P> + c'z over 0 ⪯ P ⪯ Diag(z), tr P = m, 0 ≤ z ≤ 1, Σz = k, z = 1 where forced."""
    cp = pytest.importorskip("cvxpy")
    d = len(A)
    P, z = cp.Variable((d, d), symmetric=True), cp.Variable(d)
    limits = [P >> 0, cp.diag(z) - P >> 0, cp.trace(P) == m, z >= 0, z <= 1, cp.sum(z) == k]
    if forced is not None and forced.any():
        limits.append(z[np.flatnonzero(forced)] == 1)
    reward = cp.trace(A @ P) + (0 if offset is None else offset @ z)
    return float(cp.Problem(cp.Maximize(reward), limits).solve(solver=cp.CLARABEL))


@pytest.mark.parametrize(
    ("d", "m", "k", "kind"),
    [
        (10, 1, 4, "gaussian"),
        (10, 3, 5, "ties"),
        (10, 2, 7, "ties"),
        (12, 2, 4, "diagonal"),
        (12, 2, 5, "mixed scales"),
        (12, 2, 6, "rank deficient"),
        (15, 2, 5, "repeated eigenvalues"),
        (15, 4, 5, "duplicated columns"),
        (30, 2, 8, "gaussian"),
    ],
)
def test_the_value_is_that_of_a_conic_solver(d, m, k, kind):
    A = random_psd(np.random.default_rng(d + m), d, kind)
    A /= np.abs(A).max()
    value = by_clarabel(A, m, k)
    relax = solved(A, m, k)
    assert relax.upper == pytest.approx(value, rel=1e-4)
    bound = dual_bound(KnownMatrix.exact(A), relax.witness(), m, any_of(d, k))
    assert bound.value == pytest.approx(value, rel=1e-4)


def test_forced_features_and_offsets_against_a_conic_solver():
    rng = np.random.default_rng(0)
    A = random_psd(rng, 9, "gaussian") / 20
    forced = np.arange(9) < 2
    assert solved(A, 2, 5, forced=forced).upper == pytest.approx(
        by_clarabel(A, 2, 5, forced), rel=1e-4
    )
    cones = Cones(0.02 * rng.standard_normal((9, 9)), np.full(9, 0.05))
    C, offset, _ = with_cones(A, cones, 4)
    value = by_clarabel(C, 2, 5, forced, offset)
    relax = solved(C, 2, 5, forced=forced, offset=offset)
    assert relax.upper == pytest.approx(value, rel=1e-4)
    # The rigorous bound of the same witness adds the cones and the offset itself.
    bound = dual_bound(KnownMatrix.exact(A), relax.witness(), 2, choice_of(forced, 5), cones)
    assert bound.value == pytest.approx(value, rel=1e-4)


@st.composite
def relaxations(draw, max_d=9):
    d = draw(st.integers(3, max_d))
    m = draw(st.integers(1, d - 2))
    k = draw(st.integers(m + 1, d - 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = ("gaussian", "ties", "rank deficient", "diagonal", "duplicated columns", "mixed scales")
    A = random_psd(rng, d, draw(st.sampled_from(kinds)))
    return A / np.abs(A).max(), m, k, np.arange(d) < draw(st.integers(0, k - 1))


@given(relaxations(), st.integers(0, 20))
def test_every_iterate_carries_a_bound(case, n_steps):
    A, m, k, forced = case
    relax = relaxed(A, m, k, forced)
    relax.run(n_steps)
    best = all_values(A, m, k, np.flatnonzero(forced))[1].max()
    bound = dual_bound(KnownMatrix.exact(A), relax.witness(), m, choice_of(forced, k))
    assert bound.value >= best - 1e-13
    # `upper` is the same bound with m·θ for the Ky Fan sum, which is never smaller. It is an
    # estimate: the factor keeps half the digits where an eigenvalue is near zero.
    assert bound.value <= relax.upper + 1e-7
    assert np.isfinite(relax.upper)


def test_small_matrices_against_a_conic_solver():
    """Small ones are the hard ones: features go to 0 or 1 within a few steps."""
    off = {}
    for seed in (2, 158, 163, 189, 207, 212, 214, 232, 265, 277):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(3, 10))
        m = int(rng.integers(1, d - 1))
        k = int(rng.integers(m + 1, d))
        forced = np.arange(d) < rng.integers(0, k)
        A = random_psd(rng, d, "gaussian")
        A /= np.abs(A).max()
        value = by_clarabel(A, m, k, forced)
        off[seed] = abs(solved(A, m, k, forced=forced).upper / value - 1)
    assert max(off.values()) <= 1e-4, off


@pytest.mark.parametrize("seed", range(8))
def test_it_converges_to_a_feasible_point_of_its_value(seed):
    """P and z of the last iterate satisfy the constraints and reach the bound."""
    A = random_psd(np.random.default_rng(seed), 14, "gaussian")
    A /= np.abs(A).max()
    m, k, forced = 2, 5, np.arange(14) < seed % 3
    relax = solved(A, m, k, forced=forced)
    P, z = relax.projector(), relax.z
    # Newton's residuals and the barrier's share: both far below this.
    tol = 1e-5
    assert np.trace(P) == pytest.approx(m, abs=tol)
    assert z.sum() == pytest.approx(k, abs=tol)
    assert (z[forced] == 1.0).all()
    assert z.min() >= 0.0
    assert z.max() <= 1.0
    assert np.linalg.eigvalsh(P)[0] >= -tol
    assert np.linalg.eigvalsh(np.diag(z) - P)[0] >= -tol
    assert (A * P).sum() == pytest.approx(relax.upper, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("precision", [1e-1, 1e-2, 1e-3, 1e-4, 1e-5])
def test_precision_says_what_is_left_to_gain(precision):
    A = random_psd(np.random.default_rng(0), 12, "gaussian") / 20
    value = solved(A, 2, 5).upper
    relax = relaxed(A, 2, 5)
    relax.run(N_STEPS, precision=precision)
    assert relax.precision <= precision
    # The last point is near the central path, not on it: ten times its gap is generous.
    assert value - 1e-7 <= relax.upper <= value + 10 * precision


def test_upper_never_rises():
    A = random_psd(np.random.default_rng(0), 12, "gaussian") / 20
    relax = relaxed(A, 2, 5)
    uppers = [relax.upper]
    for _ in range(20):
        relax.step()
        uppers.append(relax.upper)
    assert (np.diff(uppers) <= 0).all()
    assert uppers[-1] < uppers[0]


def test_run_stops_at_a_target_and_at_its_budget():
    A = random_psd(np.random.default_rng(0), 12, "gaussian") / 20
    value = solved(A, 2, 5).upper
    relax = relaxed(A, 2, 5)
    target = 0.5 * (relax.upper + value)
    steps = relax.run(50, target=target)
    assert value - 1e-7 <= relax.upper <= target
    assert 0 < steps < 50
    assert relax.run(50, target=target) == 0
    assert relax.run(3) == 3


def test_a_warm_start_needs_fewer_steps():
    rng = np.random.default_rng(1)
    A = random_psd(rng, 20, "gaussian") / 40
    relax = relaxed(A, 2, 6)
    cold = relax.run(N_STEPS, precision=1e-5)
    near = A + np.diag(rng.uniform(0, 1e-4, 20))
    warm = relaxed(near, 2, 6, start=relax.snapshot())
    steps = warm.run(N_STEPS, precision=1e-5)
    assert steps < cold / 2
    assert warm.upper == pytest.approx(solved(near, 2, 6).upper, rel=1e-4)


def test_restrict_takes_a_point_to_a_smaller_problem():
    """What screening and branching do: drop features, and start where the parent ended."""
    A = random_psd(np.random.default_rng(2), 16, "gaussian") / 30
    relax = relaxed(A, 1, 5)
    cold = relax.run(N_STEPS, precision=1e-4)
    keep = np.sort(np.argsort(-relax.z)[:12])
    start = relax.snapshot().restrict(keep)
    assert isinstance(start, Snapshot)
    np.testing.assert_array_equal(start.logit, relax.logit[keep])
    smaller = A[np.ix_(keep, keep)]
    child = relaxed(smaller, 1, 5, start=start)
    assert child.z.sum() == pytest.approx(5, abs=1e-9)  # rescaled
    steps = child.run(N_STEPS, precision=1e-4)
    assert steps <= cold
    value = solved(smaller, 1, 5).upper
    assert child.upper == pytest.approx(value, rel=2e-4)
    assert value <= relax.upper + 1e-9


def test_a_start_is_not_changed():
    A = random_psd(np.random.default_rng(2), 8, "gaussian") / 16
    start = relaxed(A, 1, 3).snapshot()
    before = start.logit.copy()
    relaxed(A, 1, 3, start=start).run(5)
    np.testing.assert_array_equal(start.logit, before)


@pytest.mark.parametrize(("m", "k", "n_forced"), [(3, 3, 0), (1, 5, 0), (1, 3, 3), (2, 4, 4)])
def test_questions_without_an_interior_are_refused(m, k, n_forced):
    with pytest.raises(ValueError, match="more than one possible support"):
        relaxed(np.eye(5), m, k, np.arange(5) < n_forced)


def test_a_discarded_certificate_is_gone():
    relax = relaxed(np.diag([1.0, 0.5, 0.2, 0.1]), 1, 2)
    assert relax.witness() is not None
    relax.discard()
    assert relax.witness() is None
    assert relax.stalled
    n_solves = relax.n_eigensolves
    relax.step()
    assert relax.n_eigensolves == n_solves
