"""A wrong witness makes a bound loose, never false: random witnesses against enumeration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance
from kspan.covariance import DenseCovariance
from kspan.linalg.rounding import UNIT, unit_scale
from kspan.proofs.check.bounds import (
    Cones,
    SharedCones,
    dual_bound,
    has_no_interior_optimum,
    low_rank_dual_bound,
    positive_eigenvalue_sum,
    sample_bound,
    split_bound,
    top_eigenvalue_sum,
    trace_bound,
    with_cones,
)
from kspan.proofs.check.known import KnownFactor, KnownMatrix, KnownVariances, Uncertainty
from kspan.proofs.check.row_sums import RowWitness
from tests.effort import examples
from tests.proofs.helpers import KINDS, all_values, any_of, choice_of, matrix_problem, random_psd

# Bounds are promised for matrices in units of their scale.
PLAIN = tuple(kind for kind in KINDS if kind not in ("tiny", "huge"))

# Enumeration itself is rounded: an eigenvalue of an 8×8 matrix is off by some u‖A‖.
SLACK = 1e-13


@st.composite
def questions(draw, max_d=8, kinds=PLAIN):
    """A matrix, m, the choice, the optimum, and a generator."""
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
    return A, m, choice_of(forced, k, allowed), float(values.max()), rng


def inside(question):
    """The same question on its allowed features alone."""
    A, m, choice, best, rng = question
    places = choice.features
    return KnownMatrix.exact(A).on(places), m, choice.on(places), best, rng


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
    value = choice_of(forced, k).best_sum(scores)
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
    A, m, choice, best, _ = question
    bound = trace_bound(KnownVariances.exact(np.diagonal(A)), m, choice)
    assert holds(bound.value, best)
    assert bound.ky_fan == 0.0
    if m == choice.size:  # then it is the answer
        assert bound.value == pytest.approx(best, rel=1e-12, abs=1e-15)


def row_bound(A, m, choice, weights=None):
    """The bound by row sums."""
    problem = matrix_problem(A, m, choice.size, choice.include, choice.exclude)
    return RowWitness(np.empty(0) if weights is None else weights).evaluate(problem)


@given(questions(), st.booleans())
def test_row_bound_of_any_weights(question, equal):
    A, m, choice, best, rng = question
    weights = None if equal else 10.0 ** rng.uniform(-3, 3, choice.features.size)
    assert holds(row_bound(A, m, choice, weights), best)


@given(questions())
def test_levels_of_row_sums_bound_every_support_with_a_feature(question):
    A, _, choice, _, rng = question
    problem = matrix_problem(A, 1, choice.size, choice.include, choice.exclude)
    weights = 10.0 ** rng.uniform(-2, 2, choice.features.size)
    levels = RowWitness(weights).levels(problem)
    supports, values = all_values(A, 1, choice.size, choice.include, choice.exclude)
    for feature in range(len(A)):
        best = values[(supports == feature).any(axis=1)].max(initial=-np.inf)
        assert levels[feature] >= best - SLACK
    assert (levels[choice.exclude] == -np.inf).all()


def test_row_bound_of_float32_data():
    """Copies: the bound is the value of their support, to all digits but those of rounding."""
    for seed in range(20):
        X = np.random.default_rng(seed).standard_normal((12, 6)).astype(np.float32)
        X[:, 1] = X[:, 2] = X[:, 0]
        X[:, 3:] *= np.float32(0.1)
        best = all_values(np.cov(X.T.astype(float)), 1, 3)[1].max()
        assert RowWitness().evaluate(RowSparseProblem(as_covariance(X), 1, 3)) >= best * (1 - SLACK)


def test_row_bound_of_a_diagonal_matrix_is_exact():
    A = np.diag([1.0, 4.0, 2.0, 3.0])
    assert row_bound(A, 2, any_of(4, 3)) == pytest.approx(7.0, rel=1e-12)


def test_row_bound_scales_the_rows():
    """Rank one: with the loadings as weights it is exact, with equal ones it is not."""
    x = np.array([4.0, 1.0, 0.25])
    assert row_bound(np.outer(x, x), 1, any_of(3, 3), x) == pytest.approx(x @ x, rel=1e-12)
    plain = (x * x.sum()).max()
    assert row_bound(np.outer(x, x), 1, any_of(3, 3)) == pytest.approx(plain, rel=1e-12)


# --- the dual bound


@examples(100)
@given(questions())
def test_dual_bound_of_any_factor(question):
    known, m, choice, best, rng = inside(question)
    A, d = known.A, known.n_features
    F = rng.standard_normal((d, rng.integers(0, d + 2))) * np.sqrt(sizes(rng))
    bound = dual_bound(KnownMatrix.exact(A), F, m, choice)
    assert holds(bound.value, best)
    assert (bound.scores >= (F * F).sum(axis=1) * (1 - 1e-15)).all()
    exact = np.linalg.eigvalsh(A - F @ F.T)[-m:].sum()
    exact += choice.best_sum((F * F).sum(axis=1))
    assert bound.value == pytest.approx(exact, rel=1e-10, abs=1e-10 * (1 + (F * F).sum()))


@given(questions())
def test_dual_bound_of_the_named_factors(question):
    """B = 0 gives the top eigenvalues, no factor (B = A) the trace bound, a root of A the same."""
    known, m, choice, best, _ = inside(question)
    A, d = known.A, known.n_features
    nothing = dual_bound(known, np.zeros((d, 0)), m, choice)
    assert holds(nothing.value, best)
    assert nothing.value == pytest.approx(np.linalg.eigvalsh(A)[-m:].sum(), rel=1e-10, abs=1e-12)
    trace = dual_bound(known, None, m, choice)
    assert trace.value == trace_bound(KnownVariances.exact(np.diagonal(A)), m, choice).value
    values, vectors = np.linalg.eigh(A)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    assert dual_bound(known, root, m, choice).value == pytest.approx(trace.value, rel=1e-9)


def test_good_rows_beat_the_plain_bound():
    """Otherwise the tests of any rows could pass with cones that do nothing."""
    A = random_psd(np.random.default_rng(0), 6, "gaussian") / 16
    known, F, choice = KnownMatrix.exact(A), np.zeros((6, 0)), any_of(6, 3)
    plain = dual_bound(known, F, 1, choice).value
    P = np.outer(*2 * [np.linalg.eigh(A)[1][:, -1]])
    tried = [
        dual_bound(known, F, 1, choice, Cones(eta * np.sign(P), np.full(6, eta * q))).value
        for eta in (0.01, 0.03, 0.1)
        for q in (0.5, 1.0, 1.7)
    ]
    assert min(tried) < plain * (1 - 1e-3)


def test_the_matrix_with_cones_is_the_formula():
    """The largest two of four entries count; the diagonal does not."""
    rng = np.random.default_rng(0)
    A, rows = random_psd(rng, 5, "gaussian"), rng.standard_normal((5, 5))
    alpha = rng.uniform(0.5, 1.0, 5)
    C, offset, error = with_cones(A, Cones(rows, alpha), 2)
    G = rows - np.diag(np.diagonal(rows))
    beta = np.sort(G**2, axis=1)[:, -2:].sum(axis=1) / (4 * alpha)
    np.testing.assert_allclose(offset, beta, rtol=1e-14)
    expected = A - (G + G.T) / 2 + np.diag(alpha - beta)
    np.testing.assert_allclose(C, expected, rtol=1e-14, atol=1e-14)
    assert 0 < error < 1e-13
    # A larger β is used, a smaller one is not.
    given_beta = beta * [0.5, 2.0, -1.0, 0.0, 1.5]
    _, offset, _ = with_cones(A, Cones(rows, alpha, beta=given_beta), 2)
    np.testing.assert_allclose(offset, np.maximum(beta, given_beta), rtol=1e-14)


def test_on_takes_the_named_features_and_zeros_elsewhere():
    rows, weights = np.arange(9.0, dtype=np.float32).reshape(3, 3), np.arange(1.0, 4.0)
    shared = SharedCones(np.array([1, 3, 4]), Cones(rows, weights, beta=10 * weights))
    there = shared.on(np.array([0, 3, 4, 7]))
    np.testing.assert_array_equal(there.alpha, [0, 2, 3, 0])
    np.testing.assert_array_equal(there.beta, [0, 20, 30, 0])
    np.testing.assert_array_equal(there.rows[1:3, 1:3], [[4, 5], [7, 8]])
    assert np.count_nonzero(there.rows) == 4
    assert {part.dtype for part in (there.rows, there.alpha, there.beta)} == {np.dtype(float)}
    # In another order, and with nothing in common.
    backwards = shared.on(np.array([4, 9, 3]))
    np.testing.assert_array_equal(backwards.alpha, [3, 0, 2])
    np.testing.assert_array_equal(backwards.rows[[0, 0, 2, 2], [0, 2, 0, 2]], [8, 7, 5, 4])
    assert not shared.on(np.array([0, 2])).rows.any()


@examples(150)
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
    choice = choice_of(forced, k)
    low_rank = low_rank_dual_bound(KnownFactor.exact(X), F, m, choice)
    whole = dual_bound(KnownMatrix.exact(A), F, m, choice)
    # QR is backward stable: errors are a multiple of u times what was put in.
    error = 1e-11 * ((X * X).sum() + (F * F).sum())
    assert abs(low_rank.value - whole.value) <= error
    np.testing.assert_allclose(low_rank.scores, whole.scores, rtol=1e-12)
    best = all_values(A, m, k, np.flatnonzero(forced))[1].max()
    assert low_rank.value >= best - 1e-13 * (X * X).sum()


# --- the split bound


@examples(100)
@given(questions())
def test_split_bound_of_any_witness(question):
    A, m, choice, best, rng = question
    d = len(A)
    T = np.sort(rng.permutation(d)[: rng.integers(0, d + 1)])
    t = T.size
    factor = rng.standard_normal((t, rng.integers(0, t + 2))) * np.sqrt(sizes(rng))
    cones = Cones(
        rng.standard_normal((t, t)) * sizes(rng),  # its diagonal must not count
        rng.uniform(-0.3, 1.0, t) * sizes(rng),  # rows without a positive weight are idle
    )
    variances = KnownVariances.exact(np.diagonal(A))
    bound = split_bound(KnownMatrix.exact(A).on(T), variances, T, factor, cones, m, choice)
    assert holds(bound.value, best)


def test_split_bound_without_an_inside_is_the_trace_bound():
    A = random_psd(np.random.default_rng(0), 6, "gaussian")
    none, nothing = np.empty(0, dtype=np.intp), KnownMatrix.exact(np.empty((0, 0)))
    value = split_bound(
        nothing,
        KnownVariances.exact(np.diagonal(A)),
        none,
        np.empty((0, 0)),
        Cones(),
        2,
        any_of(6, 3),
    ).value
    assert value == pytest.approx(np.sort(np.diagonal(A))[-3:].sum(), rel=1e-12)


# --- the sample-space bound


@examples(100)
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
    floor = float(rng.uniform(0.1, 1) * sizes(rng))
    choice = choice_of(forced, k, allowed)
    try:
        value = sample_bound(KnownFactor.exact(X), active, vectors, common, floor, m, choice)
    except FloatingPointError:
        assert np.linalg.cond(common @ common.T + floor * np.eye(r)) > 1e8
        return
    A = X.T @ X
    best = all_values(A, m, k, np.flatnonzero(forced), np.flatnonzero(~allowed))[1].max()
    assert value >= best - 1e-13 * (X * X).sum()


def test_sample_bound_with_nothing_active_and_one_metric_is_the_trace_bound():
    """p = 0, Λ = 0: s_i = ‖x_i‖²/τ, and the bound is τ times the sum of the k largest."""
    X = np.random.default_rng(0).standard_normal((3, 6))
    none, empty = np.empty(0, dtype=np.intp), np.empty((3, 0))
    value = sample_bound(KnownFactor.exact(X), none, empty, empty, 0.7, 2, any_of(6, 3))
    assert value == pytest.approx(np.sort((X * X).sum(axis=0))[-3:].sum(), rel=1e-10)


def test_sample_bound_with_everything_active_is_the_top_eigenvalues():
    """p_i = x_i: nothing is left over, and Σ x_ix_i' has the eigenvalues of A."""
    X = np.random.default_rng(0).standard_normal((3, 6))
    value = sample_bound(
        KnownFactor.exact(X), np.arange(6), X, np.empty((3, 0)), 0.7, 2, any_of(6, 3)
    )
    assert value == pytest.approx(np.linalg.eigvalsh(X @ X.T)[-2:].sum(), rel=1e-10)


