"""A wrong witness makes a bound loose, never false: random witnesses against enumeration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kspan.certificates.bounds import (
    UNIT,
    best_sum,
    dual_bound,
    low_rank_dual_bound,
    positive_eigenvalue_sum,
    row_bound,
    sample_bound,
    split_bound,
    spread,
    strengthened,
    top_eigenvalue_sum,
    trace_bound,
    unit_scale,
)
from kspan.certificates.witness import Cones, SampleWitness, SplitWitness, Strengthening
from tests.certificates.helpers import KINDS, all_values, random_psd

# Bounds are promised for matrices in units of their scale.
PLAIN = tuple(kind for kind in KINDS if kind not in ("tiny", "huge"))

# Enumeration itself is rounded: an eigenvalue of an 8×8 matrix is off by some u‖A‖.
SLACK = 1e-13


@st.composite
def questions(draw, max_d=8, kinds=PLAIN):
    """A matrix, m, k, forced and allowed features, the optimum, and a generator."""
    d = draw(st.integers(1, max_d))
    m = draw(st.integers(1, d))
    k = draw(st.integers(m, d))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    A = random_psd(rng, d, draw(st.sampled_from(kinds)))
    A /= unit_scale(np.abs(A).max())
    order = rng.permutation(d)
    forced, allowed = np.zeros(d, bool), np.ones(d, bool)
    forced[order[: draw(st.integers(0, k))]] = True
    room = min(d - k, d - int(forced.sum()))
    allowed[order[d - draw(st.integers(0, room)) :]] = False
    values = all_values(A, m, k, np.flatnonzero(forced), np.flatnonzero(~allowed))[1]
    return A, m, k, forced, allowed, float(values.max()), rng


def sizes(rng):
    """A size for a witness: much too small, about right, much too large."""
    return 10.0 ** rng.integers(-6, 4)


def holds(value, best):
    return value >= best - SLACK * max(1.0, abs(best))


# --- scales and sums


@given(st.floats(5e-324, 1.7e308))
def test_unit_scale_is_a_power_of_four_just_below(size):
    scale = unit_scale(size)
    mantissa, exponent = np.frexp(scale)
    assert mantissa == 0.5
    assert exponent % 2 == 1  # 2^(exponent - 1) is an even power of two
    assert 1.0 <= size / scale < 4.0
    root = np.sqrt(scale)
    assert root * root == scale


@pytest.mark.parametrize("size", [0.0, -1.0, np.inf, np.nan])
def test_unit_scale_of_nothing_is_one(size):
    assert unit_scale(size) == 1.0


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8), st.integers(0, 8), st.integers(0, 255)
)
def test_best_sum_is_the_best_choice_rounded_up(scores, k, bits):
    scores = np.array(scores)
    forced = (bits >> np.arange(scores.size)) & 1 == 1
    k = min(max(k, int(forced.sum())), scores.size)
    free = np.sort(scores[~forced])[::-1][: k - int(forced.sum())]
    chosen = np.concatenate([scores[forced], free])
    exact = float(np.sum(chosen.astype(np.longdouble)))
    value = best_sum(scores, forced, k)
    # Rounded up by (k + 8) u of the sizes, and the sum itself is off by less than that.
    assert value >= exact
    assert value <= exact + 2 * (k + 9) * UNIT * np.abs(chosen).sum() + 1e-300


@given(questions())
def test_top_eigenvalue_sum_is_rounded_up(question):
    A, m, *_ = question
    values = np.linalg.eigvalsh(A)
    value = top_eigenvalue_sum(A, m)
    assert value >= values[-m:].sum() - 1e-15 * len(A) * np.abs(values).max()
    assert value <= values[-m:].sum() + 1e-13 * m * max(np.linalg.norm(A), 1e-300)


def test_positive_eigenvalue_sum_counts_positive_ones_only():
    M = np.diag([3.0, -1.0, -2.0])
    assert positive_eigenvalue_sum(M, 2, 6.0, 1) == pytest.approx(3.0, rel=1e-12)
    assert positive_eigenvalue_sum(-np.eye(2), 2, 2.0, 1) == pytest.approx(0.0, abs=1e-12)
    assert positive_eigenvalue_sum(np.empty((0, 0)), 2, 0.0, 1) == 0.0


# --- closed forms


@given(questions())
def test_trace_bound(question):
    A, m, k, forced, allowed, best, _ = question
    bound = trace_bound(np.diagonal(A)[allowed], forced[allowed], k)
    assert holds(bound.value, best)
    assert bound.ky_fan == 0.0
    if m == k:  # then it is the answer
        assert bound.value == pytest.approx(best, rel=1e-12, abs=1e-15)


@given(questions())
def test_row_bound(question):
    A, m, k, _, allowed, best, _ = question
    assert holds(row_bound(A[np.ix_(allowed, allowed)], m, k), best)


def test_row_bound_of_a_diagonal_matrix_is_exact():
    A = np.diag([1.0, 4.0, 2.0, 3.0])
    assert row_bound(A, 2, 3) == pytest.approx(7.0, rel=1e-12)


def test_row_bound_scales_the_rows():
    """Rank one with unequal variances: the scaled discs are exact, the plain ones are not."""
    x = np.array([4.0, 1.0, 0.25])
    assert row_bound(np.outer(x, x), 1, 3) < 1.4 * (x @ x)
    plain = (x * x.sum()).max()
    assert row_bound(np.outer(x, x), 1, 3) <= plain * (1 + 1e-12)


# --- the dual bound


@settings(max_examples=150)
@given(questions())
def test_dual_bound_of_any_factor(question):
    A, m, k, forced, allowed, best, rng = question
    A, forced = A[np.ix_(allowed, allowed)], forced[allowed]
    F = rng.standard_normal((len(A), rng.integers(0, len(A) + 2))) * np.sqrt(sizes(rng))
    bound = dual_bound(A, F, m, k, forced, n_samples=int(rng.integers(0, 100)))
    assert holds(bound.value, best)
    assert (bound.scores >= (F * F).sum(axis=1) * (1 - 1e-15)).all()
    exact = np.linalg.eigvalsh(A - F @ F.T)[-m:].sum()
    exact += best_sum((F * F).sum(axis=1), forced, k)
    assert bound.value == pytest.approx(exact, rel=1e-10, abs=1e-10 * (1 + (F * F).sum()))


@given(questions())
def test_dual_bound_of_the_named_factors(question):
    """B = 0 gives the top eigenvalues, no factor (B = A) the trace bound, a root of A the same."""
    A, m, k, forced, allowed, best, _ = question
    A, forced = A[np.ix_(allowed, allowed)], forced[allowed]
    d = len(A)
    nothing = dual_bound(A, np.zeros((d, 0)), m, k, forced)
    assert holds(nothing.value, best)
    assert nothing.value == pytest.approx(np.linalg.eigvalsh(A)[-m:].sum(), rel=1e-10, abs=1e-12)
    trace = dual_bound(A, None, m, k, forced)
    assert trace.value == trace_bound(np.diagonal(A), forced, k).value
    values, vectors = np.linalg.eigh(A)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    assert dual_bound(A, root, m, k, forced).value == pytest.approx(trace.value, rel=1e-9)


@settings(max_examples=150)
@given(questions())
def test_strengthened_bound_of_any_rows(question):
    A, m, k, forced, allowed, best, rng = question
    A, forced = A[np.ix_(allowed, allowed)], forced[allowed]
    d = len(A)
    F = rng.standard_normal((d, d)) * np.sqrt(sizes(rng))
    H = rng.standard_normal((d, d)) * sizes(rng)
    beta = rng.uniform(0.1, 2.0, d) * sizes(rng)
    idle = rng.random(d) < 0.3
    H[idle] = 0.0
    beta[idle] = 0.0
    bound = dual_bound(A, F, m, k, forced, (H, beta))
    assert holds(bound.value, best)


def test_good_rows_beat_the_plain_bound():
    """Otherwise the test above could pass with a strengthening that does nothing."""
    A = random_psd(np.random.default_rng(0), 6, "gaussian") / 16
    m, k, forced = 1, 3, np.zeros(6, bool)
    F = np.zeros((6, 0))
    plain = dual_bound(A, F, m, k, forced).value
    P = np.outer(*2 * [np.linalg.eigh(A)[1][:, -1]])
    tried = [
        dual_bound(A, F, m, k, forced, (eta * np.sign(P), np.full(6, eta * q))).value
        for eta in (0.01, 0.03, 0.1)
        for q in (0.5, 1.0, 1.7)
    ]
    assert min(tried) < plain * (1 - 1e-3)


def test_strengthened_matrix_is_the_formula():
    rng = np.random.default_rng(0)
    A, H, beta = random_psd(rng, 4, "gaussian"), rng.standard_normal((4, 4)), np.full(4, 0.5)
    C, offset, error = strengthened(A, 3, H, beta)
    np.testing.assert_allclose(C, A - (H + H.T) / 2 + np.diag(beta), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(offset, 3 * np.abs(H).max(axis=1) ** 2 / 2.0, rtol=1e-14)
    assert 0 < error < 1e-13


def test_spread_takes_the_named_features_and_zeros_elsewhere():
    shared = Strengthening(np.array([1, 3, 4]), np.arange(9.0).reshape(3, 3), np.arange(1.0, 4.0))
    H, beta = spread(shared, np.array([0, 3, 4, 7]))
    np.testing.assert_array_equal(beta, [0, 2, 3, 0])
    np.testing.assert_array_equal(H[1:3, 1:3], [[4, 5], [7, 8]])
    assert np.count_nonzero(H) == 4


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 7), d=st.integers(1, 8), r=st.integers(0, 8)
)
def test_low_rank_dual_bound_is_the_dual_bound(seed, n, d, r):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    F = rng.standard_normal((d, r)) * np.sqrt(sizes(rng))
    m = int(rng.integers(1, d + 1))
    k = int(rng.integers(m, d + 1))
    forced = np.arange(d) < rng.integers(0, k + 1)
    A = X.T @ X
    low_rank, whole = low_rank_dual_bound(X, F, m, k, forced), dual_bound(A, F, m, k, forced)
    # QR is backward stable: errors are a multiple of u times what was put in.
    error = 1e-11 * ((X * X).sum() + (F * F).sum())
    assert abs(low_rank.value - whole.value) <= error
    np.testing.assert_allclose(low_rank.scores, whole.scores, rtol=1e-12)
    best = all_values(A, m, k, np.flatnonzero(forced))[1].max()
    assert low_rank.value >= best - 1e-13 * (X * X).sum()


# --- the split bound


@settings(max_examples=200)
@given(questions())
def test_split_bound_of_any_witness(question):
    A, m, k, forced, allowed, best, rng = question
    d = len(A)
    inside = np.sort(rng.permutation(d)[: rng.integers(0, d + 1)])
    t = inside.size
    witness = SplitWitness(
        1.0,
        inside,
        rng.standard_normal((t, rng.integers(0, t + 2))) * np.sqrt(sizes(rng)),
        Cones(
            rng.standard_normal((t, t)) * sizes(rng),  # its diagonal must not count
            rng.uniform(-0.3, 1.0, t) * sizes(rng),  # rows without a positive weight are idle
        ),
    )
    A_inside = A[np.ix_(inside, inside)]
    value = split_bound(A_inside, np.diagonal(A), m, k, witness, forced, allowed)
    assert holds(value, best)


def test_split_bound_without_an_inside_is_the_trace_bound():
    A = random_psd(np.random.default_rng(0), 6, "gaussian")
    none = np.empty(0, dtype=np.intp)
    witness = SplitWitness(1.0, none, np.empty((0, 0)), Cones(np.empty((0, 0)), np.empty(0)))
    every = np.ones(6, bool)
    value = split_bound(np.empty((0, 0)), np.diagonal(A), 2, 3, witness, ~every, every)
    assert value == pytest.approx(np.sort(np.diagonal(A))[-3:].sum(), rel=1e-12)


# --- the sample-space bound


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32 - 1), r=st.integers(1, 6), d=st.integers(1, 8), near=st.booleans())
def test_sample_bound_of_any_witness(seed, r, d, near):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((r, d)) * rng.uniform(0.1, 1.5, d)
    m = int(rng.integers(1, d + 1))
    k = int(rng.integers(m, d + 1))
    order = rng.permutation(d)
    forced, allowed = np.zeros(d, bool), np.ones(d, bool)
    forced[order[: rng.integers(0, k + 1)]] = True
    allowed[order[d - rng.integers(0, min(d - k, d - int(forced.sum())) + 1) :]] = False
    active = np.flatnonzero(rng.random(d) < 0.6)
    vectors = rng.standard_normal((r, active.size)) * np.sqrt(sizes(rng))
    if near:  # shrunk copies of the data, as the solver makes them
        vectors = X[:, active] * rng.uniform(0.5, 1.1, active.size)
    common = rng.standard_normal((r, rng.integers(0, r + 1))) * np.sqrt(sizes(rng))
    witness = SampleWitness(1.0, active, vectors, common, float(rng.uniform(0.1, 1) * sizes(rng)))
    try:
        value = sample_bound(X, m, k, witness, forced, allowed)
    except FloatingPointError:
        assert np.linalg.cond(common @ common.T + witness.floor * np.eye(r)) > 1e8
        return
    A = X.T @ X
    best = all_values(A, m, k, np.flatnonzero(forced), np.flatnonzero(~allowed))[1].max()
    assert value >= best - 1e-13 * (X * X).sum()


def test_sample_bound_with_nothing_active_and_one_metric_is_the_trace_bound():
    """p = 0, Λ = 0: s_i = ‖x_i‖²/τ, and the bound is τ times the sum of the k largest."""
    X = np.random.default_rng(0).standard_normal((3, 6))
    every = np.ones(6, bool)
    none = np.empty(0, dtype=np.intp)
    witness = SampleWitness(1.0, none, np.empty((3, 0)), np.empty((3, 0)), 0.7)
    value = sample_bound(X, 2, 3, witness, ~every, every)
    assert value == pytest.approx(np.sort((X * X).sum(axis=0))[-3:].sum(), rel=1e-10)


def test_sample_bound_with_everything_active_is_the_top_eigenvalues():
    """p_i = x_i: nothing is left over, and Σ x_ix_i' has the eigenvalues of A."""
    X = np.random.default_rng(0).standard_normal((3, 6))
    every = np.ones(6, bool)
    witness = SampleWitness(1.0, np.arange(6), X, np.empty((3, 0)), 0.7)
    value = sample_bound(X, 2, 3, witness, ~every, every)
    assert value == pytest.approx(np.linalg.eigvalsh(X @ X.T)[-2:].sum(), rel=1e-10)


