"""Executes the operations of a gateway: backups and support bundles, in files of its folder."""

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

from edge.app.parts import GatewayParts
from edge.errors import Unavailable
from edge.instant import now_ms
from edge.model.operation import Operation, OperationType
from edge.ops.operations import Executor, OperationRunner, Report

_STAGE = 20.0
_ALMOST = 95.0


async def run_operations(core: GatewayParts, main: Path | None) -> None:
    """Execute due operations while this instance holds its lease; `main` is its settings file."""
    runner = OperationRunner(core.store, core.store.consumer, executors(core, main), _local_time)
    await core.instance.lease_held.run_while_open(runner.run, "operations")


def executors(core: GatewayParts, main: Path | None) -> Mapping[OperationType, Executor]:
    """Return what this gateway executes."""
    return {
        OperationType.BACKUP: partial(_back_up, core, main),
        OperationType.SUPPORT_BUNDLE: partial(_gather, core, main),
    }


def stages(report: Report) -> Callable[[str], None]:
    """Return a function that reports each line as the next stage, a fifth of the work, until the work has ended."""
    done = 0.0

    def next_stage(line: str) -> None:
        nonlocal done
        done = min(_ALMOST, done + _STAGE)
        report(done, line)

    return next_stage


def remove_old_files(directory: Path, prefix: str, kept: int) -> None:
    """Remove all but the newest files of a type; their names sort by time."""
    for old in sorted(directory.glob(f"{prefix}-*.tar.gz"))[:-kept]:
        old.unlink(missing_ok=True)


async def _back_up(core: GatewayParts, main: Path | None, operation: Operation, report: Report) -> str:
    # Imported only where an operation runs.
    from edge.maintenance.backup import Part, back_up  # noqa: PLC0415

    file = _new_file(core, operation)
    parts = {Part.STORE, Part.KEYS} if operation.arguments.get("with_key") else {Part.STORE}
    await back_up(file, main, os.environ, parts, now_ms(), stages(report))
    remove_old_files(file.parent, _prefix(core, operation), core.settings.operations.kept_files)
    return str(file)


async def _gather(core: GatewayParts, main: Path | None, operation: Operation, report: Report) -> str:
    # Imported only where an operation runs.
    from edge.maintenance.support import gather  # noqa: PLC0415

    file = _new_file(core, operation)
    await gather(file, main, os.environ, "-2d", now_ms(), stages(report), with_jobs=False)
    remove_old_files(file.parent, _prefix(core, operation), core.settings.operations.kept_files)
    return str(file)


def _prefix(core: GatewayParts, operation: Operation) -> str:
    return f"{core.settings.gateway.name}-{operation.type.value}"


def _new_file(core: GatewayParts, operation: Operation) -> Path:
    directory = Path(core.settings.operations.directory)
    try:
        directory.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as error:
        advice = "Set [operations] directory to a folder that the service may write."
        raise Unavailable(f"{directory} cannot be created: {error.strerror}", advice) from error
    return directory / f"{_prefix(core, operation)}-{_local_time():%Y%m%d-%H%M%S}-{operation.id[:4]}.tar.gz"


def _local_time() -> datetime:
    return datetime.now().astimezone()
