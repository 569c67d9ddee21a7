"""Imports asyncua, whose structures become dataclasses at their first use.

asyncua defines more than four hundred structures as dataclasses. Python reads the fields of each and compiles three
methods for it, which takes a tenth of the start; a gateway uses a few dozen of these structures.
"""

import contextlib
import dataclasses
import importlib
import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass  # noqa: TID251 - it makes asyncua's dataclasses
from pathlib import Path
from typing import Any

from edge.stand_ins import at_first_call, stand_in

_DEFERRED = frozenset({"asyncua.ua.uaprotocol_auto", "asyncua.ua.uaprotocol_hand"})
"""The modules whose structures wait for their first use."""


def import_asyncua() -> None:
    """Import asyncua with this product's form of its structures; without this call they are as delivered."""
    # The modules of asyncua read the name at their import.
    setattr(dataclasses, "dataclass", _deferred)  # noqa: B010 - mypy refuses an assignment to a function
    try:
        # The server does not offer PubSub (OPC 10000-14), makes its certificates itself, and does not read the types of
        # clients; asyncua reads node sets, and with dateutil their dates, only without the cache of the types.
        structures, definitions = "asyncua.common.structures", "asyncua.common.structures104"
        importer, exporter = "asyncua.common.xmlimporter", "asyncua.common.xmlexporter"
        with (
            stand_in("asyncua.pubsub.pubsub", PubSub=None),
            stand_in("asyncua.crypto.cert_gen"),
            stand_in(
                structures,
                load_enums=at_first_call(structures, "load_enums"),
                load_type_definitions=at_first_call(structures, "load_type_definitions"),
            ),
            stand_in(definitions, load_data_type_definitions=at_first_call(definitions, "load_data_type_definitions")),
            stand_in(importer, XmlImporter=at_first_call(importer, "XmlImporter")),
            stand_in(exporter, XmlExporter=at_first_call(exporter, "XmlExporter")),
            # asyncua reads and writes files with it.
            stand_in("anyio"),
            # An X.509 name of a mail address is parsed with it.
            stand_in("email.utils", parseaddr=at_first_call("email.utils", "parseaddr")),
            stand_in("dateutil.parser"),
            stand_in("importlib.metadata", version=_installed_version),
        ):
            importlib.import_module("asyncua")
    finally:
        setattr(dataclasses, "dataclass", dataclass)  # noqa: B010


def _installed_version(name: str) -> str:
    """Return the version of a package by the name of its directory (PyPA, Recording installed projects).

    importlib.metadata reads a text of 10 KiB with the e-mail parser for it.
    """
    spec = importlib.util.find_spec(name)
    folder = Path(spec.origin).parents[1] if spec and spec.origin else Path()
    found = [each.name for each in folder.glob(f"{name}-*.dist-info")]
    if len(found) != 1:
        return importlib.import_module("importlib.metadata").version(name)
    return found[0].removeprefix(f"{name}-").removesuffix(".dist-info")


def _deferred(cls: type | None = None, /, **options: Any) -> Any:
    """Return the dataclass; a structure of the deferred modules becomes one at its first use.

    These structures get no slots: for slots Python makes each class twice, and both stay in memory.
    """
    if cls is None:
        return lambda decorated: _deferred(decorated, **options)
    if cls.__module__ not in _DEFERRED or options.keys() - {"slots"}:
        return dataclass(cls, **options)
    own = vars(cls).keys()
    if "__eq__" not in own:
        # As for every dataclass that compares its fields and can be changed.
        setattr(cls, "__hash__", None)  # noqa: B010 - mypy refuses the assignment
    for name in (_MADE | _COMPARED) - own:
        setattr(cls, name, _Incomplete(cls, name))
    return cls


_MADE = frozenset({"__init__", "__match_args__", "__dataclass_fields__", "__dataclass_params__"})
"""The attributes of a dataclass with which an object is made."""
_COMPARED = frozenset({"__repr__", "__eq__"})
"""Those with which it is shown and compared: few structures ever need them, and Python compiles each."""


class _Incomplete:
    """Stands for an attribute of a structure until its first use; completes the structure then."""

    __slots__ = ("_name", "_structure")

    def __init__(self, structure: type, name: str) -> None:
        self._structure = structure
        self._name = name

    def __get__(self, instance: Any, owner: type[Any]) -> Any:
        if self._name in _COMPARED:
            _complete_comparison(self._structure)
        else:
            _complete(self._structure)
        attribute = vars(self._structure)[self._name]
        return attribute.__get__(instance, owner) if hasattr(attribute, "__get__") else attribute


def _complete(structure: type[Any]) -> None:
    """Complete what makes an object of a structure, unless another thread has done so.

    Two threads can do so at once: each replaces whole attributes, the defaults of fields last.
    """
    own = dict(vars(structure))
    if not (missing := _incomplete(own, _MADE)):
        return
    twin: type[Any] = dataclass(repr=False, eq=False)(_twin(structure, own))
    # The parameters are those of the decorator of asyncua.
    twin.__dataclass_params__.repr = twin.__dataclass_params__.eq = True
    for name in missing:
        setattr(structure, name, vars(twin)[name])
    for field in dataclasses.fields(twin):
        if isinstance(own.get(field.name), Field):
            _replace_by_default(structure, field)


def _complete_comparison(structure: type[Any]) -> None:
    """Complete what shows and compares objects of a structure; threads as in `_complete`."""
    # The fields have options that the defaults in the class do not have.
    options = {name: each for name, each in structure.__dataclass_fields__.items() if name in structure.__annotations__}
    own = dict(vars(structure))
    twin = dataclass(init=False, match_args=False)(_twin(structure, own | options))
    for name in _incomplete(own, _COMPARED):
        setattr(structure, name, vars(twin)[name])


def _incomplete(own: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    return [name for name in names if isinstance(own.get(name), _Incomplete)]


def _twin(structure: type[Any], own: Mapping[str, Any]) -> type[Any]:
    """Return a class with the complete attributes of a structure, and a text in place of a missing docstring.

    Without the text, dataclass would write the signature there.
    """
    left_out = {"__dict__", "__weakref__", *_incomplete(own, own)}
    body = {name: value for name, value in own.items() if name not in left_out}
    return type(structure.__name__, structure.__bases__, body | {"__doc__": structure.__name__})


def _replace_by_default(structure: type[Any], field: "Field[Any]") -> None:
    """Replace a Field by its default as the attribute of the class; without a default, remove the attribute."""
    if field.default is not MISSING:
        setattr(structure, field.name, field.default)
    else:
        with contextlib.suppress(AttributeError):
            delattr(structure, field.name)
