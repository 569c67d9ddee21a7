"""The work streams: what some instance must do next, until one has acknowledged it."""

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import structlog

from edge.store.client import MOST_BLOCKED_MS, Store
from edge.store.commit import Commit, join, operation, spread
from edge.store.keys import GROUP, Keys
from edge.store.stream import Entry, entries

logger = structlog.get_logger(__name__)

_BATCH = 50


class WorkKind(StrEnum):
    """What an entry asks for: to begin the run of a job, or to send what a visitor of the store decided."""

    START_RECIPE = "start_recipe"
    SEND = "send"


@dataclass(frozen=True, slots=True)
class Work:
    """One entry of a work stream."""

    entry_id: str
    scope: str
    kind: WorkKind
    job_id: str


def add(keys: Keys, scope: str, kind: WorkKind, job_id: str) -> Commit:
    """Append an entry."""
    return operation("XADD", keys.sfc_work(scope), "*", "job_id", job_id, "action", kind.value, "scope", scope)


def acknowledge(keys: Keys, scope: str, entry_ids: Iterable[str]) -> Commit:
    """Acknowledge entries whose work is done and drop them from the stream."""
    ids = tuple(entry_ids)
    key = keys.sfc_work(scope)
    return join((spread("XACK", (key, GROUP), ids), spread("XDEL", (key,), ids)))


async def create_groups(store: Store, scopes: Iterable[str]) -> None:
    """Create the consumer group of each scope where it is missing."""
    for scope in scopes:
        key = store.keys.sfc_work(scope)
        groups = await store.execute("XINFO GROUPS", key) if await store.execute("EXISTS", key) else ()
        if GROUP not in {group["name"] for group in groups}:
            await store.execute("XGROUP CREATE", key, GROUP, "0", "MKSTREAM")


async def unfinished(store: Store, consumer: str, scopes: Iterable[str]) -> list[Work]:
    """Give the work that an instance took and never acknowledged: what it was at when it died."""
    streams = tuple(store.keys.sfc_work(scope) for scope in scopes)
    reply = await store.execute("XREADGROUP", "GROUP", GROUP, consumer, "STREAMS", *streams, *("0" for _ in streams))
    return _read_reply(reply)


async def take(store: Store, consumer: str, scopes: Iterable[str]) -> AsyncIterator[list[Work]]:
    """Take new work of the scopes, batch by batch, for ever.

    Raises Unavailable when the store is gone: take again.
    """
    streams = tuple(store.keys.sfc_work(scope) for scope in scopes)
    command = ("XREADGROUP", "GROUP", GROUP, consumer, "COUNT", _BATCH, "BLOCK", MOST_BLOCKED_MS, "STREAMS")
    while True:
        reply = await store.wait(*command, *streams, *(">" for _ in streams))
        if works := _read_reply(reply):
            yield works


def _read_reply(reply: Mapping[str, list[Any]] | None) -> list[Work]:
    return [work for raw in (reply or {}).values() for entry in entries(raw[0]) if (work := _work(entry))]


def _work(entry: Entry) -> Work | None:
    """Read an entry as `add` wrote it; one that cannot be read is told and left unacknowledged."""
    found = entry.fields
    try:
        return Work(entry.entry_id, found["scope"], WorkKind(found["action"]), found["job_id"])
    except (KeyError, ValueError) as error:
        logger.error("work cannot be read and is left aside", entry=entry, reason=repr(error))  # noqa: TRY400
        return None
