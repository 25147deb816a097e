"""The file is NumPy's ``.npz``: the arrays, and a JSON text that says how they hang together."""

import json
import os
import zipfile
from collections.abc import Iterable
from typing import Any

import numpy as np

from kspan.storage.archive import Archive, Limits, Malformed, opened
from kspan.storage.places import replacing
from kspan.storage.values import pack, unpack

# Raised when files written before can no longer be read.
FORMAT = 2


# Of every member of the file, so that equal contents make equal bytes.
NO_DATE = (1980, 1, 1, 0, 0, 0)

LIMITS = Limits()


def save_file(
    path: str | os.PathLike[str], value: Any, notes: dict[str, Any] | None = None, *,
    compress: bool = True,
) -> None:  # fmt: skip
    """Write a tree of dataclasses, lists, dicts, numbers, strings and arrays.

    Under a temporary name first, then renamed: whoever reads finds the old file or the new
    one, never half of one. The same value gives the same bytes. `notes`, anything that JSON can
    hold, is a member of its own (for what differs from run to run, such as times). Without
    `compress` it is read and written many times as fast; floats hardly get smaller anyway.
    """
    arrays: list[np.ndarray] = []
    text = json.dumps({"format": FORMAT, "value": pack(value, arrays)})
    named = {"header": np.frombuffer(text.encode(), dtype=np.uint8)}
    named |= {f"array_{i}": array for i, array in enumerate(arrays)}
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in named.items():
            member = _member(f"{name}.npy", compress)
            with archive.open(member, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)
        if notes is not None:
            archive.writestr(_member("notes.json", compress), json.dumps(notes))


def _member(name: str, compress: bool) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, NO_DATE)
    info.compress_type = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    return info


def load_file(
    path: str | os.PathLike[str], types: Iterable[type], *, limits: Limits = LIMITS
) -> Any:
    """Read what `save_file` wrote, making instances of the given dataclasses and enums only.

    Parameters
    ----------
    path : path
    types : classes that may be in the file; their fields must be what their annotations say
    limits : Limits
        What may be unpacked: by default 1 GiB, or eight times the size of the file.

    Raises
    ------
    ValueError
        In one sentence that begins with the path.
    """
    name = os.fspath(path)
    with opened(path, limits) as archive:
        header = archive.array("header.npy", archive.limits.text)
        document = json.loads(header.tobytes().decode())
        if not isinstance(document, dict) or not {"format", "value"} <= set(document):
            raise Malformed("has no format")
        found = document["format"]
        arrays = _arrays(archive) if found == FORMAT else []
    if type(found) is int and found < FORMAT:
        raise ValueError(
            f"{name} was written by an earlier kspan, in a format that is no longer "
            "read; make it anew."
        )
    if type(found) is not int or found != FORMAT:
        raise ValueError(f"{name}: format {found!r}, this version reads {FORMAT}")
    try:
        return unpack(document["value"], arrays, {kind.__name__: kind for kind in types})
    except Malformed as error:
        raise ValueError(f"{name}: {error}") from None
    except RecursionError:
        raise ValueError(f"{name}: not a file of kspan (nested too deeply)") from None


def _arrays(archive: Archive) -> list[np.ndarray | None]:
    count = sum(name.startswith("array_") for name in archive.members)
    return [archive.array(f"array_{i}.npy") for i in range(count)]


def load_notes(path: str | os.PathLike[str], *, limits: Limits = LIMITS) -> dict[str, Any]:
    """Read the notes of a file, nothing if it has none."""
    with opened(path, limits) as archive:
        if "notes.json" not in archive.members:
            return {}
        notes = json.loads(archive.text("notes.json"))
        if not isinstance(notes, dict):
            raise Malformed("its notes are none")
    return notes
