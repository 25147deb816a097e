"""Eigenpairs that are followed from call to call, against LAPACK's."""

import numpy as np
import pytest

from kspan.linalg import tracking
from kspan.linalg.tracking import RESIDUAL, EigenTracker


def moving_matrices(n, n_steps, dtype):
    """A matrix with some eigenvalues apart from the rest at both ends, which turns slowly."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = np.concatenate([[-6, -5, -4.5], rng.uniform(-1, 1, n - 7), [3, 3.5, 4, 9]])
    M = (Q * values) @ Q.T
    for _ in range(n_steps):
        change = rng.standard_normal((n, n)) / n
        M = M + 0.2 * (change + change.T)
        yield M.astype(dtype)


@pytest.fixture
def lapack_calls(monkeypatch):
    calls, real = [], tracking.eigenpairs_between

    def counted(*arguments):
        calls.append(arguments[1:])
        return real(*arguments)

    monkeypatch.setattr(tracking, "eigenpairs_between", counted)
    return calls


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("end", "rank"), [("largest", 4), ("smallest", 3)])
def test_pairs_are_followed(end, rank, dtype, lapack_calls):
    tracker = EigenTracker(largest=end == "largest", rank=rank)
    for M in moving_matrices(400, 8, dtype):
        values, vectors = tracker.pairs(M, tracker.count)
        assert values.dtype == vectors.dtype == dtype
        matter = slice(-rank, None) if tracker.largest else slice(0, rank)
        true = np.linalg.eigvalsh(M.astype(float))
        size = np.abs(true).max()
        np.testing.assert_allclose(values[matter], true[matter], atol=2 * RESIDUAL * size)
        V = vectors[:, matter]
        np.testing.assert_allclose(V.T @ V, np.eye(rank), atol=1e-4)
        residuals = np.linalg.norm(M @ V - V * values[matter], axis=0)
        assert residuals.max() <= 2 * RESIDUAL * size
        assert (np.diff(values) >= 0).all()
    assert len(lapack_calls) == 1


def test_another_matrix_is_begun_anew(lapack_calls):
    """What is far from the last matrix, or of another order, is LAPACK's."""
    rng = np.random.default_rng(1)
    tracker = EigenTracker(largest=True, rank=5)
    for n in (400, 400, 350):
        M = rng.standard_normal((n, n))
        M += M.T
        values, _ = tracker.pairs(M, tracker.count)
        np.testing.assert_allclose(values[-5:], np.linalg.eigvalsh(M)[-5:], rtol=1e-3)
    assert len(lapack_calls) == 3


def test_who_does_not_track_has_all_digits(lapack_calls):
    tracker = EigenTracker(largest=True, rank=4, tracks=False)
    for M in moving_matrices(400, 3, np.float64):
        values, _ = tracker.pairs(M, tracker.count)
        np.testing.assert_allclose(values[-4:], np.linalg.eigvalsh(M)[-4:], rtol=1e-12)
    assert len(lapack_calls) == 3
