"""Locks as they are stored, and the lock methods that the MES and sidecars call."""

from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from edge.foundation.text import ENGLISH, Text, stated_in
from edge.model.instant import Instant, milliseconds, rfc3339, utc
from edge.model.isa95 import Payload, ReturnStatus


class LockKind(StrEnum):
    """What a lock protects.

    Equipment is held by jobs, the station while its settings are applied, a job during a manual intervention, an
    operation while it runs: one at a time.
    """

    EQUIPMENT = "equipment"
    STATION = "station"
    JOB = "job"
    OPERATION = "operation"

    @property
    def text(self) -> Text:
        """Return it for people."""
        return _KINDS[self]


_KINDS: Final = {
    LockKind.EQUIPMENT: Text.of("equipment"),
    LockKind.STATION: Text.of("station"),
    LockKind.JOB: Text.of("job"),
    LockKind.OPERATION: Text.of("operation"),
}


class LockClaim(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The owner of a lock or of a place among those that wait; instants are milliseconds of the store's clock.

    `until` is the end of the lease, which its owner renews; without it the claim lasts until it is released or deleted.
    A claim with a `job_id` is that of a job of `scope`: it needs no lease, for the job outlives its gateway.
    """

    owner: str
    reason: str | Text = ""
    since: int
    until: int | None = None
    job_id: str = ""
    scope: str = ""

    @property
    def owner_text(self) -> str | Text:
        """Return the owner for people."""
        return Text.of("job {job}", job=self.job_id) if self.job_id else self.owner

    def has_expired(self, now: int) -> bool:
        """Return whether the lease has ended: its owner is dead."""
        return self.until is not None and self.until <= now


class Lock(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A lock that is held; those that wait get it in their order."""

    holder: LockClaim
    waiters: tuple[LockClaim, ...] = ()


class LockCall(Payload, frozen=True, kw_only=True):
    """Which locks are meant: of one kind, of some objects; without both all. `force` also deletes those of the living.

    `by` is the person behind the call.

    Example: {"Kind": "equipment", "Ids": ["wrench"], "Force": true, "By": "anna"}
    """

    kind: LockKind | None = None
    ids: tuple[str, ...] = ()
    force: bool = False
    by: str = ""


class LockOwner(Payload, frozen=True, kw_only=True):
    """An owner that holds a lock or waits for it; `alive` is False when its lease, which ends at `until`, has ended.

    Example: {"Owner": "ORDER-1001", "Since": "2026-11-26T16:42:05Z", "Alive": true}
    """

    owner: str
    reason: str = ""
    since: datetime
    until: datetime | None = None
    alive: bool


class LockInfo(Payload, frozen=True, kw_only=True):
    """One lock with its holder, and those that wait in their order.

    Example: {"Kind": "equipment", "ID": "wrench", "Holder": "…"}
    """

    kind: LockKind
    id: str
    holder: LockOwner
    waiters: tuple[LockOwner, ...] = ()


class LocksAnswer(Payload, frozen=True, kw_only=True):
    """The locks that a call lists, or has deleted.

    Example: {"ReturnStatus": 1, "Locks": "…"}
    """

    return_status: ReturnStatus
    locks: tuple[LockInfo, ...] = ()


def lock_info(kind: LockKind, object_id: str, lock: Lock, now: int, language: str = ENGLISH) -> LockInfo:
    """Return a lock as it is sent, in a language, judged at an instant of the store's clock."""
    waiters = tuple(_owner(waiter, now, language) for waiter in lock.waiters)
    return LockInfo(kind=kind, id=object_id, holder=_owner(lock.holder, now, language), waiters=waiters)


def _owner(claim: LockClaim, now: int, language: str) -> LockOwner:
    return LockOwner(
        owner=stated_in(claim.owner_text, language),
        reason=stated_in(claim.reason, language),
        since=utc(claim.since),
        until=None if claim.until is None else utc(claim.until),
        alive=not claim.has_expired(now),
    )


class PublicLock(Struct, frozen=True, kw_only=True):
    """A lock as `--json` and the HTTP API state it: its holder, and the owners that wait for it in their order.

    `alive` is False when the lease of the holder, which ends at `until`, has ended; without `until` it has none.
    """

    kind: LockKind
    id: str
    owner: str
    reason: str
    since: Instant
    until: Instant | None
    alive: bool
    waiters: tuple[str, ...]


def public_lock(info: LockInfo) -> PublicLock:
    """Return the public form of a lock."""
    holder = info.holder
    return PublicLock(
        kind=info.kind,
        id=info.id,
        owner=holder.owner,
        reason=holder.reason,
        since=rfc3339(milliseconds(holder.since)),
        until=None if holder.until is None else rfc3339(milliseconds(holder.until)),
        alive=holder.alive,
        waiters=tuple(waiter.owner for waiter in info.waiters),
    )
