"""Values as plain JSON with arrays apart, and back; whether a value is what its type says."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from kspan.storage.archive import Malformed

# What an array may be made of, by the type that is asked for; sizes differ between machines.
_KINDS = {"f": "f", "i": "iu", "u": "iu", "b": "b"}
_NOT_FINITE = ("inf", "-inf", "nan")


def pack(value: Any, arrays: list[np.ndarray]) -> Any:
    """Return what JSON can hold; arrays are put into the list."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf":
            raise TypeError(f"cannot store an array of {value.dtype}")
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, Enum):
        return {"enum": type(value).__name__, "name": value.name}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: pack(getattr(value, field.name), arrays) for field in fields(value)}
        return {"type": type(value).__name__, "fields": parts}
    if isinstance(value, list | tuple):
        return [pack(item, arrays) for item in value]
    if isinstance(value, dict):
        return {"dict": {str(key): pack(item, arrays) for key, item in value.items()}}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}  # JSON has no infinity
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"cannot store a {type(value).__name__}")


def digest(value: Any) -> str:
    """Return a SHA-256 of all that would be stored of a value: the same for what comes back."""
    arrays: list[np.ndarray] = []
    sha = hashlib.sha256(json.dumps(pack(value, arrays)).encode())
    for array in arrays:
        sha.update(f"{array.dtype.str} {array.shape}".encode())
        sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()


def size_in_bytes(value: Any) -> int:
    """Return how much memory the arrays of a value take."""
    arrays: list[np.ndarray] = []
    pack(value, arrays)
    return sum(array.nbytes for array in arrays)


def unpack(value: Any, arrays: list[np.ndarray | None], types: Mapping[str, type]) -> Any:
    """Return what was packed; `Malformed` if it cannot have been. Arrays are taken off the list."""
    if isinstance(value, list):
        return [unpack(item, arrays, types) for item in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        place = value["array"]
        if type(place) is not int or not 0 <= place < len(arrays):
            raise Malformed(f"array {place!r} is not in the file")
        array, arrays[place] = arrays[place], None
        if array is None:  # `pack` never does that: a small file would make much work
            raise Malformed(f"array {place} is there twice")
        return array
    if "dict" in value:
        return {k: unpack(item, arrays, types) for k, item in _object(value["dict"]).items()}
    if "float" in value:
        if value["float"] not in _NOT_FINITE:
            raise Malformed(f"{value['float']!r} is not a number")
        return float(value["float"])
    name = value.get("type") or value.get("enum")
    if not isinstance(name, str) or name not in types:
        raise Malformed(f"unknown type {name!r} in the file")
    return (_enum if "enum" in value else _instance)(types[name], value, arrays, types)


def _enum(kind: Any, value: Any, arrays: list[np.ndarray | None], types: Mapping[str, type]) -> Any:
    name = value.get("name")
    if not issubclass(kind, Enum) or not isinstance(name, str) or name not in kind.__members__:
        raise Malformed(f"unknown {kind.__name__} {name!r} in the file")
    return kind[name]


def _instance(
    kind: Any, value: Any, arrays: list[np.ndarray | None], types: Mapping[str, type]
) -> Any:
    given = _object(value.get("fields"))
    parts = {key: unpack(part, arrays, types) for key, part in given.items()}
    known = {field.name for field in fields(kind)} if is_dataclass(kind) else None
    if set(parts) != known:
        raise Malformed(f"a {kind.__name__} in the file has other fields than this version's")
    for name, part in parts.items():
        wrong = misfit(part, _hints(kind)[name])
        if wrong:
            raise Malformed(f"a {kind.__name__} in the file: {name} {wrong}")
    return kind(**parts)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Malformed(f"a {type(value).__name__} stands where names and values should")
    return value


# --- whether a value is what its type says


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def misfit(value: Any, wanted: Any) -> str:
    """Return what is wrong with a value of an annotated type, as the end of a sentence; "" if not.

    Of a dataclass only its kind is looked at.

    Examples
    --------
    >>> misfit([1, "a"], list[int])
    'is a list in which one is a str, not a int'
    >>> misfit(None, float | None)
    ''
    """
    origin = get_origin(wanted)
    if wanted is Any:
        return ""
    if origin in (Union, UnionType):
        kinds = get_args(wanted)
        reasons = [misfit(value, kind) for kind in kinds]
        if "" in reasons:
            return ""
        named = [kind for kind in kinds if kind is not NoneType]
        return reasons[kinds.index(named[0])] if value is not None else "is missing"
    if origin is np.ndarray:
        return _misfit_array(value, wanted)
    if origin in (list, tuple):
        if not isinstance(value, list | tuple):
            return f"is a {type(value).__name__}, not a list"
        wrong = next(filter(None, (misfit(item, get_args(wanted)[0]) for item in value)), "")
        return wrong and f"is a list in which one {wrong}"
    if origin is dict:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            return f"is a {type(value).__name__}, not names with values"
        items = value.values()
        wrong = next(filter(None, (misfit(item, get_args(wanted)[1]) for item in items)), "")
        return wrong and f"holds one that {wrong}"
    return _misfit_plain(value, wanted)


def _misfit_array(value: Any, wanted: Any) -> str:
    if not isinstance(value, np.ndarray):
        return f"is a {type(value).__name__}, not an array"
    number = get_args(get_args(wanted)[1])[0]
    kinds = "biuf" if number is Any else _KINDS[np.dtype(number).kind]
    return "" if value.dtype.kind in kinds else f"is an array of {value.dtype}"


def _misfit_plain(value: Any, wanted: Any) -> str:
    if wanted in (float, int):
        number = isinstance(value, (float, int, np.floating, np.integer))
        whole = isinstance(value, (int, np.integer))
        fits = not isinstance(value, bool) and (number if wanted is float else whole)
    else:
        fits = isinstance(value, wanted)
    if fits:
        return ""
    said = "nothing" if value is None else f"a {type(value).__name__}"
    return f"is {said}, not a {wanted.__name__}"
