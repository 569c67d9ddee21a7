"""How long the lease of this instance certainly lasts: until then no other instance takes over its work."""

import time
from collections.abc import Callable
from typing import Final

from edge.store.lease_watch import JITTER_S, LIFETIME_S

MARGIN_S: Final = 0.5
"""Taken off each term: the time in which a message that was sent reaches its device."""


def _boot_seconds() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class OwnLease:
    """The term of the lease of this instance, by a clock that is never set and counts the time of a suspended host.

    Another instance sees the lease end no earlier than its lifetime after a renewal has left. A process that was frozen
    for longer finds its lease uncertain, and the next renewal begins another term.
    """

    def __init__(self, clock: Callable[[], float] = _boot_seconds) -> None:
        self.clock = clock
        self.term = 0
        """The number of the term; what this instance held in an earlier one may have been taken over."""
        self._until = float("-inf")

    @property
    def is_certain(self) -> bool:
        """Whether no other instance can take over now."""
        return self.clock() < self._until

    def note_renewed(self, sent_at: float) -> None:
        """Record a renewal that has left at `sent_at` and was committed by now."""
        if not self.is_certain:
            self.term += 1
        self._until = sent_at + LIFETIME_S - JITTER_S - MARGIN_S
