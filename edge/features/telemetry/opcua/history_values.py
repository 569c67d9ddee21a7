"""Encodes samples as the DataValues of HistoryData: asyncua would hold the loop for 10,000 of them."""

import math
import struct
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from asyncua import ua
from msgspec import Struct

from edge.ports.sample_lines import Quality, Sample

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
    times: "array[int]"
    """Not a tuple: a continuation point keeps them."""
    done: int = 0


class PartRoom(Struct, frozen=True):
    """What is left of an answer: values or events, and bytes."""

    values: int
    size: int


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


_VALUE: Final = 0x01
_STATUS: Final = 0x02
_SOURCE: Final = 0x04
_SERVER: Final = 0x08
_TICKS_OF_1970: Final = 116_444_736_000_000_000
_TICKS_OF_MS: Final = 10_000
_COUNT: Final = struct.Struct("<i")
_CODE: Final = struct.Struct("<I")
_TIME: Final = struct.Struct("<q")
_BOOL: Final = struct.Struct("<B?")
_INTEGER: Final = struct.Struct("<Bq")
_UNSIGNED: Final = struct.Struct("<BQ")
_SMALL: Final = struct.Struct("<Bi")
_FLOAT: Final = struct.Struct("<Bd")
_TEXT: Final = struct.Struct("<Bi")
_EXACT: Final = 1 << 63

GOOD: Final = int(ua.StatusCodes.Good)
STATUS_OF: Final = {
    Quality.GOOD: GOOD,
    Quality.UNCERTAIN: int(ua.StatusCodes.Uncertain),
    Quality.BAD: int(ua.StatusCodes.Bad),
}
ENCODING: Final = ua.NodeId(ua.ObjectIds.HistoryData_Encoding_DefaultBinary)


Convert: TypeAlias = Callable[[Any], Any]
"""Returns a value in the type of its variable; a value of another type is returned as it is."""


def as_sampled(value: Any) -> Any:
    """Return a value of a variable that takes any type."""
    return value


def as_double(value: Any) -> Any:
    """Return an integer as Double, so that the type does not change with the value."""
    if type(value) is not int:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


class ValueEncoder:
    """Encodes values with the timestamps that a client wants, in the type of their variable."""

    def __init__(self, timestamps: ua.TimestampsToReturn, convert: Convert = as_sampled) -> None:
        self._convert = convert
        wanted = ua.TimestampsToReturn
        self._stamps = (_SOURCE if timestamps in {wanted.Source, wanted.Both} else 0) | (
            _SERVER if timestamps in {wanted.Server, wanted.Both} else 0
        )

    def sample(self, sample: Sample) -> bytes:
        """Return a sample as DataValue."""
        return self.value(sample.at, sample.value, STATUS_OF[sample.quality])

    def value(self, at: int, value: Any, status: int) -> bytes:
        """Return a value as DataValue; the server timestamp of a stored value is its source timestamp."""
        return self._encoded(at, _variant(self._convert(value)), status)

    def count(self, at: int, number: int, status: int) -> bytes:
        """Return a number of values as DataValue: Int32 (OPC 10000-13, 5.4.3.18)."""
        return self._encoded(at, _SMALL.pack(ua.VariantType.Int32.value, number), status)

    def _encoded(self, at: int, body: bytes, status: int) -> bytes:
        mask = (_VALUE if body else 0) | (_STATUS if status else 0) | self._stamps
        stamp = _TIME.pack(at * _TICKS_OF_MS + _TICKS_OF_1970)
        return b"".join(
            (
                bytes((mask,)),
                body,
                _CODE.pack(status) if status else b"",
                stamp if mask & _SOURCE else b"",
                stamp if mask & _SERVER else b"",
            )
        )


def history_data(values: Iterable[bytes]) -> ua.ExtensionObject:
    """Return encoded DataValues as HistoryData."""
    parts = list(values)
    return ua.ExtensionObject(TypeId=ENCODING, Body=_COUNT.pack(len(parts)) + b"".join(parts))


def variant_of(value: Any) -> ua.Variant:
    """Return the value of a sample as Variant."""
    match value:
        case bool():
            return ua.Variant(value, ua.VariantType.Boolean)
        case int() if -_EXACT <= value < _EXACT:
            return ua.Variant(value, ua.VariantType.Int64)
        case int() if _EXACT <= value < 2 * _EXACT:
            return ua.Variant(value, ua.VariantType.UInt64)
        case int() | float():
            return ua.Variant(float(value), ua.VariantType.Double)
        case str():
            return ua.Variant(value, ua.VariantType.String)
        case _:
            return ua.Variant()


def _variant(value: Any) -> bytes:
    match value:
        case float():
            return _FLOAT.pack(ua.VariantType.Double.value, value)
        case bool():
            return _BOOL.pack(ua.VariantType.Boolean.value, value)
        case int() if -_EXACT <= value < _EXACT:
            return _INTEGER.pack(ua.VariantType.Int64.value, value)
        case int() if _EXACT <= value < 2 * _EXACT:
            return _UNSIGNED.pack(ua.VariantType.UInt64.value, value)
        case int():
            return _FLOAT.pack(ua.VariantType.Double.value, float(value))
        case str():
            text = value.encode(errors="replace")
            return _TEXT.pack(ua.VariantType.String.value, len(text)) + text
        case _:
            return b""
