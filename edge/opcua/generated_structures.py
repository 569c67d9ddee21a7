"""Imports asyncua, whose generated structures get their methods at the first use.

asyncua defines four hundred structures as dataclasses. Python compiles three methods for each of them, which takes a
tenth of the start; a gateway uses a few dozen of these structures.
"""

import dataclasses
import importlib
from dataclasses import dataclass, fields, make_dataclass  # noqa: TID251 - it makes asyncua's dataclasses
from typing import Any

_GENERATED = "asyncua.ua.uaprotocol_auto"


def import_asyncua() -> None:
    """Import asyncua with this product's form of its generated structures; without this call they are as delivered."""
    # The modules of asyncua read the name at their import.
    setattr(dataclasses, "dataclass", _deferred)  # noqa: B010 - mypy refuses an assignment to a function
    try:
        importlib.import_module("asyncua")
    finally:
        setattr(dataclasses, "dataclass", dataclass)  # noqa: B010


def _deferred(cls: type | None = None, /, **options: Any) -> Any:
    """Return the dataclass, of the generated structures without the methods; they are compiled at their first call.

    The generated structures get no slots: for slots Python makes each class twice, and both stay in memory.
    """
    if cls is None:
        return lambda decorated: _deferred(decorated, **options)
    if cls.__module__ != _GENERATED or options.keys() - {"slots"}:
        return dataclass(cls, **options)
    own = vars(cls).keys()
    if "__eq__" not in own:
        # As for every dataclass that compares its fields and can be changed.
        setattr(cls, "__hash__", None)  # noqa: B010 - mypy refuses the assignment
    for name in _UNCOMPILED.keys() - own:
        setattr(cls, name, _UNCOMPILED[name])
    return dataclass(cls, init=False, repr=False, eq=False)


class _Uncompiled:
    """Stands for a method of all structures until one of them calls it; compiles all methods of this structure then."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type[Any]) -> Any:
        structure = next(each for each in owner.__mro__ if vars(each).get(self._name) is self)
        missing = [name for name, method in _UNCOMPILED.items() if vars(structure).get(name) is method]
        _compile_methods(structure, missing)
        return getattr(structure, self._name).__get__(instance, owner)


_UNCOMPILED = {name: _Uncompiled(name) for name in ("__init__", "__repr__", "__eq__")}


def _compile_methods(structure: type[Any], missing: list[str]) -> None:
    """Replace the methods by those that dataclasses makes for these fields."""
    twin = make_dataclass(structure.__name__, [(each.name, each.type, each) for each in fields(structure)])
    for name in missing:
        method = vars(twin)[name]
        method.__qualname__ = f"{structure.__qualname__}.{name}"
        setattr(structure, name, method)
