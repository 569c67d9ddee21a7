"""Decides who holds a lock: fair, with leases.

A lock that is free is None. Every decision first drops the claims whose lease has ended: the next that waits continues.
"""

from msgspec.structs import replace

from edge.model.lock import Lock, LockClaim


def acquire(lock: Lock | None, claim: LockClaim) -> Lock:
    """Return the lock after a claim, made at its `since`: its owner holds the lock, or waits behind the others.

    The claim of an owner that holds the lock or waits for it renews the lease, and keeps the place.
    """
    now = claim.since
    lock = expire(lock, now)
    if lock is None:
        return Lock(holder=claim)
    if lock.holder.owner == claim.owner:
        return replace(lock, holder=_renewed(lock.holder, claim))
    if any(waiter.owner == claim.owner for waiter in lock.waiters):
        waiters = (_renewed(waiter, claim) if waiter.owner == claim.owner else waiter for waiter in lock.waiters)
        return replace(lock, waiters=tuple(waiters))
    return replace(lock, waiters=(*lock.waiters, claim))


def release(lock: Lock | None, owner: str, now: int) -> Lock | None:
    """Return the lock without the claims of an owner; the next that waits holds it."""
    if lock is None:
        return None
    waiters = tuple(waiter for waiter in lock.waiters if waiter.owner != owner)
    if lock.holder.owner != owner:
        return expire(replace(lock, waiters=waiters), now)
    return _next(waiters, now)


def expire(lock: Lock | None, now: int) -> Lock | None:
    """Return the lock without the claims whose lease has ended."""
    if lock is None:
        return None
    if lock.holder.has_expired(now):
        return _next(lock.waiters, now)
    waiters = tuple(waiter for waiter in lock.waiters if not waiter.has_expired(now))
    return lock if waiters == lock.waiters else replace(lock, waiters=waiters)


def is_held_by(lock: Lock | None, owner: str) -> bool:
    """Return whether an owner holds the lock."""
    return lock is not None and lock.holder.owner == owner


def _next(waiters: tuple[LockClaim, ...], now: int) -> Lock | None:
    alive = [waiter for waiter in waiters if not waiter.has_expired(now)]
    return Lock(holder=replace(alive[0], since=now), waiters=tuple(alive[1:])) if alive else None


def _renewed(before: LockClaim, claim: LockClaim) -> LockClaim:
    return replace(before, until=claim.until, reason=claim.reason or before.reason)