@pytest.mark.parametrize("exponent", [-300, -150, 100, 150, 300])
def test_a_metric_out_of_all_proportion_is_no_proof(exponent):
    """Squares of the whitened data under- or overflow: a true bound or an error, no warning."""
    X = np.random.default_rng(0).standard_normal((3, 6))
    best = all_values(X.T @ X, 1, 3)[1].max()
    empty = np.empty((3, 0))
    for vectors in (0.3 * X, 1.2 * X):
        try:
            value = sample_bound(
                KnownFactor.exact(X), np.arange(6), vectors, empty, 10.0**exponent, 1, any_of(6, 3)
            )
        except FloatingPointError:
            continue
        assert value >= best * (1 - 1e-12)


# --- witnesses that are none

A3, TWO3 = KnownMatrix.exact(np.diag([3.0, 2.0, 1.0])), any_of(3, 2)
BAD = [np.nan, np.inf, -np.inf, 1e200]  # the last one is finite, but its square is not


@pytest.mark.parametrize("bad", BAD)
def test_dual_bounds_refuse_what_is_not_finite(bad):
    F = np.ones((3, 2))
    F[1, 1] = bad
    with pytest.raises(FloatingPointError):
        dual_bound(A3, F, 1, TWO3)
    with pytest.raises(FloatingPointError):
        low_rank_dual_bound(KnownFactor.exact(np.ones((1, 3))), F, 1, TWO3)


