"""What a simulation has planned: the script's entries and the answers of equipment, instant by instant."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import count
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

_T = TypeVar("_T")


class EventRank(IntEnum):
    """What happens at one instant happens in this order."""

    SET = 0
    START = 1
    TIMELINE = 2
    ANSWER = 3


@dataclass(slots=True)
class EventQueue(Generic[_T]):
    """Gives what is planned in order of time, then of rank, then as it was planned; instants are milliseconds."""

    _planned: list[tuple[int, EventRank, int, _T]] = field(default_factory=list)
    _order: Iterator[int] = field(default_factory=count)

    @property
    def next_at(self) -> int | None:
        """The instant of what comes next; None when nothing is planned."""
        return self._planned[0][0] if self._planned else None

    def push(self, at: int, rank: EventRank, what: _T) -> None:
        """Note what is to happen."""
        heapq.heappush(self._planned, (at, rank, next(self._order), what))

    def pop(self) -> tuple[int, _T]:
        """Take out what comes next, with its instant."""
        at, _, _, what = heapq.heappop(self._planned)
        return at, what


def milliseconds(seconds: float) -> int:
    """Return seconds of a script in whole milliseconds."""
    return round(seconds * 1000)
