"""The wall clock, and instants in the time zone of this machine."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.foundation.instant import Latency, local, now_ms
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


BOUNDS = (0.001, 0.01, 0.1)


@given(st.lists(st.floats(0, 1) | st.sampled_from(BOUNDS)))
def test_each_bound_counts_the_durations_up_to_the_bound(durations: list[float]) -> None:
    latency = Latency(BOUNDS)
    for duration in durations:
        latency.record(duration)
    assert dict(latency.cumulative()) == {
        bound: sum(value <= bound for value in durations) for bound in (*BOUNDS, float("inf"))
    }
    assert latency.total == pytest.approx(sum(durations))
