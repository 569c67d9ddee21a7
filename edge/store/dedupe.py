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
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from edge.foundation.errors import Refused
from edge.ports.result_trace import MOST_LEVELS, RESULTS_MEMBER, without_files
from edge.sfc.run import Run, commands_with_result
from edge.store import mark_senders
from edge.store.bounds import BoundedCount
from edge.store.client import Store
from edge.store.commit import Absent, Commit, HashField, join
from edge.store.keys import Keys
from edge.store.mark_senders import MessageSender, SenderKind, caller
from edge.store.query import StoreQuery, query

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
    entered = mark_senders.add(keys, caller(source), "t", name)
    return join((_mark(keys.transdedupe(name), answer, lifetime_ms), entered))


def transaction_is_new(keys: Keys, scope: str, transaction_id: str) -> Commit:
    """Require that a transaction has not been answered meanwhile."""
    return Commit(guards=(Absent(keys.transdedupe(digest(scope, transaction_id))),))


def mark(
    keys: Keys, source: str, event_id: str, answer: str, lifetime_ms: int, sender: MessageSender | None = None
) -> Commit:
    """Mark an event with its answer; Stale when it was marked already. Without a `sender` that is its source."""
    name = digest(source, event_id)
    entered = mark_senders.add(keys, sender or caller(source), "e", name)
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


def bury(keys: Keys, job_id: str, removed_at: int, lifetime_ms: int, taken: Iterable[str] = ()) -> Commit:
    """Write the tombstone of a removed job order: the instant of its removal, by the clock of its caller.

    `taken` are the digests of its results.
    """
    text = " ".join((str(removed_at), *taken))
    return Commit(operations=(("SET", keys.joborder_tombstone(job_id), text, "PX", lifetime_ms),))


def query_removal(keys: Keys, job_id: str) -> StoreQuery[int | None]:
    """Return the query of the removal of a job order, in milliseconds since the epoch; None without a tombstone."""
    return query(_instant, "GET", keys.joborder_tombstone(job_id))


def query_taken(keys: Keys, job_id: str) -> StoreQuery[frozenset[str]]:
    """Return the query of the digests of the results that a removed job had; none without a tombstone."""
    return query(_taken, "GET", keys.joborder_tombstone(job_id))


def _instant(found: str | None) -> int | None:
    instant = found.partition(" ")[0] if found else ""
    return int(instant) if instant.isascii() and instant.isdecimal() else None


def _taken(found: str | None) -> frozenset[str]:
    return frozenset(found.split(" ")[1:] if found else ())


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
