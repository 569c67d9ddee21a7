"""Finds the node kinds of a site: Python files of a folder, and packages with the entry point `microdcs_edge.nodes`."""

import dataclasses
import importlib.util
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from edge.errors import SettingsError
from edge.flows.nodes.kind import Compute, NodeKind
from edge.flows.nodes.registry import BUILT_IN, NodeKinds

ENTRY_POINT: Final = "microdcs_edge.nodes"


def load_kinds(folder: str) -> NodeKinds:
    """Return the built-in kinds and those of the site, which run in workers; an empty folder name means none.

    Raises SettingsError with all faults.
    """
    found = dict(BUILT_IN)
    problems: list[str] = []
    for origin, loaded in _loaded(folder):
        match loaded:
            case NodeKind(name=name, work=Compute()) if name not in found:
                found[name] = dataclasses.replace(loaded, in_worker=True)
            case NodeKind(name=name, work=Compute()):
                problems.append(f"{origin}: there is a node kind {name!r} already")
            case Exception():
                problems.append(f"{origin}: {type(loaded).__name__}: {loaded}")
            case _:
                problems.append(f"{origin}: KIND is a NodeKind with the work Compute")
    if problems:
        raise SettingsError(problems, "Correct the node kinds, or remove them from [flows] nodes.")
    return found


def _loaded(folder: str) -> Iterator[tuple[str, Any]]:
    """Yield each origin with its kind, or with the error of its import."""
    for point in entry_points(group=ENTRY_POINT):
        try:
            yield point.value, point.load()
        except Exception as error:  # noqa: BLE001 - any error of foreign code is a fault of the settings
            yield point.value, error
    for file in sorted(Path(folder).glob("*.py")) if folder else ():
        try:
            yield str(file), _import(file)
        except Exception as error:  # noqa: BLE001 - any error of foreign code is a fault of the settings
            yield str(file), error


def _import(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"edge_site_nodes.{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ImportError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.KIND
