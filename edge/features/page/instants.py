"""Converts instants of the store for the API."""

from datetime import UTC, datetime


def utc(milliseconds: int | None) -> datetime | None:
    """Return an instant in UTC; None also for one out of range, which another program may have stored."""
    try:
        return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