@pytest.mark.parametrize("exponent", [-300, -150, 100, 150, 300])
def test_a_metric_out_of_all_proportion_is_no_proof(exponent):
    """Squares of the whitened data under- or overflow: a true bound or an error, no warning."""
    X = np.random.default_rng(0).standard_normal((3, 6))
    every = np.ones(6, bool)
    best = all_values(X.T @ X, 1, 3)[1].max()
    for vectors in (0.3 * X, 1.2 * X):
        witness = SampleWitness(1.0, np.arange(6), vectors, np.empty((3, 0)), 10.0**exponent)
        try:
            value = sample_bound(X, 1, 3, witness, ~every, every)
        except FloatingPointError:
            continue
        assert value >= best * (1 - 1e-12)


# --- witnesses that are none

A3, NONE3, ALL3 = np.diag([3.0, 2.0, 1.0]), np.zeros(3, bool), np.ones(3, bool)
BAD = [np.nan, np.inf, -np.inf, 1e200]  # the last one is finite, but its square is not


@pytest.mark.parametrize("bad", BAD)
def test_dual_bounds_refuse_what_is_not_finite(bad):
    F = np.ones((3, 2))
    F[1, 1] = bad
    with pytest.raises(FloatingPointError):
        dual_bound(A3, F, 1, 2, NONE3)
    with pytest.raises(FloatingPointError):
        low_rank_dual_bound(np.ones((1, 3)), F, 1, 2, NONE3)


