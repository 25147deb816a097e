"""Rows that come in blocks: exact up to a limit, a sketch with a stated error beyond."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from kspan import FeatureSparsePCA, FeatureSparseSelector
from kspan.covariance import streamed
from kspan.covariance.streamed import RowStream


def stream_of(X, sizes):
    stream = RowStream(X.shape[1])
    for part in np.split(X, np.cumsum(sizes)[:-1]):
        stream.add(part)
    return stream


@given(seed=st.integers(0, 10_000), sizes=st.lists(st.integers(1, 20), min_size=2, max_size=6))
@pytest.mark.parametrize("scale", [False, True])
def test_accumulated_blocks_are_the_covariance(seed, sizes, scale):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((sum(sizes), 5)) * [1, 5, 0.1, 2, 0] + [0, 1e6, 3, 0, 7]
    covariance = stream_of(X, sizes).covariance(scale=scale)
    A = np.cov(X.T)
    if scale:
        spread = np.where(np.diag(A) > 0, np.sqrt(np.diag(A)), 1.0)
        A = A / np.outer(spread, spread)
    A[4] = A[:, 4] = 0.0
    np.testing.assert_allclose(covariance.submatrix(np.arange(5)), A, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(covariance.mean, X.mean(axis=0), rtol=1e-12, atol=1e-12)
    assert covariance.n_samples == len(X)


def test_the_order_of_the_blocks_does_not_matter(rng):
    X = rng.standard_normal((60, 8)) @ rng.standard_normal((8, 8)) + 100
    blocks = np.split(X, 6)
    there, back = FeatureSparsePCA(2, 3, random_state=0), FeatureSparsePCA(2, 3, random_state=0)
    for block, other in zip(blocks, blocks[::-1], strict=True):
        there.partial_fit(block)
        back.partial_fit(other, refit=other is blocks[0])
    whole = FeatureSparsePCA(2, 3, random_state=0).fit(X)
    for fitted in (there, back):
        np.testing.assert_array_equal(fitted.get_support(), whole.get_support())
        assert fitted.objective_ == pytest.approx(whole.objective_, rel=1e-10)
        np.testing.assert_allclose(fitted.components_, whole.components_, atol=1e-7)
        np.testing.assert_allclose(fitted.transform(X), whole.transform(X), atol=1e-6)
        assert fitted.stream_error_ == 0
        assert fitted.n_samples_ == 60


@given(seed=st.integers(0, 10_000))
def test_a_sketch_is_within_its_stated_error(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((90, 4)) @ rng.standard_normal((4, 30)) + rng.standard_normal((90, 30))
    X += 50
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamed, "EXACT_LIMIT", 10)
        stream = RowStream(30, sketch_rows=8)
    for block in np.split(X, 9):
        stream.add(block)
    covariance = stream.covariance(scale=False)
    missing = np.cov(X.T) - covariance.submatrix(np.arange(30))
    values = np.linalg.eigvalsh(missing)
    assert values[0] >= -1e-9
    assert values[-1] <= stream.error() * (1 + 1e-9)
    # Frequent directions promise at most the tail beyond rank r over ℓ - r.
    spectrum = np.sort(np.linalg.eigvalsh(np.cov(X.T)))[::-1]
    assert stream.error() <= spectrum[4:].sum() / (8 - 4) * (1 + 1e-9)


def test_a_sketch_finds_what_is_planted(rng, monkeypatch):
    monkeypatch.setattr(streamed, "EXACT_LIMIT", 10)
    X = rng.standard_normal((500, 400))
    X[:, 40:50] += 3 * rng.standard_normal((500, 1))
    fitted = FeatureSparseSelector(1, 10, random_state=0)
    for block in np.split(X, 5):
        fitted.partial_fit(block, refit=False)
    fitted.partial_fit(X[:1])
    assert fitted.get_support(indices=True).tolist() == list(range(40, 50))
    assert 0 < fitted.stream_error_ < 0.1 * fitted.objective_


def test_sparse_blocks_float32_and_errors(rng):
    X = rng.standard_normal((40, 6)).astype(np.float32)
    fitted = FeatureSparsePCA(1, 2).partial_fit(sp.csr_array(X[:20])).partial_fit(X[20:])
    assert fitted.components_.dtype == np.float32
    with pytest.raises(ValueError, match="6 features"):
        fitted.partial_fit(X[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        fitted.partial_fit(np.full((3, 6), np.nan))
    with pytest.raises(ValueError, match="needs data"):
        FeatureSparsePCA(covariance="precomputed").partial_fit(np.eye(3))
    with pytest.raises(ValueError, match="1 sample"):
        FeatureSparsePCA(1, 2).partial_fit(X[:1])
    # fit forgets the stream
    fitted.fit(X[:10])
    assert fitted.partial_fit(X).n_samples_ == 40
