"""Counts durations in a histogram; recording one takes less than a microsecond."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate


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
