import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance, solve
from kspan.solvers.rowsparse.cssp import dual_set, encoder
from tests.oracles import explained, random_covariance


def best_fit_within(X, support, m):
    """The best rank-m approximation of X within the span of some columns, by SVD."""
    Q = np.linalg.qr(X[:, support])[0]
    left, strengths, right = np.linalg.svd(Q.T @ X, full_matrices=False)
    return Q @ (left[:, :m] * strengths[:m]) @ right[:m]


def decoded(X, H):
    """X from its scores XH by least squares."""
    return X @ H @ np.linalg.pinv(X @ H) @ X


@given(seed=st.integers(0, 10_000), data=st.data())
def test_the_encoder_reconstructs_as_well_as_its_columns_allow(seed, data):
    rng = np.random.default_rng(seed)
    d = data.draw(st.integers(3, 9))
    k = data.draw(st.integers(1, d))
    m = data.draw(st.integers(1, k))
    X = rng.standard_normal((20, d)) @ rng.standard_normal((d, d))
    X -= X.mean(axis=0)
    support = np.sort(rng.choice(d, k, replace=False))
    problem = RowSparseProblem(as_covariance(X), m, k)
    candidate = encoder(problem, support)
    H = np.zeros((d, m))
    H[support] = candidate.weights
    np.testing.assert_allclose(H.T @ H, np.eye(m), atol=1e-10)
    error = np.linalg.norm(X - decoded(X, H))
    best = np.linalg.norm(X - best_fit_within(X, support, m))
    assert error == pytest.approx(best, rel=1e-6, abs=1e-6 * np.linalg.norm(X))


def test_leverage_takes_the_longest_rows_of_the_eigenvectors(rng):
    A = random_covariance(rng, 15)
    V = np.linalg.eigh(A)[1][:, -3:]
    longest = np.sort(np.argsort(-(V**2).sum(axis=1))[:6])
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), 3, 6)
    assert np.array_equal(solve(problem, "cssp").support, longest)


def test_refining_never_loses(rng):
    for seed in range(20):
        A = random_covariance(np.random.default_rng(seed), 15)
        problem = RowSparseProblem(as_covariance(A, kind="covariance"), 2, 6)
        for columns in ("leverage", "dual-set"):
            raw, refined = (
                solve(problem, "cssp", columns=columns, refine=refine, random_state=seed)
                for refine in (False, True)
            )
            assert np.array_equal(raw.support, refined.support)
            assert raw.objective <= refined.objective * (1 + 1e-12)
            assert refined.objective == pytest.approx(explained(A, raw.support, 2), rel=1e-9)


def weights_of_the_dual_set(V, squares, count):
    """The sparsification as its paper states it, with plain inverses; returns the weights."""
    d, m = V.shape
    delta = squares.sum() / (1 - np.sqrt(m / count))
    M, weights, place = np.zeros((m, m)), np.zeros(d), 0
    for tau in range(count):
        L = tau - np.sqrt(count * m)
        eye = np.eye(m)
        gain = np.trace(np.linalg.inv(M - (L + 1) * eye)) - np.trace(np.linalg.inv(M - L * eye))
        D = np.linalg.inv(M - (L + 1) * eye)
        for offset in range(d):
            j = (place + offset) % d
            v = V[j]
            low, up = v @ D @ D @ v / gain - v @ D @ v, squares[j] / delta
            if up <= low:
                break
        else:
            raise AssertionError("the theorem promises a row")
        t = 2 / (low + up)
        M += t * np.outer(v, v)
        weights[j] += t
        place = (j + 1) % d
    return weights


@given(seed=st.integers(0, 10_000), m=st.integers(1, 4), extra=st.integers(1, 8))
def test_the_dual_set_meets_both_of_its_promises(seed, m, extra):
    """With weights s: λ_min(Σ s v v') ≥ (1 - √(m/r))² and Σ s ‖e‖² ≤ ‖E‖², after scaling."""
    rng = np.random.default_rng(seed)
    d, count = 20, m + extra
    V = np.linalg.qr(rng.standard_normal((d, m)))[0]
    squares = rng.uniform(0, 1, d)
    weights = weights_of_the_dual_set(V, squares, count)
    assert np.array_equal(dual_set(V, squares, count), np.flatnonzero(weights))
    scaled = weights * (1 - np.sqrt(m / count)) / count
    smallest = np.linalg.eigvalsh((V * scaled[:, None]).T @ V)[0]
    assert smallest >= (1 - np.sqrt(m / count)) ** 2 - 1e-9
    assert scaled @ squares <= squares.sum() * (1 + 1e-9)


def test_adaptive_sampling_covers_what_leverage_misses():
    """Two identical strong features: the second brings nothing, and is drawn with chance zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 6)) * [10, 1, 1, 1, 1, 1]
    X[:, 1] = X[:, 0]
    problem = RowSparseProblem(as_covariance(X), 1, 2)
    seen = {
        tuple(solve(problem, "cssp", columns="dual-set", random_state=seed).support)
        for seed in range(20)
    }
    assert (0, 1) not in seen


def test_sampling_goes_on_when_nothing_is_left_to_explain():
    """Rank two and six features: the first two drawn explain all the others."""
    X = np.random.default_rng(0).standard_normal((30, 2))
    X = X @ np.random.default_rng(1).standard_normal((2, 9))
    problem = RowSparseProblem(as_covariance(X), 2, 6)
    seen = {
        tuple(solve(problem, "cssp", columns="dual-set", random_state=seed).support)
        for seed in range(10)
    }
    for support in seen:
        assert np.linalg.matrix_rank(X[:, support], tol=1e-8) == 2, "all is explained"


def test_a_forbidden_feature_does_not_steer_the_dual_set():
    A = np.diag([100.0, 6, 5, 4, 3, 2, 1, 0.5, 0.4, 0.3])
    covariance = as_covariance(A, kind="covariance")
    problem = RowSparseProblem(covariance, 1, 6, exclude=[0])
    alone = RowSparseProblem(as_covariance(A[1:, 1:], kind="covariance"), 1, 6)
    for seed in range(5):
        options = {"columns": "dual-set", "random_state": seed}
        support = solve(problem, "cssp", **options).support
        assert np.array_equal(support, solve(alone, "cssp", **options).support + 1)


def test_features_of_small_variance_are_drawn_too():
    A = np.diag([1e10, 1, 2, 3, 4, 5, 6, 7, 8, 9.0])
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), 1, 3, exclude=[0])
    seen = {
        tuple(solve(problem, "cssp", columns="dual-set", random_state=seed).support)
        for seed in range(20)
    }
    assert len(seen) > 5


def test_float32_data_with_near_duplicates(rng):
    X = rng.standard_normal((200, 8)).astype(np.float32)
    X[:, 1] = X[:, 0] + np.float32(1e-7) * X[:, 2]
    X -= X.mean(axis=0)
    support = np.arange(4)
    candidate = encoder(RowSparseProblem(as_covariance(X), 2, 4), support)
    H = np.zeros((8, 2))
    H[support] = candidate.weights
    X = X.astype(np.float64)
    error = np.linalg.norm(X - decoded(X, H))
    best = np.linalg.norm(X - best_fit_within(X, [0, 2, 3], 2))
    assert error == pytest.approx(best, rel=1e-4)


def test_unknown_columns(rng):
    problem = RowSparseProblem(as_covariance(random_covariance(rng, 5), kind="covariance"), 1, 2)
    with pytest.raises(ValueError, match="columns must be 'leverage' or 'dual-set'"):
        solve(problem, "cssp", columns="all")
