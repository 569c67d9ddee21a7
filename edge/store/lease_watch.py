"""Judges leases by the observer's own clock: a lease has ended when its value has been unchanged for four seconds.

No expiry and no clock of a server takes part: an expiry is an instant, and a replica whose clock is wrong prolongs or
shortens it.
"""

import itertools
import time
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

LIFETIME_S: Final = 4.0
"""How long an unchanged value counts as a live lease."""
RENEW_EVERY_S: Final = 2.0
JITTER_S: Final = 0.1
"""How much earlier than its second a look or a renewal may come."""
_GAP_S: Final = 2.0
"""After so long without a look this process or the store was stopped: the holders may have been stopped too."""

_numbers = itertools.count(1)


def lease_value(token: str) -> str:
    """Return the next value of a lease of a token: no value of one process repeats."""
    return f"{token}:{next(_numbers)}"


class LeaseValue(Struct, frozen=True):
    """The parts of a lease: the token of its holder, and a counter; None in the former form, which had an expiry."""

    token: str
    counter: int | None


def parse_lease(text: str) -> LeaseValue:
    """Return the parts of a lease as stored."""
    token, _, counter = text.rpartition(":")
    if token and counter.isascii() and counter.isdecimal():
        return LeaseValue(token, int(counter))
    return LeaseValue(text, None)


class _Seen(Struct, frozen=True):
    """A value and the instant of its first look, in seconds of the observer's clock."""

    text: str
    since: float


class LeaseWatch:
    """Records when the value of each lease was first seen.

    An absent lease has ended at once: its holder released it. A lease of the former form, without a counter,
    never ends by age, because its holder renews only the expiry.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self._looked = 0.0

    def observe(self, values: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return which of the leases that were just read have ended, with the value by which a take-over is guarded."""
        now = self._clock()
        if now - self._looked > _GAP_S:
            self._seen.clear()
        self._looked = now
        return {name: text for name, text in values.items() if self._has_ended(name, text, now)}

    def _has_ended(self, name: str, text: str | None, now: float) -> bool:
        if text is None:
            self._seen.pop(name, None)
            return True
        seen = self._seen.get(name)
        if seen is None or seen.text != text:
            self._seen[name] = _Seen(text, now)
            return False
        return parse_lease(text).counter is not None and now - seen.since >= LIFETIME_S - JITTER_S


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
