"""Row cones of vectors with few entries, against their definition: the nearest point."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kspan.linalg.support_cones import largest_first, project_support_cones
from tests.effort import examples

seeds = st.integers(0, 2**32 - 1)

# An interval is halved to 1e-8 of the multiplier.
PRECISION = 1e-7


def support_norm_squares(W, kappa):
    """‖w‖_sp² of every row, by Argyriou, Foygel and Srebro: the largest entries, and an average."""
    found = []
    for w in np.sort(np.abs(W.astype(float)), axis=1)[:, ::-1]:
        k = min(kappa, w.size)
        rest = w[::-1].cumsum()[::-1]  # sums of an entry and all that are smaller
        for r in range(k):
            level = rest[k - r - 1] / (r + 1)
            above = np.inf if r == k - 1 else w[k - r - 2]
            if above >= level * (1 - 1e-12) and level >= w[k - r - 1] * (1 - 1e-12):
                found.append((w[: k - r - 1] ** 2).sum() + rest[k - r - 1] * level)
                break
        else:
            pytest.fail("no r fits")
    return np.array(found)


def second_order_cones(W, x, y):
    """The nearest points with ‖w‖² ≤ xy, in closed form: κ is as large as it gets."""
    s, u = (x + y) / np.sqrt(2), (x - y) / np.sqrt(2)
    length = np.sqrt(2 * (W**2).sum(axis=1) + u**2)
    shrink = 0.5 * (1 + s / np.where(length > 0, length, 1.0))
    shrink = np.where(length <= s, 1.0, np.where(length <= -s, 0.0, shrink))
    s = np.where(length <= s, s, np.where(length <= -s, 0.0, 0.5 * (length + s)))
    u = u * shrink
    return W * shrink[:, None], (s + u) / np.sqrt(2), (s - u) / np.sqrt(2)


def random_rows(rng, n, t, kind="gaussian"):
    """Points of all kinds: inside, near the boundary, outside and in the polar cone."""
    W, x, y = rng.standard_normal((n, t)), rng.standard_normal(n), rng.standard_normal(n)
    if kind == "ties":
        W = rng.integers(-2, 3, (n, t)).astype(float)
    elif kind == "few":
        W *= rng.random((n, t)) < 0.4
    elif kind == "mixed":
        W *= 10.0 ** rng.integers(-9, 3, (n, t))
    elif kind == "inside":
        x, y = (3 * t * np.abs(v) + 1 for v in (x, y))
    elif kind == "edge":
        x, y = np.abs(x), np.zeros(n)
    return W, x, y


KINDS = ("gaussian", "ties", "few", "mixed", "inside", "edge")


def size_of(*parts):
    return max(1e-300, *(float(np.abs(part).max(initial=0.0)) for part in parts))


def distance(a, b):
    return 2 * ((a[0] - b[0]) ** 2).sum() + sum(((a[i] - b[i]) ** 2).sum() for i in (1, 2))


def test_the_norm_of_the_oracle_is_the_definition():
    """Σ w²/θ over 0 ≤ θ ≤ 1, Σθ ≤ κ, on a grid of θ."""
    w = np.array([3.0, 1.0, 0.5])
    grid = np.linspace(0.005, 1, 200)
    a, b = (part.ravel() for part in np.meshgrid(grid, grid))
    c = 2 - a - b
    fine = (c > 0) & (c <= 1)
    best = (w[0] ** 2 / a + w[1] ** 2 / b + w[2] ** 2 / np.where(fine, c, 1.0))[fine].min()
    found = support_norm_squares(w[None], 2)[0]
    assert found == pytest.approx(best, rel=1e-3)
    assert support_norm_squares(w[None], 1)[0] == pytest.approx(4.5**2)
    assert support_norm_squares(w[None], 3)[0] == pytest.approx(w @ w)


@given(seeds, st.integers(1, 8), st.integers(1, 9), st.sampled_from(KINDS))
def test_it_is_the_nearest_point(seed, t, kappa, kind):
    """In the cone, and ⟨v - p, c - p⟩ ≤ 0 for every c of it: sparse vectors span the cone."""
    rng = np.random.default_rng(seed)
    point = random_rows(rng, 6, t, kind)
    nearest = project_support_cones(*point, kappa)
    W, x, y = nearest
    size = size_of(*point)
    assert x.min() >= -PRECISION * size
    assert y.min() >= -PRECISION * size
    assert (support_norm_squares(W, kappa) <= x * y + PRECISION * size**2).all()
    # ⟨v - p, p⟩ = 0 and ⟨v - p, c⟩ ≤ 0 for the extreme points c: κ entries, ‖w‖² = xy.
    off = [2 * (point[0] - W), point[1] - x, point[2] - y]
    inner = (off[0] * W).sum(axis=1) + off[1] * x + off[2] * y
    assert (np.abs(inner) <= 10 * t * PRECISION * size**2).all()
    largest = np.sqrt((np.sort(off[0] ** 2, axis=1)[:, -kappa:]).sum(axis=1))
    # max over a, b ≥ 0 of √(ab)·largest + a·off_x + b·off_y ≤ 0: off_x, off_y ≤ 0, and a product.
    tol = 10 * t * PRECISION * size
    assert (off[1] <= tol).all()
    assert (off[2] <= tol).all()
    angle = rng.uniform(0, np.pi / 2, (50, 1))
    a, b = np.cos(angle), np.sin(angle)
    assert (np.sqrt(a * b) * largest + a * off[1] + b * off[2] <= tol).all()


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@examples(15)
@given(seeds, st.integers(1, 5), st.integers(1, 4))
def test_it_is_that_of_a_conic_solver(seed, t, kappa):
    """Σ w_j²/φ_j ≤ x, 0 ≤ φ ≤ y, Σφ ≤ κy: θ = φ/y."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(seed)
    W, x, y = random_rows(rng, 1, t)
    w, phi, shares = cp.Variable(t), cp.Variable(t), cp.Variable(t)
    a, b = cp.Variable(), cp.Variable()
    limits = [phi >= 0, phi <= b, cp.sum(phi) <= kappa * b, cp.sum(shares) <= a, a >= 0]
    limits += [
        cp.SOC(shares[j] + phi[j], cp.hstack([2 * w[j], shares[j] - phi[j]])) for j in range(t)
    ]
    cost = 2 * cp.sum_squares(w - W[0]) + cp.square(a - x[0]) + cp.square(b - y[0])
    asked = cp.Problem(cp.Minimize(cost), limits)
    value = asked.solve(solver=cp.CLARABEL)
    assume(asked.status == cp.OPTIMAL)
    nearest = project_support_cones(W, x, y, kappa)
    assert distance((W, x, y), nearest) == pytest.approx(value, rel=1e-5, abs=1e-7)
    np.testing.assert_allclose(nearest[0][0], w.value, atol=2e-3)
    np.testing.assert_allclose([nearest[1][0], nearest[2][0]], [a.value, b.value], atol=2e-3)


