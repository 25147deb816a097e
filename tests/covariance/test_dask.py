"""Dask arrays and dataframes, on the local schedulers and on a cluster of processes."""

import os
import signal
import threading
import time

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask.distributed import Client, LocalCluster

from kspan import (
    FeatureSparsePCA,
    NonnegativeSparsePCA,
    as_covariance,
)

NAMES = [f"f{i}" for i in range(12)]


@pytest.fixture
def X(rng):
    return rng.standard_normal((103, 3)) @ rng.standard_normal((3, 12)) + rng.random((103, 12)) + 4


def uneven(X):
    return da.from_array(X, chunks=((20, 50, 0, 33), (5, 7)))


def sparse_blocks(X):
    return da.from_array(X, chunks=(30, 12)).map_blocks(sp.csr_matrix)


def dataframe(X):
    return dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=4)


def unknown_lengths(X):
    array = da.from_array(X, chunks=(30, 12))
    return array[array[:, 0] > -1e9]


KINDS = {
    "array": uneven, "sparse": sparse_blocks, "dataframe": dataframe, "unknown": unknown_lengths,
    "float32": lambda X: uneven(X.astype(np.float32)), "integers": lambda X: uneven(X.astype(int)),
}  # fmt: skip


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_matrix(X, kind, scale, rng):
    X = np.round(X * 8)
    covariance = as_covariance(KINDS[kind](X), scale=scale)
    A = np.corrcoef(X.T) if scale else np.cov(X.T)
    tolerance = {"rtol": 1e-4 if kind == "float32" else 1e-9, "atol": 1e-9}
    W, S = rng.standard_normal((12, 3)), np.array([1, 4, 7])
    np.testing.assert_allclose(covariance.diagonal(), np.diag(A), **tolerance)
    np.testing.assert_allclose(covariance.matmat(W), A @ W, **tolerance)
    np.testing.assert_allclose(covariance.matmat(W[S], S), A[:, S] @ W[S], **tolerance)
    np.testing.assert_allclose(covariance.submatrix(S), A[np.ix_(S, S)], **tolerance)
    Z = covariance.scores(W)
    np.testing.assert_allclose(covariance.back(Z) / 102, A @ W, **tolerance)
    columns, product = covariance.sketch
    np.testing.assert_allclose(product, A @ columns, **tolerance)


def test_bad_blocks_name_their_rows(X):
    X[61, 3] = np.nan
    with pytest.raises(ValueError, match=r"rows 20 to 69, the first in column 3"):
        as_covariance(uneven(X))
    good = da.from_array(np.ones((40, 3)), chunks=(20, 3))
    odd = good.map_blocks(lambda block: block.astype(str), dtype=float)
    with pytest.raises(ValueError, match="rows 0 to 19 are not numbers"):
        as_covariance(odd)
    short = good.map_blocks(lambda block: block[:5], dtype=float)
    with pytest.raises(ValueError, match="rows 0 to 19 have shape"):
        as_covariance(short)


def slow_block(block):
    time.sleep(0.02)
    return block


@pytest.mark.slow
# What the cluster itself leaves lying about when it closes is not ours.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_gives_the_same_answer_even_if_a_worker_dies(X, rng):
    Y = rng.standard_normal((400, 12)) @ rng.standard_normal((12, 12))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        for estimator in (FeatureSparsePCA(2, 4), NonnegativeSparsePCA(2, 3)):
            estimator.set_params(random_state=0)
            support = estimator.fit(X).get_support()
            objective = estimator.objective_
            assert np.array_equal(estimator.fit(uneven(X)).get_support(), support)
            assert estimator.objective_ == pytest.approx(objective, rel=1e-8)

        victim = next(iter(client.run(os.getpid).values()))
        killer = threading.Timer(0.15, os.kill, (victim, signal.SIGKILL))
        killer.start()
        slow = da.from_array(Y, chunks=(10, 12)).map_blocks(slow_block)
        fitted = FeatureSparsePCA(2, 4, solver="ipu").fit(slow)
        killer.join()
        reference = FeatureSparsePCA(2, 4, solver="ipu").fit(Y)
        assert np.array_equal(fitted.get_support(), reference.get_support())
        assert fitted.objective_ == pytest.approx(reference.objective_, rel=1e-8)


def test_verbose_shows_passes(X, capsys):
    FeatureSparsePCA(2, 4, verbose=1).fit(da.from_array(X, chunks=(20, -1)))
    lines = [line for line in capsys.readouterr().err.splitlines() if "pass" in line]
    assert lines
    assert all(f"{len(X)} of {len(X)} rows" in line for line in lines)


def test_sparse_blocks_with_entries_that_are_there_twice():
    X = np.random.default_rng(0).standard_normal((40, 4))
    blocks = da.from_array(X, chunks=(20, 4)).map_blocks(_doubled, dtype=np.float64)
    covariance = as_covariance(blocks)
    np.testing.assert_allclose(covariance.diagonal(), X.var(axis=0, ddof=1))
    np.testing.assert_allclose(covariance.submatrix(np.arange(4)), np.cov(X, rowvar=False))


def _doubled(block):
    """Every entry in two parts."""
    n, d = block.shape
    data = np.repeat(block.ravel(), 2) * np.tile([0.25, 0.75], n * d)
    places = np.tile(np.repeat(np.arange(d), 2), n)
    return sp.csr_matrix((data, places, np.arange(0, 2 * n * d + 1, 2 * d)), shape=(n, d))
