"""Mark each CloudEvent and transaction in the commit of its effect, so that its repetition has none.

A mark lives as long as a broker may deliver the message again: `[retention] dedupe` covers the expiry of our session
plus the interval at which the broker saves its database. A removed job order leaves a tombstone for the same time: an
order that was sent before the removal does not restore it, and a result that the job had is recognized. While as many
marks as allowed are kept, none is dropped: what begins new work is refused, what ends work or keeps a result is not. A
sender that has used its share of the marks is refused alone.

A broker that is killed forgets the acknowledgements since it saved its database last, and delivers those messages
again. The events of equipment have one hash for each half hour: they need none of the marks that outlast a day.

A gateway that lags, or a broker that repeats a message, brings an answer that was taken before the removal. A result
that was never taken has no digest there.
"""

import hashlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from edge.foundation.errors import Refused
from edge.ports.result_trace import MOST_LEVELS, RESULTS_MEMBER, without_files
from edge.sfc.run import Run, commands_with_result
from edge.store.background import poll_store
from edge.store.bounds import BoundedCount, MarksBySender
from edge.store.client import Store
from edge.store.commit import Absent, Commit, HashField, join, operation, spread
from edge.store.keys import Keys
from edge.store.query import StoreQuery, query
from edge.store.reads import entries, escape_pattern
from edge.store.server_time import server_time

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


def enter_mark(keys: Keys, sender: MessageSender, field: str, digest: str) -> Commit:
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


async def sweep_marks(store: Store, lifetime_ms: int, now: int) -> None:
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
        await sweep_marks(store, lifetime_ms, await server_time(store))

    await poll_store(store.defects, "marks", sweep_now, every_s)


async def is_known_sender(store: Store, sender: MessageSender) -> bool:
    """Return whether marks of a sender are kept."""
    return bool(await store.execute("SISMEMBER", store.keys.mark_senders(), sender.id))


async def drop_marks(store: Store, sender: MessageSender) -> int:
    """Drop all marks of a sender; return their number. A repetition of its messages has its effect again."""
    keys, key, dropped = store.keys, store.keys.marks_of(sender.id), 0
    while marked := tuple(entries(await store.execute("XRANGE", key, "-", "+", "COUNT", _BATCH))):
        marks = tuple(_mark_keys(keys, (entry.fields for entry in marked)))
        ids = tuple(entry.entry_id for entry in marked)
        await store.commit(join((spread("DEL", (), marks), spread("XDEL", (key,), ids))))
        dropped += len(marks)
    await store.commit(join((operation("DEL", key), operation("SREM", keys.mark_senders(), sender.id))))
    return dropped


def _mark_keys(keys: Keys, found: Iterable[Mapping[str, str]]) -> Iterator[str]:
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


_T = TypeVar("_T")


def digest(space: str, name: str) -> str:
    """Return the digest of a name in a space, as a part of a key."""
    # The length separates the two parts: ("a", "bc") and ("ab", "c") differ.
    return hashlib.sha256(f"{len(space)}:{space}{name}".encode()).hexdigest()[:32]


def _key(keys: Keys, source: str, event_id: str) -> str:
    return keys.cededupe(digest(source, event_id))


def mark_transaction(keys: Keys, scope: str, transaction_id: str, answer: str, lifetime_ms: int, source: str) -> Commit:
    """Mark a transaction of calls of a source with its answer; Stale when it was marked already."""
    name = digest(scope, transaction_id)
    entered = enter_mark(keys, caller(source), "t", name)
    return join((_mark(keys.transdedupe(name), answer, lifetime_ms), entered))


def transaction_is_new(keys: Keys, scope: str, transaction_id: str) -> Commit:
    """Require that a transaction has not been answered meanwhile."""
    return Commit(guards=(Absent(keys.transdedupe(digest(scope, transaction_id))),))


def mark(
    keys: Keys, source: str, event_id: str, answer: str, lifetime_ms: int, sender: MessageSender | None = None
) -> Commit:
    """Mark an event with its answer; Stale when it was marked already. Without a `sender` that is its source."""
    name = digest(source, event_id)
    entered = enter_mark(keys, sender or caller(source), "e", name)
    return join((_mark(keys.cededupe(name), answer, lifetime_ms), entered))


