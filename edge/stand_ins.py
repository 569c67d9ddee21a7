"""Stand-ins for modules that libraries import at their start and this process rarely or never uses.

Each of these modules would take up to a thirtieth of the start, and memory until the end.
"""

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any


@contextlib.contextmanager
def stand_in(name: str, **attributes: Any) -> Iterator[None]:
    """Replace a module by a stand-in for the imports of this block, unless the module is imported already.

    The stand-in has these attributes; the first use of another one imports the module itself, at any time. A package
    that is imported within the block has the stand-in as its attribute after the block: `import a.b` reads `a.b` there.
    """
    if name in sys.modules:
        yield
        return
    module = ModuleType(name)

    def attribute_of_the_module(attribute: str) -> Any:
        # The import system reads __path__ of every module.
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        if sys.modules.get(name) is module:
            del sys.modules[name]
        return getattr(importlib.import_module(name), attribute)

    module.__dict__.update(attributes, __getattr__=attribute_of_the_module)
    sys.modules[name] = module
    _show_in_package(name, module)
    try:
        yield
    finally:
        _show_in_package(name, module)
        # A use of the stand-in within the block has put the module itself there.
        if sys.modules.get(name) is module:
            del sys.modules[name]


def _show_in_package(name: str, module: ModuleType) -> None:
    """Show a module as an attribute of its package, as its import does, until the module itself is imported."""
    package, _, child = name.rpartition(".")
    if package in sys.modules:
        vars(sys.modules[package]).setdefault(child, module)


def at_first_call(module: str, name: str) -> Callable[..., Any]:
    """Return a function that imports a module when it is called, then calls this function or class of the module.

    In place of a class it serves only where objects are made: it has no subclasses and no instances.
    """

    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*arguments, **named)

    return call


def import_structlog() -> None:
    """Import structlog, which imports rich wherever it is installed, without it.

    A gateway never draws a traceback with rich, and the import takes a tenth of the start.
    """
    # None makes Python refuse the import (reference of the import system, 5.3.1).
    refused = sys.modules.setdefault("rich", None) is None  # type: ignore[arg-type]
    importlib.import_module("structlog")
    if refused:
        del sys.modules["rich"]


def import_paho() -> None:
    """Import paho without the HTTP client and its e-mail parser, with which it would look for a proxy."""
    with stand_in("urllib.request"):
        importlib.import_module("paho.mqtt.client")
