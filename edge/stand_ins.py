"""Stand-ins for modules that libraries import at their start and this process rarely or never uses.

Each of these modules would take up to a thirtieth of the start, and memory until the end.
"""

import contextlib
import importlib
import sys
import urllib  # noqa: F401  stand_in sets its attribute `request`
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any


@contextlib.contextmanager
def stand_in(name: str, **attributes: Any) -> Iterator[None]:
    """Replace a module by a stand-in for the imports of this block, unless the module is imported already.

    The stand-in has these attributes; the first use of another one imports the module itself, at any time.
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
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        # `import a.b` reads the attribute `b` of `a`; the import of the module itself will replace it.
        setattr(sys.modules[parent], child, module)
    sys.modules[name] = module
    try:
        yield
    finally:
        # A use of the stand-in within the block has put the module itself there.
        if sys.modules.get(name) is module:
            del sys.modules[name]


def at_first_call(module: str, name: str) -> Callable[..., Any]:
    """Return what calls this function or class of a module, and imports the module at the first call."""

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
