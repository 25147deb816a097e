"""Dataclasses of arrays to one file and back: no pickles, written atomically.

The file is NumPy's ``.npz``: the arrays, and a JSON text that says how they hang together.
"""

import json
import math
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import IO, Any

import numpy as np

# Raised when files written before can no longer be read.
FORMAT = 2


# Of every member of the file, so that equal contents make equal bytes.
NO_DATE = (1980, 1, 1, 0, 0, 0)


def save_file(
    path: str | os.PathLike[str], value: Any, notes: dict[str, Any] | None = None
) -> None:
    """Write a tree of dataclasses, lists, dicts, numbers, strings and arrays.

    Under a temporary name first, then renamed: whoever reads finds the old file or the new
    one, never half of one. The same value gives the same bytes. `notes`, anything that JSON can
    hold, is a member of its own (for what differs from run to run, such as times).
    """
    arrays: list[np.ndarray] = []
    text = json.dumps({"format": FORMAT, "value": _pack(value, arrays)})
    named = {"header": np.frombuffer(text.encode(), dtype=np.uint8)}
    named |= {f"array_{i}": array for i, array in enumerate(arrays)}
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in named.items():
            member = _member(f"{name}.npy")
            with archive.open(member, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)
        if notes is not None:
            archive.writestr(_member("notes.json"), json.dumps(notes))


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, NO_DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file that takes the place of `path` when the block ends well."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target}: there is no folder {os.fspath(target.parent)!r}")
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # as open() would have made it
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load_file(path: str | os.PathLike[str], types: Iterable[type]) -> Any:
    """Read what `save_file` wrote, making instances of the given dataclasses and enums only."""
    try:
        with np.load(path, allow_pickle=False) as file:
            document = json.loads(file["header"].tobytes().decode())
            count = sum(name.startswith("array_") for name in file.files)
            arrays = [file[f"array_{i}"] for i in range(count)]
        found, value = document["format"], document["value"]
    except (
        AttributeError, EOFError, KeyError, TypeError, UnicodeDecodeError, ValueError,
        zipfile.BadZipFile, zlib.error,
    ):  # fmt: skip
        raise ValueError(f"{os.fspath(path)}: not a file of kspan") from None
    if isinstance(found, int) and found < FORMAT:
        raise ValueError(
            f"{os.fspath(path)} was written by an earlier kspan, in a format that is no longer "
            "read; make it anew."
        )
    if found != FORMAT:
        raise ValueError(f"{os.fspath(path)}: format {found!r}, this version reads {FORMAT}")
    return _unpack(value, arrays, {kind.__name__: kind for kind in types})


def load_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the notes of a file, nothing if it has none."""
    try:
        with zipfile.ZipFile(path) as archive:
            if "notes.json" not in archive.namelist():
                return {}
            notes = json.loads(archive.read("notes.json"))
    except (EOFError, ValueError, zipfile.BadZipFile, zlib.error):
        notes = None
    if not isinstance(notes, dict):
        raise ValueError(f"{os.fspath(path)}: not a file of kspan")
    return notes


def _pack(value: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf":
            raise TypeError(f"cannot store an array of {value.dtype}")
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, Enum):
        return {"enum": type(value).__name__, "name": value.name}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: _pack(getattr(value, field.name), arrays) for field in fields(value)}
        return {"type": type(value).__name__, "fields": parts}
    if isinstance(value, list | tuple):
        return [_pack(item, arrays) for item in value]
    if isinstance(value, dict):
        return {"dict": {str(key): _pack(item, arrays) for key, item in value.items()}}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}  # JSON has no infinity
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"cannot store a {type(value).__name__}")


def _unpack(value: Any, arrays: list[np.ndarray], types: dict[str, type]) -> Any:
    if isinstance(value, list):
        return [_unpack(item, arrays, types) for item in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "dict" in value:
        return {key: _unpack(item, arrays, types) for key, item in value["dict"].items()}
    if "float" in value:
        return float(value["float"])
    name = value.get("type") or value.get("enum")
    if name not in types:
        raise ValueError(f"unknown type {name!r} in the file")
    if "enum" in value:
        return types[name][value["name"]]  # type: ignore[index]
    parts = {key: _unpack(part, arrays, types) for key, part in value["fields"].items()}
    known = {field.name for field in fields(types[name])}
    if set(parts) != known:
        raise ValueError(f"a {name} in the file has other fields than this version's")
    return types[name](**parts)
