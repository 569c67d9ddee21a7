"""The wall clock, and instants in the time zone of this machine."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from edge.foundation.instant import local, now_ms
from edge.model.instant import utc

FIRST, LAST = datetime.min, datetime.max  # noqa: DTZ901 - with a zone below, and without one


@pytest.fixture(params=["UTC", "Pacific/Kiritimati", "America/Adak"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The time zone of this machine: the earliest, the latest, and the one between them."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def test_instant_is_in_milliseconds_since_the_epoch() -> None:
    before = datetime.now(UTC)
    reported = utc(now_ms())
    assert 0 <= (reported - before.replace(microsecond=before.microsecond // 1000 * 1000)).total_seconds() < 60


@pytest.mark.parametrize("instant", [FIRST, LAST, LAST.replace(tzinfo=UTC)])
def test_end_of_the_calendar_is_shown_in_each_time_zone(zone: str, instant: datetime) -> None:
    """In a zone east of Greenwich, the largest instant has no local time."""
    shown = local(instant).strftime("%m-%d")
    assert shown in {"01-01", "12-31"}, zone
