"""The same work on many things at a time: in this process, in others, or on a cluster.

Whoever does it, the results are the same and come in the same order.
"""

import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def n_workers(n_jobs: int | None) -> int:
    """Return how many work at a time, as joblib counts them: -1 is all cores.

    None is one, or what `joblib.parallel_config` says. Whoever has not imported joblib has said
    nothing, and need not wait for the import.

    Examples
    --------
    >>> n_workers(1), n_workers(3)
    (1, 3)
    """
    if n_jobs == 1 or (n_jobs is None and "joblib" not in sys.modules):
        return 1
    import joblib

    with _backend(n_jobs):
        return int(joblib.effective_n_jobs(n_jobs))


def in_order(
    function: Callable[[Item], Result], items: Sequence[Item], n_jobs: int | None
) -> Generator[Result, None, None]:
    """Yield the function's value at every item, in order, as they come.

    Processes do the work; or the backend of `joblib.parallel_config`; or the workers of a dask
    client that is there. What is left when one of them dies is done here, with a warning.

    Parameters
    ----------
    function : callable
    items : sequence
    n_jobs : int or None
        See `n_workers`.
    """
    if n_workers(n_jobs) == 1:
        yield from map(function, items)
        return
    from joblib import Parallel, delayed  # slow to import

    n_done = 0
    try:
        with _backend(n_jobs):
            calls: Iterable[Any] = (delayed(function)(item) for item in items)
            results = Parallel(n_jobs=n_jobs, return_as="generator")(calls)
        for result in results:
            n_done += 1
            yield result
    except _deaths() as error:
        warnings.warn(
            f"A worker died ({type(error).__name__}); its work is done in this process.",
            RuntimeWarning,
            stacklevel=2,
        )
    yield from map(function, items[n_done:])


@contextmanager
def threads(n_jobs: int | None) -> Iterator[ThreadPoolExecutor | None]:
    """Give threads of this process, for kernels that run without the interpreter's lock.

    None if one is all there is. They take a fraction of a millisecond to begin with, where
    processes take seconds.

    Parameters
    ----------
    n_jobs : int or None
        See `n_workers`.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: None is one, -1 is all cores.")
    count = n_workers(n_jobs)
    if count == 1:
        yield None
        return
    with ThreadPoolExecutor(count) as pool:
        yield pool


def _backend(n_jobs: int | None) -> AbstractContextManager[Any]:
    """Return the context of a dask client's workers, if there is a client and no other wish."""
    distributed = sys.modules.get("distributed")
    if n_jobs is None or distributed is None:
        return nullcontext()
    from joblib import parallel_config
    from joblib.parallel import get_active_backend

    # A preference counts only where no backend was asked for.
    asked, preferred = get_active_backend()[0], get_active_backend(prefer="threads")[0]
    try:
        distributed.Client.current()
    except ValueError:
        return nullcontext()
    return nullcontext() if type(asked) is type(preferred) else parallel_config("dask")


def _deaths() -> tuple[type[Exception], ...]:
    """Return what is raised when a worker has died."""
    distributed = sys.modules.get("distributed")
    return (BrokenExecutor,) if distributed is None else (BrokenExecutor, distributed.KilledWorker)
