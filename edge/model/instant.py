"""Instants in milliseconds since the epoch, the unit in which they are stored and sent; no conversion raises.

Other systems write `DateTime.MaxValue` of .NET (9999-12-31T23:59:59.9999999Z) for "no end" and 0001-01-01 for "never".
Both are valid instants; rounding one of them, or moving it to another time zone, leaves the years of `datetime`.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, TypeAlias, overload

from msgspec import Meta

Instant: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""An instant as `--json`, the HTTP API and our own events state it: RFC 3339 in UTC, with milliseconds and `Z`."""

FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The first millisecond of the year 1, and the last one of the year 9999."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FINER = re.compile(r"(:\d\d\.\d{6})\d+")
_FIRST_YEAR = 1602
"""OPC UA has no earlier instant than 1601; that one means none."""


def milliseconds(instant: datetime) -> int:
    """Return an instant in milliseconds since the epoch, within the years 1 to 9999; one without a zone is UTC."""
    at = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return bounded(round((at - _EPOCH) / _MILLISECOND))


def milliseconds_of(instant: datetime | None) -> int | None:
    """Return an instant of OPC UA in milliseconds since the epoch; None for none."""
    return None if instant is None or instant.year < _FIRST_YEAR else milliseconds(instant)


def bounded(milliseconds: int) -> int:
    """Return an instant within the years 1 to 9999, in milliseconds since the epoch."""
    return min(max(milliseconds, FIRST_MS), LAST_MS)


def utc(milliseconds: int) -> datetime:
    """Return the instant of milliseconds since the epoch; one beyond the years 1 to 9999 is their first or last."""
    return _EPOCH + bounded(milliseconds) * _MILLISECOND


@overload
def rfc3339(milliseconds: int) -> Instant: ...
@overload
def rfc3339(milliseconds: int | None) -> Instant | None: ...
def rfc3339(milliseconds: int | None) -> Instant | None:
    """Return the text of milliseconds since the epoch; one beyond the years 1 to 9999 is their first or last."""
    if milliseconds is None:
        return None
    return utc(milliseconds).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def as_utc(instant: datetime) -> datetime:
    """Return an instant in UTC, within the years 1 to 9999; one without a zone is UTC."""
    if instant.tzinfo is None:
        return instant.replace(tzinfo=UTC)
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        return utc(milliseconds(instant))


def parse_instant(text: str) -> datetime:
    """Return the instant of an RFC 3339 text; digits after the microseconds are cut off. Raises ValueError."""
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def to_microseconds(text: str) -> str:
    """Return an RFC 3339 text without the digits after its microseconds: msgspec rounds them, beyond the year 9999."""
    return _FINER.sub(r"\1", text)