def _mark(key: str, answer: str, lifetime_ms: int) -> Commit:
    return Commit(guards=(Absent(key),), operations=(("SET", key, answer, "PX", lifetime_ms),))


def query_answer(keys: Keys, source: str, event_id: str) -> StoreQuery[str | None]:
    """Return the query of the answer given to an event; its value is None when the event is new."""
    return query(_as_it_is, "GET", _key(keys, source, event_id))


def query_transaction_answer(keys: Keys, scope: str, transaction_id: str) -> StoreQuery[str | None]:
    """Return the query of the answer given in a transaction; its value is None when the transaction is new."""
    return query(_as_it_is, "GET", keys.transdedupe(digest(scope, transaction_id)))


async def load_answer(store: Store, source: str, event_id: str) -> str | None:
    """Return the answer given to an event; None when it is new."""
    return await store.fetch(query_answer(store.keys, source, event_id))


def _as_it_is(answer: str | None) -> str | None:
    return answer


def decode_answer(answer: str, expected: type[_T]) -> _T:
    """Decode the answer given to a message.

    Raises Refused(`repeated_id`) for the answer to a message of another kind: two messages have one source and id.
    """
    try:
        return msgspec.json.decode(answer, type=expected)
    except msgspec.DecodeError:
        raise repeated_id() from None


def repeated_id() -> Refused:
    """Return the refusal of a message whose source and id another message has used."""
    return Refused("repeated_id", "another message had this source and id.", "Each message needs an id of its own.")


def room_fault(store: Store, sender: MessageSender) -> str:
    """Return why a sender may get no new mark now; empty while there is room."""
    drop = f"drop them with edge marks drop {sender.id}"
    own = store.marks_by_sender.senders.get(sender.id, BoundedCount())
    if own.is_full:
        return (
            f"the store holds {own.count} marks of {sender}, {own.limit} are allowed for one sender; "
            f"correct the sender, raise [retention] marks, {drop}, or wait until old marks expire"
        )
    if store.marks.is_full:
        return (
            f"the store holds {store.marks.count} marks of messages, {store.marks.limit} are allowed; "
            "find the sender with edge marks list, raise [retention] marks, or wait until old marks expire"
        )
    events = store.marks_by_sender.events
    if sender.kind is SenderKind.EVENTS and events.is_full:
        return (
            f"the store holds {events.count} marks of events of equipment, {events.limit} are allowed; "
            "find the sender with edge marks list, raise [retention] marks, or wait until old marks expire"
        )
    return ""


def bury(keys: Keys, job_id: str, scope: str, removed_at: int, lifetime_ms: int, taken: Iterable[str] = ()) -> Commit:
    """Write the tombstone of a removed job order of a scope: the instant of its removal, by the clock of its caller.

    `taken` are the digests of its results.
    """
    text = " ".join((str(removed_at), f"{_SCOPE}{scope}", *taken))
    return Commit(operations=(("SET", keys.joborder_tombstone(job_id), text, "PX", lifetime_ms),))


def query_removal(keys: Keys, job_id: str) -> StoreQuery[int | None]:
    """Return the query of the removal of a job order, in milliseconds since the epoch; None without a tombstone."""
    return query(_instant, "GET", keys.joborder_tombstone(job_id))


async def load_removal(store: Store, job_id: str) -> int | None:
    """Return when a job order was removed, in milliseconds since the epoch; None without a tombstone."""
    removal = query_removal(store.keys, job_id)
    return (await store.fetch_all(removal)).value(removal)


def query_taken(keys: Keys, job_id: str) -> StoreQuery[frozenset[str]]:
    """Return the query of the digests of the results that a removed job had; none without a tombstone."""
    return query(_taken, "GET", keys.joborder_tombstone(job_id))


async def load_scope_of_removed(store: Store, job_id: str) -> str:
    """Return the scope of a removed job; empty where its tombstone has none: it is gone, or of an earlier release."""
    found = await store.execute("GET", store.keys.joborder_tombstone(job_id))
    named = (word.removeprefix(_SCOPE) for word in (found or "").split(" ") if word.startswith(_SCOPE))
    return next(named, "")