def test_dual_bound_refuses_a_factor_of_another_size():
    with pytest.raises(FloatingPointError, match="does not fit"):
        dual_bound(A3, np.ones((4, 1)), 1, TWO3)


@pytest.mark.parametrize("part", ["rows", "alpha", "beta", "signs"])
@pytest.mark.parametrize("bad", BAD)
def test_cones_refuse_what_is_not_finite(part, bad):
    parts = {"rows": np.ones((3, 3)), "alpha": np.ones(3), "beta": np.ones(3)}
    parts["signs"] = np.zeros((3, 3))
    parts[part].flat[1] = bad
    with pytest.raises(FloatingPointError):
        dual_bound(A3, np.zeros((3, 0)), 1, TWO3, Cones(**parts))


@pytest.mark.parametrize(
    "parts",
    [
        {"rows": np.ones((3, 3))},
        {"alpha": np.ones(3)},
        {"rows": np.ones((2, 2)), "alpha": np.ones(2)},
        {"rows": np.ones((3, 3)), "alpha": np.ones((3, 1))},
        {"rows": np.ones((3, 3)), "alpha": np.ones(3), "beta": np.ones(2)},
        {"signs": np.ones((2, 2))},
    ],
)
def test_cones_of_another_size(parts):
    with pytest.raises(FloatingPointError):
        dual_bound(A3, np.zeros((3, 0)), 1, TWO3, Cones(**parts))


