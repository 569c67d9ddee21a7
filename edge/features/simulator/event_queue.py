"""The event queue of a simulation: the entries of the script and the answers of equipment, in order of time."""

from __future__ import annotations

import heapq
from enum import IntEnum
from itertools import count
from typing import Generic, TypeVar

_T = TypeVar("_T")


class EventRank(IntEnum):
    """The order of the events of one instant."""

    SET = 0
    START = 1
    TIMELINE = 2
    ANSWER = 3


class EventQueue(Generic[_T]):
    """A queue of planned events, ordered by instant, rank and insertion; instants are milliseconds."""

    def __init__(self) -> None:
        self._planned: list[tuple[int, EventRank, int, _T]] = []
        self._order = count()

    @property
    def next_at(self) -> int | None:
        """Return the instant of the next event; None when the queue is empty."""
        return self._planned[0][0] if self._planned else None

    def push(self, at: int, rank: EventRank, what: _T) -> None:
        """Add an event to the queue."""
        heapq.heappush(self._planned, (at, rank, next(self._order), what))

    def pop(self) -> tuple[int, _T]:
        """Remove the next event; return its instant and the event."""
        at, _, _, what = heapq.heappop(self._planned)
        return at, what


def milliseconds(seconds: float) -> int:
    """Return seconds of a script as whole milliseconds."""
    return round(seconds * 1000)
