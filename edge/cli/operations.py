"""`edge operations`: schedules, shows, watches and cancels work that takes longer than a second and is not a job."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import click
from msgspec import structs
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from edge.access.audit_trail import plan_append
from edge.access.operations import Cancel, change_operation, listed, next_at, schedule_operation
from edge.cli.terminal.command_group import CommandGroup, Word
from edge.cli.terminal.operator import authorize_command, copy_to_journal, operator_name, record_of, recorded
from edge.cli.terminal.output import printable, usage_failure
from edge.cli.terminal.store_access import (
    CommandOutput,
    StoreAccess,
    json_option,
    run_on_store,
    settings_option,
    store_action,
    store_command,
)
from edge.cli.terminal.table import local_time, open_console, plain_table, wide_option
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.plant import OperationState, OperationType, PublicOperation, public_operation
from edge.store import operations as stored
from edge.store.commit import Commit
from edge.store.operations import StoredOperation
from edge.store.server_time import server_time

_LOOK_EVERY_S = 0.2
_FAILED = frozenset({OperationState.FAILED, OperationState.CANCELLED})


def _due(time_of_day: str | None) -> int:
    """Return the next instant of a time of day in milliseconds since the epoch; 0, for now, without one."""
    if time_of_day is None:
        return 0
    try:
        return round(next_at(time_of_day, datetime.now().astimezone()).timestamp() * 1000)
    except ValueError:
        usage_failure(f"--at {time_of_day!r} is not a time of day: expected HH:MM, as in 02:00")


async def watch_operation(at: StoreAccess, id: str) -> CommandOutput:
    """Show the progress of an operation until its end."""
    console = open_console()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    stored_operation = await _read(at, id)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(stored_operation.operation.type.value, total=100.0)
        while True:
            text = stored_operation.operation.text or stored_operation.operation.state.value
            bar.update(task, completed=stored_operation.progress, description=printable(text))
            if stored_operation.operation.has_ended:
                break
            await asyncio.sleep(_LOOK_EVERY_S)
            stored_operation = await _read(at, id)
    return CommandOutput(
        _public(stored_operation), _text(stored_operation), is_failed=stored_operation.operation.state in _FAILED
    )


def _cells(shown: StoredOperation) -> tuple[object, ...]:
    operation = shown.operation
    is_daily = operation.daily and not operation.has_ended
    state = f"{operation.state} ({operation.daily} daily)" if is_daily else operation.state
    due = local_time(operation.due) if operation.due else local_time(operation.created)
    progress = f"{shown.progress:.0f} %" if operation.started else ""
    result = operation.result or operation.error
    return (operation.id, operation.type, state, progress, due, operation.owner, result)


def _text(shown: StoredOperation) -> str:
    operation = shown.operation
    lines = [f"{operation.id}: {operation.type} {operation.state}, {shown.progress:.0f} %"]
    values = {"by": operation.by, "owner": operation.owner, "result": operation.result, "error": operation.error}
    return "\n".join((*lines, *(f"  {name}: {printable(str(value))}" for name, value in values.items() if value)))


async def _schedule(
    at: StoreAccess, type: OperationType, due: int, arguments: Mapping[str, str], daily: str
) -> CommandOutput:
    user = await authorize_command(at, "operations schedule", type)
    record = record_of(at, user, "operations schedule", type, "Good", daily)

    async def audit() -> Commit:
        return await plan_append(at.store, [record], at.settings.retention.audit)

    scheduled = await schedule_operation(at.store, type, user, due, arguments, daily=daily, also=audit)
    copy_to_journal(record)
    return CommandOutput(public_operation(scheduled, 0.0), f"{scheduled.id}: {scheduled.type} scheduled")


async def _read(at: StoreAccess, id: str) -> StoredOperation:
    operation = await stored.load(at.store, id)
    if operation is None:
        raise Refused(
            "unknown_operation", Text.of("there is no operation {id!r}.", id=id), "List them: edge operations list"
        )
    return _as_listed(operation, await server_time(at.store))


def _as_listed(operation: StoredOperation, now: int) -> StoredOperation:
    return structs.replace(operation, operation=listed(operation, now))


def _public(shown: StoredOperation) -> PublicOperation:
    return public_operation(shown.operation, shown.progress)


TYPES = ("backup", "support-bundle", "export", "import", "record", "upgrade-check")


@click.group(cls=CommandGroup)
def operations() -> None:
    """Schedule, show, watch and cancel operations: backups, support bundles, exports, recordings.

    An operation is work that takes longer than a second and is not a job. A gateway executes them, one at a time on a
    store. An operation whose gateway dies fails as `interrupted`. The exit status is 0
    on success, 1 when the request is refused or the store is unavailable, and 2 when settings or arguments are invalid.
    """


@operations.command("list", epilog="Example: edge operations list")
@wide_option
@store_command
async def list_(at: StoreAccess) -> CommandOutput:
    """Show the operations, the newest first."""
    now = await server_time(at.store)
    stored_operations = [_as_listed(operation, now) for operation in await stored.load_all(at.store)]
    columns = ("id", "type", "state", "progress", "due", "owner", "result")
    return CommandOutput(
        [_public(operation) for operation in stored_operations],
        plain_table(*columns, rows=map(_cells, stored_operations), empty="no operations"),
    )


@operations.command(epilog="Example: edge operations show 3f2a9c1d8b70")
@click.argument("id")
@store_command
async def show(at: StoreAccess, id: str) -> CommandOutput:
    """Show one operation with its result or error."""
    stored_operation = await _read(at, id)
    return CommandOutput(_public(stored_operation), _text(stored_operation))


@operations.command(epilog="Example: edge operations watch 3f2a9c1d8b70")
@click.argument("id")
@settings_option
def watch(id: str, settings_file: Path | None) -> None:
    """Watch an operation to its end, with a progress bar in a terminal.

    The exit status is 1 when it fails or is cancelled.
    """
    run_on_store(settings_file, lambda at: watch_operation(at, id)).print(as_json=False)


@operations.command(epilog="Example: edge operations schedule backup --at 02:00 --daily")
@click.argument("type", type=Word(TYPES), metavar="TYPE")
@click.option("--at", metavar="HH:MM", help="Start at this time of this machine. [default: now]")
@click.option("--daily", is_flag=True, help="Start again every day at this time; needs --at.")
@click.option("--with-key", is_flag=True, help="backup: also private keys and the files of passwords/.")
@click.option("--delete", is_flag=True, help="import: also delete what is not in the station files.")
@click.option("--gateway", metavar="NAME", help="Only this gateway executes it. [default: the first that is free]")
@click.option("--equipment", metavar="NAME", help="record: the equipment; a gateway that has it records.")
@click.option("--seconds", type=click.IntRange(1, 86_400), metavar="N", help="record: how long. [default: 60]")
@settings_option
@json_option
def schedule(
    type: str,
    at: str | None,
    gateway: str | None,
    equipment: str | None,
    seconds: int | None,
    settings_file: Path | None,
    *,
    daily: bool,
    with_key: bool,
    delete: bool,
    as_json: bool,
) -> None:
    """Schedule an operation; a gateway on this store executes it when it is due.

    TYPE is backup, support-bundle, export, import, record or upgrade-check. The file is written to `[operations]
    directory` of that gateway, which keeps the newest `[operations] kept_files` of each type; an export has the station
    files of the store. An import applies the station files of that gateway, as `edge station apply`; record writes the
    messages of equipment, as `edge record`; upgrade-check reports whether the package sources of that gateway have a
    newer version.
    """
    if daily and at is None:
        usage_failure("--daily needs --at")
    if (type == "record") != (equipment is not None):
        usage_failure("record needs --equipment, and only record takes it")
    arguments = {name: "yes" for name, given in (("with_key", with_key), ("delete", delete)) if given}
    texts = (("gateway", gateway), ("equipment", equipment), ("seconds", seconds))
    arguments |= {name: str(given) for name, given in texts if given is not None}
    due, every = _due(at), at or "" if daily else ""
    run_on_store(settings_file, lambda access: _schedule(access, OperationType(type), due, arguments, every)).print(
        as_json=as_json
    )


@operations.command(epilog="Example: edge operations repeat 3f2a9c1d8b70")
@click.argument("id")
@store_command
async def repeat(at: StoreAccess, id: str) -> CommandOutput:
    """Schedule an ended operation again, now: for one that failed or was interrupted."""
    operation = (await _read(at, id)).operation
    if not operation.has_ended:
        raise Refused(
            "invalid_state",
            Text.of("operation {id} is {state}.", id=id, state=operation.state),
            "Only an ended one is repeated.",
        )
    return await _schedule(at, operation.type, 0, operation.arguments, "")


@operations.command(epilog="Example: edge operations cancel 3f2a9c1d8b70")
@click.argument("id")
@store_action
async def cancel(at: StoreAccess, id: str) -> str:
    """Cancel an operation: a scheduled one at once, a running one within a second.

    A daily operation is not scheduled again when it is cancelled before its start.
    """
    async with recorded(at, "operations cancel", id):
        state = (await change_operation(at.store, id, Cancel(operator_name()))).state
    return f"{id}: {'cancelled' if state is OperationState.CANCELLED else 'is being cancelled'}"
