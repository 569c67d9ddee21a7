"""Executes the operations of a gateway: files in its folder, imports of its files, recordings, checks for upgrades."""

import asyncio
import os
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from edge.access.operations import Executor, OperationRunner, Report
from edge.app.parts import GatewayParts
from edge.config import Settings, main_file
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.instant import now_ms
from edge.model.audit import AuditRecord
from edge.model.operation import Operation, OperationType
from edge.store.scopes import load_scopes

if TYPE_CHECKING:
    from edge.features.station_files.objects import ObjectDifference

ARCHIVE = ".tar.gz"
RECORDING = ".jsonl"
LONGEST_RECORDING_S = 86_400
_USUAL_RECORDING_S = 60
_STAGE = 20.0
_ALMOST = 95.0


async def run_operations(core: GatewayParts, main: Path | None) -> None:
    """Execute due operations while this instance holds its lease; `main` is its settings file."""
    runner = OperationRunner(
        core.store,
        core.store.consumer,
        executors(core, main),
        _local_time,
        accepts=partial(accepts, core.settings),
    )
    await core.instance.lease_held.run_while_open(runner.run, "operations")


def accepts(settings: Settings, operation: Operation) -> bool:
    """Return whether an operation is for this gateway: a recording is for one that has the equipment."""
    gateway, equipment = operation.arguments.get("gateway", ""), operation.arguments.get("equipment", "")
    return gateway in {"", settings.gateway.name} and (not equipment or equipment in settings.southbound)


def executors(core: GatewayParts, main: Path | None) -> Mapping[OperationType, Executor]:
    """Return what this gateway executes."""
    return {
        OperationType.BACKUP: partial(_back_up, core, main),
        OperationType.SUPPORT_BUNDLE: partial(_gather, core, main),
        OperationType.EXPORT: partial(_export, core),
        OperationType.IMPORT: partial(_import, core),
        OperationType.RECORD: partial(_record, core, main),
        OperationType.UPGRADE_CHECK: partial(_check_upgrade, core),
    }


def stages(report: Report) -> Callable[[str], None]:
    """Return a function that reports each line as the next stage, a fifth of the work, until the work has ended."""
    done = 0.0

    def next_stage(line: str) -> None:
        nonlocal done
        done = min(_ALMOST, done + _STAGE)
        report(done, line)

    return next_stage


def remove_old_files(directory: Path, prefix: str, kept: int, suffix: str = ARCHIVE) -> None:
    """Remove all but the newest files of a type; their names sort by time."""
    for old in sorted(directory.glob(f"{prefix}-*{suffix}"))[:-kept]:
        old.unlink(missing_ok=True)


async def _back_up(core: GatewayParts, main: Path | None, operation: Operation, report: Report) -> str:
    # Imported only where an operation runs.
    from edge.features.admin.backup import Part, back_up  # noqa: PLC0415

    file = _new_file(core, operation)
    parts = {Part.STORE, Part.KEYS} if operation.arguments.get("with_key") else {Part.STORE}
    await back_up(file, main, os.environ, parts, now_ms(), stages(report))
    remove_old_files(file.parent, _prefix(core, operation), core.settings.operations.kept_files)
    return str(file)


async def _gather(core: GatewayParts, main: Path | None, operation: Operation, report: Report) -> str:
    # Imported only where an operation runs.
    from edge.features.admin.support import gather  # noqa: PLC0415

    file = _new_file(core, operation)
    await gather(file, main, os.environ, "-2d", now_ms(), stages(report), with_jobs=False)
    remove_old_files(file.parent, _prefix(core, operation), core.settings.operations.kept_files)
    return str(file)


async def _export(core: GatewayParts, operation: Operation, report: Report) -> str:
    """Write the station of the store as station files; return the file."""
    # Imported only where an operation runs.
    from edge.features.station_files.export import write_archive  # noqa: PLC0415
    from edge.features.station_files.stored import load_objects  # noqa: PLC0415

    file = _new_file(core, operation)
    objects = await load_objects(core.store, {*core.scopes, *await load_scopes(core.store)})
    report(_STAGE, f"{len(objects)} objects read")
    await asyncio.to_thread(write_archive, file, objects)
    remove_old_files(file.parent, _prefix(core, operation), core.settings.operations.kept_files)
    return str(file)


