"""Reads the wall clock and the time zone of this machine."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

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
