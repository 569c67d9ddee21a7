"""What is kept in bounded number: marks of repeated messages, and results that the MES has not received."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

ALARM_PART: Final = 0.5
"""The part of a limit from which on a count is reported: there is still as much time again to do something."""


class BoundedCount(Struct, frozen=True):
    """A number and its limit; a limit of 0 is none."""

    count: int = 0
    limit: int = 0

    @property
    def fullness(self) -> float:
        """The part of the limit that is used, 0.0 without a limit."""
        return self.count / self.limit if self.limit else 0.0

    @property
    def is_nearly_full(self) -> bool:
        """Whether it is time to do something."""
        return self.fullness >= ALARM_PART

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return self.fullness >= 1.0


class MarksBySender(Struct, frozen=True):
    """The marks of each sender, such as `events:wrench`, with its share; and those of the events of all equipment."""

    senders: Mapping[str, BoundedCount] = field(default_factory=lambda: MappingProxyType({}))
    events: BoundedCount = BoundedCount()

    def is_near(self, sender: str) -> bool:
        """Return whether a sender has used half of its share."""
        return self.senders.get(sender, BoundedCount()).is_nearly_full

    @property
    def nearly_full(self) -> Mapping[str, BoundedCount]:
        """Return the senders that have used half of their share, the fullest first."""
        near = sorted(self.senders.items(), key=lambda item: -item[1].fullness)
        return {sender: count for sender, count in near if count.is_nearly_full}


class BoundedCounts(Struct, frozen=True):
    """The marks of the store, also by sender; the results of each scope that are kept beyond their time.

    `undelivered` counts those that no subscriber has got, `unconfirmed` all that the MES has not confirmed.
    """

    marks: BoundedCount = BoundedCount()
    undelivered: Mapping[str, BoundedCount] = field(default_factory=lambda: MappingProxyType({}))
    by_sender: MarksBySender = MarksBySender()
    unconfirmed: Mapping[str, BoundedCount] = field(default_factory=lambda: MappingProxyType({}))


class CountLimits(Struct, frozen=True):
    """The limits of a gateway, by its settings; 0 is none."""

    scopes: Sequence[str] = ()
    marks: int = 0
    undelivered: int = 0


NO_LIMITS: Final = CountLimits()
