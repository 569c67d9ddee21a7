"""The present instant of the wall clock, as it is stored and sent: in milliseconds since the epoch."""

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Gives the present instant, in milliseconds since the epoch."""


def now_ms() -> int:
    """Give the present instant in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
