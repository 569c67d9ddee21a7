"""Imports the node kinds of a site in a child process first: one that crashes or hangs there is left out."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Collection, Sequence
from typing import Any, Final

import structlog
from msgspec import Struct

from edge.features.flows.nodes.registry import BUILT_IN, NodeKinds
from edge.features.flows.plugins import SiteKinds, list_origins, read_kinds
from edge.foundation.child_process import child_environment

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
    found = await load_checked_kinds(folder)
    for origin, fault in found.faults.items():
        logger.error("node kind not loaded", origin=origin, reason=fault)
    return found.kinds


async def load_checked_kinds(folder: str, limits: ImportLimits = _DEFAULT_LIMITS) -> SiteKinds:
    """Return the built-in kinds and those of the site that child processes could import within the limits."""
    origins = list_origins(folder)
    if not origins:
        return SiteKinds(BUILT_IN, {})
    faults = await _find_faults(folder, origins, limits)
    if folder in faults:
        return SiteKinds(BUILT_IN, faults)
    found = read_kinds(folder, excluded=faults)
    return SiteKinds(found.kinds, {**faults, **found.faults})


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
        others = [each for each in origins if each != origin]
        async with slots:
            left_s = ends_at - asyncio.get_running_loop().time()
            if left_s <= 0:
                return {origin: f"the imports of the other node kinds took more than {limits.total_s:g} s"}
            lines, ending = await _import_in_child(folder, others, min(limits.limit_s, left_s), limits.limit_mb)
        return lines[-1]["faults"] if lines and "faults" in lines[-1] else {origin: f"its import {ending}"}

    found = await asyncio.gather(*map(check, further))
    return {harmful: f"its import {ending}"} | {origin: fault for each in found for origin, fault in each.items()}


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
