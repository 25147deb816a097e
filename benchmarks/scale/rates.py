"""How fast this machine does the bare parts of a fit: what `model.py` computes with.

All in seconds of one core (CPU time, as the times of the fits are).
"""

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from benchmarks.scale.model import BLOCK_BYTES, FEWEST_ROWS

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 512)
ORDERS = (10, 20, 40, 80, 160, 320)
GRAMS = (16, 64, 200, 400, 1000, 2000)
CACHE_BYTES = 1 << 21


def clock(task: Callable[[], Any], repeats: int = 3) -> float:
    """Return the median time of a few runs after a first one."""
    task()
    times = []
    for _ in range(repeats):
        started = time.process_time()
        task()
        times.append(time.process_time() - started)
    return statistics.median(times)


def read_rate(folder: Path, size: int = 400_000_000) -> float:
    """Return seconds a byte of reading a file in blocks."""
    path = folder / "rate.bin"
    np.zeros(size // 8).tofile(path)
    starts = range(0, size, BLOCK_BYTES)
    rows = BLOCK_BYTES // 8

    def task() -> None:
        for start in starts:
            np.fromfile(path, count=rows, offset=start)

    found = clock(task) / size
    os.unlink(path)
    return found


def fused(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return X'(XW), piece by piece as small as the cache."""
    rows = max(FEWEST_ROWS, CACHE_BYTES // X[:1].nbytes)
    out = np.zeros_like(W)
    for start in range(0, len(X), rows):
        part = X[start : start + rows]
        out += part.T @ (part @ W)
    return out


def moments(X: np.ndarray) -> np.ndarray:
    """Return the variances of the columns, a megabyte at a time."""
    rows = max(1, (1 << 20) // X[:1].nbytes)
    total = np.zeros(X.shape[1])
    for start in range(0, len(X), rows):
        part = X[start : start + rows].astype(np.float64)
        part -= part.mean(axis=0)
        total += np.einsum("ij,ij->j", part, part)
    return total


def dense_rates() -> dict[str, Any]:
    """Return seconds an entry of products, moments, gathers and Gram matrices."""
    rng = np.random.default_rng(0)
    n, d = 4000, 4000
    X = rng.standard_normal((n, d))
    found: dict[str, Any] = {"forward": {}, "backward": {}, "fused": {}, "gram": {}}
    for width in WIDTHS:
        W = rng.standard_normal((d, width))
        found["forward"][str(width)] = clock(lambda W=W: X @ W) / X.size
        found["backward"][str(width)] = clock(lambda W=W: X.T @ W) / X.size
        found["fused"][str(width)] = clock(lambda W=W: fused(X, W)) / X.size
    for order in GRAMS:
        part = rng.standard_normal((4000, order))
        found["gram"][str(order)] = clock(lambda part=part: part.T @ part) / (4000 * order**2)
    support = np.sort(rng.choice(d, 64, replace=False))
    found["gather"] = clock(lambda: X[:, support] - 1.0) / (n * support.size)
    found["moments"] = clock(lambda: moments(X)) / X.size
    found["centre"] = clock(lambda: [X[i : i + 500] - 1.0 for i in range(0, n, 500)]) / X.size
    found["stream"] = clock(lambda: X @ np.ones(d)) / X.nbytes
    found["flop"] = clock(lambda: X @ X[:, :500].copy()) / (2 * X.size * 500)
    basis = rng.standard_normal((1_000_000, 12))
    found["qr"] = clock(lambda: np.linalg.qr(basis), 1) / (basis.size * 12)
    found["random"] = clock(lambda: rng.standard_normal((1_000_000, 12)), 1) / basis.size
    found["skinny"] = clock(lambda: basis.T @ (basis * 2)) / (basis.size * 12)
    found["fresh"] = clock(lambda: np.ones(10_000_000)) / 80_000_000
    return found


def small_rates() -> dict[str, Any]:
    """Return seconds of an eigenproblem of order k, and of scoring a pair for each component."""
    from kspan.linalg.eigen import lapack, smallest_arrowhead_eigenvalue

    rng = np.random.default_rng(0)
    found: dict[str, Any] = {"eigen": {}}
    for order in ORDERS:
        A = np.cov(rng.standard_normal((order, 2 * order)))
        found["eigen"][str(order)] = clock(lambda A=A: [lapack(A, 5) for _ in range(20)], 5) / 20
    poles, coupling = np.sort(rng.random((64, 512, 5))), rng.random((64, 512, 5))
    corner = rng.random((64, 512))
    seconds = clock(lambda: smallest_arrowhead_eigenvalue(poles, coupling, corner))
    found["pair"] = seconds / coupling.size
    few = rng.random(20)
    found["call"] = clock(lambda: [np.maximum(few, 0.0).sum() for _ in range(2000)], 5) / 4000
    B = rng.standard_normal((4000, 5))
    found["score"] = (
        clock(lambda: np.argpartition(np.einsum("ij,ij->i", B / 2, B / 2), 50)) / B.size
    )
    return found


def sparse_rates() -> dict[str, Any]:
    """Return seconds a stored entry of products, moments and cut columns."""
    rng = np.random.default_rng(0)
    n, d, nnz = 40_000, 40_000, 4_000_000
    places = rng.integers(0, n * d, nnz)
    X = scipy.sparse.csr_array((rng.random(nnz), (places // d, places % d)), shape=(n, d))
    found: dict[str, Any] = {"sparse forward": {}, "sparse backward": {}}
    for width in (1, 2, 4, 8, 16, 32):
        W = rng.standard_normal((d, width))
        found["sparse forward"][str(width)] = clock(lambda W=W: X @ W) / X.nnz
        found["sparse backward"][str(width)] = clock(lambda W=W: X.T @ W) / X.nnz

    def variances() -> None:
        mean = np.bincount(X.indices, weights=X.data, minlength=d) / n
        np.bincount(X.indices, minlength=d)
        np.bincount(X.indices, weights=(X.data - mean[X.indices]) ** 2, minlength=d)

    found["sparse wide"] = {str(d): _wide_product(rng, d) for d in (100_000, 500_000, 2_000_000)}
    found["sparse moments"] = clock(variances) / X.nnz
    support = np.sort(rng.choice(d, 64, replace=False))
    found["sparse columns"] = clock(lambda: X[:, support]) / X.nnz
    return found


def _wide_product(rng: np.random.Generator, d: int, n: int = 10_000, nnz: int = 1_000_000) -> float:
    """Return seconds an entry of X'(XW) of width 12, whose rows lie further apart as d grows."""
    rows, columns = rng.integers(0, n, nnz), rng.integers(0, d, nnz)
    X = scipy.sparse.csr_array((rng.random(nnz), (rows, columns)), shape=(n, d))
    W = rng.standard_normal((d, 12))
    return clock(lambda: X.T @ (X @ W), 1) / X.nnz


def measure(folder: Path) -> dict[str, Any]:
    """Return all rates."""
    return {"read": read_rate(folder)} | dense_rates() | small_rates() | sparse_rates()
