"""Marks each CloudEvent, and each transaction, in the commit that had its effect, so that a second changes nothing."""

import hashlib

from edge.store.client import Store
from edge.store.commit import Absent, Commit, RedisCommand
from edge.store.keys import Keys


def _digest(space: str, name: str) -> str:
    # The length tells where the first ends: ("a", "bc") and ("ab", "c") are two.
    return hashlib.sha256(f"{len(space)}:{space}{name}".encode()).hexdigest()[:32]


def _key(keys: Keys, source: str, event_id: str) -> str:
    return keys.cededupe(_digest(source, event_id))


def mark_transaction(keys: Keys, scope: str, transaction_id: str, answer: str, lifetime_ms: int) -> Commit:
    """Remember the answer given in a transaction; Stale when it was marked already."""
    return _mark(keys.transdedupe(_digest(scope, transaction_id)), answer, lifetime_ms)


def transaction_is_new(keys: Keys, scope: str, transaction_id: str) -> Commit:
    """Demand that no answer was given in a transaction meanwhile."""
    return Commit(guards=(Absent(keys.transdedupe(_digest(scope, transaction_id))),))


async def load_transaction_answer(store: Store, scope: str, transaction_id: str) -> str | None:
    """Give the answer remembered for a transaction of a scope; None when it is new."""
    answer: str | None = await store.execute("GET", store.keys.transdedupe(_digest(scope, transaction_id)))
    return answer


def mark(keys: Keys, source: str, event_id: str, answer: str, lifetime_ms: int) -> Commit:
    """Remember the answer given to an event; Stale when it was marked already."""
    return _mark(_key(keys, source, event_id), answer, lifetime_ms)


def _mark(key: str, answer: str, lifetime_ms: int) -> Commit:
    return Commit(guards=(Absent(key),), operations=(RedisCommand("SET", (key, answer, "PX", lifetime_ms)),))


async def load_answer(store: Store, source: str, event_id: str) -> str | None:
    """Give the answer remembered for an event; None when it is new."""
    answer: str | None = await store.execute("GET", _key(store.keys, source, event_id))
    return answer
