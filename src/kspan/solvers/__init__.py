"""The methods, one file each; ``from kspan.solvers import IPU`` finds any of them by its class.

What a method of one's own is made from is here too: `RowSparseMethod` and its sisters,
`OneByOneMethod`, and `checked` and `counted` for its options.
"""

from importlib import import_module
from typing import Any

# Found when asked for: importing a package should not import all of its methods.
_SHARED = {
    **dict.fromkeys(
        (
            "Method", "RowSparseMethod", "ElementSparseMethod", "StiefelMethod",
            "NonnegativeMethod", "checked", "counted",
        ),
        "method",
    ),
    **dict.fromkeys(("OneByOneMethod", "NonnegativeOneByOneMethod", "Component"), "one_by_one"),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _SHARED:
        return getattr(import_module(f"kspan.solvers.{_SHARED[name]}"), name)
    if not name[0].isupper():  # a module
        raise AttributeError(f"module 'kspan.solvers' has no attribute {name!r}")
    from kspan.solvers.registry import method_class

    import_module("kspan.solving")  # the layer above has a method too
    return method_class(name)


def __dir__() -> list[str]:
    from kspan.solvers.registry import class_names

    import_module("kspan.solving")
    return sorted([*globals(), *_SHARED, *class_names()])
