"""When the cycles of a flow are due: an interval, a cron expression or times of day, in a time zone."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from msgspec import Struct

MEMBERS: Final = ("interval_seconds", "cron", "shifts")
"""A flow has exactly one of these."""

MOST_COUNTED: Final = 1000
_WINDOWS_MS: Final = (3_600_000, 86_400_000, 33 * 86_400_000, 367 * 86_400_000, 9 * 366 * 86_400_000)
"""How far to look back for the last instant: in a short window there are few."""
_TIME_OF_DAY: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_CRON_FIELDS: Final = 5
_LONGEST_INTERVAL_S: Final = 366 * 86_400


class InvalidScheduleError(ValueError):
    """A schedule that cannot be used; the message says why."""


class Once(Struct, frozen=True):
    """One cycle, as soon as the flow is started (`interval_seconds` = 0)."""


class Interval(Struct, frozen=True):
    """Cycles at the multiples of a duration in milliseconds since the epoch (UTC)."""

    period_ms: Fraction


class Cron(Struct, frozen=True):
    """Cycles at the instants of a cron expression of five fields."""

    expression: str
    zone: tzinfo


class Shifts(Struct, frozen=True):
    """Cycles at times of day, in minutes after midnight, sorted."""

    minutes: tuple[int, ...]
    zone: tzinfo


Schedule: TypeAlias = Once | Interval | Cron | Shifts


def parse_schedule(flow: Mapping[str, Any]) -> Schedule:
    """Parse the schedule members of a flow document; raises InvalidScheduleError."""
    if not isinstance(flow.get("catch_up", False), bool):
        raise InvalidScheduleError("catch_up is true or false")
    zone = _zone(flow.get("time_zone", "UTC"))
    present = [name for name in MEMBERS if name in flow]
    if len(present) != 1:
        have = f"has {' and '.join(present)}" if present else "has none of them"
        raise InvalidScheduleError(f"a flow has exactly one of {', '.join(MEMBERS)}; this one {have}")
    value = flow[present[0]]
    match present[0]:
        case "interval_seconds":
            return _interval(value)
        case "cron":
            return _cron(value, zone)
        case _:
            return _shifts(value, zone)


def first_due(schedule: Schedule, start_ms: int) -> int | None:
    """Return the first instant at or after a start, in milliseconds since the epoch; None when there is none."""
    match schedule:
        case Once():
            return start_ms
        case Interval():
            return _multiple(schedule.period_ms, start_ms)
        case Cron() | Shifts():
            return _next_local(schedule, start_ms)


def next_due(schedule: Schedule, last_ms: int, not_before_ms: int) -> int | None:
    """Return the first instant after the last cycle's and not before another; None when no cycle follows."""
    match schedule:
        case Once():
            return None
        case Interval():
            return _multiple(schedule.period_ms, max(last_ms + 1, not_before_ms))
        case Cron() | Shifts():
            return _next_local(schedule, max(last_ms + 1, not_before_ms))


def following_due(schedule: Schedule, last_ms: int, now_ms: int) -> int | None:
    """Return when the cycle after one is due, seen from now.

    A clock that went back by more than one period, by an unknown step, does not delay the flow until its old time is
    reached again.
    """
    natural = first_due(schedule, now_ms)
    if isinstance(schedule, Once) or natural is None or natural >= last_ms:
        return next_due(schedule, last_ms, now_ms)
    return natural


