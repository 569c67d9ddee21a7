"""Index the marks of messages by their sender, so that no sender takes the room of the others, and count them."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from edge.store.background import poll_store
from edge.store.bounds import BoundedCount, MarksBySender
from edge.store.bulk_reads import escape_pattern
from edge.store.client import Store
from edge.store.commit import Commit, join, operation, spread
from edge.store.keys import Keys
from edge.store.server_time import server_time
from edge.store.stream import entries

SWEEP_EVERY_S: Final = 60.0
_BATCH: Final = 500
_NAME_LENGTH: Final = 200
"""The longest part of a source that is kept: its sender may choose any text."""


class SenderKind(StrEnum):
    """What a sender sends: calls, such as orders of the MES, or events and results of equipment."""

    CALLS = "calls"
    EVENTS = "events"


_SHARES: Final[Mapping[SenderKind, int]] = MappingProxyType({SenderKind.CALLS: 2, SenderKind.EVENTS: 4})
"""One sender has at most this part of all marks: calls a half, the events of one piece of equipment a quarter."""
_PART_OF_EVENTS: Final = 2
"""The events of all equipment have at most this part of all marks: a half is left to calls."""


class MessageSender(Struct, frozen=True):
    """The sender of marked messages: the `source` of calls, or the name of a piece of equipment."""

    kind: SenderKind
    name: str

    @property
    def id(self) -> str:
        """Return the name in the store and in commands, as `events:wrench`."""
        return f"{self.kind}:{self.name}"

    def __str__(self) -> str:
        return f"{self.kind} of {self.name}"


def caller(source: str) -> MessageSender:
    """Return the sender of calls with this source."""
    return MessageSender(SenderKind.CALLS, source[:_NAME_LENGTH])


def equipment_sender(name: str) -> MessageSender:
    """Return a piece of equipment as the sender of events."""
    return MessageSender(SenderKind.EVENTS, name[:_NAME_LENGTH])


def parse_sender(id: str) -> MessageSender | None:
    """Return the sender of an id; None for a text that is not one."""
    kind, colon, name = id.partition(":")
    return MessageSender(SenderKind(kind), name) if colon and kind in set(SenderKind) else None


def add(keys: Keys, sender: MessageSender, field: str, digest: str) -> Commit:
    """Enter a mark of a sender: `field` is e for a CloudEvent, t for a transaction."""
    return Commit(
        operations=(
            ("XADD", keys.marks_of(sender.id), "*", field, digest),
            ("SADD", keys.mark_senders(), sender.id),
        )
    )


def is_any_sender_near(marks: BoundedCount) -> bool:
    """Return whether a sender may have used half of its share, by the number of all marks."""
    return marks.count * max(_SHARES.values()) * 2 >= marks.limit > 0


async def count_by_sender(store: Store, limit: int) -> MarksBySender:
    """Count the marks of each sender. Raises Unavailable."""
    lengths: dict[MessageSender, int] = {}
    async for senders in _batches(store):
        replies = await store.read([("XLEN", store.keys.marks_of(sender.id)) for sender in senders])
        lengths |= dict(zip(senders, replies, strict=True))
    events = sum(length for sender, length in lengths.items() if sender.kind is SenderKind.EVENTS)
    return MarksBySender(
        {sender.id: BoundedCount(length, _share(sender.kind, limit)) for sender, length in lengths.items()},
        BoundedCount(events, _part(limit, _PART_OF_EVENTS)),
    )


def _share(kind: SenderKind, limit: int) -> int:
    return _part(limit, _SHARES[kind])


def _part(limit: int, part: int) -> int:
    return max(1, limit // part) if limit else 0


async def sweep(store: Store, lifetime_ms: int, now: int) -> None:
    """Remove the entries of marks that have expired by `now` of the server's clock, and senders without a mark.

    A mark that is written meanwhile may be missing in the count; the mark itself stays.
    """
    keys = store.keys
    async for senders in _batches(store):
        expired = (operation("XTRIM", keys.marks_of(sender.id), "MINID", now - lifetime_ms) for sender in senders)
        await store.commit(join(expired))
        lengths = await store.read([("XLEN", keys.marks_of(sender.id)) for sender in senders])
        empty = [sender.id for sender, length in zip(senders, lengths, strict=True) if not length]
        if empty:
            gone = [("DEL", keys.marks_of(sender_id)) for sender_id in empty]
            await store.commit(Commit(operations=(*gone, ("SREM", keys.mark_senders(), *empty))))


async def keep_swept(store: Store, lifetime_ms: int, every_s: float = SWEEP_EVERY_S) -> None:
    """Remove expired entries until cancelled; retry while the store is unavailable."""

    async def sweep_now() -> None:
        await sweep(store, lifetime_ms, await server_time(store))

    await poll_store(store.defects, "marks", sweep_now, every_s)


async def is_known(store: Store, sender: MessageSender) -> bool:
    """Return whether marks of a sender are kept."""
    return bool(await store.execute("SISMEMBER", store.keys.mark_senders(), sender.id))


async def drop(store: Store, sender: MessageSender) -> int:
    """Drop all marks of a sender; return their number. A repetition of its messages has its effect again."""
    keys, key, dropped = store.keys, store.keys.marks_of(sender.id), 0
    while marked := tuple(entries(await store.execute("XRANGE", key, "-", "+", "COUNT", _BATCH))):
        marks = tuple(_marks(keys, (entry.fields for entry in marked)))
        ids = tuple(entry.entry_id for entry in marked)
        await store.commit(join((spread("DEL", (), marks), spread("XDEL", (key,), ids))))
        dropped += len(marks)
    await store.commit(join((operation("DEL", key), operation("SREM", keys.mark_senders(), sender.id))))
    return dropped


def _marks(keys: Keys, found: Iterable[Mapping[str, str]]) -> Iterator[str]:
    key_of = {"e": keys.cededupe, "t": keys.transdedupe}
    return (key_of[field](digest) for fields in found for field, digest in fields.items() if field in key_of)


async def _batches(store: Store) -> AsyncIterator[Sequence[MessageSender]]:
    cursor = "0"
    while True:
        cursor, ids = await store.execute("SSCAN", store.keys.mark_senders(), cursor, "COUNT", _BATCH)
        senders = [sender for text in dict.fromkeys(ids) if (sender := parse_sender(text))]
        if senders:
            yield senders
        if str(cursor) == "0":
            return


_SCAN_BATCH: Final = 1000
_BATCHES: Final = 20


class MarkCounter:
    """Counts the marks by their keys, a part at each call, so that the server can serve other clients meanwhile."""

    def __init__(self, batches: int = _BATCHES) -> None:
        self._batches = batches
        self._cursor = "0"
        self._seen = 0
        self._counted = 0

    async def count(self, store: Store) -> int:
        """Read the next keys; return the number of marks of the last complete pass, or of this one if it is higher."""
        keys = store.keys
        marks = keys.cededupe(""), keys.transdedupe(""), keys.joborder_tombstone("")
        pattern = f"{escape_pattern(keys.prefix)}:[ct]*e:*"
        for _ in range(self._batches):
            self._cursor, found = await store.execute("SCAN", self._cursor, "MATCH", pattern, "COUNT", _SCAN_BATCH)
            self._seen += sum(key.startswith(marks) for key in found)
            if str(self._cursor) == "0":
                self._counted, self._seen = self._seen, 0
                break
        return max(self._counted, self._seen)

    def reset(self) -> None:
        """Forget the passes: the server counts few keys."""
        self._cursor, self._seen, self._counted = "0", 0, 0


async def count_marks(store: Store, info: Mapping[str, str], limit: int, counter: MarkCounter) -> BoundedCount:
    """Return the number of marks, by the fields of INFO. Raises Unavailable.

    The server itself counts the keys with a lifetime, which marks and few others have. Only while these reach half of
    the limit are the marks counted one by one.
    """
    marks = BoundedCount(_expiring(info, store.database), limit)
    if marks.is_nearly_full:
        return BoundedCount(await counter.count(store), limit)
    counter.reset()
    return marks


def _expiring(info: Mapping[str, str], database: int) -> int:
    """Return the number of keys with a lifetime, of a field like `keys=8,expires=2,avg_ttl=9`."""
    found = dict(text.split("=") for text in info.get(f"db{database}", "expires=0").split(","))
    return int(found["expires"])
