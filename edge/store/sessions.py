"""The sessions of OPC UA and of the command line, with the instant of their last activity."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from edge.model.session import Session
from edge.store.client import Store
from edge.store.commit import Commit, join, operation
from edge.store.keys import Keys


def put(keys: Keys, id: str, session: Session, lifetime_ms: int) -> Commit:
    """Write a session, for `lifetime_ms` unless it is renewed."""
    return operation("SET", keys.session(id), msgspec.json.encode(session).decode(), "PX", lifetime_ms)


def renew(keys: Keys, id: str, lifetime_ms: int) -> Commit:
    """Renew the lifetime of a session."""
    return operation("PEXPIRE", keys.session(id), lifetime_ms)


def touch(keys: Keys, id: str, at: datetime) -> Commit:
    """Write the last activity of a session."""
    text = at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return operation("HSET", keys.last_activity(), id, text)


def remove(keys: Keys, ids: Iterable[str]) -> Commit:
    """Remove sessions with their last activity."""
    return join(Commit(operations=(("DEL", keys.session(id)), ("HDEL", keys.last_activity(), id))) for id in ids)


async def load(store: Store, ids: Sequence[str]) -> dict[str, Session]:
    """Return the sessions of these ids; one that is not stored, or cannot be read, is missing."""
    replies = await store.read([("GET", store.keys.session(id)) for id in ids])
    found = ((id, _session(reply)) for id, reply in zip(ids, replies, strict=True))
    return {id: session for id, session in found if session is not None}


async def load_last_activity(store: Store) -> Mapping[str, str]:
    """Return the last activity of each session by its id."""
    found: Mapping[str, str] = await store.execute("HGETALL", store.keys.last_activity())
    return found


async def load_all(store: Store) -> dict[str, tuple[Session, str]]:
    """Return every session with its last activity, the one active last first; remove the activity of ended ones."""
    activity = await load_last_activity(store)
    found = await load(store, list(activity))
    if gone := activity.keys() - found.keys():
        await store.commit(remove(store.keys, sorted(gone)))
    return {id: (found[id], activity[id]) for id in sorted(found, key=lambda id: activity[id], reverse=True)}


def _session(text: str | None) -> Session | None:
    try:
        return msgspec.json.decode(text, type=Session) if text else None
    except (msgspec.DecodeError, RecursionError):
        return None