@pytest.mark.parametrize("dtype", [np.int64, np.complex128, bool])
def test_cones_are_floating_numbers(dtype):
    cones = Cones(np.ones((3, 3), dtype=dtype), np.ones(3))
    with pytest.raises(FloatingPointError, match="not floating"):
        cones.on(np.arange(3))


@pytest.mark.parametrize("alpha", [0.0, -1.0, 5e-324, 1e-101])
def test_rows_without_a_positive_weight_carry_no_cone(alpha):
    cones = Cones(np.ones((3, 3)), np.full(3, alpha), beta=np.ones(3))
    F = np.zeros((3, 0))
    found, plain = dual_bound(A3, F, 1, TWO3, cones), dual_bound(A3, F, 1, TWO3)
    assert found.value == pytest.approx(plain.value, rel=1e-14)
    np.testing.assert_array_equal(found.scores, plain.scores)


@pytest.mark.parametrize("part", ["factor", "rows", "alpha"])
@pytest.mark.parametrize("bad", BAD)
def test_split_bound_refuses_what_is_not_finite(part, bad):
    parts = {"factor": np.ones((3, 1)), "rows": np.ones((3, 3)), "alpha": np.ones(3)}
    parts[part] = np.full_like(parts[part], bad)
    factor = parts.pop("factor")
    with pytest.raises(FloatingPointError):
        split_bound(
            A3, KnownVariances.exact(A3.variances), np.arange(3), factor, Cones(**parts), 1, TWO3
        )


