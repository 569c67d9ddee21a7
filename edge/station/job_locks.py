"""Acquires and releases the locks of a job in the commit of the decision that asks for them."""

from collections.abc import Iterable, Mapping

from edge.access.lock_queue import acquire, is_held_by, release
from edge.model.lock import LockClaim, LockKind
from edge.sfc.run_locks import LockChange
from edge.store import locks
from edge.store.client import Store
from edge.store.commit import Commit, join
from edge.store.server_time import server_time


def owner_of(job_id: str) -> str:
    """Return the name of a job as the owner of locks."""
    return f"job {job_id}"


def claim_of(job_id: str, scope: str, reason: str, now: int) -> LockClaim:
    """Return the claim of a job, which lasts until the job releases it."""
    return LockClaim(owner=owner_of(job_id), reason=reason, since=now, job_id=job_id, scope=scope)


async def plan_locks(store: Store, job_id: str, scope: str, change: LockChange) -> Commit | None:
    """Return the commit that applies `change`; None when another owner took a lock that `change` grants.

    Locks are claimed in the order of their ids, up to the first one that is not free: a job waits for one lock at a
    time.
    """
    now = await server_time(store)
    claim = claim_of(job_id, scope, change.reason, now)
    waits = False
    parts = []
    for before in await locks.load(store, LockKind.EQUIPMENT, change.names):
        after, name = before.lock, before.object_id
        if name in change.released:
            after = release(after, claim.owner, now)
        if name in change.granted or (name in change.claimed and not waits):
            after = acquire(after, claim)
            if name in change.granted and not is_held_by(after, claim.owner):
                return None
            waits = waits or not is_held_by(after, claim.owner)
        parts.append(locks.save(store.keys, before, after))
    return join(parts)


async def lock_holders(store: Store, names: Iterable[str]) -> Mapping[str, str]:
    """Return who holds each of these locks, as text."""
    found = {}
    now = await server_time(store)
    for stored_lock in await locks.load(store, LockKind.EQUIPMENT, names):
        if stored_lock.lock:
            holder, waiting = stored_lock.lock.holder, len(stored_lock.lock.waiters)
            reason = f" ({holder.reason})" if holder.reason else ""
            held = f"held by {holder.owner}{reason} for {max(0, now - holder.since) / 1000:.0f} s"
            found[stored_lock.object_id] = held + (f", {waiting} waiting" if waiting > 1 else "")
    return found
