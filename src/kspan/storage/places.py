"""Where files go: they appear whole or not at all, and what cannot be written is seen early."""

import hashlib
import os
import platform
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

# Of the target's name, in that of a temporary file: file systems have a limit of 255 bytes.
KEPT_OF_NAME = 50


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file that takes the place of `path` when the block ends well.

    Those that a killed process left beside it are removed. A link stays one: what it leads to is
    replaced.
    """
    target = _regular(path)
    handle, temporary = _temporary(target)
    try:
        _remove_leftovers(target)
        with os.fdopen(handle, "wb") as file:
            yield file
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # as open() would have made it
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise `OSError` if a file could not be written: tried, as permissions do not tell all."""
    target = _regular(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target}: is a folder; name a file in it.")
    handle, temporary = _temporary(target)
    os.close(handle)
    os.unlink(temporary)


def _regular(path: str | os.PathLike[str]) -> Path:
    """Return where a file is, or will be; refuse devices and pipes, which must not be replaced."""
    target = Path(path)
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise OSError(f"{target}: is a device or a pipe; name a file.")
    return target.resolve() if target.is_symlink() else target


def _temporary(target: Path) -> tuple[int, str]:
    """Make a file beside the target whose name says which process made it."""
    folder = os.fspath(target.parent)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target}: there is no folder {folder!r}")
    try:
        return tempfile.mkstemp(dir=target.parent, prefix=f"{_prefix(target)}{os.getpid()}.")
    except OSError as error:
        reason = error.strerror or error
        raise type(error)(f"{target}: cannot write in the folder {folder!r}: {reason}") from None


def _prefix(target: Path) -> str:
    # Numbers of processes mean nothing on another machine, and folders may be shared.
    host = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
    return f".{target.name[:KEPT_OF_NAME]}.{host}."


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of this target whose process no longer exists."""
    if os.name != "posix":  # elsewhere one cannot ask for a process without touching it
        return
    mine = re.compile(re.escape(_prefix(target)) + r"(\d{1,9})\.\w+")
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            found = mine.fullmatch(entry.name)
            if found and not _exists(int(found[1])):
                os.unlink(entry.path)


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True
