"""Instants at the ends of the calendar are converted like all others."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.model.instant import (
    FIRST_MS,
    LAST_MS,
    as_utc,
    milliseconds,
    milliseconds_of,
    parse_instant,
    rfc3339,
    to_microseconds,
    utc,
)

FIRST, LAST = datetime.min, datetime.max  # noqa: DTZ901 - with the zones below, and without one
OFFSETS = st.one_of(st.none(), st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes))))
INSTANTS = st.one_of(
    st.datetimes(timezones=OFFSETS),
    st.builds(lambda end, offset: end.replace(tzinfo=offset), st.sampled_from([FIRST, LAST]), OFFSETS),
)


@given(INSTANTS)
def test_no_conversion_of_an_instant_raises(instant: datetime) -> None:
    at = milliseconds(instant)
    assert FIRST_MS <= at <= LAST_MS
    assert abs(milliseconds(utc(at)) - at) == 0
    assert milliseconds(as_utc(instant)) == at
    assert milliseconds_of(instant) in {None, at}


@given(st.integers())
def test_milliseconds_beyond_the_calendar_are_its_ends(at: int) -> None:
    assert milliseconds(utc(at)) == min(max(at, FIRST_MS), LAST_MS)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("9999-12-31T23:59:59.9999999Z", LAST_MS),
        ("9999-12-31T23:59:59-05:00", LAST_MS),
        ("0001-01-01T00:00:00Z", FIRST_MS),
        ("0001-01-01T00:00:00+14:00", FIRST_MS),
        ("1970-01-01T00:00:01.5", 1500),
        ("1970-01-01T00:00:00.123456789Z", 123),
    ],
)
def test_text_of_an_instant_is_read_at_the_ends_too(text: str, at: int) -> None:
    assert milliseconds(parse_instant(text)) == at


@pytest.mark.parametrize("text", ["2026-02-30T00:00:00Z", "10000-01-01T00:00:00Z", "", " ", "0000-00-00"])
def test_text_that_is_not_an_instant_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"isoformat|month|year"):
        parse_instant(text)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.999999Z"),
        ("2026-11-26T12:00:00.123456789+02:00", "2026-11-26T12:00:00.123456+02:00"),
        ("2026-11-26T12:00:00.123456Z", "2026-11-26T12:00:00.123456Z"),
        ("no instant", "no instant"),
    ],
)
def test_digits_after_the_microseconds_are_cut(text: str, cut: str) -> None:
    assert to_microseconds(text) == cut


def test_null_of_opc_ua_is_not_an_instant() -> None:
    assert milliseconds_of(None) is None
    assert milliseconds_of(datetime(1601, 1, 1, tzinfo=UTC)) is None
    assert milliseconds_of(datetime(1602, 1, 1, tzinfo=UTC)) == milliseconds(datetime(1602, 1, 1, tzinfo=UTC))


def test_public_instant_has_milliseconds_and_no_offset() -> None:
    assert [rfc3339(at) for at in (None, 0, 1_700_000_000_005)] == [
        None,
        "1970-01-01T00:00:00.000Z",
        "2023-11-14T22:13:20.005Z",
    ]
    assert rfc3339(10**18) == "9999-12-31T23:59:59.999Z"