def latest_due(schedule: Schedule, due_ms: int, now_ms: int) -> int:
    """Return the last instant that is not after now, for a flow that is due since an instant."""
    match schedule:
        case Once():
            return due_ms
        case Interval(period_ms=period_ms):
            return max(due_ms, _rounded_up(period_ms * (now_ms // period_ms)))
        case Cron() | Shifts():
            for window_ms in _WINDOWS_MS:
                at = first_due(schedule, max(due_ms, now_ms - window_ms))
                if at is not None and at <= now_ms:
                    return _last_until(schedule, at, now_ms)
            return due_ms


def count_between(schedule: Schedule, after_ms: int, before_ms: int) -> int:
    """Return how many instants are after one and before another; at most MOST_COUNTED are counted one by one."""
    match schedule:
        case Once():
            return 0
        case Interval(period_ms=period_ms):
            return max(0, int((before_ms - 1) // period_ms - after_ms // period_ms))
        case Cron() | Shifts():
            count = 0
            at = first_due(schedule, after_ms + 1)
            while at is not None and at < before_ms and count < MOST_COUNTED:
                count += 1
                at = first_due(schedule, at + 1)
            return count


def _last_until(schedule: Cron | Shifts, at_ms: int, now_ms: int) -> int:
    while (later := first_due(schedule, at_ms + 1)) is not None and later <= now_ms:
        at_ms = later
    return at_ms


def _rounded_up(instant: Fraction) -> int:
    return -int(-instant // 1)


def _multiple(period_ms: Fraction, at_least_ms: int) -> int:
    """Return the first multiple at or after an instant, rounded up to the millisecond."""
    return _rounded_up(period_ms * -((-at_least_ms) // period_ms))


def _zone(name: object) -> tzinfo:
    if not isinstance(name, str) or not name:
        raise InvalidScheduleError("time_zone is the name of an IANA time zone, like Europe/Berlin")
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        # A name with `..` or a NUL is a ValueError, a folder of zones (`Europe`) an OSError.
        raise InvalidScheduleError(f"there is no time zone {name!r}; use an IANA name like Europe/Berlin") from None


def _interval(value: object) -> Schedule:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _LONGEST_INTERVAL_S:
        raise InvalidScheduleError(f"interval_seconds is a number from 0 to {_LONGEST_INTERVAL_S}")
    if value == 0:
        return Once()
    period_ms = Fraction(Decimal(str(value))) * 1000
    if period_ms < 1:
        raise InvalidScheduleError("interval_seconds is 0 or at least 0.001")
    return Interval(period_ms)


def _cron(value: object, zone: tzinfo) -> Cron:
    if not isinstance(value, str) or len(value.split()) != _CRON_FIELDS:
        raise InvalidScheduleError('cron has five fields, like "0 6 * * 1-5"')
    cron = Cron(value, zone)
    try:
        _next_local(cron, 0)
    except CronSimError as error:
        raise InvalidScheduleError(f"cron {value!r} cannot be read: {error}") from None
    return cron


def _shifts(value: object, zone: tzinfo) -> Shifts:
    if not isinstance(value, (list, tuple)) or not value:
        raise InvalidScheduleError('shifts is a list of times of day, like ["06:00", "14:00", "22:00"]')
    matches = [_TIME_OF_DAY.fullmatch(item) if isinstance(item, str) else None for item in value]
    wrong = [item for item, match in zip(value, matches, strict=True) if match is None]
    if wrong:
        raise InvalidScheduleError(f"shifts: {wrong[0]!r} is not a time of day from 00:00 to 23:59")
    minutes = {int(match[1]) * 60 + int(match[2]) for match in matches if match}
    if len(minutes) < len(value):
        raise InvalidScheduleError("shifts names a time of day twice")
    return Shifts(tuple(sorted(minutes)), zone)


def _next_local(schedule: Cron | Shifts, at_least_ms: int) -> int | None:
    """Return the first instant at or after another; a local time that the clock skips moves by the gap."""
    try:
        before = datetime.fromtimestamp((at_least_ms - 1) // 1000, schedule.zone)
        match schedule:
            case Cron(expression=expression):
                found = next(CronSim(expression, before))
            case _:
                found = _next_shift(schedule, before)
    except (StopIteration, OverflowError, ValueError, OSError):
        # The calendar of Python ends with the year 9999; CronSim stops 50 years after the last instant.
        return None
    return round(found.timestamp() * 1000)


def _next_shift(schedule: Shifts, before: datetime) -> datetime:
    """Return the next time of day; there is one on each day, so that of three days one is later."""
    today = datetime(before.year, before.month, before.day, tzinfo=schedule.zone)
    instants = (
        (today + timedelta(days=days)).replace(hour=minutes // 60, minute=minutes % 60)
        for days in range(3)
        for minutes in schedule.minutes
    )
    return next(local for local in instants if local.timestamp() > before.timestamp())