async def _import(core: GatewayParts, operation: Operation, report: Report) -> str:
    """Apply the station files of this gateway to the store; return how many objects were changed."""
    # Imported only where an operation runs.
    from edge.features.station_files.apply import apply_files, read_files  # noqa: PLC0415
    from edge.features.station_files.objects import audit_action, audit_subject  # noqa: PLC0415

    if not core.settings.station.files:
        raise Refused("station", "[station] files is empty", "Name the folder of the station files.")
    read = await read_files(Path(core.settings.station.files), core.settings.flows.nodes)
    changed = 0

    async def record(each: "ObjectDifference") -> None:
        nonlocal changed
        changed += 1
        report(min(_ALMOST, float(changed)), str(each.subject))
        core.trail.record(
            AuditRecord(
                at=now_ms(),
                kind="cli.call",
                instance=core.settings.gateway.name,
                user=operation.by,
                action=audit_action(each),
                subject=audit_subject(each),
                status="Good",
                comment=each.file,
            )
        )

    delete = "delete" in operation.arguments
    await apply_files(core.store, core.instance.token, core.scopes, read, now_ms, record, delete=delete)
    return f"{changed} object{'' if changed == 1 else 's'} changed"


async def _record(core: GatewayParts, main: Path | None, operation: Operation, report: Report) -> str:
    """Record the messages of equipment for some seconds; return the file."""
    # Imported only where an operation runs.
    from edge.app.redaction import secrets_of  # noqa: PLC0415
    from edge.features.admin.recording import recording  # noqa: PLC0415

    name, settings = operation.arguments.get("equipment", ""), core.settings
    text = operation.arguments.get("seconds", str(_USUAL_RECORDING_S))
    seconds = int(text) if text.isdecimal() and text.isascii() and len(text) <= len(str(LONGEST_RECORDING_S)) else 0
    if not 0 < seconds <= LONGEST_RECORDING_S:
        raise Refused("record", f"{text!r} is no number of seconds up to {LONGEST_RECORDING_S}", "Use --seconds 60.")
    file, lines = _new_file(core, operation, RECORDING), 0

    def count(_: object) -> None:
        nonlocal lines
        lines += 1

    secrets = secrets_of(settings, main_file(main, os.environ), os.environ)
    most = settings.operations.recording_mib * 1024 * 1024
    try:
        async with recording(name, settings, secrets, file, count, most_bytes=most) as source:
            for second in range(seconds):
                report(100.0 * second / seconds, f"{source}: {lines} lines")
                await asyncio.sleep(1)
    finally:  # one that ended early has a file, too
        remove_old_files(file.parent, _prefix(core, operation), settings.operations.kept_files, RECORDING)
    return f"{file}: {lines} lines; review the file before you pass it on"


async def _check_upgrade(core: GatewayParts, _operation: Operation, report: Report) -> str:
    """Return whether the package sources of this machine have a newer version, and what an upgrade would interrupt."""
    # Imported only where an operation runs.
    from edge.features.admin.upgrade_check import find_versions  # noqa: PLC0415

    report(_STAGE, "reading the package sources")
    versions = await find_versions()
    if not versions.is_newer:
        return f"microdcs-edge {versions.installed} is the newest version that the package sources of this machine have"
    running = len(core.active_runs.loaded)
    return (
        f"microdcs-edge {versions.candidate} replaces {versions.installed}; {running} jobs run here: "
        "switch the maintenance mode on, then apt upgrade"
    )


def _prefix(core: GatewayParts, operation: Operation) -> str:
    return f"{core.settings.gateway.name}-{operation.type.value}"


def _new_file(core: GatewayParts, operation: Operation, suffix: str = ARCHIVE) -> Path:
    directory = Path(core.settings.operations.directory)
    try:
        directory.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as error:
        advice = "Set [operations] directory to a folder that the service may write."
        raise Unavailable(f"{directory} cannot be created: {error.strerror}", advice) from error
    return directory / f"{_prefix(core, operation)}-{_local_time():%Y%m%d-%H%M%S}-{operation.id[:4]}{suffix}"


def _local_time() -> datetime:
    return datetime.now().astimezone()
