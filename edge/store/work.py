"""The work streams: what must be done next, until somebody has acknowledged it."""

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import msgspec
import structlog

from edge.store.client import MOST_BLOCKED_MS, Store
from edge.store.commit import Commit, NewWork, WorkEntry, join, read_entries, spread
from edge.store.keys import GROUP, Keys

logger = structlog.get_logger(__name__)

_BATCH = 50


CommandWork = tuple[str, str, str, str]


class WorkKind(StrEnum):
    """What an entry asks for."""

    START_RECIPE = "start_recipe"
    DISPATCH = "dispatch"


@dataclass(frozen=True, slots=True)
class Work:
    """One entry of a work stream; `commands` (of DISPATCH) are phase, command id, step and type of each."""

    entry_id: str
    scope: str
    kind: WorkKind
    job_id: str
    commands: tuple[CommandWork, ...] = ()


def add(keys: Keys, scope: str, kind: WorkKind, job_id: str, commands: Iterable[CommandWork] = ()) -> Commit:
    """Append an entry and take as much work for the caller as is added."""
    entry = ["job_id", job_id, "action", kind.value, "scope", scope]
    if listed := list(commands):
        entry += ["commands", msgspec.json.encode(listed).decode()]
    return Commit(work=(NewWork(keys.sfc_work(scope), tuple(entry)),))


def acknowledge(keys: Keys, scope: str, entry_ids: Iterable[str]) -> Commit:
    """Acknowledge entries whose work is done and drop them from the stream."""
    ids = tuple(entry_ids)
    key = keys.sfc_work(scope)
    return join((spread("XACK", (key, GROUP), ids), spread("XDEL", (key,), ids)))


def read(entries: Iterable[WorkEntry]) -> list[Work]:
    """Read entries as `add` wrote them; one that cannot be read is told and left unacknowledged."""
    works = []
    for entry in entries:
        try:
            works.append(_work(entry))
        except (KeyError, ValueError) as error:
            logger.error("work cannot be read and is left aside", entry=entry, reason=repr(error))  # noqa: TRY400
    return works


def _work(entry: WorkEntry) -> Work:
    found = entry.fields
    return Work(
        entry_id=entry.entry_id,
        scope=found["scope"],
        kind=WorkKind(found["action"]),
        job_id=found["job_id"],
        commands=msgspec.json.decode(found.get("commands", "[]"), type=tuple[CommandWork, ...]),
    )


async def create_groups(store: Store, scopes: Iterable[str]) -> None:
    """Create the consumer group of each scope where it is missing."""
    for scope in scopes:
        key = store.keys.sfc_work(scope)
        groups = await store.execute("XINFO GROUPS", key) if await store.execute("EXISTS", key) else ()
        if GROUP not in {group["name"] for group in groups}:
            await store.execute("XGROUP CREATE", key, GROUP, "0", "MKSTREAM")


async def unfinished(store: Store, scopes: Iterable[str]) -> list[Work]:
    """Give the work that this instance took and never acknowledged: what it was at when it died."""
    streams = tuple(store.keys.sfc_work(scope) for scope in scopes)
    reply = await store.execute(
        "XREADGROUP", "GROUP", GROUP, store.consumer, "STREAMS", *streams, *("0" for _ in streams)
    )
    return _read_reply(reply)


async def take(store: Store, scopes: Iterable[str]) -> AsyncIterator[list[Work]]:
    """Take new work of the scopes, batch by batch, for ever.

    Raises Unavailable when the store is gone: take again.
    """
    streams = tuple(store.keys.sfc_work(scope) for scope in scopes)
    command = ("XREADGROUP", "GROUP", GROUP, store.consumer, "COUNT", _BATCH, "BLOCK", MOST_BLOCKED_MS, "STREAMS")
    while True:
        reply = await store.wait(*command, *streams, *(">" for _ in streams))
        if works := _read_reply(reply):
            yield works


def _read_reply(reply: Mapping[str, list[list[tuple[str, list[str]]]]] | None) -> list[Work]:
    return [each for raw in (reply or {}).values() for each in read(read_entries(raw[0]))]
