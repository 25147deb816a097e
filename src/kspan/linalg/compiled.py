"""Functions compiled to machine code when they are first called."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function of arrays; it runs without the interpreter's lock.

    The machine code is kept on disk, so that only the first process pays for it. Where there is
    no place to write, every process compiles for itself. A change in a file makes its own functions
    compile again, but not those of other files that call them: after such a change delete
    ``linalg/__pycache__``.
    """
    try:
        kept = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
        return cast(Function, kept)
    except RuntimeError:  # no directory for it can be written to
        return cast(Function, numba.njit(nogil=True, error_model="numpy")(function))
