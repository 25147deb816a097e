"""How the machine is used: threads of the linear algebra library, kernels compiled on first use."""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar, cast

import threadpoolctl

# Entries of an array, a product with which is short enough for one thread.
SMALL_ARRAY = 2**22


class _Libraries:
    """The linear algebra libraries of this process: they come with modules, so seldom anew.

    Looking for them takes about a millisecond, which many a fit does not.
    """

    def __init__(self) -> None:
        self.n_modules = 0
        self.found: Any = None

    def controller(self) -> Any:
        """Return what sets their threads."""
        if self.n_modules != len(sys.modules):
            self.found = threadpoolctl.ThreadpoolController()
            self.n_modules = len(sys.modules)
        return self.found


_libraries = _Libraries()


class _OneThread:
    """The limit, which is one for the whole process: the first one in sets it, the last lifts it.

    Each block on its own would take what another thread's block had set for what was there before,
    and leave the process on one thread for good.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_inside = 0
        self.limits: Any = None

    def enter(self) -> None:
        with self.lock:
            if self.n_inside == 0:
                self.limits = _libraries.controller().limit(limits=1, user_api="blas")
            self.n_inside += 1

    def leave(self) -> None:
        with self.lock:
            self.n_inside -= 1
            if self.n_inside == 0:
                # threadpoolctl 3.8 hears only the thread that set a limit, which may be another.
                _let_any_thread_speak()
                self.limits.restore_original_limits()
                _let_any_thread_speak()


def _let_any_thread_speak() -> None:
    openblas = getattr(threadpoolctl, "OpenBLASController", None)
    clear = getattr(openblas, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


_one_thread = _OneThread()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread while many small problems are solved one after the other.

    Threads then cost more than they bring: on two cores twice the time, and ten times when
    another program keeps one of them busy. Blocks may nest, and run in several threads at a time.
    """
    _one_thread.enter()
    try:
        yield
    finally:
        _one_thread.leave()


def threads_for(n_entries: int) -> AbstractContextManager[None]:
    """Keep BLAS to one thread, see `one_blas_thread`, unless arrays have more than few entries."""
    return one_blas_thread() if n_entries <= SMALL_ARRAY else nullcontext()


Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return what comes of every item, in order, on as many threads as BLAS may have.

    For a few long pieces of work, each of many short calls of BLAS: its own threads would have to
    meet at every one of them.
    """
    n_workers = min(_blas_threads(), available_cores(), len(items))
    if n_workers < 2:
        return [work(item) for item in items]
    with one_blas_thread(), ThreadPoolExecutor(n_workers) as pool:
        return list(pool.map(work, items))


def _blas_threads() -> int:
    """Return how many threads BLAS may have: one inside `one_blas_thread`."""
    found = _libraries.controller().select(user_api="blas").lib_controllers
    return min((library.num_threads or 1 for library in found), default=1)


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
