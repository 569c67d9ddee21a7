"""Reads and deletes locks at the store or through a gateway, and prints them."""

import os
import socket
from collections.abc import Sequence
from pathlib import Path

import msgspec

from edge.access.audit_trail import plan_append
from edge.access.locks import delete_locks, find_locks
from edge.app.sections import declared_sections
from edge.cli.terminal.audit import authorize_command, record_as, record_of
from edge.cli.terminal.fitted_table import local_time, plain_table
from edge.cli.terminal.operator import operator_name
from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.record import copy_to_journal
from edge.cli.terminal.store_access import (
    SOURCE,
    StoreAccess,
    log_to_stderr,
    open_access,
    open_console,
    print_json,
)
from edge.config import load_settings
from edge.foundation.errors import Refused
from edge.links.rpc import open_client
from edge.model.cloudevent import CloudEvent, new_id
from edge.model.event_types import LOCKS_METHOD_TYPE
from edge.model.instant import milliseconds
from edge.model.lock import LockKind
from edge.model.lock_message import LockCall, LockInfo, LockOwner, LocksAnswer, lock_info
from edge.store.commit import Commit
from edge.store.locks import StoredLock
from edge.store.server_time import server_time


def owner_name() -> str:
    """Return the name of this process as the owner of a lock."""
    return f"{operator_name()} ({socket.gethostname()}:{os.getpid()})"


async def read_locks(settings_file: Path | None, rpc: str | None, kinds: Sequence[str]) -> tuple[LockInfo, ...]:
    """Return the locks of these kinds; of every kind when `kinds` is empty."""
    wanted = [LockKind(kind) for kind in kinds] or list(LockKind)
    if rpc:
        found = await _ask(rpc, "List", LockCall())
        return tuple(info for info in found if info.kind in wanted)
    async with open_access(settings_file) as at:
        return await _infos(at, await find_locks(at.store, wanted, ()))


async def delete_through(
    settings_file: Path | None, rpc: str | None, kind: str | None, ids: Sequence[str], *, force: bool
) -> tuple[LockInfo, ...]:
    """Delete locks and return them as they were. Raises Refused while an owner lives, unless forced."""
    chosen = LockKind(kind) if kind else None
    if rpc:
        by = await _authorized(settings_file, "locks delete", " ".join((kind or "", *ids)).strip() or "-")
        call = LockCall(kind=chosen, ids=tuple(ids), force=force, by=by)
        return await _ask(rpc, "Delete", call)
    async with open_access(settings_file) as at:
        found = await find_locks(at.store, (chosen,) if chosen else tuple(LockKind), ids)
        infos = await _infos(at, found)
        action = "locks delete --force" if force else "locks delete"
        subject = ", ".join(f"{stored_lock.kind} {stored_lock.object_id}" for stored_lock in found) or "-"
        user = await authorize_command(at, action, subject)
        record = record_of(at, user, action, subject, "Good")

        async def audit(_: Sequence[StoredLock]) -> Commit:
            return await plan_append(at.store, [record], at.settings.retention.audit)

        try:
            await delete_locks(at.store, found, audit, force=force)
        except Refused as refusal:
            await record_as(at, user, action, subject, refusal.message)
            raise
        copy_to_journal(record)
        return infos


async def _authorized(settings_file: Path | None, action: str, subject: str) -> str:
    """Return who runs a command through a gateway; the store is used only where the settings require a login."""
    if load_settings(settings_file, os.environ, declared_sections()).users.cli == "open":
        return operator_name()
    async with open_access(settings_file) as at:
        return await authorize_command(at, action, subject)


def print_locks(infos: Sequence[LockInfo], *, as_json: bool, done: str = "") -> None:
    """Print locks as a table, or what was done to them."""
    if as_json:
        print_json(infos)
    elif done:
        print_text("\n".join(f"{info.kind} {info.id}: {done}" for info in infos) or f"no lock {done}")
    else:
        table = plain_table("kind", "id", "owner", "reason", "since", "lease", "waiting")
        for item in infos:
            table.add_row(item.kind, *map(printable, (item.id, *_cells(item.holder), len(item.waiters) or "")))
            for waiter in item.waiters:
                table.add_row("", "", *map(printable, _cells(waiter)), "waits")
        open_console().print(table)


def _cells(owner: LockOwner) -> tuple[str, str, str, str]:
    since = local_time(milliseconds(owner.since))
    return owner.owner, owner.reason, since, ("held" if owner.until is None else "alive") if owner.alive else "expired"


async def _infos(at: StoreAccess, found: Sequence[StoredLock]) -> tuple[LockInfo, ...]:
    now = await server_time(at.store)
    return tuple(
        lock_info(stored_lock.kind, stored_lock.object_id, stored_lock.lock, now)
        for stored_lock in found
        if stored_lock.lock
    )


async def _ask(url: str, method: str, call: LockCall) -> tuple[LockInfo, ...]:
    """Call a method of a gateway over MessagePack-RPC. Raises Refused and Unavailable."""
    log_to_stderr()
    data = msgspec.to_builtins(call)
    event = CloudEvent(id=new_id(), source=SOURCE, type=LOCKS_METHOD_TYPE.format(method), data=data)
    async with open_client(url) as client:
        answer = await client.publish(event)
    if answer.mdcserrorkind:
        raise Refused(answer.mdcserrorkind, answer.mdcserrormessage or "the gateway refuses the call")
    return msgspec.convert(answer.data, LocksAnswer).locks
