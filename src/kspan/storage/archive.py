"""Reading an archive of arrays from a stranger: sizes are known before anything is allocated.

A few kilobytes can unpack to gigabytes (zeros are compressed a thousandfold), and the directory of
an archive can say anything. So it is read first, and what it says is held to limits; then no more
is unpacked than it said, and an array is made only when its shape fits the bytes there are.
"""

import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

# Headers of .npy files that are read, by their version.
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_PIECE = 1 << 20


class Malformed(ValueError):
    """What is wrong with a file, in words; whoever knows the name of the file puts it before."""


@dataclass(frozen=True)
class Limits:
    """What may be unpacked, in bytes.

    An honest file is mostly floats, which hardly get smaller: a large one may hold `ratio` times
    its own size even where that is more.

    Attributes
    ----------
    total : all members together
    text : the header, and the notes; as objects they take some twenty times that
    members : how many there may be
    ratio : see above
    """

    total: int = 1 << 30
    text: int = 1 << 24
    members: int = 1_000_000
    ratio: int = 8

    def scaled(self, file_size: int) -> "Limits":
        """Return the limits for a file of so many bytes."""
        by_size = self.ratio * file_size
        return Limits(max(self.total, by_size), max(self.text, by_size), self.members, self.ratio)


class Archive:
    """The members of a file, each held to the limits.

    Parameters
    ----------
    file : opened for reading bytes
    limits : Limits
    """

    def __init__(self, file: IO[bytes], limits: Limits):
        size = file.seek(0, os.SEEK_END)
        self.limits = limits.scaled(size)
        self._zip = zipfile.ZipFile(file)
        found = self._zip.infolist()
        if len(found) > self.limits.members:
            raise Malformed(f"has {len(found)} members, more than the {self.limits.members} read")
        self.members = {info.filename: info for info in found}
        if len(self.members) < len(found):
            raise Malformed("has two members of one name")
        for info in found:
            if info.flag_bits & 1:
                raise Malformed("is encrypted")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise Malformed("is compressed in a way that kspan does not use")
        _hold(sum(info.file_size for info in found), self.limits.total, "it")

    def text(self, name: str) -> bytes:
        """Return a member that is text."""
        with self._open(name, self.limits.text) as (stream, size):
            return _exactly(stream, size)

    def array(self, name: str, limit: int | None = None) -> np.ndarray:
        """Return a member that is an array of numbers."""
        with self._open(name, self.limits.total if limit is None else limit) as (stream, size):
            version = np.lib.format.read_magic(stream)
            if version not in _HEADERS:
                raise Malformed(f"{name} is not an array")
            shape, fortran, dtype = _HEADERS[version](stream)
            if dtype.kind not in "biuf" or dtype.subdtype is not None:
                raise Malformed(f"{name} is an array of {dtype}, not of numbers")
            count = 1
            for length in shape:  # Python's integers do not overflow
                count *= length
            if min(shape, default=0) < 0 or stream.tell() + count * dtype.itemsize != size:
                raise Malformed(f"{name} has not as many bytes as its shape {shape} needs")
            values = np.empty(count, dtype)
            _fill(stream, values.view(np.uint8).data)
            return values.reshape(shape[::-1]).T if fortran else values.reshape(shape)

    @contextmanager
    def _open(self, name: str, limit: int) -> Iterator[tuple[Any, int]]:
        if name not in self.members:
            raise Malformed(f"has no {name}")
        info = self.members[name]
        _hold(info.file_size, limit, f"its {name}")
        with self._zip.open(info) as stream:  # which reads no further than `file_size`
            yield stream, info.file_size
            if stream.read(1):
                raise Malformed(f"{name} is longer than it should be")


def _hold(size: int, limit: int, what: str) -> None:
    if size > limit:
        raise Malformed(
            f"{what} would unpack to {size / 2**20:,.0f} MiB, more than the "
            f"{limit / 2**20:,.0f} MiB allowed"
        )


def _exactly(stream: Any, size: int) -> bytes:
    buffer = bytearray(size)
    _fill(stream, memoryview(buffer))
    return bytes(buffer)


def _fill(stream: Any, buffer: memoryview) -> None:
    """Read as many bytes as there should be."""
    done = 0
    while done < len(buffer):
        piece = stream.read(min(_PIECE, len(buffer) - done))
        if not piece:
            raise Malformed("is cut off")
        buffer[done : done + len(piece)] = piece
        done += len(piece)


@contextmanager
def opened(path: str | os.PathLike[str], limits: Limits) -> Iterator[Archive]:
    """Open an archive; whatever is wrong with it is a `ValueError` that begins with its name."""
    name = os.fspath(path)
    with _regular(path) as file:
        try:
            yield Archive(file, limits)
        except Malformed as error:
            raise ValueError(f"{name}: not a file of kspan ({error})") from None
        except MemoryError:
            raise ValueError(f"{name}: does not fit in memory") from None
        except zipfile.BadZipFile as error:
            raise ValueError(f"{name}: not a file of kspan ({_one_line(error)})") from None
        # The archive is a stranger's: numpy, zipfile, zlib and json raise what they like.
        except Exception as error:
            kind = type(error).__name__
            raise ValueError(f"{name}: not a file of kspan ({kind})") from None


def _regular(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file; what is none would hang, or have no end."""
    name = os.fspath(path)
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise ValueError(f"{name}: is a folder, not a file of kspan")
    if not stat.S_ISREG(mode):
        raise ValueError(f"{name}: is not a file")
    return open(path, "rb")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
