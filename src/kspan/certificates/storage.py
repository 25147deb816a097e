"""Dataclasses of arrays to one file and back: no pickles, written atomically.

The file is NumPy's ``.npz``: the arrays, and a JSON text that says how they hang together.
"""

import json
import math
import os
import tempfile
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

FORMAT = 1


def save(path: str | os.PathLike[str], value: Any) -> None:
    """Write a tree of dataclasses, lists, numbers, strings and arrays.

    Under a temporary name first, then renamed: whoever reads finds the old file or the new
    one, never half of one.
    """
    arrays: list[np.ndarray] = []
    text = json.dumps({"format": FORMAT, "value": _pack(value, arrays)})
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            header = np.frombuffer(text.encode(), dtype=np.uint8)
            named = {f"array_{i}": array for i, array in enumerate(arrays)}
            np.savez(file, header=header, **named)  # type: ignore[arg-type]
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # as open() would have made it
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load(path: str | os.PathLike[str], types: Iterable[type]) -> Any:
    """Read what `save` wrote, making instances of the given dataclasses and enums only."""
    try:
        with np.load(path, allow_pickle=False) as file:
            document = json.loads(file["header"].tobytes().decode())
            arrays = [file[f"array_{i}"] for i in range(len(file.files) - 1)]
    except (AttributeError, KeyError, TypeError, UnicodeDecodeError, ValueError, BadZipFile):
        raise ValueError(f"{os.fspath(path)}: not a file of kspan") from None
    found = document.get("format")
    if found != FORMAT:
        raise ValueError(f"{os.fspath(path)}: format {found!r}, this version reads {FORMAT}")
    return _unpack(document["value"], arrays, {kind.__name__: kind for kind in types})


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