def test_dual_bound_refuses_a_factor_of_another_size():
    with pytest.raises(FloatingPointError, match="does not fit"):
        dual_bound(A3, np.ones((4, 1)), 1, 2, NONE3)


@pytest.mark.parametrize("bad", BAD)
def test_strengthening_refuses_what_is_not_finite(bad):
    H, beta, F = np.ones((3, 3)), np.ones(3), np.zeros((3, 0))
    H[0, 1] = bad
    with pytest.raises(FloatingPointError):
        dual_bound(A3, F, 1, 2, NONE3, (H, beta))


@pytest.mark.parametrize("beta", [0.0, -1.0, np.nan, 5e-324])
def test_strengthening_needs_positive_weights(beta):
    with pytest.raises(FloatingPointError):
        dual_bound(A3, np.zeros((3, 0)), 1, 2, NONE3, (np.ones((3, 3)), np.full(3, beta)))


@pytest.mark.parametrize("part", ["factor", "rows", "alpha"])
@pytest.mark.parametrize("bad", BAD)
def test_split_bound_refuses_what_is_not_finite(part, bad):
    parts = {"factor": np.ones((3, 1)), "rows": np.ones((3, 3)), "alpha": np.ones(3)}
    parts[part] = np.full_like(parts[part], bad)
    factor = parts.pop("factor")
    witness = SplitWitness(1.0, np.arange(3), factor, Cones(**parts))
    with pytest.raises(FloatingPointError):
        split_bound(A3, np.diagonal(A3), 1, 2, witness, NONE3, ALL3)


