"""Reads, schedules and prints operations."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from edge.access.audit_trail import plan_append
from edge.access.operations import listed, next_at, schedule_operation
from edge.cli.terminal.audit import authorize_command, record_of
from edge.cli.terminal.fitted_table import local_time, plain_table, utc_time
from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.record import copy_to_journal
from edge.cli.terminal.store_access import StoreAccess, open_access, open_console, print_json, usage_failure
from edge.foundation.errors import Refused
from edge.model.operation import Operation, OperationState, OperationType
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
