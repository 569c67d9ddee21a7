"""Finds the node kinds of a site: Python files of a folder, and packages with the entry point `microdcs_edge.nodes`."""

import asyncio
import contextlib
import functools
import importlib.util
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

import msgspec.structs
import structlog
from msgspec import Struct

from edge.features.flows.nodes.kind import Compute, Inputs, NodeConfig, NodeKind
from edge.features.flows.nodes.registry import BUILT_IN, NodeKinds, config_schema
from edge.foundation.computer import child_environment
from edge.foundation.errors import SettingsError
from edge.foundation.text import join_texts

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
    site_kinds = read_kinds(folder)
    if site_kinds.faults:
        problems = [join_texts(": ", (origin, fault)) for origin, fault in site_kinds.faults.items()]
        raise SettingsError(problems, "Correct the node kinds, or remove them from [flows] nodes.")
    return site_kinds.kinds


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
        raise ImportError("it is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.KIND


logger = structlog.get_logger(__name__)

IMPORT_LIMIT_S: Final = 30.0
IMPORT_LIMIT_MB: Final = 1024
TOTAL_LIMIT_S: Final = 60.0
"""For all kinds together; systemd waits 180 s for the start of a gateway."""
_AT_ONCE: Final = 4


class ImportLimits(Struct, frozen=True):
    """What the imports of node kinds may take: seconds of one child process and in total, MB of one child process."""

    limit_s: float = IMPORT_LIMIT_S
    total_s: float = TOTAL_LIMIT_S
    limit_mb: int = IMPORT_LIMIT_MB


_DEFAULT_LIMITS = ImportLimits()


async def load_usable_kinds(folder: str) -> NodeKinds:
    """Return the kinds that can be imported; faults of the others are logged, and stop neither jobs nor flows."""
    site_kinds = await load_checked_kinds(folder)
    for origin, fault in site_kinds.faults.items():
        logger.error("node kind not loaded", origin=origin, reason=fault)
    return site_kinds.kinds


async def load_checked_kinds(folder: str, limits: ImportLimits = _DEFAULT_LIMITS) -> SiteKinds:
    """Return the built-in kinds and those of the site that child processes could import within the limits."""
    origins = list_origins(folder)
    if not origins:
        return SiteKinds(BUILT_IN, {})
    faults = await _find_faults(folder, origins, limits)
    if folder in faults:
        return SiteKinds(BUILT_IN, faults)
    site_kinds = read_kinds(folder, excluded=faults)
    return SiteKinds(site_kinds.kinds, {**faults, **site_kinds.faults})


async def _find_faults(folder: str, origins: Sequence[str], limits: ImportLimits) -> dict[str, str]:
    """Import all kinds in one child; after an origin that ended it, each further one in a child of its own.

    No output is a fault of the folder.
    """
    ends_at = asyncio.get_running_loop().time() + limits.total_s
    lines, ending = await _import_in_child(folder, (), limits.limit_s, limits.limit_mb)
    if lines and "faults" in lines[-1]:
        return dict(lines[-1]["faults"])
    if not lines:
        return {folder: f"the check of its node kinds {ending}"}
    harmful = lines[-1]["importing"]
    further = origins[origins.index(harmful) + 1 :]
    slots = asyncio.Semaphore(_AT_ONCE)

    async def check(origin: str) -> dict[str, str]:
        others = [text for text in origins if text != origin]
        async with slots:
            left_s = ends_at - asyncio.get_running_loop().time()
            if left_s <= 0:
                return {origin: f"the imports of the other node kinds took more than {limits.total_s:g} s"}
            lines, ending = await _import_in_child(folder, others, min(limits.limit_s, left_s), limits.limit_mb)
        return lines[-1]["faults"] if lines and "faults" in lines[-1] else {origin: f"its import {ending}"}

    found = await asyncio.gather(*map(check, further))
    return {harmful: f"its import {ending}"} | {origin: fault for entry in found for origin, fault in entry.items()}


async def _import_in_child(
    folder: str, excluded: Collection[str], limit_s: float, limit_mb: int
) -> tuple[list[dict[str, Any]], str]:
    """Return the lines that the child wrote, and how it ended."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "edge.features.flows.worker_child", "--check", str(limit_mb), folder, *excluded),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=1 << 20,
        env=child_environment(),
    )
    lines: list[dict[str, Any]] = []
    try:
        async with asyncio.timeout(limit_s):
            while process.stdout and (line := await process.stdout.readline()):
                lines.append(json.loads(line))
            await process.wait()
        return lines, ending_of(process.returncode)
    except TimeoutError:
        return lines, f"took more than {limit_s:.3g} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def ending_of(status: int | None) -> str:
    """Return how a process ended, for people."""
    if status is not None and status < 0:
        return f"ended the process ({signal.Signals(-status).name})"
    return f"ended the process (status {status})"