@given(seeds, st.integers(1, 8), st.integers(0, 3), st.sampled_from(KINDS))
def test_without_a_limit_it_is_the_second_order_cone(seed, t, more, kind):
    point = random_rows(np.random.default_rng(seed), 6, t, kind)
    for one, two in zip(
        project_support_cones(*point, t + more), second_order_cones(*point), strict=True
    ):
        np.testing.assert_allclose(one, two, atol=PRECISION * size_of(*point))


@given(seeds, st.integers(1, 8), st.integers(1, 9), st.sampled_from(KINDS))
def test_what_was_projected_is_not_moved_again(seed, t, kappa, kind):
    point = random_rows(np.random.default_rng(seed), 6, t, kind)
    nearest = project_support_cones(*point, kappa)
    again = project_support_cones(*nearest, kappa)
    for one, two in zip(nearest, again, strict=True):
        np.testing.assert_allclose(one, two, atol=PRECISION * size_of(*point))


@given(seeds, st.integers(2, 8), st.integers(1, 7))
def test_fewer_entries_are_a_smaller_cone(seed, t, kappa):
    """The cones are nested: the distance falls with κ."""
    point = random_rows(np.random.default_rng(seed), 5, t)
    far, near = (distance(point, project_support_cones(*point, n)) for n in (kappa, kappa + 1))
    assert near <= far * (1 + 1e-6) + 1e-9


