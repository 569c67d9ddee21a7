"""Defines `edge locks list`, `hold` and `delete`."""

import asyncio
from pathlib import Path

import click

from edge.access.locks import hold_lock
from edge.cli.locks.view import delete_through, owner_name, print_locks, read_locks
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import json_option, open_access, settings_option
from edge.model.lock import LockKind

KINDS = ("equipment", "station", "job", "operation")

_rpc_option = click.option(
    "--rpc", metavar="URL", help="Ask this gateway over MessagePack-RPC, as in unix:///run/microdcs-edge/rpc.sock."
)
_kind = click.Choice(KINDS)


@click.group(cls=CommandGroup)
def locks() -> None:
    """Show who holds which lock, hold one, or delete those of dead owners.

    A lock of `equipment` is held by a job, of `station` while settings are applied, of a `job` during a manual
    intervention, of an `operation` while it runs. These commands work on the store of the settings, or with --rpc
    through a gateway. The exit status is 0 on success, 1 when the request is refused or the store is unavailable, and 2
    when settings or arguments are invalid.
    """


@locks.command("list", epilog="Example: edge locks list equipment job")
@click.argument("kinds", nargs=-1, type=_kind, metavar="[KIND]...")
@_rpc_option
@settings_option
@json_option
def list_(kinds: tuple[str, ...], rpc: str | None, settings_file: Path | None, *, as_json: bool) -> None:
    """Show locks with their owners, and those that wait for them in their order.

    KIND is equipment, station, job or operation; without it all are shown. The lease of a living owner is renewed; an
    expired lock goes to the next that waits.
    """
    print_locks(asyncio.run(read_locks(settings_file, rpc, kinds)), as_json=as_json)


@locks.command(epilog="Example: edge locks delete job --id AXLE-0001 --force")
@click.argument("kind", required=False, type=_kind, metavar="[KIND]")
@click.option("--id", "ids", multiple=True, help="The lock of this object; may be repeated. [default: all of the kind]")
@click.option("--force", is_flag=True, help="Also a lock whose owner lives: it continues, and claims the lock again.")
@_rpc_option
@settings_option
@json_option
def delete(
    kind: str | None, ids: tuple[str, ...], rpc: str | None, settings_file: Path | None, *, force: bool, as_json: bool
) -> None:
    """Delete locks: the next that waits holds them.

    Without KIND all locks are deleted, without --id all of the kind. Nothing is deleted while an owner of one of them
    lives, unless --force is given. The deletion is in the audit trail.
    """
    deleted = asyncio.run(delete_through(settings_file, rpc, kind, ids, force=force))
    print_locks(deleted, as_json=as_json, done="deleted")


@locks.command(
    epilog="Example: edge locks hold job AXLE-0001 --reason 'tool is inspected' -- sleep 600",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("kind", type=_kind, metavar="KIND")
@click.argument("object_id", metavar="ID")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--reason", required=True, help="Why it is held; others see it.")
@click.option("--wait", "wait_s", type=click.FloatRange(0), default=0.0, help="Wait at most so many seconds for it.")
@settings_option
def hold(
    kind: str, object_id: str, command: tuple[str, ...], reason: str, wait_s: float, settings_file: Path | None
) -> None:
    """Run a command while this process owns a lock, as flock(1) does for files.

    KIND is equipment, station, job or operation, ID the object. The exit status is that of the command. When this
    command is killed, its lock expires within ten seconds.
    """

    async def run() -> int:
        async with (
            open_access(settings_file) as at,
            hold_lock(at.store, LockKind(kind), object_id, owner_name(), reason, wait_s=wait_s),
        ):
            try:
                process = await asyncio.create_subprocess_exec(*command)
            except OSError as error:
                print_text(f"edge: {command[0]}: {error.strerror}", err=True)
                return 127
            return await process.wait()

    raise SystemExit(asyncio.run(run()))
