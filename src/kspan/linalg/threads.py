"""How many threads the linear algebra library uses."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread while many small problems are solved one after the other.

    Threads then cost more than they bring: on two cores twice the time, and ten times when
    another program keeps one of them busy.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        yield


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
