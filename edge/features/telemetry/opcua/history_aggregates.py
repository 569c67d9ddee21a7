"""Aggregates of samples over intervals (OPC 10000-13): values hold until the next one (stepped)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from asyncua import ua
from msgspec import Struct

from edge.ports.sample_lines import Quality, Sample

_I: Final = ua.ObjectIds
_CALCULATED: Final = 0x401
"""InfoType DataValue and the historian bit Calculated (OPC 10000-4, 7.39.1)."""
_PARTIAL: Final = 0x4

AGGREGATES: Final[Mapping[ua.NodeId, str]] = MappingProxyType(
    {
        ua.NodeId(_I.AggregateFunction_Average): "Average",
        ua.NodeId(_I.AggregateFunction_TimeAverage): "TimeAverage",
        ua.NodeId(_I.AggregateFunction_Minimum): "Minimum",
        ua.NodeId(_I.AggregateFunction_Maximum): "Maximum",
        ua.NodeId(_I.AggregateFunction_Count): "Count",
    }
)


class AggregateValue(Struct, frozen=True):
    """The result for one interval: its start, the value, and the status."""

    at: int
    value: Any
    status: int


class SampleInterval:
    """Collects the samples of one interval; `held` is the value that holds at its start."""

    def __init__(self, start: int, end: int, held: float | None, *, uncertain_is_bad: bool = False) -> None:
        self.start = start
        self.end = end
        self._uncertain_is_bad = uncertain_is_bad
        self._held = held
        self._since = start
        self._known_ms = 0
        self._area = 0.0
        self._count = 0
        self._bad = 0
        self._sum = 0.0
        self._least: float | None = None
        self._most: float | None = None

    def add(self, sample: Sample) -> None:
        """Add a sample; they come in order of time."""
        is_bad = sample.quality is Quality.BAD or (self._uncertain_is_bad and sample.quality is Quality.UNCERTAIN)
        number = number_of(sample)
        if is_bad or number is None:
            self._bad += 1
            return
        self._hold_until(max(sample.at, self.start))
        self._held = number
        self._count += 1
        self._sum += number
        self._least = number if self._least is None else min(self._least, number)
        self._most = number if self._most is None else max(self._most, number)

    @property
    def held(self) -> float | None:
        """The value that holds at the end."""
        return self._held

    def result(self, aggregate: str) -> AggregateValue:
        """Return an aggregate of the interval; an interval without good samples has no value."""
        if aggregate == "Count":
            return AggregateValue(self.start, self._count, _CALCULATED | self._quality())
        value = self._value(aggregate)
        if value is None:
            return AggregateValue(self.start, None, int(ua.StatusCodes.BadNoData))
        is_partial = aggregate == "TimeAverage" and self._known_ms < self.end - self.start
        return AggregateValue(self.start, value, _CALCULATED | self._quality() | (_PARTIAL if is_partial else 0))

    def _value(self, aggregate: str) -> float | None:
        match aggregate:
            case "Minimum":
                return self._least
            case "Maximum":
                return self._most
            case "Average":
                return self._sum / self._count if self._count else None
            case _:
                self._hold_until(self.end)
                return self._area / self._known_ms if self._known_ms else None

    def _quality(self) -> int:
        return int(ua.StatusCodes.UncertainDataSubNormal) if self._bad else 0

    def _hold_until(self, at: int) -> None:
        if self._held is not None and at > self._since:
            self._area += self._held * (at - self._since)
            self._known_ms += at - self._since
        self._since = max(self._since, at)


def number_of(sample: Sample) -> float | None:
    """Return the value of a sample as a number; None for a text."""
    return float(sample.value) if isinstance(sample.value, bool | int | float) else None
