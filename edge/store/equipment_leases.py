"""The lease of the connection to equipment: one instance connects to it, the others pass their commands to that one.

It lasts as long as the lease of its instance. Commands that are passed on stay in the runs: the list may lose them when
the connection is lost, and the next one begins with the open commands of the runs.
"""

from collections.abc import Iterable
from typing import TypeVar

import msgspec
from msgspec import Struct

from edge.store import instance_leases
from edge.store.client import Store
from edge.store.commit import Commit, Committed, Guard, Holds
from edge.store.instance_leases import unchanged

_PASSED_FOR_S = 60
_T = TypeVar("_T", bound=Struct)


class LeaseHolder(Struct, frozen=True, array_like=True):
    """The instance that connects to equipment, and whether it is connected."""

    instance: str
    is_connected: bool = False


class LeaseView(Struct, frozen=True):
    """One reading of a lease: its text in the store, its holder, and whether the instance of that is at work.

    `instance_lease` is the value of the ended lease of an instance that is not.
    """

    text: str | None = None
    holder: LeaseHolder | None = None
    is_at_work: bool = False
    instance_lease: str | None = None


class EquipmentKeys(Struct, frozen=True):
    """The keys of the lease of equipment at a place, and of the commands that are passed to its holder."""

    lease: str
    passed: str


def keys_of(store: Store, scope: str, place: str) -> EquipmentKeys:
    """Return the keys of equipment at a place, for instances that share a scope."""
    return EquipmentKeys(store.keys.lease_equipment(scope, place), store.keys.passed_commands(scope, place))


async def load(store: Store, keys: EquipmentKeys) -> LeaseView:
    """Return the holder of a lease; none for a text that a foreign program or a later version wrote."""
    text: str | None = await store.execute("GET", keys.lease)
    try:
        holder = msgspec.json.decode(text, type=LeaseHolder) if text else None
    except msgspec.DecodeError:
        holder = None
    if holder is None:
        return LeaseView(text)
    ended = await instance_leases.read_ended(store, (holder.instance,))
    return LeaseView(text, holder, holder.instance not in ended, ended.get(holder.instance))


def text_of(holder: LeaseHolder) -> str:
    """Return a holder as the store has it."""
    return msgspec.json.encode(holder).decode()


async def take(store: Store, keys: EquipmentKeys, seen: LeaseView, after: LeaseHolder) -> bool:
    """Write the holder of a lease as it was seen; return False when another instance was faster, or works again."""
    guards = [unchanged(keys.lease, seen.text)]
    if seen.holder is not None and not seen.is_at_work:
        guards.append(unchanged(store.keys.lease_instance(seen.holder.instance), seen.instance_lease))
    return await _write(store, keys, guards, after)


async def update(store: Store, keys: EquipmentKeys, before: str, after: LeaseHolder) -> bool:
    """Write whether the holder of a lease is connected; return False when another instance has taken the lease.

    A holder that has just connected reads the open commands next: what was passed on before is dropped.
    """
    return await _write(store, keys, [Holds(keys.lease, before)], after)


async def _write(store: Store, keys: EquipmentKeys, guards: Iterable[Guard], after: LeaseHolder) -> bool:
    writes = (("SET", keys.lease, text_of(after)), ("DEL", keys.passed))
    return isinstance(await store.commit(Commit(tuple(guards), writes)), Committed)


async def release(store: Store, keys: EquipmentKeys, text: str) -> None:
    """Release a lease if it is still ours."""
    await store.commit(Commit((Holds(keys.lease, text),), (("DEL", keys.lease), ("DEL", keys.passed))))


async def pass_on(store: Store, keys: EquipmentKeys, holder: str, command: Struct) -> bool:
    """Pass a command to the holder of a lease; return False when that has changed meanwhile."""
    added = ("RPUSH", keys.passed, msgspec.json.encode(command).decode())
    commit = Commit((Holds(keys.lease, holder),), (added, ("EXPIRE", keys.passed, _PASSED_FOR_S)))
    return isinstance(await store.commit(commit), Committed)


async def next_passed(store: Store, keys: EquipmentKeys, wait_ms: int, form: type[_T]) -> _T | None:
    """Return the next command that was passed on; None when there is none in time, or it cannot be read."""
    reply = await store.wait("BLPOP", keys.passed, f"{wait_ms / 1000:.3f}")
    try:
        return msgspec.json.decode(reply[1], type=form) if reply else None
    except msgspec.DecodeError:
        return None
