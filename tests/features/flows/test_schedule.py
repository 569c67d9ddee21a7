"""Cycles are due at multiples of an interval, at the instants of a cron expression, and at times of day."""

import itertools
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.flows.schedule import (
    InvalidScheduleError,
    count_between,
    first_due,
    following_due,
    latest_due,
    next_due,
    parse_schedule,
)

HOUR = 3_600_000
DAY = 24 * HOUR


def instants(flow: dict[str, Any], start: int, count: int) -> list[int | None]:
    schedule = parse_schedule(flow)
    at = first_due(schedule, start)
    found = [at]
    while at is not None and len(found) < count:
        at = next_due(schedule, at, at)
        found.append(at)
    return found


def local(zone: str, *fields: int) -> int:
    return round(datetime(*fields, tzinfo=ZoneInfo(zone)).timestamp() * 1000)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("flow", "start", "expected"),
    [
        ({"interval_seconds": 60}, 0, [0, 60_000, 120_000]),
        ({"interval_seconds": 60}, 1, [60_000, 120_000, 180_000]),
        ({"interval_seconds": 0.5}, 250, [500, 1000, 1500]),
        ({"interval_seconds": 0}, 77, [77, None]),
        ({"cron": "0 6 * * *"}, 0, [6 * HOUR, DAY + 6 * HOUR]),
        ({"cron": "0 6 * * *"}, 6 * HOUR, [6 * HOUR, DAY + 6 * HOUR]),
        ({"cron": "*/15 * * * *"}, 1, [900_000, 1_800_000]),
        ({"shifts": ["22:00", "06:00"]}, 0, [6 * HOUR, 22 * HOUR, DAY + 6 * HOUR]),
        ({"shifts": ["06:00"], "time_zone": "Asia/Kolkata"}, 0, [HOUR // 2, DAY + HOUR // 2]),
    ],
)
def test_instants_of_each_schedule(flow: dict[str, Any], start: int, expected: list[int | None]) -> None:
    assert instants(flow, start, len(expected)) == expected


def test_next_instant_is_not_before_the_end_of_the_last_cycle() -> None:
    schedule = parse_schedule({"interval_seconds": 60})
    assert next_due(schedule, 60_000, 60_000) == 120_000
    assert next_due(schedule, 60_000, 120_000) == 120_000
    assert next_due(schedule, 60_000, 120_001) == 180_000


def test_shift_in_a_skipped_hour_moves_by_the_gap() -> None:
    """On 2026-03-29 in Berlin the clock goes from 02:00 to 03:00."""
    flow = {"shifts": ["02:30"], "time_zone": "Europe/Berlin"}
    start = local("Europe/Berlin", 2026, 3, 28, 12)
    first, second = instants(flow, start, 2)
    assert first == local("Europe/Berlin", 2026, 3, 29, 3, 30)
    assert second == local("Europe/Berlin", 2026, 3, 30, 2, 30)


def test_shift_in_a_repeated_hour_is_due_once() -> None:
    """On 2026-10-25 in Berlin the hour from 02:00 comes twice."""
    flow = {"shifts": ["02:30"], "time_zone": "Europe/Berlin"}
    found = instants(flow, local("Europe/Berlin", 2026, 10, 24, 12), 3)
    days = [datetime.fromtimestamp((at or 0) / 1000, ZoneInfo("Europe/Berlin")).day for at in found]
    assert days == [25, 26, 27]


def test_schedule_beyond_the_last_year_ends() -> None:
    end = round(datetime(9999, 12, 31, 23, 59, 30, tzinfo=UTC).timestamp() * 1000)
    assert first_due(parse_schedule({"shifts": ["06:00"]}), end) is None


@pytest.mark.parametrize(
    "flow",
    [
        {},
        {"interval_seconds": 1, "cron": "0 6 * * *"},
        {"interval_seconds": -1},
        {"interval_seconds": True},
        {"interval_seconds": "60"},
        {"interval_seconds": 0.0001},
        {"interval_seconds": 1e300},
        {"cron": "0 6 * *"},
        {"cron": "0 0 6 * * *"},
        {"cron": "61 6 * * *"},
        {"cron": "0 0 30 2 *"},
        {"cron": 5},
        {"shifts": []},
        {"shifts": "06:00"},
        {"shifts": ["6:00"]},
        {"shifts": ["24:00"]},
        {"shifts": ["06:00", "06:00"]},
        {"shifts": [6]},
        {"interval_seconds": 1, "time_zone": "Europe/Nowhere"},
        {"interval_seconds": 1, "time_zone": "Europe"},
        {"interval_seconds": 1, "time_zone": "../etc/passwd"},
        {"interval_seconds": 1, "time_zone": ""},
        {"interval_seconds": 1, "time_zone": 5},
        {"interval_seconds": 1, "catch_up": "yes"},
    ],
)
def test_invalid_schedule_is_refused(flow: dict[str, Any]) -> None:
    with pytest.raises(InvalidScheduleError):
        parse_schedule(flow)


@given(st.integers(1, 10**7), st.integers(-(10**15), 10**15), st.integers(0, 10**9))
def test_next_interval_instant_is_the_first_possible_multiple(period_ms: int, last: int, busy_ms: int) -> None:
    schedule = parse_schedule({"interval_seconds": period_ms / 1000})
    found = next_due(schedule, last, last + busy_ms)
    assert found is not None
    assert found % period_ms == 0
    assert found > last
    assert found >= last + busy_ms
    assert found - period_ms <= max(last, last + busy_ms - 1)


@pytest.mark.parametrize(
    ("schedule", "due", "now", "expected", "missed"),
    [
        ({"interval_seconds": 60}, 60_000, 60_000, 60_000, 0),
        ({"interval_seconds": 60}, 60_000, 359_999, 300_000, 4),
        ({"interval_seconds": 0.3}, 300, 1000, 900, 2),
        ({"interval_seconds": 0}, 5, 1000, 5, 0),
        ({"cron": "* * * * *"}, 60_000, 359_999, 300_000, 4),
        ({"cron": "0 0 1 1 *"}, 0, 400 * DAY, 365 * DAY, 1),
        ({"cron": "* * * * *"}, 0, 100 * DAY, 100 * DAY, 1000),
        ({"shifts": ["06:00", "14:00"]}, 6 * HOUR, 3 * DAY + 7 * HOUR, 3 * DAY + 6 * HOUR, 6),
    ],
)
def test_last_of_several_missed_instants_is_used(
    schedule: dict[str, Any], due: int, now: int, expected: int, missed: int
) -> None:
    parsed = parse_schedule(schedule)
    assert latest_due(parsed, due, now) == expected
    assert count_between(parsed, due - 1, expected) == missed


@pytest.mark.parametrize(
    ("schedule", "last", "now", "expected"),
    [
        ({"interval_seconds": 60}, 600_000, 610_000, 660_000),
        ({"interval_seconds": 60}, 600_000, 590_000, 660_000),
        ({"interval_seconds": 60}, 600_000, 70_000, 120_000),
        ({"shifts": ["06:00"]}, 6 * HOUR, 6 * HOUR - 5000, DAY + 6 * HOUR),
        ({"interval_seconds": 0}, 600_000, 5, None),
    ],
)
def test_clock_step_back_repeats_no_instant_and_stops_no_flow(
    schedule: dict[str, Any], last: int, now: int, expected: int | None
) -> None:
    assert following_due(parse_schedule(schedule), last, now) == expected


@given(
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"]),
    st.lists(st.times().map(lambda time: f"{time:%H:%M}"), min_size=1, max_size=3, unique=True),
    st.dates(date(2025, 1, 1), date(2027, 12, 31)),
)
def test_each_shift_is_due_once_per_local_day(zone: str, shifts: list[str], day: date) -> None:
    """Also where the clock changes: a skipped time is late by the gap, at most an hour, and none comes twice."""
    start = local(zone, day.year, day.month, day.day, 0)
    found = [at or 0 for at in instants({"shifts": shifts, "time_zone": zone}, start, 4 * len(shifts))]
    assert found == sorted(set(found))
    for at in found:
        moment = datetime.fromtimestamp(at / 1000, ZoneInfo(zone))
        before = moment - timedelta(hours=1)
        is_late = any(f"{before:%H:%M}" <= shift <= f"{moment:%H:%M}" for shift in shifts)
        is_change_day = moment.utcoffset() != (moment - timedelta(days=1)).utcoffset()
        assert f"{moment:%H:%M}" in shifts or (is_change_day and is_late)
    spans = [(after - before) / HOUR for before, after in itertools.pairwise(found)]
    # A skipped time may move onto another shift.
    assert sum(spans) <= 24 * 5 + 1
