"""`edge operations`: schedules, shows, watches and cancels work that takes longer than a second and is not a job."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import click
import msgspec
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from edge.access.audit_trail import plan_append
from edge.access.operations import Cancel, change_operation, listed, next_at, schedule_operation
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.operator import authorize_command, copy_to_journal, operator_name, record_of, recorded
from edge.cli.terminal.output import print_json, print_text, printable, usage_failure
from edge.cli.terminal.store_access import StoreAccess, json_option, open_access, settings_option
from edge.cli.terminal.table import local_time, open_console, plain_table, utc_time
from edge.foundation.errors import Refused
from edge.model.plant import Operation, OperationState, OperationType
from edge.store import operations as stored
from edge.store.commit import Commit
from edge.store.server_time import server_time

_LOOK_EVERY_S = 0.2
_FAILED = frozenset({OperationState.FAILED, OperationState.CANCELLED})


class ShownOperation(msgspec.Struct, frozen=True):
    """An operation with its progress from 0 to 100, as it is now."""

    operation: Operation
    progress: float


async def read_operations(settings_file: Path | None) -> list[ShownOperation]:
    """Return every operation, the newest first."""
    async with open_access(settings_file) as at:
        now = await server_time(at.store)
        return [
            ShownOperation(listed(stored_operation, now), stored_operation.progress)
            for stored_operation in await stored.load_all(at.store)
        ]


async def read_operation(settings_file: Path | None, id: str) -> ShownOperation:
    """Return one operation. Raises Refused when there is none."""
    async with open_access(settings_file) as at:
        return await _read(at, id)


async def schedule_at(
    settings_file: Path | None, type: str, time_of_day: str | None, arguments: Mapping[str, str], *, daily: bool
) -> Operation:
    """Schedule an operation at a time of day, without one now."""
    due = 0
    if time_of_day is not None:
        try:
            due = round(next_at(time_of_day, datetime.now().astimezone()).timestamp() * 1000)
        except ValueError:
            usage_failure(f"--at {time_of_day!r} is not a time of day: expected HH:MM, as in 02:00")
    async with open_access(settings_file) as at:
        return await _schedule(at, OperationType(type), due, arguments, time_of_day or "" if daily else "")


async def repeat_operation(settings_file: Path | None, id: str) -> Operation:
    """Schedule an ended operation again, now. Raises Refused for one that has not ended."""
    async with open_access(settings_file) as at:
        found = (await _read(at, id)).operation
        if not found.has_ended:
            raise Refused("invalid_state", f"operation {id} is {found.state}.", "Only an ended one is repeated.")
        return await _schedule(at, found.type, 0, found.arguments, "")


async def watch_operation(settings_file: Path | None, id: str) -> int:
    """Print the progress of an operation until its end; return the exit status."""
    console = open_console()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    async with open_access(settings_file) as at:
        shown = await _read(at, id)
        with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
            task = bar.add_task(shown.operation.type.value, total=100.0)
            while True:
                text = shown.operation.text or shown.operation.state.value
                bar.update(task, completed=shown.progress, description=printable(text))
                if shown.operation.has_ended:
                    break
                await asyncio.sleep(_LOOK_EVERY_S)
                shown = await _read(at, id)
    print_operation(shown, as_json=False)
    return int(shown.operation.state in _FAILED)


def print_operations(shown: Sequence[ShownOperation], *, as_json: bool) -> None:
    """Print operations as a table."""
    if as_json:
        print_json([_data(shown_operation) for shown_operation in shown])
        return
    table = plain_table("id", "type", "state", "progress", "due", "owner", "result")
    for operation in shown:
        found = operation.operation
        state = f"{found.state} ({found.daily} daily)" if found.daily and not found.has_ended else found.state
        due = local_time(found.due) if found.due else local_time(found.created)
        progress = f"{operation.progress:.0f} %" if found.started else ""
        cells = (found.id, found.type, state, progress, due, found.owner, found.result or found.error)
        table.add_row(*map(printable, cells))
    open_console().print(table)


def print_operation(shown: ShownOperation, *, as_json: bool) -> None:
    """Print one operation."""
    if as_json:
        print_json(_data(shown))
        return
    found = shown.operation
    print_text(f"{found.id}: {found.type} {found.state}, {shown.progress:.0f} %")
    for name, value in (("by", found.by), ("owner", found.owner), ("result", found.result), ("error", found.error)):
        if value:
            print_text(f"  {name}: {printable(value)}")


async def _schedule(
    at: StoreAccess, type: OperationType, due: int, arguments: Mapping[str, str], daily: str
) -> Operation:
    user = await authorize_command(at, "operations schedule", type)
    record = record_of(at, user, "operations schedule", type, "Good", daily)

    async def audit() -> Commit:
        return await plan_append(at.store, [record], at.settings.retention.audit)

    scheduled = await schedule_operation(at.store, type, user, due, arguments, daily=daily, also=audit)
    copy_to_journal(record)
    return scheduled


async def _read(at: StoreAccess, id: str) -> ShownOperation:
    found = await stored.load(at.store, id)
    if found is None:
        raise Refused("unknown_operation", f"there is no operation {id!r}.", "List them: edge operations list")
    return ShownOperation(listed(found, await server_time(at.store)), found.progress)


def _data(shown: ShownOperation) -> dict[str, object]:
    found: dict[str, object] = msgspec.to_builtins(shown.operation)
    at = {name: getattr(shown.operation, name) for name in ("due", "created", "started", "ended")}
    instants = {name: utc_time(instant) for name, instant in at.items() if instant}
    return found | instants | {"state": shown.operation.state.value, "progress": shown.progress}


TYPES = ("backup", "support-bundle", "export", "import", "record", "upgrade-check")


@click.group(cls=CommandGroup)
def operations() -> None:
    """Schedule, show, watch and cancel operations: backups, support bundles, exports, recordings.

    An operation is work that takes longer than a second and is not a job. A gateway executes them, one at a time on a
    store. An operation whose gateway dies fails as `interrupted`. The exit status is 0
    on success, 1 when the request is refused or the store is unavailable, and 2 when settings or arguments are invalid.
    """


@operations.command("list", epilog="Example: edge operations list")
@settings_option
@json_option
def list_(settings_file: Path | None, *, as_json: bool) -> None:
    """Show the operations, the newest first."""
    print_operations(asyncio.run(read_operations(settings_file)), as_json=as_json)


@operations.command(epilog="Example: edge operations show 3f2a9c1d8b70")
@click.argument("id")
@settings_option
@json_option
def show(id: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Show one operation with its result or error."""
    print_operation(asyncio.run(read_operation(settings_file, id)), as_json=as_json)


