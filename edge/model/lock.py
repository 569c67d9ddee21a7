"""Locks as they are stored: their holder, and those that wait for them."""

from enum import StrEnum

from msgspec import Struct


class LockKind(StrEnum):
    """What a lock protects.

    Equipment is held by jobs, the station while its settings are applied, a job during a manual intervention, an
    operation while it runs: one at a time.
    """

    EQUIPMENT = "equipment"
    STATION = "station"
    JOB = "job"
    OPERATION = "operation"


class LockClaim(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The owner of a lock or of a place among those that wait; instants are milliseconds of the store's clock.

    `until` is the end of the lease, which its owner renews; without it the claim lasts until it is released or deleted.
    A claim with a `job_id` is that of a job of `scope`: it needs no lease, for the job outlives its gateway.
    """

    owner: str
    reason: str = ""
    since: int
    until: int | None = None
    job_id: str = ""
    scope: str = ""

    def has_expired(self, now: int) -> bool:
        """Return whether the lease has ended: its owner is dead."""
        return self.until is not None and self.until <= now


class Lock(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A lock that is held; those that wait get it in their order."""

    holder: LockClaim
    waiters: tuple[LockClaim, ...] = ()
