"""Judges the leases of node tasks by the worker's own clock: the idle time of an entry is by the clock of the server.

After a failover to a server whose clock is a minute ahead, every task looks a minute older: those of live workers must
not be taken. What counts is that an entry has not been renewed while this worker watched.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

RELEASED_MS: Final = 86_400_000
"""The idle time of a task that its worker has released: it is taken at once."""
_SLACK_S: Final = 0.5
"""How much less than the time between two looks an entry may have aged without a renewal."""


class PendingTask(Struct, frozen=True):
    """An entry that a worker has taken, and the time since it was taken or renewed, by the clock of the server."""

    entry_id: str
    consumer: str
    idle_ms: int


class _Watched(Struct, frozen=True):
    """The last look at an entry, and since when it has not been renewed, in seconds of the worker's clock."""

    pending: PendingTask
    looked: float
    since: float


class TaskLeases:
    """Records since when the entries of each kind have not been renewed."""

    def __init__(self, lease_ms: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Create an empty record; a lease ends `lease_ms` after the first look without a renewal since."""
        self._lease_s = lease_ms / 1000
        self._clock = clock
        self._watched: dict[str, dict[str, _Watched]] = {}

    def expired(self, kind: str, pending: Sequence[PendingTask]) -> list[PendingTask]:
        """Return the entries of a kind whose lease has ended, by all entries as they were just read."""
        now, before = self._clock(), self._watched.get(kind, {})
        after = {each.entry_id: self._look(before.get(each.entry_id), each, now) for each in pending}
        self._watched[kind] = after
        return [
            each.pending
            for each in after.values()
            if each.pending.idle_ms >= RELEASED_MS or now - each.since >= self._lease_s
        ]

    def _look(self, last: _Watched | None, pending: PendingTask, now: float) -> _Watched:
        if last is None or last.pending.consumer != pending.consumer:
            return _Watched(pending, now, now)
        aged_s = (pending.idle_ms - last.pending.idle_ms) / 1000
        was_renewed = aged_s < now - last.looked - _SLACK_S
        return _Watched(pending, now, now if was_renewed else last.since)


def pending_tasks(reply: Sequence[Sequence[Any]]) -> list[PendingTask]:
    """Return the entries of a reply of XPENDING with its extended form."""
    return [PendingTask(str(entry_id), str(consumer), int(idle)) for entry_id, consumer, idle, _ in reply]
