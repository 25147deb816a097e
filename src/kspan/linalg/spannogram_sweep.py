"""All supports of a spannogram, a few circles at a time, on as many cores as there are.

The compiled sweeps leave the interpreter's lock, so plain threads run side by side; between two
rounds of them whoever asks for supports can look at the clock, report, or stop.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import comb
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index

Supports = NDArray[np.uint8]
Map = Callable[[Callable[..., Any], Iterable[Any]], Iterable[Any]]

# How far rows are moved, relative to the longest, so that no more than d of them are tied.
TIE_BREAK = 1e-11

# Seconds that a round should take.
ROUND = 0.1

# A vertex takes about this many seconds, times the rank, on one core.
SECONDS_PER_VERTEX = 1e-7

# Up to so many vertices one thread is enough.
ONE_THREAD = 200_000

# Supports that a sweep has room for, and bytes for those met before.
CAPACITY = 1024
SEEN_BYTES = 50_000_000


@contextmanager
def worker_threads(n_threads: int) -> Iterator[Map]:
    """Give a `map` that runs on so many threads."""
    if n_threads <= 1:
        yield map
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield pool.map


def default_threads(n_vertices: int) -> int:
    """Return one for a small task, else as many as numba uses (NUMBA_NUM_THREADS; all cores)."""
    if n_vertices <= ONE_THREAD:
        return 1
    from numba import config  # slow to import

    return int(config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]


def vertex_count(m: int, d: int, *, signed: bool = False) -> int:
    """Return the number of vertices of m rows."""
    return 2 ** (d - 1) * comb(m, d) if signed else comb(m + 1, d)


def expected_seconds(n_vertices: int, d: int) -> float:
    """Return about how long sweeping them takes on one core."""
    return SECONDS_PER_VERTEX * d * n_vertices


def candidate_supports(
    V: FloatArray,
    room: int,
    floor: Callable[[], float],
    *,
    fixed: FloatArray | None = None,
    signed: bool = False,
    simple: bool = False,
    threads: Map = map,
    n_threads: int = 1,
) -> Iterator[Supports]:
    """Yield the supports of the spannogram of V that may be worth more than `floor()`.

    After every round of sweeps come those that are new, perhaps none. None comes twice, as long
    as there is memory to tell.

    Parameters
    ----------
    V : (m, d) rows, the longest of length near one, full column rank, d > 1
    room : number of rows in a support, at most
    floor : supports with λ₁(fixed + Σvv') up to this are not wanted; asked before every round
    fixed : (d, d) sum of vv' over rows that are in every support besides
    signed : sizes are compared, and not values
    simple : of all choices of tied rows take one
    threads, n_threads : from `worker_threads`
    """
    from kspan.linalg.spannogram_kernels import sweep_circles  # numba is slow to import

    m, d = V.shape
    V = np.ascontiguousarray(V)
    base = np.zeros((d, d)) if fixed is None else fixed
    rng = np.random.default_rng(0)
    W = V + TIE_BREAK * rng.uniform(-1, 1, V.shape)
    if signed:
        W = np.stack([W, -W], axis=1).reshape(2 * m, d)
    Wt = np.ascontiguousarray(W.T)
    todo = deque([(0, comb(len(W), d - 1))])
    size, capacity = 8, CAPACITY
    seen: set[bytes] = set()

    def sweep(circles: tuple[int, int]) -> tuple[int, int, int, Supports]:
        start, stop = circles
        found = np.empty((capacity, m), dtype=np.uint8)
        circle = unrank(start, d - 1, len(W))
        n_done, n_found = sweep_circles(
            Wt, V, base, room, signed, simple, best, circle, stop - start, found
        )
        return start, n_done, stop, found[:n_found]

    while todo:
        best = floor()
        started = perf_counter()
        batches = [_take(todo, size) for _ in range(n_threads) if todo]
        fresh: list[Supports] = []
        full = False
        for start, n_done, stop, found in threads(sweep, batches):
            if start + n_done < stop:
                todo.appendleft((start + n_done, stop))
                full |= n_done == 0
            fresh.append(_unseen(found, seen))
        if full:  # one circle alone has more supports than there is room for
            capacity *= 2
        seconds = perf_counter() - started
        if seconds < ROUND / 2:
            size *= 2
        elif seconds > 2 * ROUND:
            size = max(1, size // 2)
        yield np.concatenate(fresh)


def _take(todo: deque[tuple[int, int]], size: int) -> tuple[int, int]:
    start, stop = todo.popleft()
    if stop - start > size:
        todo.appendleft((start + size, stop))
        stop = start + size
    return start, stop


def _unseen(supports: Supports, seen: set[bytes]) -> Supports:
    """Return the supports that are not in `seen`, and put them there."""
    if len(supports) == 0:
        return supports
    packed = np.packbits(supports, axis=1)
    if len(seen) * (packed.shape[1] + 100) > SEEN_BYTES:
        seen.clear()
    new = []
    for i, row in enumerate(packed):
        key = row.tobytes()
        if key not in seen:
            seen.add(key)
            new.append(i)
    return supports[new]


def unrank(rank: int, size: int, n: int) -> Index:
    """Return the combination of `size` of range(n) at a place in lexicographic order.

    Examples
    --------
    >>> [unrank(i, 2, 4).tolist() for i in range(6)]
    [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    """
    chosen = np.empty(size, dtype=np.int64)
    item = 0
    for j in range(size):
        while (behind := comb(n - item - 1, size - j - 1)) <= rank:
            rank -= behind
            item += 1
        chosen[j] = item
        item += 1
    return chosen
