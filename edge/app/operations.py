"""Executes the operations of a gateway, ends the mode of an upgrade, and connects maintenance and locks with calls."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

from edge.access.mode import SwitchOff, switch_mode
from edge.access.operations import OperationRunner, Report
from edge.app.parts import GatewayParts
from edge.config import Settings
from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.model.audit import AuditRecord
from edge.model.job_state import JobState
from edge.model.plant import UPGRADE, Operation
from edge.northbound.gateway_calls import LockCalls, MaintenanceCalls
from edge.northbound.reply import Handler
from edge.store import mode

ARCHIVE = ".tar.gz"
STAGE = 20.0
ALMOST = 95.0


async def run_operations(core: GatewayParts) -> None:
    """Execute due operations while this instance holds its lease."""
    executors = {type_: execute for opened in core.opened for type_, execute in opened.operations.items()}
    runner = OperationRunner(
        core.store,
        core.store.consumer,
        executors,
        _local_time,
        accepts=partial(accepts, core.settings),
    )
    await core.instance.lease_held.run_while_open(runner.run, "operations")


def accepts(settings: Settings, operation: Operation) -> bool:
    """Return whether an operation is for this gateway: a recording is for one that has the equipment."""
    gateway, equipment = operation.arguments.get("gateway", ""), operation.arguments.get("equipment", "")
    return gateway in {"", settings.gateway.name} and (not equipment or equipment in settings.southbound)


def stages(report: Report) -> Callable[[Text], None]:
    """Return a function that reports each line as the next stage, a fifth of the work, until the work has ended."""
    done = 0.0

    def next_stage(line: Text) -> None:
        nonlocal done
        done = min(ALMOST, done + STAGE)
        report(done, line)

    return next_stage


def remove_old_files(directory: Path, prefix: str, kept: int, suffix: str = ARCHIVE) -> None:
    """Remove all but the newest files of a type; their names sort by time."""
    for old in sorted(directory.glob(f"{prefix}-*{suffix}"))[:-kept]:
        old.unlink(missing_ok=True)


def prefix_of(core: GatewayParts, operation: Operation) -> str:
    """Return the beginning of the names of the files that an operation of this type writes."""
    return f"{core.settings.gateway.name}-{operation.type.value}"


def new_file(core: GatewayParts, operation: Operation, suffix: str = ARCHIVE) -> Path:
    """Return the path of the file that an operation writes. Raises Unavailable when its folder cannot be created."""
    directory = Path(core.settings.operations.directory)
    try:
        directory.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as error:
        advice = "Set [operations] directory to a folder that the service may write."
        raise Unavailable(
            Text.of("{directory} cannot be created: {reason}", directory=directory, reason=error.strerror), advice
        ) from error
    return directory / f"{prefix_of(core, operation)}-{_local_time():%Y%m%d-%H%M%S}-{operation.id[:4]}{suffix}"


def _local_time() -> datetime:
    return datetime.now().astimezone()


async def end_upgrade(core: GatewayParts) -> None:
    """Switch off the mode that an upgrade of the package switched on for this gateway. Raises Unavailable."""
    name = core.trail.instance
    own = (await mode.load(core.store, name)).gateway
    if own is None or own.by != UPGRADE:
        return
    record = AuditRecord(
        at=core.trail.clock(),
        kind="cli.call",
        instance=name,
        user=UPGRADE,
        action="maintenance off",
        subject=name,
        status="Good",
    )
    await switch_mode(core.store, name, SwitchOff(), record, core.trail.clock, core.trail.keep)
    core.trail.copy(record)
    await core.mode.refresh()


def operation_calls(core: GatewayParts) -> Mapping[str, Handler]:
    """Return the calls of operations that the MES and sidecars may make, by their type."""
    return {**_maintenance_calls(core).table, **LockCalls(core.store, core.trail).table}


def _maintenance_calls(core: GatewayParts) -> MaintenanceCalls:
    def running() -> int:
        return sum(loaded_job.job.status.state is JobState.RUNNING for loaded_job in core.active_runs.loaded.values())

    dedupe_ms = core.settings.retention.dedupe * 1000
    return MaintenanceCalls(core.store, core.trail, core.mode.refresh, running, dedupe_ms)
