"""How many threads the linear algebra library uses."""

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
