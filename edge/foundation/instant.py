"""Reads the wall clock and the time zone of this machine; counts durations in a histogram."""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import accumulate

Clock = Callable[[], int]
"""Returns the present instant in milliseconds since the epoch."""


def local(instant: datetime) -> datetime:
    """Return an instant in the time zone of this machine; one without a zone is local.

    At the ends of the years 1 to 9999, where the local time lies beyond them, it keeps its own zone.
    """
    try:
        return instant.astimezone()
    except (OverflowError, ValueError, OSError):
        return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def now_ms() -> int:
    """Return the present instant in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class Latency:
    """A histogram of durations in seconds; `bounds` are the upper ones, each included, in rising order."""

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self.total = 0.0
        """The sum of all durations, in seconds."""

    def record(self, seconds: float) -> None:
        """Record one duration."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.total += seconds

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """Yield for each bound, and last for infinity, the number of durations up to it."""
        yield from zip((*self._bounds, float("inf")), accumulate(self._counts), strict=True)
