"""Reads the wall clock in milliseconds since the epoch, the unit in which instants are stored and sent."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], int]
"""Returns the present instant in milliseconds since the epoch."""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR = 1602
"""OPC UA has no earlier instant than 1601; that one means none."""


def milliseconds_of(instant: datetime | None) -> int | None:
    """Return an instant in milliseconds since the epoch; None for none."""
    if instant is None or instant.year < _FIRST_YEAR:
        return None
    at = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return round((at - _EPOCH).total_seconds() * 1000)


def now_ms() -> int:
    """Return the present instant in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
