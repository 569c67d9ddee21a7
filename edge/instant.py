"""Reads the wall clock in milliseconds since the epoch, the unit in which instants are stored and sent."""

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Returns the present instant in milliseconds since the epoch."""


def now_ms() -> int:
    """Return the present instant in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
