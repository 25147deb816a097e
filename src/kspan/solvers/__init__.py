"""The methods, one file each; ``from kspan.solvers import IPU`` finds any of them by its class."""

from typing import Any


def __getattr__(name: str) -> Any:
    if not name[0].isupper():  # a module
        raise AttributeError(f"module 'kspan.solvers' has no attribute {name!r}")
    from kspan.solvers.registry import method_class

    return method_class(name)


def __dir__() -> list[str]:
    from kspan.solvers.registry import class_names

    return sorted([*globals(), *class_names()])
