"""What goes wrong becomes one line and an exit code: 2 for wrong input, 1 for a false claim."""

import functools
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import typer

FAILED, WRONG_INPUT = 1, 2

Command = TypeVar("Command", bound=Callable[..., Any])


def guarded(command: Command) -> Command:
    """Let a command end with one line on standard error instead of a traceback."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        from kspan.proofs import CertificateError

        try:
            with _ended_as_interrupted(), _plain_warnings():
                return command(*args, **kwargs)
        except CertificateError as error:
            complain(f"does not hold: {error}")
            raise typer.Exit(FAILED) from None
        except BrokenPipeError:  # whoever reads has seen enough, as in ``| head``
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(FAILED) from None
        except (ValueError, OSError, ImportError, MemoryError) as error:
            complain(f"error: {_one_line(error)}")
            raise typer.Exit(WRONG_INPUT) from None
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(FAILED) from None

    return run  # type: ignore[return-value]


def complain(text: str) -> None:
    """Write a line to standard error."""
    typer.echo(f"kspan: {text}", err=True)


def check_outputs(*places: Path | None, source: str, record: Path | None = None) -> None:
    """Refuse places that cannot all be written to before any work is done."""
    taken = {Path(source).resolve(): "the data"}
    if record is not None:
        taken[record.resolve()] = "the record"
    for place in places:
        if place is None:
            continue
        check_output(place)
        if place.resolve() in taken:
            raise ValueError(f"{place}: is {taken[place.resolve()]} already.")
        taken[place.resolve()] = "another output"


def check_output(path: Path) -> None:
    """Refuse a place that cannot be written to."""
    from kspan.storage import require_writable

    require_writable(path)


def require(*packages: str, extra: str, what: str) -> None:
    """Refuse what needs packages that are not there before any work is done."""
    from kspan.io.table import require_extra

    require_extra(*packages, extra=extra, what=what)


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    text = str(error) or type(error).__name__
    return " ".join(text.split())


@contextmanager
def _ended_as_interrupted() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does: the best answer so far, written as asked."""
    if threading.current_thread() is not threading.main_thread():  # where no handler can be set
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show a warning of ours as a line, without the place in the code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        complain(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show
        yield
