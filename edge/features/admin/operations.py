"""The operations that examine and save a gateway: backups, support bundles, recordings, checks for upgrades."""

import asyncio
import os
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from edge.access.operations import Report
from edge.app.feature import Opened
from edge.app.operations import STAGE, new_file, prefix_of, remove_old_files, stages
from edge.app.package_versions import find_versions
from edge.app.parts import GatewayParts, Works
from edge.app.redaction import secrets_of
from edge.config import main_file
from edge.features.admin.administration import Administration
from edge.features.admin.backup import Part, back_up
from edge.features.admin.recording import recording
from edge.features.admin.support import gather
from edge.foundation.errors import Refused
from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.model.plant import Operation, OperationType

RECORDING = ".jsonl"
LONGEST_RECORDING_S = 86_400
_USUAL_RECORDING_S = 60


async def open_operations(_stack: AsyncExitStack, core: GatewayParts, works: Works) -> Opened:
    """Return what this gateway executes."""
    main = works.settings_file
    return Opened(
        port=Administration(core.settings, main, core.active_runs.loaded.values),
        operations={
            OperationType.BACKUP: partial(_back_up, core, main),
            OperationType.SUPPORT_BUNDLE: partial(_gather, core, main),
            OperationType.RECORD: partial(_record, core, main),
            OperationType.UPGRADE_CHECK: partial(_check_upgrade, core),
        },
    )


async def _back_up(core: GatewayParts, main: Path | None, operation: Operation, report: Report) -> str:
    file = new_file(core, operation)
    parts = {Part.STORE, Part.KEYS} if operation.arguments.get("with_key") else {Part.STORE}
    await back_up(file, main, os.environ, parts, now_ms(), stages(report))
    remove_old_files(file.parent, prefix_of(core, operation), core.settings.operations.kept_files)
    return str(file)


async def _gather(core: GatewayParts, main: Path | None, operation: Operation, report: Report) -> str:
    file = new_file(core, operation)
    await gather(file, main, os.environ, "-2d", now_ms(), stages(report), with_jobs=False)
    remove_old_files(file.parent, prefix_of(core, operation), core.settings.operations.kept_files)
    return str(file)


async def _record(core: GatewayParts, main: Path | None, operation: Operation, report: Report) -> Text:
    """Record the messages of equipment for some seconds; return the file."""
    name, settings = operation.arguments.get("equipment", ""), core.settings
    text = operation.arguments.get("seconds", str(_USUAL_RECORDING_S))
    seconds = int(text) if text.isdecimal() and text.isascii() and len(text) <= len(str(LONGEST_RECORDING_S)) else 0
    if not 0 < seconds <= LONGEST_RECORDING_S:
        raise Refused(
            "record",
            Text.of(
                "{text!r} is not a number of seconds up to {longest_recording_s}",
                text=text,
                longest_recording_s=LONGEST_RECORDING_S,
            ),
            "Use --seconds 60.",
        )
    file, lines = new_file(core, operation, RECORDING), 0

    def count(_: object) -> None:
        nonlocal lines
        lines += 1

    secrets = secrets_of(settings, main_file(main, os.environ), os.environ)
    most = settings.operations.recording_mib * 1024 * 1024
    try:
        async with recording(name, settings, secrets, file, count, most_bytes=most) as source:
            for second in range(seconds):
                report(100.0 * second / seconds, Text.of("{source}: {lines} lines", source=source, lines=lines))
                await asyncio.sleep(1)
    finally:  # one that ended early has a file, too
        remove_old_files(file.parent, prefix_of(core, operation), settings.operations.kept_files, RECORDING)
    return Text.of("{file}: {lines} lines; review the file before you pass it on", file=file, lines=lines)


async def _check_upgrade(core: GatewayParts, _operation: Operation, report: Report) -> Text:
    """Return whether the package sources of this machine have a newer version, and what an upgrade would interrupt."""
    report(STAGE, Text.of("reading the package sources"))
    versions = await find_versions()
    if not versions.is_newer:
        return Text.of(
            "microdcs-edge {installed} is the newest version that the package sources of this machine have",
            installed=versions.installed,
        )
    running = len(core.active_runs.loaded)
    return Text.of(
        "microdcs-edge {candidate} replaces {installed}; {running} jobs run here: "
        "switch the maintenance mode on, then apt upgrade",
        candidate=versions.candidate,
        installed=versions.installed,
        running=running,
    )
