"""The stream of samples: batches are appended, taken by the consumer group, acknowledged, or set aside."""

import re
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct

from edge.foundation.text import Text
from edge.model.secret_text import hide_secrets
from edge.store import reads
from edge.store.client import Store, block_ms
from edge.store.commit import Commit, command_size, fields, join, operation, spread
from edge.store.dead_letters import reason_fields, redacted_fields
from edge.store.keys import RULES_GROUP, Keys
from edge.store.reads import Entry, entries

DLQ_LENGTH: Final = 1_000
ATTEMPTS_LENGTH: Final = 5_000
MAX_DELIVERIES: Final = 5
"""Deliveries after which an entry is set aside."""

_LONGEST_PAYLOAD: Final = 2_000
_BATCH: Final = 10


def append(keys: Keys, batch: Mapping[str, str], length: int) -> Commit:
    """Append a batch; the stream keeps about `length` of them."""
    return operation("XADD", keys.telemetry(), "MAXLEN", "~", length, "*", *fields(batch))


async def remove_older_half(store: Store) -> int:
    """Remove the older half of the stream; return the number of removed entries. It works on a full server too."""
    key = store.keys.telemetry()
    length = int(await store.execute("XLEN", key))
    return int(await store.execute("XTRIM", key, "MAXLEN", length // 2))


def acknowledge(keys: Keys, entry_ids: Iterable[str]) -> Commit:
    """Acknowledge entries; they stay in the stream for other readers."""
    return spread("XACK", (keys.telemetry(), RULES_GROUP), entry_ids)


def delivery_size(store: Store) -> int:
    """Return about how many bytes of the append-only file the delivery of an entry takes.

    Redis writes an XCLAIM for each entry that a consumer takes, and an XGROUP SETID for each read.
    """
    key, name, position = store.keys.telemetry(), store.consumer, "0" * 15
    claim = ("XCLAIM", key, RULES_GROUP, name, "0", position, "TIME", position[:13], "RETRYCOUNT", "1")
    moved = ("XGROUP", "SETID", key, RULES_GROUP, position, "ENTRIESREAD", "0" * 6)
    return command_size(*claim, "FORCE", "JUSTID", "LASTID", position) + command_size(*moved)


def dead_letter(keys: Keys, entry: Entry, reason: str | Text, now: int) -> Commit:
    """Return the letter of an entry, without secrets."""
    letter = {"id": entry.entry_id, "at": str(now)}
    content = *reason_fields(reason), *redacted_fields("fields", entry.fields)
    return operation("XADD", keys.telemetry_dlq(), "MAXLEN", "~", DLQ_LENGTH, "*", *fields(letter), *content)


class SendAttempt(Struct, frozen=True):
    """An attempt to send a change of an alarm; an empty error means success."""

    alarm_id: str
    channel: str
    payload: str
    error: str = ""


def record_attempt(keys: Keys, attempt: SendAttempt, now: int) -> Commit:
    """Append an attempt, without secrets and with the beginning of its payload, and count it."""
    payload, error = hide_secrets(attempt.payload)[:_LONGEST_PAYLOAD], hide_secrets(attempt.error)
    status = "failed" if attempt.error else "sent"
    known = {"alarm": attempt.alarm_id, "channel": attempt.channel, "status": status, "at": str(now)}
    entry = fields(known | ({"error": error} if error else {}) | {"payload": payload})
    counted = operation("HINCRBY", keys.telemetry_counters(), status, 1)
    return join((operation("XADD", keys.telemetry_attempts(), "MAXLEN", "~", ATTEMPTS_LENGTH, "*", *entry), counted))


class StreamLengths(Struct, frozen=True):
    """Entries of the stream, those that are not evaluated, and dead letters."""

    entries: int
    lag: int
    dead_letters: int


async def read_lengths(store: Store) -> StreamLengths:
    """Read the lengths of the streams."""
    keys = store.keys
    length, letters, exists = await store.read(
        [("XLEN", keys.telemetry()), ("XLEN", keys.telemetry_dlq()), ("EXISTS", keys.telemetry())]
    )
    groups = await store.execute("XINFO GROUPS", keys.telemetry()) if exists else ()
    lag = sum(int(group.get("lag") or 0) + int(group["pending"]) for group in groups if group["name"] == RULES_GROUP)
    return StreamLengths(length, lag, letters)


class UnreadEntries(Struct, frozen=True):
    """Entries that the consumer group has not read, and for how long no consumer has asked for one."""

    entries: int = 0
    idle_ms: int = 0


async def read_unread(store: Store) -> UnreadEntries:
    """Read how far the consumer group is behind; the stream exists. Raises Unavailable."""
    key = store.keys.telemetry()
    groups = [value for value in await store.execute("XINFO GROUPS", key) if value["name"] == RULES_GROUP]
    if not groups:
        return UnreadEntries()
    consumers = await store.execute("XINFO CONSUMERS", key, RULES_GROUP)
    idle_ms = min((int(consumer["idle"]) for consumer in consumers), default=0)
    return UnreadEntries(int(groups[0].get("lag") or 0), idle_ms)


async def read_counters(store: Store) -> dict[str, int]:
    """Read all counters by name."""
    found = await store.execute("HGETALL", store.keys.telemetry_counters())
    return {name: int(count) for name, count in sorted(found.items())}


async def create_group(store: Store) -> None:
    """Create the consumer group where it is missing; it begins at the oldest entry."""
    await reads.create_group(store, store.keys.telemetry(), RULES_GROUP)


async def claim_from_others(store: Store) -> int:
    """Claim the entries that other consumers took and never acknowledged; return their number.

    The caller is the only consumer at work.
    """
    key, claimed = store.keys.telemetry(), 0
    consumers = await store.execute("XINFO CONSUMERS", key, RULES_GROUP)
    for name in [
        consumer["name"] for consumer in consumers if consumer["name"] != store.consumer and int(consumer["pending"])
    ]:
        while pending := await store.execute("XPENDING", key, RULES_GROUP, "-", "+", 100, name):
            ids = [str(value[0]) for value in pending]
            await store.execute("XCLAIM", key, RULES_GROUP, store.consumer, 0, *ids, "JUSTID")
            claimed += len(ids)
    return claimed


IDLE_MS: Final = 60_000
"""Time after which an entry that another consumer took is claimed."""


class ClaimedEntry(Struct, frozen=True):
    """An entry that another consumer had, and the number of its deliveries."""

    entry: Entry
    consumer: str
    deliveries: int


async def claim_idle(store: Store, idle_ms: int = IDLE_MS) -> list[ClaimedEntry]:
    """Claim entries that other consumers took and did not acknowledge for so long, at most 100 at once."""
    key = store.keys.telemetry()
    pending = await store.execute("XPENDING", key, RULES_GROUP, "IDLE", idle_ms, "-", "+", 100)
    former = {str(entry_id): (str(name), int(count)) for entry_id, name, _, count in pending if name != store.consumer}
    if not former:
        return []
    claimed = await store.execute("XCLAIM", key, RULES_GROUP, store.consumer, idle_ms, *former)
    return [ClaimedEntry(entry, former[entry.entry_id][0], former[entry.entry_id][1] + 1) for entry in entries(claimed)]


async def read_pending(store: Store, after: str) -> list[Entry]:
    """Return entries that this consumer took and never acknowledged, after a position, oldest first."""
    reply = await store.execute(
        *("XREADGROUP", "GROUP", RULES_GROUP, store.consumer, "COUNT", _BATCH),
        *("STREAMS", store.keys.telemetry(), after),
    )
    return _entries(store, reply)


async def count_delivery(store: Store, entry_id: str) -> int:
    """Count one more delivery of an entry that was taken earlier; return the number of deliveries."""
    key = store.keys.telemetry()
    _, pending = await store.read(
        [
            ("XCLAIM", key, RULES_GROUP, store.consumer, 0, entry_id),
            ("XPENDING", key, RULES_GROUP, entry_id, entry_id, 1),
        ]
    )
    return int(pending[0][3]) if pending else 1


async def take_new(store: Store, within_ms: int) -> list[Entry]:
    """Return new entries, which this consumer takes; wait at most `within_ms` milliseconds for the first one."""
    reply = await store.wait(
        *("XREADGROUP", "GROUP", RULES_GROUP, store.consumer, "COUNT", _BATCH, "BLOCK", max(1, within_ms)),
        *("STREAMS", store.keys.telemetry(), ">"),
    )
    return _entries(store, reply)


async def read_after(store: Store, position: str, until: str, count: int) -> list[Entry]:
    """Return entries after a position, oldest first, up to another one; an empty position is before all of them."""
    start = f"({position}" if position else "-"
    return list(entries(await store.execute("XRANGE", store.keys.telemetry(), start, until, "COUNT", count)))


async def newest(store: Store) -> str:
    """Return the position of the newest entry."""
    found = await store.execute("XREVRANGE", store.keys.telemetry(), "+", "-", "COUNT", 1)
    return next((entry.entry_id for entry in entries(found)), "0-0")


async def follow(store: Store) -> AsyncIterator[Entry]:
    """Yield every entry that is appended from now on, for ever. Raises Unavailable when the store is unavailable."""
    async for entry in follow_after(store, await newest(store)):
        yield entry


async def follow_after(store: Store, position: str) -> AsyncIterator[Entry]:
    """Yield every entry after a position, for ever. Raises Unavailable when the store is unavailable."""
    while True:
        reply = await store.wait(
            *("XREAD", "COUNT", _BATCH, "BLOCK", block_ms(), "STREAMS", store.keys.telemetry(), position)
        )
        for entry in _entries(store, reply):
            position = entry.entry_id
            yield entry


def _entries(store: Store, reply: Mapping[str, list[list[tuple[str, list[str]]]]] | None) -> list[Entry]:
    raw = (reply or {}).get(store.keys.telemetry())
    return list(entries(raw[0])) if raw else []


_OF_GATEWAY: Final = re.compile(r"((?:gateway|equipment)\..+)\[([^\[\]]+)\]")
"""A tag that a gateway measured itself, with its name."""


def save_last(keys: Keys, samples: Mapping[str, str], gone: Collection[str] = ()) -> Commit:
    """Write the last samples of tags, and remove those that are gone."""
    commit = spread("HSET", (keys.tags(),), [text for pair in samples.items() for text in pair])
    return join((commit, spread("HDEL", (keys.tags(),), gone)))


async def load_last(store: Store) -> dict[str, str]:
    """Read the last sample of every tag, by its name.

    Tags of gateways have the name of their gateway, except those of this one, and where only one gateway has the tag.
    """
    found: dict[str, str] = await store.execute("HGETALL", store.keys.tags())
    of_gateways = {name: match for name in found if (match := _OF_GATEWAY.fullmatch(name))}
    gateways = Counter(match[1] for match in of_gateways.values())
    named: dict[str, str] = {}
    for name, text in found.items():
        match = of_gateways.get(name)
        is_plain = match and (match[2] == store.consumer or (gateways[match[1]] == 1 and match[1] not in found))
        named[match[1] if match and is_plain else name] = text
    return dict(sorted(named.items()))


async def load_last_of(store: Store, name: str) -> str | None:
    """Read the last sample of a tag, of this gateway before others; None for an unknown one."""
    key = store.keys.tags()
    own: str | None
    plain: str | None
    own, plain = await store.execute("HMGET", key, f"{name}[{store.consumer}]", name)
    if own is not None or plain is not None or not name.startswith(("gateway.", "equipment.")):
        return own if own is not None else plain
    return (await load_last(store)).get(name)
