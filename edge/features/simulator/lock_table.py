"""The locks of a simulation: those that wait hold a lock in the order in which they came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from edge.access.lock_queue import acquire, is_held_by, release
from edge.model.lock import LockClaim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edge.model.lock import Lock
    from edge.sfc.lock_change import LockChange


class LockTable(Struct):
    """The holder of each lock, and those that wait for it."""

    locks: dict[str, Lock] = field(default_factory=dict)

    def change(self, job_id: str, change: LockChange, now: int) -> list[str]:
        """Apply what a decision does with the locks of its job; return the jobs that may go on."""
        woken = []
        for name in change.names:
            if name in change.released:
                after = release(self.locks.pop(name), job_id, now)
                if after is not None:
                    self.locks[name] = after
                    woken.append(after.holder.owner)
        return [*woken, job_id] if change.claimed else woken

    def acquire(self, job_id: str, names: Sequence[str], now: int) -> bool:
        """Acquire locks in their order up to the first that is not free; return whether the job holds all of them."""
        for name in names:
            self.locks[name] = acquire(self.locks.get(name), LockClaim(owner=job_id, since=now))
            if not is_held_by(self.locks[name], job_id):
                return False
        return True