def sample_parts(**changes):
    """The arguments of `sample_bound` for three features, with changes."""
    parts = {
        "known": KnownFactor.exact(np.ones((2, 3))), "active": np.arange(3),
        "vectors": np.ones((2, 3)), "common": np.ones((2, 1)), "floor": 1.0, "m": 1, "choice": TWO3,
    }  # fmt: skip
    return {**parts, **changes}


@pytest.mark.parametrize(
    ("part", "bad"),
    [(part, bad) for part in ("vectors", "common") for bad in BAD]
    + [("floor", bad) for bad in (np.nan, np.inf, 0.0, -1.0)],
)
def test_sample_bound_refuses_what_is_not_finite_or_positive(part, bad):
    spoilt = np.full_like(sample_parts()[part], bad) if part != "floor" else bad
    with pytest.raises(FloatingPointError):
        sample_bound(**sample_parts(**{part: spoilt}))


def test_sample_bound_refuses_a_feature_named_twice():
    with pytest.raises(FloatingPointError, match="twice"):
        sample_bound(**sample_parts(active=np.array([0, 0, 1])))


def test_sample_bound_refuses_an_ill_conditioned_metric():
    with pytest.raises(FloatingPointError, match=r"ill-conditioned|not positive"):
        sample_bound(**sample_parts(common=np.array([[1e8], [1.0]]), floor=1e-14))


def test_a_matrix_that_is_not_finite_has_no_eigenvalues():
    with pytest.raises(FloatingPointError, match="not finite"):
        top_eigenvalue_sum(np.array([[np.inf, 0.0], [0.0, 1.0]]), 1)


# --- how well A is known


