"""The locks of a run: those that it holds, those for which it waits, and what a decision changed of them."""

from __future__ import annotations

import msgspec
from msgspec import Struct


class RunLocks(msgspec.Struct, frozen=True, omit_defaults=True):
    """The locks of a run. Instants are milliseconds since the Unix epoch.

    While the run waits, `entering` names the steps that a transition is about to enter and `wanted` all locks that they
    need beyond those of the active steps; `held` may hold some of them already. Without the rest at `deadline` the run
    fails. `forced` holds the places of transitions that a person has forced, and that wait for their locks.
    """

    held: tuple[str, ...] = ()
    entering: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    since: int = 0
    deadline: int | None = None
    forced: tuple[int, ...] = ()

    @property
    def claimed(self) -> frozenset[str]:
        """Return the locks that the run holds or waits for."""
        return frozenset(self.held).union(self.wanted)

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the locks for which the run waits, in the order in which they are acquired."""
        return tuple(text for text in self.wanted if text not in self.held)


NO_LOCKS = RunLocks()
"""The locks of a run that neither holds a lock nor waits for one."""


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
