"""The lock methods that the MES and sidecars call, and their answer."""

from datetime import datetime

from edge.model.instant import utc
from edge.model.isa95 import Payload, ReturnStatus
from edge.model.lock import Lock, LockClaim, LockKind


class LockCall(Payload, frozen=True, kw_only=True):
    """Which locks are meant: of one kind, of some objects; without both all. `force` also deletes those of the living.

    `by` is the person behind the call.
    """

    kind: LockKind | None = None
    ids: tuple[str, ...] = ()
    force: bool = False
    by: str = ""


class LockOwner(Payload, frozen=True, kw_only=True):
    """An owner that holds a lock or waits for it; `alive` is False when its lease, which ends at `until`, has ended."""

    owner: str
    reason: str = ""
    since: datetime
    until: datetime | None = None
    alive: bool


class LockInfo(Payload, frozen=True, kw_only=True):
    """One lock with its holder, and those that wait in their order."""

    kind: LockKind
    id: str
    holder: LockOwner
    waiters: tuple[LockOwner, ...] = ()


class LocksAnswer(Payload, frozen=True, kw_only=True):
    """The locks that a call lists, or has deleted."""

    return_status: ReturnStatus
    locks: tuple[LockInfo, ...] = ()


def lock_info(kind: LockKind, object_id: str, lock: Lock, now: int) -> LockInfo:
    """Return a lock as it is sent, judged at an instant of the store's clock."""
    waiters = tuple(_owner(waiter, now) for waiter in lock.waiters)
    return LockInfo(kind=kind, id=object_id, holder=_owner(lock.holder, now), waiters=waiters)


def _owner(claim: LockClaim, now: int) -> LockOwner:
    return LockOwner(
        owner=claim.owner,
        reason=claim.reason,
        since=utc(claim.since),
        until=None if claim.until is None else utc(claim.until),
        alive=not claim.has_expired(now),
    )
