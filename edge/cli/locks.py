"""`edge locks`: shows who holds what, holds a lock for a command, and deletes locks of dead owners.

Locks are read and deleted at the store, or through a gateway.
"""

import asyncio
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import click
import msgspec

from edge.access.audit_trail import plan_append
from edge.access.locks import delete_locks, find_locks, hold_lock
from edge.app.features import gateway_settings
from edge.cli.terminal.command_group import CommandGroup, Word
from edge.cli.terminal.operator import authorize_command, copy_to_journal, operator_name, record_as, record_of
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import (
    SOURCE,
    CommandOutput,
    StoreAccess,
    json_option,
    log_to_stderr,
    run_on_store,
    settings_option,
)
from edge.cli.terminal.table import FittedTable, local_time, plain_table, wide_option
from edge.foundation.errors import Refused
from edge.links.rpc import open_client
from edge.links.rpc_transport import connect
from edge.model.cloudevent import CloudEvent, new_id
from edge.model.event_types import LOCKS_METHOD_TYPE
from edge.model.instant import milliseconds
from edge.model.lock import LockCall, LockInfo, LockKind, LockOwner, LocksAnswer, lock_info, public_lock
from edge.store.commit import Commit
from edge.store.locks import StoredLock
from edge.store.server_time import server_time


def owner_name() -> str:
    """Return the name of this process as the owner of a lock."""
    return f"{operator_name()} ({socket.gethostname()}:{os.getpid()})"


async def _delete(at: StoreAccess, chosen: LockKind | None, ids: Sequence[str], *, force: bool) -> tuple[LockInfo, ...]:
    """Delete locks and return them as they were. Raises Refused while an owner lives, unless forced."""
    stored_locks = await find_locks(at.store, (chosen,) if chosen else tuple(LockKind), ids)
    infos = await _infos(at, stored_locks)
    action = "locks delete --force" if force else "locks delete"
    subject = ", ".join(f"{stored_lock.kind} {stored_lock.object_id}" for stored_lock in stored_locks) or "-"
    user = await authorize_command(at, action, subject)
    record = record_of(at, user, action, subject, "Good")

    async def audit(_: Sequence[StoredLock]) -> Commit:
        return await plan_append(at.store, [record], at.settings.retention.audit)

    try:
        await delete_locks(at.store, stored_locks, audit, force=force)
    except Refused as refusal:
        await record_as(at, user, action, subject, refusal.message)
        raise
    copy_to_journal(record)
    return infos


def _authorized(settings_file: Path | None, action: str, subject: str) -> str:
    """Return who runs a command through a gateway; the store is used only where the settings require a login."""
    if gateway_settings(settings_file).users.cli == "open":
        return operator_name()
    return run_on_store(settings_file, lambda at: authorize_command(at, action, subject))


def _table(infos: Sequence[LockInfo]) -> FittedTable:
    rows: list[tuple[object, ...]] = []
    for info in infos:
        rows.append((info.kind, info.id, *_cells(info.holder), len(info.waiters) or ""))
        rows += (("", "", *_cells(waiter), "waits") for waiter in info.waiters)
    return plain_table("kind", "id", "owner", "reason", "since", "lease", "waiting", rows=rows, empty="no locks")


def _cells(owner: LockOwner) -> tuple[str, str, str, str]:
    since = local_time(milliseconds(owner.since))
    return owner.owner, owner.reason, since, ("held" if owner.until is None else "alive") if owner.alive else "expired"


async def _infos(at: StoreAccess, stored_locks: Sequence[StoredLock]) -> tuple[LockInfo, ...]:
    now = await server_time(at.store)
    return tuple(
        lock_info(stored_lock.kind, stored_lock.object_id, stored_lock.lock, now)
        for stored_lock in stored_locks
        if stored_lock.lock
    )


def _ask(url: str, method: str, call: LockCall) -> tuple[LockInfo, ...]:
    """Call a method of a gateway over MessagePack-RPC. Raises Refused and Unavailable."""
    log_to_stderr()
    data = msgspec.to_builtins(call)
    event = CloudEvent(id=new_id(), source=SOURCE, type=LOCKS_METHOD_TYPE.format(method), data=data)

    async def publish() -> CloudEvent:
        # Why it cannot be reached is said at once: a client waits for a gateway that is away.
        _, writer = await connect(url)
        writer.close()
        async with open_client(url) as client:
            return await client.publish(event)

    answer = asyncio.run(publish())
    if answer.mdcserrorkind:
        raise Refused(answer.mdcserrorkind, answer.mdcserrormessage or "the gateway refuses the call")
    return msgspec.convert(answer.data, LocksAnswer).locks


KINDS = ("equipment", "station", "job", "operation")


def _rpc_url(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is not None and urlsplit(value).scheme not in {"unix", "tcp", "tls"}:
        raise click.BadParameter("an address of MessagePack-RPC begins with unix:, tcp: or tls:")
    return value


_rpc_option = click.option(
    "--rpc",
    metavar="URL",
    callback=_rpc_url,
    help="Ask this gateway over MessagePack-RPC, as in unix:///run/microdcs-edge/rpc.sock.",
)
_kind = Word(KINDS)


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
@wide_option
@_rpc_option
@settings_option
@json_option
def list_(kinds: tuple[str, ...], rpc: str | None, settings_file: Path | None, *, as_json: bool) -> None:
    """Show locks with their owners, and those that wait for them in their order.

    KIND is equipment, station, job or operation; without it all are shown. The lease of a living owner is renewed; an
    expired lock goes to the next that waits.
    """
    lock_kinds = [LockKind(kind) for kind in kinds] or list(LockKind)

    async def read(at: StoreAccess) -> tuple[LockInfo, ...]:
        return await _infos(at, await find_locks(at.store, lock_kinds, ()))

    if rpc:
        infos = tuple(info for info in _ask(rpc, "List", LockCall()) if info.kind in lock_kinds)
    else:
        infos = run_on_store(settings_file, read)
    CommandOutput(tuple(map(public_lock, infos)), _table(infos)).print(as_json=as_json)


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

    KIND is equipment, station, job or operation. Without it all locks are deleted, without --id all of the kind.
    Nothing is deleted while an owner of one of them lives, unless --force is given. The deletion is in the audit trail.
    """
    chosen = LockKind(kind) if kind else None
    if rpc:
        by = _authorized(settings_file, "locks delete", " ".join((kind or "", *ids)).strip() or "-")
        deleted = _ask(rpc, "Delete", LockCall(kind=chosen, ids=ids, force=force, by=by))
    else:
        deleted = run_on_store(settings_file, lambda at: _delete(at, chosen, ids, force=force))
    text = "\n".join(f"{info.kind} {info.id}: deleted" for info in deleted) or "no lock deleted"
    CommandOutput(tuple(map(public_lock, deleted)), text).print(as_json=as_json)


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

    async def run(at: StoreAccess) -> int:
        async with hold_lock(at.store, LockKind(kind), object_id, owner_name(), reason, wait_s=wait_s):
            try:
                process = await asyncio.create_subprocess_exec(*command)
            except OSError as error:
                print_text(f"edge: {command[0]}: {error.strerror}", err=True)
                return 127
            return await process.wait()

    raise SystemExit(run_on_store(settings_file, run))
