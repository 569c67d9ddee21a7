"""What a client reads of a history, part by part: the range that is left, and the encoded values of one part."""

from collections.abc import Sequence
from typing import Any, Final

from asyncua import ua
from msgspec import Struct

from edge.ports.sample_lines import Sample

VALUES_PER_NODE: Final = 10_000
"""Values of one node in an answer."""


class Raw(Struct, frozen=True):
    """Raw values: from `start` to before `end`, backwards when `end` is the earlier one; None is open."""

    tag: str
    start: int | None
    end: int | None
    limit: int
    bounds: bool = False
    cursor: str = ""
    is_continued: bool = False
    kept: tuple[Sample, ...] = ()
    """Samples that were read already and did not fit."""
    is_read: bool = False
    """Whether only the bound at the end is left."""

    @property
    def is_backward(self) -> bool:
        """Return whether the newest value comes first."""
        return self.start is None or (self.end is not None and self.end < self.start)


class Processed(Struct, frozen=True):
    """An aggregate for each interval from `start` to `end`."""

    tag: str
    start: int
    end: int
    interval: int
    aggregate: str
    uncertain_is_bad: bool = False
    done: int = 0


class AtTime(Struct, frozen=True):
    """The value at each instant."""

    tag: str
    times: tuple[int, ...]
    done: int = 0


class HistoryPart(Struct, frozen=True):
    """A part of an answer: encoded values or an event list, their number, and what is left to read."""

    values: Sequence[bytes]
    count: int
    rest: Any = None
    status: int = 0
    events: ua.ExtensionObject | None = None

    @property
    def size(self) -> int:
        """The bytes of the values or events."""
        return len(self.events.Body or b"") if self.events is not None else sum(map(len, self.values))
