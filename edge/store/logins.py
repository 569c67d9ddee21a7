"""The sessions of OPC UA and of the command line, failed logins, and the one-time and recovery codes used."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from edge.model.user import Session
from edge.store.client import Store
from edge.store.commit import Absent, Commit, Committed, Holds, join, operation
from edge.store.keys import Keys


def put_session(keys: Keys, id: str, session: Session, lifetime_ms: int) -> Commit:
    """Write a session, for `lifetime_ms` unless it is renewed."""
    return operation("SET", keys.session(id), msgspec.json.encode(session).decode(), "PX", lifetime_ms)


def renew_session(keys: Keys, id: str, lifetime_ms: int) -> Commit:
    """Renew the lifetime of a session."""
    return operation("PEXPIRE", keys.session(id), lifetime_ms)


def touch_session(keys: Keys, id: str, at: datetime) -> Commit:
    """Write the last activity of a session."""
    text = at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return operation("HSET", keys.last_activity(), id, text)


def remove_sessions(keys: Keys, ids: Iterable[str]) -> Commit:
    """Remove sessions with their last activity."""
    return join(Commit(operations=(("DEL", keys.session(id)), ("HDEL", keys.last_activity(), id))) for id in ids)


async def load_sessions(store: Store, ids: Sequence[str]) -> dict[str, Session]:
    """Return the sessions of these ids; one that is not stored, or cannot be read, is missing."""
    replies = await store.read([("GET", store.keys.session(id)) for id in ids])
    found = ((id, _session(reply)) for id, reply in zip(ids, replies, strict=True))
    return {id: session for id, session in found if session is not None}


async def load_last_activity(store: Store) -> Mapping[str, str]:
    """Return the last activity of each session by its id."""
    found: Mapping[str, str] = await store.execute("HGETALL", store.keys.last_activity())
    return found


async def load_all_sessions(store: Store) -> dict[str, tuple[Session, str]]:
    """Return every session with its last activity, the one active last first; remove the activity of ended ones."""
    activity = await load_last_activity(store)
    sessions = await load_sessions(store, list(activity))
    if gone := activity.keys() - sessions.keys():
        await store.commit(remove_sessions(store.keys, sorted(gone)))
    return {id: (sessions[id], activity[id]) for id in sorted(sessions, key=lambda id: activity[id], reverse=True)}


def _session(text: str | None) -> Session | None:
    try:
        return msgspec.json.decode(text, type=Session) if text else None
    except (msgspec.DecodeError, RecursionError):
        return None


CODES: Final = "codes"
"""Stands for all addresses in the attempts of a user with wrong codes."""
PINS: Final = "pins"
"""Stands for all panels in the attempts of a user with wrong PINs."""
_STEP_MS = 10 * 60 * 1000
"""How long a used code is remembered; it is valid for 90 seconds."""
_MOST_DIGITS = 18


async def load_failures(store: Store, attempt: tuple[str, ...]) -> tuple[int, float] | None:
    """Return the failures of an attempt and the seconds that it still waits; None when there are none."""
    key = _attempt_key(store, attempt)
    text, left_ms = await store.read([("GET", key), ("PTTL", key)])
    count, _, remembered_ms = (text or "").partition(" ")
    if not (_is_number(count) and _is_number(remembered_ms)):
        return None
    return int(count), max(0, int(left_ms) - int(remembered_ms)) / 1000


async def save_failures(
    store: Store, attempt: tuple[str, ...], count: int, wait_s: float, remember_s: float
) -> int | None:
    """Save the failures of an attempt; they are remembered for `remember_s` after the end of its wait.

    Return how many are stored when another gateway has stored as many or more: nothing is saved then.
    """
    key, remember_ms = _attempt_key(store, attempt), round(remember_s * 1000)
    text, lifetime_ms = f"{count} {remember_ms}", remember_ms + round(wait_s * 1000)
    while True:
        before = await store.execute("GET", key)
        stored = (before or "").partition(" ")[0]
        if _is_number(stored) and int(stored) >= count:
            return int(stored)
        guard = Absent(key) if before is None else Holds(key, before)
        commit = Commit((guard,), (("SET", key, text, "PX", lifetime_ms),))
        if isinstance(await store.commit(commit), Committed):
            return None


async def clear_failures(store: Store, attempt: tuple[str, ...]) -> None:
    """Remove the failures of an attempt."""
    await store.commit(operation("DEL", _attempt_key(store, attempt)))


async def use_step(store: Store, name: str, step: int) -> bool:
    """Mark a time step as used; return False when it or a later one was used."""
    key = store.keys.used_totp(name)
    while True:
        before = await store.execute("GET", key)
        if before is not None and _is_number(before) and step <= int(before):
            return False
        guard = Absent(key) if before is None else Holds(key, before)
        commit = Commit((guard,), (("SET", key, str(step), "PX", _STEP_MS),))
        if isinstance(await store.commit(commit), Committed):
            return True


async def use_recovery_code(store: Store, name: str, digest: str) -> bool:
    """Mark a recovery code as used; return False when it was used before."""
    key = store.keys.used_recovery(name)
    while True:
        before = await store.execute("GET", key)
        used = (before or "").split()
        if digest in used:
            return False
        guard = Absent(key) if before is None else Holds(key, before)
        commit = Commit((guard,), (("SET", key, " ".join((*used, digest))),))
        if isinstance(await store.commit(commit), Committed):
            return True


async def forget_user(store: Store, name: str) -> None:
    """Remove the used and the wrong codes of a user, whose second factor was renewed or removed."""
    wrong = _attempt_key(store, (CODES, name))
    await store.commit(operation("DEL", store.keys.used_totp(name), store.keys.used_recovery(name), wrong))


async def forget_wrong_pins(store: Store, name: str) -> None:
    """Remove the wrong PINs of a user, whose PIN was set or removed."""
    await clear_failures(store, (PINS, name))


def _attempt_key(store: Store, attempt: tuple[str, ...]) -> str:
    # Names come from clients, before they are known to be users.
    text = "\n".join(attempt).encode(errors="surrogatepass")
    return store.keys.login_attempt(hashlib.sha256(text).hexdigest()[:32])


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) <= _MOST_DIGITS
