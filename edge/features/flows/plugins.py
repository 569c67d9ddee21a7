"""Finds the node kinds of a site: Python files of a folder, and packages with the entry point `microdcs_edge.nodes`."""

import contextlib
import functools
import importlib.util
import re
import sys
from collections.abc import Callable, Container, Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

import msgspec.structs
from msgspec import Struct

from edge.features.flows.nodes.kind import Compute, Inputs, NodeConfig, NodeKind
from edge.features.flows.nodes.registry import BUILT_IN, NodeKinds, config_schema
from edge.foundation.errors import SettingsError

ENTRY_POINT: Final = "microdcs_edge.nodes"
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")


class SiteKinds(Struct, frozen=True):
    """The node kinds of a process, and why others are not loaded, by their origin: a file or an object of a package."""

    kinds: NodeKinds
    faults: Mapping[str, str]


def load_kinds(folder: str) -> NodeKinds:
    """Return the built-in kinds and those of the site, which run in workers; an empty folder name means none.

    Raises SettingsError with all faults.
    """
    found = read_kinds(folder)
    if found.faults:
        problems = [f"{origin}: {fault}" for origin, fault in found.faults.items()]
        raise SettingsError(problems, "Correct the node kinds, or remove them from [flows] nodes.")
    return found.kinds


def read_kinds(
    folder: str, excluded: Container[str] = (), on_import: Callable[[str], None] = lambda _: None
) -> SiteKinds:
    """Return the built-in kinds and those of the site whose origin is not excluded.

    `on_import` is called with each origin before its code runs.
    """
    kinds: dict[str, NodeKind[Any]] = dict(BUILT_IN)
    faults: dict[str, str] = {}
    for origin, load in _origins(folder):
        if origin in excluded:
            continue
        on_import(origin)
        match _loaded(load):
            case NodeKind() as kind if fault := _fault_of(kind):
                faults[origin] = fault
            case NodeKind(name=name) as kind if name not in kinds:
                kinds[name] = msgspec.structs.replace(kind, in_worker=True)
            case NodeKind(name=name):
                faults[origin] = f"there is a node kind {name!r} already"
            case BaseException() as error:
                faults[origin] = f"{type(error).__name__}: {error}"
            case _:
                faults[origin] = "KIND is a NodeKind with the work Compute"
    return SiteKinds(kinds, faults)


def _fault_of(kind: Any) -> str | None:
    """Return what is wrong with a kind; its members may have any type."""
    if not isinstance(kind.work, Compute) or not callable(kind.work.run):
        return "KIND is a NodeKind with the work Compute"
    if not isinstance(kind.name, str) or not _NAME.fullmatch(kind.name):
        return "the name of a kind has 1 to 100 letters, digits, '.', '-' and '_'"
    if (
        not isinstance(kind.summary, str)
        or not isinstance(kind.inputs, Inputs)
        or not isinstance(kind.repeatable, bool)
    ):
        return "summary is a text, inputs one of Inputs, repeatable true or false"
    if not isinstance(kind.config, type) or not issubclass(kind.config, NodeConfig) or not callable(kind.faults):
        return "config is a subclass of NodeConfig, faults a function"
    try:
        config_schema(kind)
    except Exception as error:  # noqa: BLE001 - any error of foreign code is a fault of that code
        return f"its config has no JSON Schema: {error}"
    return None


def list_origins(folder: str) -> list[str]:
    """Return the files and packages to load; none of their code runs."""
    return [origin for origin, _ in _origins(folder)]


def _origins(folder: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield each origin with the function that imports it."""
    for point in entry_points(group=ENTRY_POINT):
        yield point.value, point.load
    for file in sorted(Path(folder).glob("*.py")) if folder else ():
        yield str(file), functools.partial(_import, file)


def _loaded(load: Callable[[], Any]) -> Any:
    try:
        # The output of a command may be JSON that another program reads.
        with contextlib.redirect_stdout(sys.stderr):
            return load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - any error of foreign code is a fault of that code
        return error


def _import(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"edge_site_nodes.{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ImportError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.KIND
