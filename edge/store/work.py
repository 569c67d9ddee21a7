"""The work streams: the next work of the instances, until one of them has acknowledged it."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from edge.foundation.text import Text
from edge.store.client import Store, block_ms
from edge.store.commit import Commit, fields, join, operation, spread
from edge.store.keys import GROUP, Keys
from edge.store.reads import Entry, create_group, entries

_BATCH = 50


class WorkKind(StrEnum):
    """The work of an entry: begin the run of a job, send the commands of a visitor of the store, follow a lock."""

    START_RECIPE = "start_recipe"
    SEND = "send"
    LOCK = "lock"


class Work(Struct, frozen=True):
    """One entry of a work stream."""

    entry_id: str
    scope: str
    kind: WorkKind
    job_id: str


class UnreadableEntry(Struct, frozen=True):
    """An entry of a work stream that cannot be read."""

    entry_id: str
    scope: str
    fields: Mapping[str, str]
    reason: str | Text


def add(keys: Keys, scope: str, kind: WorkKind, job_id: str) -> Commit:
    """Append an entry."""
    return add_fields(keys, scope, {"job_id": job_id, "action": kind.value, "scope": scope})


def add_fields(keys: Keys, scope: str, entry: Mapping[str, str]) -> Commit:
    """Append an entry with these fields."""
    return operation("XADD", keys.sfc_work(scope), "*", *fields(entry))


def acknowledge(keys: Keys, scope: str, entry_ids: Iterable[str]) -> Commit:
    """Acknowledge entries whose work is done and drop them from the stream."""
    ids = tuple(entry_ids)
    key = keys.sfc_work(scope)
    return join((spread("XACK", (key, GROUP), ids), spread("XDEL", (key,), ids)))


async def create_groups(store: Store, scopes: Iterable[str]) -> None:
    """Create the consumer group of each scope where it is missing."""
    for scope in scopes:
        await create_group(store, store.keys.sfc_work(scope), GROUP)


async def read_pending(store: Store, scopes: Sequence[str]) -> list[Work | UnreadableEntry]:
    """Return unacknowledged work that was taken under our name: it was in progress at the last end."""
    streams = tuple(store.keys.sfc_work(scope) for scope in scopes)
    reply = await store.execute(
        "XREADGROUP", "GROUP", GROUP, store.consumer, "STREAMS", *streams, *("0" for _ in streams)
    )
    return _read_reply(store.keys, scopes, reply)


async def count_attempt(store: Store, work: Work) -> int:
    """Count an attempt at work of this instance; return the number of attempts by all consumers."""
    key = store.keys.sfc_work(work.scope)
    _, pending = await store.read(
        [
            ("XCLAIM", key, GROUP, store.consumer, 0, work.entry_id),
            ("XPENDING", key, GROUP, work.entry_id, work.entry_id, 1),
        ]
    )
    return int(pending[0][3]) - 1 if pending else 1


async def claim_from(store: Store, former: str, scopes: Sequence[str]) -> int:
    """Claim the unacknowledged work of an instance without a lease; return the number of entries."""
    claimed = 0
    for scope in scopes:
        key = store.keys.sfc_work(scope)
        while pending := await store.execute("XPENDING", key, GROUP, "-", "+", _BATCH, former):
            ids = [str(entry[0]) for entry in pending]
            await store.execute("XCLAIM", key, GROUP, store.consumer, 0, *ids, "JUSTID")
            claimed += len(ids)
    return claimed


async def has_pending(store: Store, consumer: str, scopes: Sequence[str]) -> bool:
    """Return whether an instance has taken work and not acknowledged it."""
    asked = [("XPENDING", store.keys.sfc_work(scope), GROUP, "-", "+", 1, consumer) for scope in scopes]
    return any(await store.read(asked))


async def length(store: Store, scope: str) -> int:
    """Return the number of entries in the work stream of a scope, including those in progress."""
    return int(await store.execute("XLEN", store.keys.sfc_work(scope)))


async def pending_consumers(store: Store, scope: str) -> list[str]:
    """Return the consumers that have taken work of a scope and not acknowledged it."""
    consumers = await store.execute("XINFO CONSUMERS", store.keys.sfc_work(scope), GROUP)
    return sorted(consumer["name"] for consumer in consumers if int(consumer["pending"]))


async def follow(store: Store, scopes: Sequence[str]) -> AsyncIterator[list[Work | UnreadableEntry]]:
    """Yield new work of the scopes, batch by batch, without end.

    Raises Unavailable when the store is unavailable: follow again.
    """
    streams = tuple(store.keys.sfc_work(scope) for scope in scopes)
    command = ("XREADGROUP", "GROUP", GROUP, store.consumer, "COUNT", _BATCH, "BLOCK")
    while True:
        reply = await store.wait(*command, block_ms(), "STREAMS", *streams, *(">" for _ in streams))
        if works := _read_reply(store.keys, scopes, reply):
            yield works


def _read_reply(
    keys: Keys, scopes: Iterable[str], reply: Mapping[str, list[Any]] | None
) -> list[Work | UnreadableEntry]:
    found = reply or {}
    return [
        _work(scope, entry) for scope in scopes if (raw := found.get(keys.sfc_work(scope))) for entry in entries(raw[0])
    ]


def _work(scope: str, entry: Entry) -> Work | UnreadableEntry:
    """Read an entry as `add` wrote it."""
    found = entry.fields
    if not found:
        return UnreadableEntry(entry.entry_id, scope, {}, "it was removed from the stream")
    try:
        return Work(entry.entry_id, scope, WorkKind(found["action"]), found["job_id"])
    except (KeyError, ValueError) as error:
        return UnreadableEntry(
            entry.entry_id, scope, found, Text.of("it is not understood: {reason}", reason=repr(error))
        )
