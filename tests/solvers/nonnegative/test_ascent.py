"""The ascent: never down, never above the enumerated optimum, and at the end a local maximum."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from kspan import as_covariance
from kspan.covariance import MaskedCovariance
from kspan.linalg.nonnegative import towards
from kspan.progress import Monitor, Status
from kspan.solvers.loadings import largest_variance
from kspan.solvers.nonnegative.ascent import _combined, ascend
from tests.oracles import assert_feasible, covariance_of, nonnegative_optimum, random_covariance


def cut_and_unit(X, k):
    """The k largest entries of each column, by sorting."""
    X = np.maximum(X, 0.0).copy()
    for x in X.T:
        x[np.argsort(-x, kind="stable")[k:]] = 0.0
    return X / np.linalg.norm(X, axis=0)


def draw(data, seed, largest=8):
    rng = np.random.default_rng(seed)
    d = data.draw(st.integers(1, largest))
    A = random_covariance(rng, d, data.draw(st.integers(1, d)))
    return A, data.draw(st.integers(1, d)), np.abs(rng.standard_normal((d, 4)))


# --- what always holds


@pytest.mark.parametrize("swaps", [False, True])
@given(seed=st.integers(0, 10_000), data=st.data())
def test_feasible_above_the_start_and_not_above_the_optimum(swaps, seed, data):
    A, k, starts = draw(data, seed)
    found = ascend(covariance_of(A), starts, k, swaps=swaps)
    assert_feasible(found.vectors, k)
    values = np.einsum("ij,ij->j", found.vectors, A @ found.vectors)
    np.testing.assert_allclose(found.values, values, rtol=1e-12)
    X = cut_and_unit(starts, k)
    assert (values >= np.einsum("ij,ij->j", X, A @ X) * (1 - 1e-12)).all()
    assert values.max() <= nonnegative_optimum(A, k) * (1 + 1e-9)
    np.testing.assert_array_equal(found.best, found.vectors[:, np.argmax(values)])
    assert found.converged
    assert np.all(np.diff(found.history) >= 0)
    assert found.history[-1] == pytest.approx(values.max(), rel=1e-9)


@given(seed=st.integers(0, 10_000), data=st.data())
def test_never_down_from_step_to_step(seed, data):
    """Stopped after 0, 1, 2, … steps, from every start."""
    A, k, starts = draw(data, seed)
    values = [ascend(covariance_of(A), starts, k, max_iter=n).values for n in range(8)]
    assert (np.diff(values, axis=0) >= -1e-12 * np.abs(A).max() * len(A)).all()


@given(seed=st.integers(0, 10_000), data=st.data())
def test_the_end_is_a_local_maximum(seed, data):
    """x > 0 is the leading eigenvector on its support, and a power step stays there."""
    A, k, starts = draw(data, seed)
    for x in ascend(covariance_of(A), starts, k).vectors.T:
        J = np.flatnonzero(x)
        top = np.linalg.eigvalsh(A[np.ix_(J, J)])[-1]
        assert x @ A @ x == pytest.approx(top, rel=1e-9)
        y = cut_and_unit((A @ x)[:, None], k)[:, 0]
        assert y @ A @ y <= x @ A @ x * (1 + 1e-9)


@given(seed=st.integers(0, 10_000), data=st.data())
def test_no_direction_on_the_support_goes_up(seed, data):
    """By differences: small nonnegative changes of x within its features do not help."""
    A, k, starts = draw(data, seed)
    rng = np.random.default_rng(seed)
    x = ascend(covariance_of(A), starts, k).best
    for _ in range(20):
        y = np.where(x > 0, np.maximum(x + 1e-3 * rng.standard_normal(x.size), 0), 0)
        y /= np.linalg.norm(y)
        assert y @ A @ y <= x @ A @ x * (1 + 1e-9)


def test_swaps_reach_the_optimum_more_often():
    """From one random start: in 32 of 40 cases when this was written, without them in 19."""
    shares = {False: [], True: []}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        A = random_covariance(rng, 9)
        best = nonnegative_optimum(A, 3)
        start = np.abs(rng.standard_normal((9, 1)))
        for swaps in shares:
            found = ascend(covariance_of(A), start, 3, swaps=swaps)
            shares[swaps].append(found.values[0] / best)
    assert np.all(np.array(shares[True]) >= np.array(shares[False]) * (1 - 1e-12))
    optimal = {swaps: np.mean(np.array(share) > 1 - 1e-9) for swaps, share in shares.items()}
    assert optimal[True] > 1.4 * optimal[False]


def test_several_starts_with_swaps_find_the_optimum():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = random_covariance(rng, 9)
        starts = np.abs(rng.standard_normal((9, 10)))
        found = ascend(covariance_of(A), starts, 4, swaps=True)
        assert found.values.max() == pytest.approx(nonnegative_optimum(A, 4), rel=1e-9)


@pytest.mark.parametrize("swaps", [False, True])
def test_starts_do_not_know_of_each_other(rng, swaps):
    A = random_covariance(rng, 30, 10)
    starts = np.abs(rng.standard_normal((30, 12)))
    together = ascend(covariance_of(A), starts, 6, swaps=swaps)
    for j in range(12):
        alone = ascend(covariance_of(A), starts[:, [j]], 6, swaps=swaps)
        np.testing.assert_allclose(alone.vectors[:, 0], together.vectors[:, j], atol=1e-9)


@pytest.mark.parametrize("swaps", [False, True])
def test_every_kind_of_covariance_gives_the_same(rng, swaps):
    X = rng.standard_normal((12, 40)) * (rng.uniform(size=(12, 40)) < 0.7)
    starts = np.abs(rng.standard_normal((40, 5)))
    kinds = [covariance_of(np.cov(X, rowvar=False)), as_covariance(X)]
    kinds.append(as_covariance(scipy.sparse.csr_array(X)))
    kinds.append(MaskedCovariance(as_covariance(X), np.ones(40, dtype=bool)))
    answers = [ascend(kind, starts, 7, swaps=swaps) for kind in kinds]
    for other in answers[1:]:
        np.testing.assert_allclose(other.vectors, answers[0].vectors, atol=1e-6)


# --- the parts


def test_an_eigenvector_of_both_signs_is_not_taken():
    """The best on {0, 1} is a single feature: the way there leaves the other one out."""
    A = np.array([[2.0, -1.0], [-1.0, 1.9]])
    found = ascend(covariance_of(A), np.ones((2, 1)), 2)
    np.testing.assert_array_equal(found.best, [1.0, 0.0])
    assert found.values[0] == 2.0


@given(seed=st.integers(0, 10_000))
def test_moving_towards_the_eigenvector_never_loses(seed):
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, 6)
    u = np.linalg.eigh(A)[1][:, -1]
    x = np.abs(rng.standard_normal(6)) + 1e-3
    x /= np.linalg.norm(x)
    u = u if u @ x >= 0 else -u
    if (u >= 0).all():
        return
    y = towards(x, u)
    assert (y >= 0).all()
    assert (y == 0).any()
    assert np.linalg.norm(y) == pytest.approx(1.0)
    assert y @ A @ y >= x @ A @ x * (1 - 1e-12)


@given(seed=st.integers(0, 10_000))
def test_the_best_nonnegative_combination_of_two(seed):
    a, b, c = np.random.default_rng(seed).standard_normal(3)
    angles = np.linspace(0, np.pi / 2, 20_001)
    values = (
        np.cos(angles) ** 2 * a + 2 * np.cos(angles) * np.sin(angles) * c + np.sin(angles) ** 2 * b
    )
    assert _combined(a, np.array(c), np.array(b)) == pytest.approx(values.max(), abs=1e-7)


# --- cases by name


@pytest.mark.parametrize("start", [np.zeros(3), [0.0, 1.0, 1.0], [-1.0, -1.0, -1.0]])
def test_a_start_without_variance_is_replaced_by_the_largest_feature(start):
    """In the second, Ax = 0: the two features cancel."""
    A = np.array([[3.0, 0.0, 0.0], [0.0, 1.0, -1.0], [0.0, -1.0, 1.0]])
    found = ascend(covariance_of(A), np.array(start, dtype=float)[:, None], 2)
    np.testing.assert_array_equal(found.best, [1.0, 0.0, 0.0])


def test_all_correlations_negative(rng):
    A = np.eye(5) * np.arange(2.0, 7.0) - 0.3
    found = ascend(covariance_of(A), np.abs(rng.standard_normal((5, 3))), 4, swaps=True)
    assert found.values.max() == pytest.approx(A.diagonal().max())
    assert_feasible(found.vectors, 1)


def test_one_feature_is_the_one_of_largest_variance(rng):
    A = random_covariance(rng, 8)
    found = ascend(covariance_of(A), np.abs(rng.standard_normal((8, 3))), 1, swaps=True)
    assert (found.values == A.diagonal().max()).all()


def test_all_features_of_a_positive_matrix_is_plain_pca(rng):
    A = random_covariance(rng, 8) ** 2  # Schur product: positive semidefinite, entries positive
    found = ascend(covariance_of(A), np.abs(rng.standard_normal((8, 2))), 8)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(A)[-1])


def test_rank_one(rng):
    v = rng.standard_normal(9)
    found = ascend(covariance_of(np.outer(v, v)), np.abs(rng.standard_normal((9, 6))), 3)
    plus, minus = (np.sum(np.sort(np.maximum(s * v, 0))[-3:] ** 2) for s in (1, -1))
    assert found.values.max() == pytest.approx(max(plus, minus))


def test_constant_features_are_never_used(rng):
    A = random_covariance(rng, 6)
    A[[1, 4]], A[:, [1, 4]] = 0.0, 0.0
    found = ascend(covariance_of(A), np.ones((6, 1)), 6, swaps=True)
    assert not found.vectors[[1, 4]].any()


def test_masked_features_are_never_used(rng):
    keep = np.arange(10) % 3 > 0
    A = MaskedCovariance(as_covariance(rng.standard_normal((6, 10))), keep)
    found = ascend(A, np.abs(rng.standard_normal((10, 4))), 5, swaps=True)
    assert not found.vectors[~keep].any()


def test_copies_of_features_come_to_rest(rng):
    X = np.repeat(rng.standard_normal((20, 4)), 5, axis=1)
    found = ascend(as_covariance(X), np.abs(rng.standard_normal((20, 8))), 7, swaps=True)
    assert found.converged
    assert_feasible(found.vectors, 7)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_huge_and_tiny_scales(rng, scale):
    A = random_covariance(rng, 12)
    starts = np.abs(rng.standard_normal((12, 4)))
    plain, scaled = (ascend(covariance_of(A * s), starts, 4, swaps=True) for s in (1.0, scale))
    np.testing.assert_allclose(scaled.vectors, plain.vectors, atol=1e-8)
    np.testing.assert_allclose(scaled.values, plain.values * scale, rtol=1e-9)


def test_more_features_than_there_are(rng):
    A = random_covariance(rng, 5)
    found = ascend(covariance_of(A), np.abs(rng.standard_normal((5, 2))), 9)
    assert_feasible(found.vectors, 5)


def test_wide_data(rng):
    X = rng.standard_normal((30, 1500))
    X[:, :60] += 2 * rng.standard_normal((30, 1))
    found = ascend(as_covariance(X), np.abs(rng.standard_normal((1500, 3))), 50, swaps=True)
    assert found.converged
    assert np.flatnonzero(found.best).max() < 60


def test_more_features_than_lapack_is_used_for(rng):
    """The eigenvector of a large support comes from Lanczos, good to 1e-8."""
    X = rng.standard_normal((700, 900)) + 0.7 * rng.standard_normal((700, 1))
    found = ascend(as_covariance(X), np.abs(rng.standard_normal((900, 2))), 500)
    assert found.converged
    x = found.best
    J = np.flatnonzero(x)
    top = np.linalg.eigvalsh(np.cov(X[:, J], rowvar=False))[-1]
    assert found.values.max() == pytest.approx(top, rel=1e-9)


def test_the_feature_of_largest_variance():
    x = largest_variance(covariance_of(np.diag([1.0, 3.0, 2.0])))
    np.testing.assert_array_equal(x, [[0.0], [1.0], [0.0]])


# --- stopping


def test_it_stops_in_time_and_when_told(rng):
    A, starts = covariance_of(random_covariance(rng, 40)), np.abs(rng.standard_normal((40, 5)))
    late = Monitor("x", None, 1e-9)
    assert not ascend(A, starts, 5, monitor=late, swaps=True).converged
    assert late.stopped is Status.TIME_LIMIT
    told = Monitor("x", lambda progress: progress.iteration == 2)
    found = ascend(A, starts, 5, monitor=told, swaps=True)
    assert told.stopped is Status.STOPPED
    assert len(found.history) == 2
    assert_feasible(found.vectors, 5)


def test_an_interrupt_keeps_what_was_reached(rng):
    def interrupt(progress):
        if progress.iteration == 3:
            raise KeyboardInterrupt

    A, starts = covariance_of(random_covariance(rng, 40)), np.abs(rng.standard_normal((40, 5)))
    monitor = Monitor("x", interrupt)
    found = ascend(A, starts, 5, monitor=monitor)
    assert monitor.stopped is Status.INTERRUPTED
    assert not found.converged
    assert_feasible(found.vectors, 5)
    assert found.values.max() >= found.history[0]


def test_too_few_steps_are_said_so(rng):
    A, starts = covariance_of(random_covariance(rng, 40)), np.abs(rng.standard_normal((40, 5)))
    assert not ascend(A, starts, 5, max_iter=1).converged
    with pytest.raises(ValueError, match="max_iter"):
        ascend(A, starts, 5, max_iter=-1)
    with pytest.raises(ValueError, match="k must"):
        ascend(A, starts, 0)
