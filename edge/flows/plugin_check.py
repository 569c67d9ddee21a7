"""Imports the node kinds of a site in a child process first: one that crashes or hangs there is left out."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Collection
from typing import Any, Final

import structlog

from edge.flows.child_process import child_environment
from edge.flows.nodes.registry import BUILT_IN, NodeKinds
from edge.flows.plugins import SiteKinds, has_site_kinds, read_kinds

logger = structlog.get_logger(__name__)

IMPORT_LIMIT_S: Final = 30.0
IMPORT_LIMIT_MB: Final = 1024


async def load_usable_kinds(folder: str) -> NodeKinds:
    """Return the kinds that can be imported; faults of the others are logged, and stop neither jobs nor flows."""
    found = await load_checked_kinds(folder)
    for origin, fault in found.faults.items():
        logger.error("node kind not loaded", origin=origin, reason=fault)
    return found.kinds


async def load_checked_kinds(
    folder: str, limit_s: float = IMPORT_LIMIT_S, limit_mb: int = IMPORT_LIMIT_MB
) -> SiteKinds:
    """Return the built-in kinds and those of the site that a child process could import within the limits."""
    if not has_site_kinds(folder):
        return SiteKinds(BUILT_IN, {})
    faults = await _find_faults(folder, limit_s, limit_mb)
    if folder in faults:
        return SiteKinds(BUILT_IN, faults)
    found = read_kinds(folder, excluded=faults)
    return SiteKinds(found.kinds, {**faults, **found.faults})


async def _find_faults(folder: str, limit_s: float, limit_mb: int) -> dict[str, str]:
    """Import all kinds in a child; repeat without each origin that ended it. No output is a fault of the folder."""
    faults: dict[str, str] = {}
    while True:
        lines, ending = await _import_in_child(folder, faults, limit_s, limit_mb)
        if lines and "faults" in lines[-1]:
            return {**faults, **lines[-1]["faults"]}
        if not lines:
            return {folder: f"the check of its node kinds {ending}"}
        faults[lines[-1]["importing"]] = f"its import {ending}"


async def _import_in_child(
    folder: str, excluded: Collection[str], limit_s: float, limit_mb: int
) -> tuple[list[dict[str, Any]], str]:
    """Return the lines that the child wrote, and how it ended."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "edge.flows.worker_child", "--check", str(limit_mb), folder, *excluded),
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
        return lines, f"took more than {limit_s:g} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def ending_of(status: int | None) -> str:
    """Return how a process ended, for people."""
    if status is not None and status < 0:
        return f"ended the process ({signal.Signals(-status).name})"
    return f"ended the process (status {status})"
