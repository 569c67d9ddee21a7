"""Mirrored sets: a copy of the members that another system keeps, its state, and which instance reads it."""

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Final

from msgspec import Struct

from edge.sfc.signal import MirrorCopy
from edge.store import instance_leases
from edge.store.client import Store
from edge.store.commit import Absent, Commit, Guard, Holds, join, operation, spread
from edge.store.keys import Keys


class Freshness(StrEnum):
    """Whether the last read of the other system was good; a mirror without a state was not read since the start."""

    CURRENT = "current"
    STALE = "stale"


_FRESHNESS: Final = frozenset(item.value for item in Freshness)


class MirrorState(Struct, frozen=True):
    """The freshness of a copy, and since when it is as it is, in milliseconds since the epoch."""

    freshness: Freshness
    changed_at: int


class MirrorReader(Struct, frozen=True):
    """The instance that reads a mirror, None before the first one; `is_at_work`: its lease has not ended.

    `lease` is the value of its ended lease.
    """

    instance: str | None = None
    is_at_work: bool = False
    lease: str | None = None


async def load_reader(store: Store, name: str) -> MirrorReader:
    """Return the reader of a mirror; a process that looks for the first time sees it at work for four seconds."""
    instance = await load_reader_name(store, name)
    if instance is None:
        return MirrorReader()
    ended = await instance_leases.read_ended(store, (instance,))
    return MirrorReader(instance, instance not in ended, ended.get(instance))


async def load_reader_name(store: Store, name: str) -> str | None:
    """Return the name of the instance that has read a mirror last."""
    instance: str | None = await store.execute("GET", store.keys.lease_mirror(name))
    return instance


def claim(keys: Keys, name: str, reader: MirrorReader, instance: str) -> Commit:
    """Set an instance as the reader of a mirror in place of another one that does not work; it may be the reader."""
    key = keys.lease_mirror(name)
    if reader.instance == instance:
        return Commit((Holds(key, instance),))
    return Commit(_without_reader(keys, key, reader), (("SET", key, instance),))


def release_reader(keys: Keys, name: str, reader: MirrorReader, instance: str) -> Commit:
    """Release a mirror that this instance cannot read. Stale while another one works as its reader."""
    key = keys.lease_mirror(name)
    if reader.instance == instance:
        return Commit((Holds(key, instance),), (("DEL", key),))
    return Commit(_without_reader(keys, key, reader))


def _without_reader(keys: Keys, key: str, reader: MirrorReader) -> tuple[Guard, ...]:
    if reader.instance is None:
        return (Absent(key),)
    return (
        Holds(key, reader.instance),
        instance_leases.unchanged(keys.lease_instance(reader.instance), reader.lease),
    )


def save(keys: Keys, name: str, members: Collection[str], now: int) -> Commit:
    """Write the members of a mirror as current: staged and renamed; without members it is deleted."""
    key, staging = keys.mirror(name), keys.mirror_staging(name)
    state = save_state(keys, name, Freshness.CURRENT, now)
    if not members:
        return join((operation("DEL", key), state))
    staged = spread("SADD", (staging,), sorted(members))
    return join((operation("DEL", staging), staged, operation("RENAME", staging, key), state))


def save_state(keys: Keys, name: str, freshness: Freshness, now: int) -> Commit:
    """Write the state of a mirror, whose members stay."""
    return operation("HSET", keys.mirrors(), name, f"{freshness} {now}")


def forget_states(keys: Keys, names: Collection[str]) -> Commit:
    """Delete the states of mirrors: they were not read since the start."""
    return spread("HDEL", (keys.mirrors(),), names)


async def load(store: Store, name: str) -> frozenset[str]:
    """Return the members of a mirror."""
    return frozenset(await store.execute("SMEMBERS", store.keys.mirror(name)))


async def load_states(store: Store, names: Collection[str]) -> dict[str, MirrorState]:
    """Return the states of the mirrors that have one."""
    if not names:
        return {}
    listed = tuple(names)
    mirror_states = {}
    for name, text in zip(listed, await store.execute("HMGET", store.keys.mirrors(), *listed), strict=True):
        freshness, _, changed_at = (text or "").partition(" ")
        if freshness in _FRESHNESS and changed_at.isdigit():
            mirror_states[name] = MirrorState(Freshness(freshness), int(changed_at))
    return mirror_states


async def load_copies(store: Store, names: Iterable[str]) -> dict[str, MirrorCopy]:
    """Return the copies of the mirrors that were read since the start."""
    states = await load_states(store, sorted(names))
    return {
        name: MirrorCopy(await load(store, name), is_stale=state.freshness is Freshness.STALE)
        for name, state in states.items()
    }
