"""Imports asyncua, whose generated structures get their methods at the first use.

asyncua defines four hundred structures as dataclasses. Python compiles three methods for each of them, which takes a
tenth of the start; a gateway uses a few dozen of these structures.
"""

import dataclasses
import importlib
from dataclasses import dataclass, fields, make_dataclass  # noqa: TID251 - it makes asyncua's dataclasses
from typing import Any

_GENERATED = "asyncua.ua.uaprotocol_auto"
_METHODS = ("__init__", "__repr__", "__eq__")


def import_asyncua() -> None:
    """Import asyncua with this product's form of its generated structures; without this call they are as delivered."""
    # The modules of asyncua read the name at their import.
    setattr(dataclasses, "dataclass", _deferred)  # noqa: B010 - mypy refuses an assignment to a function
    try:
        importlib.import_module("asyncua")
    finally:
        setattr(dataclasses, "dataclass", dataclass)  # noqa: B010


def _deferred(cls: type | None = None, /, **options: Any) -> Any:
    """Return the dataclass, of the generated structures without the methods; they are compiled at their first call."""
    if cls is None:
        return lambda decorated: _deferred(decorated, **options)
    if cls.__module__ != _GENERATED or options.keys() - {"slots"}:
        return dataclass(cls, **options)
    missing = [name for name in _METHODS if name not in vars(cls)]
    structure: type[Any] = dataclass(cls, init=False, repr=False, eq=False, **options)
    if "__eq__" in missing:
        # As for every dataclass that compares its fields and can be changed.
        setattr(structure, "__hash__", None)  # noqa: B010
    for name in missing:
        setattr(structure, name, _compiled_at_first_call(structure, name, missing))
    return structure


def _compiled_at_first_call(structure: type[Any], name: str, missing: list[str]) -> Any:
    def method(self: Any, *args: Any, **values: Any) -> Any:
        _compile_methods(structure, missing)
        return getattr(structure, name)(self, *args, **values)

    method.__name__ = name
    return method


def _compile_methods(structure: type[Any], missing: list[str]) -> None:
    """Replace the methods by those that dataclasses makes for these fields."""
    twin = make_dataclass(structure.__name__, [(each.name, each.type, each) for each in fields(structure)])
    for name in missing:
        method = vars(twin)[name]
        method.__qualname__ = f"{structure.__qualname__}.{name}"
        setattr(structure, name, method)
