"""When a message was sent and when it expires, by its attributes."""

import pytest

from edge.model.cloudevent import CloudEvent
from edge.northbound.calls import expiry_of, sent_at_by_broker, sent_at_of


def event(time: str | None = None, interval: int | None = None, expirytime: str | None = None) -> CloudEvent:
    extensions = {} if expirytime is None else {"expirytime": expirytime}
    return CloudEvent(id="1", source="/mes", type="t", time=time, expiryinterval=interval, extensions=extensions)


@pytest.mark.parametrize(
    ("time", "sent_at"),
    [
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T01:00:01+01:00", 1000),
        ("1970-01-01T00:00:01", 1000),
        ("soon", None),
        (None, None),
    ],
)
def test_the_time_of_an_event_is_read(time: str | None, sent_at: int | None) -> None:
    assert sent_at_of(event(time)) == sent_at


def test_the_earlier_of_both_expiries_counts() -> None:
    second = "1970-01-01T00:00:01Z"
    assert expiry_of(event(second, 60)) == 61_000
    assert expiry_of(event(expirytime="1970-01-01T00:00:30Z")) == 30_000
    assert expiry_of(event(second, 60, "1970-01-01T00:00:30Z")) == 30_000
    assert expiry_of(event(second)) is None
    assert expiry_of(event(interval=60)) is None


@pytest.mark.parametrize(
    ("received_at", "remaining", "interval", "sent_at"),
    [
        (100_000, 40, "60", 80_000),
        (100_000, 60, "60", 100_000),
        (100_000, 70, "60", 100_000),
        (None, 40, "60", None),
        (100_000, None, "60", None),
        (100_000, 40, "", None),
        (100_000, 40, "-1", None),
    ],
)
def test_send_time_is_derived_from_the_remaining_expiry(
    received_at: int | None, remaining: int | None, interval: str, sent_at: int | None
) -> None:
    assert sent_at_by_broker(received_at, remaining, interval) == sent_at
