"""Failed logins, used one-time codes and used recovery codes, under the keys `2fa:`."""

import hashlib
from typing import Final

from edge.store.client import Store
from edge.store.commit import Absent, Commit, Committed, Holds, operation

CODES: Final = "codes"
"""Stands for all addresses in the attempts of a user with wrong codes."""
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


def _attempt_key(store: Store, attempt: tuple[str, ...]) -> str:
    # Names come from clients, before they are known to be users.
    text = "\n".join(attempt).encode(errors="surrogatepass")
    return store.keys.login_attempt(hashlib.sha256(text).hexdigest()[:32])


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) <= _MOST_DIGITS
