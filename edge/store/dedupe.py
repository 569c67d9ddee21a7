"""Mark each CloudEvent and transaction in the commit of its effect, so that its repetition has none.

A mark lives as long as a broker may deliver the message again: `[retention] dedupe` covers the expiry of our session
plus the interval at which the broker saves its database. A removed job order leaves a tombstone for the same time: an
order that was sent before the removal does not restore it. While as many marks as allowed are kept, none is dropped:
what begins new work is refused, what ends work or keeps a result is not.
"""

import hashlib
from typing import TypeVar

import msgspec

from edge.errors import Refused
from edge.store.client import Store
from edge.store.commit import Absent, Commit
from edge.store.keys import Keys
from edge.store.query import StoreQuery, query

_T = TypeVar("_T")


def _digest(space: str, name: str) -> str:
    # The length separates the two parts: ("a", "bc") and ("ab", "c") differ.
    return hashlib.sha256(f"{len(space)}:{space}{name}".encode()).hexdigest()[:32]


def _key(keys: Keys, source: str, event_id: str) -> str:
    return keys.cededupe(_digest(source, event_id))


def mark_transaction(keys: Keys, scope: str, transaction_id: str, answer: str, lifetime_ms: int) -> Commit:
    """Mark a transaction with its answer; Stale when it was marked already."""
    return _mark(keys.transdedupe(_digest(scope, transaction_id)), answer, lifetime_ms)


def transaction_is_new(keys: Keys, scope: str, transaction_id: str) -> Commit:
    """Require that a transaction has not been answered meanwhile."""
    return Commit(guards=(Absent(keys.transdedupe(_digest(scope, transaction_id))),))


def mark(keys: Keys, source: str, event_id: str, answer: str, lifetime_ms: int) -> Commit:
    """Mark an event with its answer; Stale when it was marked already."""
    return _mark(_key(keys, source, event_id), answer, lifetime_ms)


def _mark(key: str, answer: str, lifetime_ms: int) -> Commit:
    return Commit(guards=(Absent(key),), operations=(("SET", key, answer, "PX", lifetime_ms),))


def query_answer(keys: Keys, source: str, event_id: str) -> StoreQuery[str | None]:
    """Return the query of the answer given to an event; its value is None when the event is new."""
    return query(_as_it_is, "GET", _key(keys, source, event_id))


def query_transaction_answer(keys: Keys, scope: str, transaction_id: str) -> StoreQuery[str | None]:
    """Return the query of the answer given in a transaction; its value is None when the transaction is new."""
    return query(_as_it_is, "GET", keys.transdedupe(_digest(scope, transaction_id)))


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


def room_fault(store: Store) -> str:
    """Return why no new mark may be written now; empty while there is room."""
    if not store.marks.is_full:
        return ""
    return (
        f"the store holds {store.marks.count} marks of messages, {store.marks.limit} are allowed; "
        "find the sender of these messages, raise [retention] marks, or wait until old marks expire"
    )


def bury(keys: Keys, job_id: str, removed_at: int, lifetime_ms: int) -> Commit:
    """Write the tombstone of a removed job order: the instant of its removal, by the clock of whoever asked for it."""
    return Commit(operations=(("SET", keys.joborder_tombstone(job_id), removed_at, "PX", lifetime_ms),))


def query_removal(keys: Keys, job_id: str) -> StoreQuery[int | None]:
    """Return the query of the removal of a job order, in milliseconds since the epoch; None without a tombstone."""
    return query(_instant, "GET", keys.joborder_tombstone(job_id))


def _instant(found: str | None) -> int | None:
    return int(found) if found and found.isascii() and found.isdecimal() else None
