"""The methods by name, found in the folders beside this file: a new file is all it takes."""

from functools import cache
from importlib import import_module
from inspect import isabstract
from pkgutil import iter_modules
from typing import Any

from kspan.solvers.method import AnyMethod, Method

FOLDERS = ("rowsparse", "elementsparse", "stiefel", "nonnegative", "represent")

# Methods that live above this layer, as they prove what they find.
_FROM_ABOVE: list[type[AnyMethod]] = []


def add_method(method: type[AnyMethod]) -> type[AnyMethod]:
    """Make a method of a layer above known by its name; a decorator."""
    _FROM_ABOVE.append(method)
    return method


def methods_for(problem: type) -> dict[str, type[AnyMethod]]:
    """Return the methods for a kind of problem by their names, "auto" and "exact" first."""
    found = [method for method in (*_all(), *_FROM_ABOVE) if method.solves is problem]
    found.sort(key=lambda method: (method.name not in ("auto", "exact"), method.name))
    return {method.name: method for method in found}


@cache
def _all() -> tuple[type[AnyMethod], ...]:
    """Import every module of the folders; return the methods that are defined there."""
    found: dict[str, type[AnyMethod]] = {}
    for folder in FOLDERS:
        package = import_module(f"kspan.solvers.{folder}")
        for module in iter_modules(package.__path__, f"{package.__name__}."):
            for value in vars(import_module(module.name)).values():
                if isinstance(value, type) and issubclass(value, Method) and _is_whole(value):
                    found[f"{value.__module__}.{value.__name__}"] = value
    return tuple(found.values())


def _is_whole(method: type[AnyMethod]) -> bool:
    """Whether it is a method, and not what several methods share."""
    return "name" in vars(method) and not isabstract(method)


def method_class(class_name: str) -> type[AnyMethod]:
    """Return the method with this class name, such as "IPU"."""
    for method in (*_all(), *_FROM_ABOVE):
        if method.__name__ == class_name:
            return method
    raise AttributeError(f"module 'kspan.solvers' has no attribute {class_name!r}")


def class_names() -> list[str]:
    """Return the class names of all methods."""
    return [method.__name__ for method in (*_all(), *_FROM_ABOVE)]


def as_method(problem: type, solver: str | AnyMethod, options: dict[str, Any]) -> AnyMethod:
    """Return the method that a name and options, or an object, stand for.

    Parameters
    ----------
    problem : the kind of problem
    solver : name or object
    options : of the method, if it is named
    """
    if isinstance(solver, Method):
        if options:
            raise ValueError(
                f"{sorted(options)[0]!r} is an option of a named solver; give it to "
                f"{type(solver).__name__}(...) itself."
            )
        if solver.solves is not problem:
            raise ValueError(f"{type(solver).__name__} is not for a {problem.__name__}.")
        return solver
    known = methods_for(problem)
    if solver not in known:
        raise ValueError(f"solver must be one of {list(known)} or a method, got {solver!r}.")
    method = known[solver]
    unknown = sorted(set(options) - set(method.options()))
    if unknown:
        raise ValueError(
            f"solver {solver!r} has no option {unknown[0]!r}; it takes {method.options()}."
        )
    return method(**options)