@given(question=questions(), seed=st.integers(0, 2**32 - 1), unseen=st.booleans())
def test_every_bound_covers_what_a_may_be_off_by(question, seed, unseen):
    """The true matrix is A here; what the bounds are given is off by as much as they are told."""
    true, m, choice, best, _ = question
    rng = np.random.default_rng(seed)
    d = len(true)
    errors = rng.uniform(0, 0.1, d) * np.diagonal(true)
    off = np.sqrt(np.outer(errors, errors)) * np.sign(rng.standard_normal((d, d)))
    hidden = rng.uniform(0, 0.3, d) if unseen else np.zeros(d)
    A = true - np.triu(off) - np.triu(off, 1).T - np.diag(hidden)
    uncertainty = Uncertainty(errors, hidden, hidden)  # what is hidden made it PSD
    every, places = np.arange(d), choice.features
    known = KnownMatrix(A, 1.0, uncertainty)
    variances = KnownVariances(np.diagonal(A), 1.0, uncertainty)
    F = sizes(rng) * rng.standard_normal((d, 2))
    cones = Cones(0.1 * rng.standard_normal((d, d)), rng.uniform(0.05, 1, d))
    part, small = known.on(places), choice.on(places)
    some = every[rng.uniform(size=d) < 0.5]
    X = rng.standard_normal((d, d))
    found = {
        "dual": dual_bound(part, F[places], m, small).value,
        "cones": dual_bound(part, F[places], m, small, cones.on(places)).value,
        "trace": trace_bound(variances, m, choice).value,
        "split": split_bound(
            known.on(some), variances, some, F[some], cones.on(some), m, choice
        ).value,
    }
    if not unseen:
        covariance = DenseCovariance(A, is_psd=True, errors=errors)
        problem = RowSparseProblem(covariance, m, choice.size, choice.include, choice.exclude)
        found["rows"] = RowWitness().evaluate(problem)
    for name, value in found.items():
        assert value >= best * (1 - 1e-12), name
    # Of a factor there is no more to be off by than of its square.
    square = X.T @ X
    best = all_values(square + np.diag(hidden), m, choice.size, choice.include, choice.exclude)[1]
    factor = KnownFactor(X[:, places], 1.0, uncertainty.on(places))
    low_rank = low_rank_dual_bound(factor, F[places], m, small).value
    assert low_rank >= best.max() * (1 - 1e-12)


@pytest.mark.parametrize("m", [1, 2])
def test_the_margin_is_that_of_the_worst_error(m):
    """An error of rank one with all signs alike: the bounds have no more to give."""
    A, choice = np.diag([3.0, 2.0, 1.0]), any_of(3, 2)
    errors = np.array([0.3, 0.2, 0.1])
    known = KnownMatrix(A, 1.0, Uncertainty(errors, np.zeros(3), np.zeros(3)))
    F = np.zeros((3, 0))
    more = (
        dual_bound(known, F, m, choice).value - dual_bound(KnownMatrix.exact(A), F, m, choice).value
    )
    assert more == pytest.approx(np.sqrt(m) * 0.5, rel=1e-9)
    unseen = KnownMatrix(A, 1.0, Uncertainty(np.zeros(3), errors, np.zeros(3)))
    more = (
        dual_bound(unseen, F, m, choice).value
        - dual_bound(KnownMatrix.exact(A), F, m, choice).value
    )
    assert more == pytest.approx(errors[:m].sum(), rel=1e-9)


def test_a_matrix_that_lacks_psd_is_bounded_all_the_same():
    """The sum of variances is below the largest eigenvalue here: by what psd_slack says."""
    A = np.array([[1.0, 1.01], [1.01, 1.0]])
    slack = Uncertainty(np.zeros(2), np.zeros(2), np.full(2, 0.01))
    variances = KnownVariances(np.diagonal(A), 1.0, slack)
    assert trace_bound(KnownVariances.exact(np.diagonal(A)), 1, any_of(2, 2)).value < 2.01
    assert trace_bound(variances, 1, any_of(2, 2)).value >= 2.01


def test_a_leaf_may_have_no_optimum_of_its_own():
    both = np.array([[2.0, -1.0], [-1.0, 1.0]])
    assert has_no_interior_optimum(KnownMatrix.exact(both))
    assert not has_no_interior_optimum(KnownMatrix.exact(np.abs(both)))
    assert not has_no_interior_optimum(KnownMatrix.exact(np.eye(2))), "not simple"
    assert not has_no_interior_optimum(KnownMatrix.exact(np.ones((1, 1))))
    nothing = Uncertainty(np.ones(2), np.zeros(2), np.zeros(2))
    assert not has_no_interior_optimum(KnownMatrix(both, 1.0, nothing)), "nothing is known of A"