_SCOPE: Final = "/"
"""Before the scope in a tombstone: no scope has this character, and no digest."""


def _instant(found: str | None) -> int | None:
    instant = found.partition(" ")[0] if found else ""
    return int(instant) if instant.isascii() and instant.isdecimal() else None


def _taken(found: str | None) -> frozenset[str]:
    return frozenset(word for word in (found or "").split(" ")[1:] if not word.startswith(_SCOPE))


_PERIOD_MS: Final = 1_800_000
_MOST: Final = 10_000
"""The most events of a piece of equipment in half an hour that are remembered: of a flood the next event, too, would
pass a later part."""


class DiscardedEvent(Struct, frozen=True):
    """An event of a piece of equipment, `at` an instant in milliseconds since the epoch."""

    equipment: str
    source: str
    event_id: str
    at: int

    @property
    def _digest(self) -> str:
        return digest(self.source, self.event_id)

    def guards(self, keys: Keys) -> Commit:
        """Return the guards that the event was not discarded meanwhile."""
        return Commit(guards=tuple(HashField(key, self._digest, None) for key in self._keys(keys)))

    def remember(self, keys: Keys) -> Commit:
        """Remember the event; Stale when it was discarded already."""
        now, _ = self._keys(keys)
        operations = (("HSET", now, self._digest, ""), ("PEXPIRE", now, 2 * _PERIOD_MS))
        return Commit(self.guards(keys).guards, operations)

    def query_known(self, keys: Keys) -> StoreQuery[bool]:
        """Return the query whether the event was discarded in the last half hour."""
        return query(bool, "HEXISTS", self._keys(keys)[0], self._digest)

    def query_known_before(self, keys: Keys) -> StoreQuery[bool]:
        """Return the query whether the event was discarded in the half hour before."""
        return query(bool, "HEXISTS", self._keys(keys)[1], self._digest)

    def query_room(self, keys: Keys) -> StoreQuery[bool]:
        """Return the query whether one more event of this half hour may be remembered."""
        return query(lambda length: length < _MOST, "HLEN", self._keys(keys)[0])

    def _keys(self, keys: Keys) -> tuple[str, str]:
        period = self.at // _PERIOD_MS
        return keys.discarded(self.equipment, period), keys.discarded(self.equipment, period - 1)


MOST_TAKEN = 400
"""The most digests in a tombstone; a run keeps 200 earlier attempts."""


def digests_of(run: Run) -> tuple[str, ...]:
    """Return the digests of all results of a run, at most `MOST_TAKEN`, those of the newest attempts last."""
    found = [text for command, result in commands_with_result(run) for text in _digests(command, result)]
    return tuple(dict.fromkeys(found))[-MOST_TAKEN:]


async def was_taken(store: Store, job_id: str, command_id: str, result: Any) -> bool:
    """Return whether a removed job had this result of a command; its files do not count."""
    return _of_content(command_id, result) in await store.fetch(query_taken(store.keys, job_id))


async def had_result(store: Store, job_id: str, command_id: str, result_id: str) -> bool:
    """Return whether a removed job had a result of a command with this id."""
    return _of_id(command_id, result_id) in await store.fetch(query_taken(store.keys, job_id))


def _digests(command_id: str, result: Any) -> Iterator[str]:
    yield _of_content(command_id, result)
    for result_id in _result_ids(result):
        yield _of_id(command_id, result_id)


def _of_content(command_id: str, result: Any) -> str:
    return digest(command_id, msgspec.json.encode(without_files(result)).decode())[:_DIGITS]


def _of_id(command_id: str, result_id: str) -> str:
    return digest(f"{command_id} id", result_id)[:_DIGITS]


_DIGITS = 16


def _result_ids(result: Any, levels: int = MOST_LEVELS) -> Iterator[str]:
    if not isinstance(result, Mapping) or not levels:
        return
    if isinstance(result_id := result.get("result_id"), str):
        yield result_id
    parts = result.get(RESULTS_MEMBER)
    for part in parts.values() if isinstance(parts, Mapping) else ():
        yield from _result_ids(part, levels - 1)
