"""How the machine is used: threads of the linear algebra library, kernels compiled on first use."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

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


Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function of arrays; it runs without the interpreter's lock.

    The machine code is kept on disk, so that only the first process pays for it. Where there is
    no place to write, every process compiles for itself. A change in a file makes its own functions
    compile again, but not those of other files that call them: after such a change delete
    ``linalg/__pycache__``.
    """
    import numba  # only what runs such a function pays for the compiler

    try:
        kept = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
        return cast(Function, kept)
    except RuntimeError:  # no directory for it can be written to
        return cast(Function, numba.njit(nogil=True, error_model="numpy")(function))
