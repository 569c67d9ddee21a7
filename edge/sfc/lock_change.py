"""Compares the locks of a run before and after a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from edge.sfc.run_locks import NO_LOCKS

if TYPE_CHECKING:
    from edge.sfc.run_locks import RunLocks


class LockChange(Struct, frozen=True):
    """What a decision does with the locks of its job: it releases some, claims others, and relies on those `granted`.

    A lock that is released and claimed goes to the end of its queue. `reason` says why locks are claimed.
    """

    released: frozenset[str] = frozenset()
    claimed: tuple[str, ...] = ()
    granted: tuple[str, ...] = ()
    reason: str = ""

    @property
    def names(self) -> list[str]:
        """Return the locks that change, in the order in which they are acquired."""
        return sorted(self.released.union(self.claimed, self.granted))


NO_LOCK_CHANGE = LockChange()
"""Changes no lock."""


def lock_change(before: RunLocks, after: RunLocks) -> LockChange:
    """Return what a decision does with the locks of its job."""
    if before is NO_LOCKS and after is NO_LOCKS:
        return NO_LOCK_CHANGE
    released = (set(before.held) - set(after.held)) | (set(before.missing) - after.claimed)
    granted = tuple(sorted(set(after.held) - set(before.held)))
    claimed = after.missing if after.missing != before.missing else ()
    if not (released or granted or claimed):
        return NO_LOCK_CHANGE
    return LockChange(frozenset(released), claimed, granted, lock_reason(after))


def lock_reason(after: RunLocks) -> str:
    """Return why a run claims locks."""
    return f"step {', '.join(after.entering)}" if after.entering else ""
