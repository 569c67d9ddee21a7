"""Defines `edge operations list`, `show`, `watch`, `schedule`, `repeat` and `cancel`."""

import asyncio
from pathlib import Path

import click

from edge.access.operations import Cancel, change_operation
from edge.cli.operations.view import (
    print_operation,
    print_operations,
    read_operation,
    read_operations,
    repeat_operation,
    schedule_at,
    watch_operation,
)
from edge.cli.terminal.audit import recorded
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.operator import operator_name
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import json_option, open_access, print_json, settings_option, usage_failure

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
