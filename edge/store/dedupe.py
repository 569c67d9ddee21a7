"""Marks each CloudEvent in the commit that had its effect, so that a second delivery changes nothing."""

import hashlib

from edge.store.client import Store
from edge.store.commit import Absent, Commit, Operation
from edge.store.keys import Keys


def _key(keys: Keys, source: str, event_id: str) -> str:
    # The length tells where the source ends: ("a", "bc") and ("ab", "c") are two events.
    return keys.cededupe(hashlib.sha256(f"{len(source)}:{source}{event_id}".encode()).hexdigest()[:32])


def mark(keys: Keys, source: str, event_id: str, answer: str, lifetime_ms: int) -> Commit:
    """Remember the answer given to an event; Stale when it was marked already."""
    key = _key(keys, source, event_id)
    return Commit(guards=(Absent(key),), operations=(Operation("SET", (key, answer, "PX", lifetime_ms)),))


async def answer_given(store: Store, source: str, event_id: str) -> str | None:
    """Give the answer remembered for an event; None when it is new."""
    answer: str | None = await store.execute("GET", _key(store.keys, source, event_id))
    return answer
