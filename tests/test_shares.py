"""What a fit tells about all features, against a regression of them all by `numpy.linalg.lstsq`."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import kspan.problem.shares as shares_module
from kspan import as_covariance
from kspan.problem import shares_along, variance_shares
from tests.out_of_core import OUT_OF_CORE


def told(X, regressors, w=None):
    """The share of the variance of all columns that a regression on some columns tells."""
    w = np.ones(len(X)) if w is None else w
    centred = (X - np.average(X, axis=0, weights=w)) * np.sqrt(w)[:, None]
    regressors = (regressors - np.average(regressors, axis=0, weights=w)) * np.sqrt(w)[:, None]
    lengths = np.linalg.norm(regressors, axis=0)
    regressors = regressors / np.where(lengths > 0, lengths, 1.0)
    fitted = regressors @ np.linalg.lstsq(regressors, centred, rcond=1e-7)[0]
    return np.sum(fitted**2) / np.sum(centred**2)


def expected(X, support, W, w=None):
    """Represented, panel, effective features and the share of PCA, each by its definition."""
    u = np.ones(len(X)) if w is None else w
    centred = (X - np.average(X, axis=0, weights=u)) * np.sqrt(u)[:, None]
    values = np.linalg.svd(centred, compute_uv=False) ** 2
    chosen = centred[:, support]
    chosen = chosen[:, np.linalg.norm(chosen, axis=0) > 1e-9 * np.linalg.norm(centred)]
    unit = chosen / np.linalg.norm(chosen, axis=0)
    effective = unit.shape[1] ** 2 / np.sum((unit.T @ unit) ** 2)
    pca = values[: W.shape[1]].sum() / values.sum()
    return told(X, X[:, support] @ W, w), told(X, X[:, support], w), effective, pca


def numbers(shares):
    return shares.represented, shares.panel, shares.effective_features, shares.pca


def check(shares, X, support, W, w=None, rtol=1e-7):
    np.testing.assert_allclose(numbers(shares), expected(X, support, W, w), rtol=rtol)


def draw(rng, n, d, rank=3):
    signals = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    return signals + rng.standard_normal((n, d)) + 5.0


SHAPES = {"tall": (60, 20), "wide": (12, 40)}
KINDS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    **OUT_OF_CORE,
}


@pytest.mark.parametrize("formed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_they_are_those_of_a_regression(rng, kind, shape, formed):
    X = draw(rng, *SHAPES[shape])
    X[rng.random(X.shape) < 0.3] = 0.0
    support, W = np.array([1, 4, 5, 8, 11]), rng.standard_normal((5, 2))
    covariance = as_covariance(KINDS[kind](X))
    if formed:
        covariance.leading(2)
    before = covariance.n_passes
    shares = variance_shares(covariance, support, W)
    check(shares, X, support, W)
    if formed:
        assert covariance.n_passes - before <= 2
    axes = np.linalg.qr(W)[0]
    variance = np.sum(axes * (np.cov(X.T)[np.ix_(support, support)] @ axes))
    assert shares.explained == pytest.approx(variance / np.trace(np.cov(X.T)), rel=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_of_scaled_and_weighted_data(rng, shape):
    X, (n, d) = draw(rng, *SHAPES[shape]) * np.geomspace(1e-3, 1e3, SHAPES[shape][1]), SHAPES[shape]
    support, W = np.array([0, 4, 6, d - 1]), rng.standard_normal((4, 2))
    standard = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    check(variance_shares(as_covariance(X, scale=True), support, W), standard, support, W)
    w = rng.uniform(0.0, 3.0, n)
    weighted = as_covariance(X, sample_weight=w)
    check(variance_shares(weighted, support, W), X, support, W, w)
    A = as_covariance(np.cov(X.T), kind="covariance")
    check(variance_shares(A, support, W), X, support, W)


@pytest.mark.parametrize("kind", ["dense", "csr", "npy"])
@pytest.mark.parametrize("shape", SHAPES)
def test_float32_is_as_good_as_its_numbers(rng, kind, shape):
    X = draw(rng, *SHAPES[shape]).astype(np.float32)
    X[:, 5] = X[:, 4] + np.float32(1e-3) * X[:, 6]  # nearly a copy
    support, W = np.array([1, 4, 5, 8, 11]), rng.standard_normal((5, 2))
    shares = variance_shares(as_covariance(KINDS[kind](X)), support, W)
    check(shares, X.astype(np.float64), support, W, rtol=2e-5)


@pytest.mark.parametrize("scale", [1e-145, 1.0, 1e150])
@pytest.mark.parametrize("shape", SHAPES)
def test_scales_do_not_matter(rng, shape, scale):
    X = draw(rng, *SHAPES[shape])
    support, W = np.array([1, 4, 5, 8, 11]), rng.standard_normal((5, 2))
    for formed in (False, True):
        covariance = as_covariance(scale * X)
        if formed:
            covariance.leading(2)
        check(variance_shares(covariance, support, W), X, support, W)
    given = as_covariance(np.cov(X.T) * scale * scale, kind="covariance")
    check(variance_shares(given, support, W), X, support, W)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_copies_constants_and_dependent_scores_are_harmless(rng, dtype):
    X = draw(rng, 50, 12).astype(dtype)
    X[:, 1] = X[:, 0]
    X[:, 2] = -2 * X[:, 0]
    X[:, 3] = 7.0
    support = np.arange(6)
    W = rng.standard_normal((6, 3))
    W[:, 2] = W[:, 0] - 2 * W[:, 1]  # three scores that span two
    shares = variance_shares(as_covariance(X), support, W)
    check(shares, X.astype(np.float64), support, W, rtol=1e-5)
    # A score that is the difference of copies tells nothing.
    nothing = np.zeros((6, 1))
    nothing[:2, 0] = 1, -1
    assert variance_shares(as_covariance(X), support, nothing).represented == 0
    alone = variance_shares(as_covariance(X), np.array([3]), np.ones((1, 1)))
    assert (alone.represented, alone.panel, alone.effective_features) == (0, 0, 0)
    same = variance_shares(as_covariance(X), np.arange(3), np.eye(3)[:, :1])
    assert same.effective_features == pytest.approx(1.0, abs=1e-5)
    assert same.panel == pytest.approx(same.represented, rel=1e-5)


def test_rank_one_and_all_features(rng):
    X = np.outer(rng.standard_normal(30), rng.uniform(1, 2, 8))
    one = variance_shares(as_covariance(X), np.array([2]), np.ones((1, 1)))
    np.testing.assert_allclose(numbers(one), 1.0, rtol=1e-9)
    X = draw(rng, 30, 8)
    W = rng.standard_normal((8, 8))
    all_of_it = variance_shares(as_covariance(X), np.arange(8), W)
    assert all_of_it.panel == 1.0
    np.testing.assert_allclose([all_of_it.represented, all_of_it.pca], 1.0, rtol=1e-12)
    few = variance_shares(as_covariance(X), np.arange(8), W[:, :2])
    check(few, X, np.arange(8), W[:, :2])
    k_is_m = variance_shares(as_covariance(X), np.array([1, 6]), W[:2, :2])
    assert k_is_m.represented == pytest.approx(k_is_m.panel, rel=1e-12)


def test_as_many_features_as_samples_tell_all(rng):
    X = draw(rng, 10, 40)
    shares = variance_shares(as_covariance(X), np.arange(15), np.eye(15)[:, :2])
    assert shares.panel == pytest.approx(1.0, abs=1e-9)
    check(shares, X, np.arange(15), np.eye(15)[:, :2])


@pytest.mark.parametrize("kind", ["dense", "csr", "npy"])
def test_blocks_of_columns_give_the_same(rng, kind, monkeypatch):
    X = draw(rng, 30, 20)
    support, W = np.arange(3, 12), rng.standard_normal((9, 2))
    whole = variance_shares(as_covariance(KINDS[kind](X)), support, W)
    monkeypatch.setattr(shares_module, "MOST_NUMBERS", 45)
    parts = variance_shares(as_covariance(KINDS[kind](X)), support, W)
    np.testing.assert_allclose(numbers(parts), numbers(whole), rtol=1e-10)
    everything = np.arange(20), rng.standard_normal((20, 2))
    check(variance_shares(as_covariance(KINDS[kind](X)), *everything), X, *everything)


def test_of_an_indefinite_matrix_they_are_shares_too(rng):
    Q = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        A = as_covariance((Q * [5, 3, 2, 2, 1, 1, 1, 1, -0.1, -0.2]) @ Q.T, kind="covariance")
    for k in range(1, 11):
        shares = variance_shares(A, np.arange(k), rng.standard_normal((k, min(k, 2))))
        assert 0 <= shares.represented <= shares.panel <= 1
        assert 1 <= shares.effective_features <= k + 1e-12


def test_what_plain_pca_tells_is_not_paid_for(rng, monkeypatch):
    covariance = as_covariance(sp.csr_array(draw(rng, 30, 20)))
    monkeypatch.setattr(type(covariance), "reads_are_costly", True)
    chosen = np.arange(4), np.eye(4)[:, :2]
    before = covariance.n_passes
    assert variance_shares(covariance, *chosen).pca is None
    assert covariance.n_passes == before + 2
    covariance.leading(3)
    assert variance_shares(covariance, *chosen).pca is not None


@given(st.integers(0, 2**32 - 1), st.data())
def test_scores_tell_less_than_the_panel_and_than_pca(seed, data):
    rng = np.random.default_rng(seed)
    n, d = data.draw(st.integers(3, 25)), data.draw(st.integers(1, 25))
    rank = data.draw(st.integers(1, 5))
    X = rng.integers(-2, 3, (n, rank)) @ rng.integers(-2, 3, (rank, d))
    X = X + data.draw(st.sampled_from([0.0, 1e-4, 1.0])) * rng.standard_normal((n, d))
    X *= 10.0 ** rng.integers(-3, 4, d)
    if not X.std(axis=0).any():
        return
    k = data.draw(st.integers(1, d))
    m = data.draw(st.integers(1, k))
    support = np.sort(rng.choice(d, k, replace=False))
    W = rng.standard_normal((k, m))
    scale = data.draw(st.booleans())
    shares = variance_shares(as_covariance(X, scale=scale), support, W)
    assert 0 <= shares.represented <= shares.panel <= 1
    assert shares.represented <= shares.pca + 1e-7
    varying = np.count_nonzero(as_covariance(X).diagonal()[support])
    assert min(varying, 1) <= shares.effective_features * (1 + 1e-12)
    assert shares.effective_features <= varying * (1 + 1e-12)


@pytest.mark.parametrize("kind", ["dense", "csr", "npy", "matrix"])
@pytest.mark.parametrize("shape", SHAPES)
def test_many_at_once_are_those_of_each(rng, kind, shape, monkeypatch):
    X = draw(rng, *SHAPES[shape])
    X[:, 3] = X[:, 2]
    X[:, 4] = 1.0

    def made():
        if kind == "matrix":
            return as_covariance(np.cov(X.T), kind="covariance")
        return as_covariance(KINDS[kind](X))

    d = X.shape[1]
    supports = [
        np.array([4]),
        np.array([2, 3]),
        np.array([0, 2, 3, 9]),
        np.arange(15),
        np.arange(d),
    ]
    weights = [rng.standard_normal((support.size, 1)) for support in supports]
    covariance = made()
    before = covariance.n_passes
    represented, panel = shares_along(covariance, supports, weights)
    assert covariance.n_passes <= before + 2
    each = [variance_shares(made(), *both) for both in zip(supports, weights, strict=True)]
    np.testing.assert_allclose(represented, [s.represented for s in each], rtol=1e-8)
    np.testing.assert_allclose(panel, [s.panel for s in each], rtol=1e-8)
    monkeypatch.setattr(shares_module, "MOST_NUMBERS", 100)
    again = shares_along(made(), supports, weights)
    np.testing.assert_allclose(again, [represented, panel], rtol=1e-8)