@operations.command(epilog="Example: edge operations watch 3f2a9c1d8b70")
@click.argument("id")
@settings_option
def watch(id: str, settings_file: Path | None) -> None:
    """Watch an operation to its end, with a progress bar in a terminal.

    The exit status is 1 when it fails or is cancelled.
    """
    raise SystemExit(asyncio.run(watch_operation(settings_file, id)))


@operations.command(epilog="Example: edge operations schedule backup --at 02:00 --daily")
@click.argument("type", type=click.Choice(TYPES), metavar="TYPE")
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
    scheduled = asyncio.run(schedule_at(settings_file, type, at, arguments, daily=daily))
    if as_json:
        print_json(scheduled)
    else:
        print_text(f"{scheduled.id}: {scheduled.type} scheduled")


@operations.command(epilog="Example: edge operations repeat 3f2a9c1d8b70")
@click.argument("id")
@settings_option
@json_option
def repeat(id: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Schedule an ended operation again, now: for one that failed or was interrupted."""
    scheduled = asyncio.run(repeat_operation(settings_file, id))
    if as_json:
        print_json(scheduled)
    else:
        print_text(f"{scheduled.id}: {scheduled.type} scheduled")


@operations.command(epilog="Example: edge operations cancel 3f2a9c1d8b70")
@click.argument("id")
@settings_option
def cancel(id: str, settings_file: Path | None) -> None:
    """Cancel an operation: a scheduled one at once, a running one within a second.

    A daily operation is not scheduled again when it is cancelled before its start.
    """

    async def apply() -> str:

        async with open_access(settings_file) as at, recorded(at, "operations cancel", id):
            return (await change_operation(at.store, id, Cancel(operator_name()))).state.value

    state = asyncio.run(apply())
    print_text(f"{id}: {'cancelled' if state == 'cancelled' else 'is being cancelled'}")