@pytest.mark.parametrize(
    ("part", "bad"),
    [(part, bad) for part in ("vectors", "common") for bad in BAD]
    + [("floor", np.nan), ("floor", np.inf)],
)
def test_sample_bound_refuses_what_is_not_finite(part, bad):
    parts = {"vectors": np.ones((2, 3)), "common": np.ones((2, 1)), "floor": 1.0}
    parts[part] = np.full_like(parts[part], bad) if part != "floor" else bad
    X = np.random.default_rng(0).standard_normal((2, 3))
    witness = SampleWitness(1.0, np.arange(3), **parts)
    with pytest.raises(FloatingPointError):
        sample_bound(X, 1, 2, witness, NONE3, ALL3)


@pytest.mark.parametrize("floor", [0.0, -1.0])
def test_sample_bound_needs_a_positive_metric(floor):
    witness = SampleWitness(1.0, np.arange(3), np.ones((2, 3)), np.ones((2, 1)), floor)
    with pytest.raises(FloatingPointError):
        sample_bound(np.ones((2, 3)), 1, 2, witness, NONE3, ALL3)


def test_sample_bound_refuses_a_feature_named_twice():
    witness = SampleWitness(1.0, np.array([0, 0, 1]), np.ones((2, 3)), np.ones((2, 1)), 1.0)
    with pytest.raises(FloatingPointError, match="twice"):
        sample_bound(np.ones((2, 3)), 1, 2, witness, NONE3, ALL3)


def test_sample_bound_refuses_an_ill_conditioned_metric():
    witness = SampleWitness(1.0, np.arange(3), np.ones((2, 3)), np.array([[1e8], [1.0]]), 1e-14)
    with pytest.raises(FloatingPointError, match=r"ill-conditioned|not positive"):
        sample_bound(np.ones((2, 3)), 1, 2, witness, NONE3, ALL3)


def test_a_matrix_that_is_not_finite_has_no_eigenvalues():
    with pytest.raises(FloatingPointError, match="not finite"):
        top_eigenvalue_sum(np.array([[np.inf, 0.0], [0.0, 1.0]]), 1)