@given(seeds, st.integers(1, 6), st.integers(1, 6))
def test_the_polar_cone_goes_to_zero(seed, t, kappa):
    """⟨v, c⟩ ≤ 0 for all c: x, y ≤ 0, and 4xy is at least the κ largest of (2w)²."""
    rng = np.random.default_rng(seed)
    W, x, y = random_rows(rng, 6, t)
    largest = (np.sort(4 * W**2, axis=1)[:, -kappa:]).sum(axis=1)
    x = -np.abs(x) - 0.1
    y = largest / (4 * x) * rng.uniform(1.001, 2, 6)
    for part in project_support_cones(W, x, y, kappa):
        assert not part.any()
    just_outside = project_support_cones(W, x, 0.99 * largest / (4 * x), kappa)
    assert just_outside[0].any(axis=1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zero_rows(dtype):
    """Without entries it is the quadrant; without rows, or columns, there is nothing to do."""
    x = np.array([1.0, 1.0, -1.0, -1.0, 0.0, 0.0], dtype=dtype)
    y = np.array([2.0, -1.0, 2.0, -3.0, 0.0, 1.0], dtype=dtype)
    for W in (np.zeros((6, 3), dtype=dtype), np.zeros((6, 0), dtype=dtype)):
        P, a, b = project_support_cones(W, x, y, 2)
        assert P.shape == W.shape
        assert not P.any()
        np.testing.assert_allclose(a, np.maximum(x, 0), atol=PRECISION)
        np.testing.assert_allclose(b, np.maximum(y, 0), atol=PRECISION)
    none = np.zeros((0, 3), dtype=dtype)
    assert all(part.size == 0 for part in project_support_cones(none, none[:, 0], none[:, 0], 2))


def test_special_points():
    """On the boundary and inside: unmoved."""
    W, x, y = np.array([[0.5, 0.5], [1.0, 1.0]]), np.array([1.0, 4.0]), np.array([1.0, 1.0])
    for kappa in (1, 2):  # (0.5 + 0.5)² = 1
        P, a, b = project_support_cones(W, x, y, kappa)
        np.testing.assert_allclose(P, W, atol=PRECISION)
        np.testing.assert_allclose(a, x, atol=PRECISION)
        np.testing.assert_allclose(b, y, atol=PRECISION)
    for part, same in zip(project_support_cones(0.9 * W, x, y, 1), (0.9 * W, x, y), strict=True):
        np.testing.assert_allclose(part, same, rtol=1e-15)


@given(seeds, st.integers(1, 40), st.integers(1, 12))
def test_float32_stays_float32(seed, t, kappa):
    point = random_rows(np.random.default_rng(seed), 5, t)
    small = tuple(part.astype(np.float32) for part in point)
    found = project_support_cones(*small, kappa)
    double = project_support_cones(*(part.astype(float) for part in small), kappa)
    for one, two in zip(found, double, strict=True):
        assert one.dtype == np.float32
        assert two.dtype == np.float64
        np.testing.assert_allclose(one, two, atol=1e-6 * size_of(*point))


@given(
    seeds, st.integers(1, 7), st.integers(1, 7), st.integers(-20, 20),
    st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
def test_scales(seed, t, kappa, exponent, dtype):
    """It is homogeneous, from 1e-20 to 1e20, where squares leave the range of float32."""
    point = random_rows(np.random.default_rng(seed), 5, t)
    scale = 10.0**exponent
    scaled = tuple((scale * part).astype(dtype) for part in point)
    plain = project_support_cones(*(part.astype(float) / scale for part in scaled), kappa)
    tol = PRECISION if dtype == np.float64 else 1e-6
    for one, two in zip(project_support_cones(*scaled, kappa), plain, strict=True):
        assert np.isfinite(one).all()
        np.testing.assert_allclose(one / dtype(scale), two, atol=tol * size_of(*point))


@pytest.mark.parametrize("kappa", [1, 2, 4])
@pytest.mark.parametrize("large", ["w", "x", "y"])
@pytest.mark.parametrize("small", [1e-20, 1e-8])
def test_mixed_scales(kappa, large, small):
    """One part is larger than the others by far; what is nearest is so in units of the largest."""
    rng = np.random.default_rng(0)
    parts = dict(zip("wxy", random_rows(rng, 8, 5), strict=True))
    parts = {name: part if name == large else small * part for name, part in parts.items()}
    point = parts["w"], parts["x"], parts["y"]
    W, x, y = project_support_cones(*point, kappa)
    assert (support_norm_squares(W, kappa) <= x * y + PRECISION).all()
    assert min(x.min(), y.min()) >= -PRECISION
    inner = 2 * ((point[0] - W) * W).sum(axis=1) + (point[1] - x) * x + (point[2] - y) * y
    np.testing.assert_allclose(inner, 0.0, atol=10 * PRECISION)


def test_a_long_row_with_ties():
    """Thousands of equal entries: all of them get the same share."""
    W = np.ones((1, 3000))
    P, x, y = project_support_cones(W, np.ones(1), np.ones(1), 10)
    assert np.ptp(P) <= PRECISION
    assert support_norm_squares(P, 10)[0] == pytest.approx(float(x[0] * y[0]), rel=1e-6)


@given(
    values=st.lists(st.floats(-1e6, 1e6) | st.integers(0, 3).map(float), min_size=1, max_size=120),
    share=st.floats(0, 1),
)
def test_the_largest_come_first_and_nothing_is_lost(values, share):
    given, count = np.array(values), round(share * len(values))
    found = given.copy()
    largest_first(found, count)
    np.testing.assert_array_equal(found[:count], np.sort(given)[::-1][:count])
    np.testing.assert_array_equal(np.sort(found), np.sort(given))
