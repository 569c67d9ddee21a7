"""Curves of Open Protocol (MID 0900), also damaged ones."""

from contextlib import suppress
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.openprotocol.protocol.mids import Mid, new_message, parse_message
from edge.features.openprotocol.protocol.trace import TORQUE, encode_curve, parse_curve, subscription_of
from edge.foundation.errors import Refused

AT = datetime(2026, 5, 1, 12)  # noqa: DTZ001 - the local time of a controller

GOLDEN = (
    b"00000047112026-05-01:12:00:00000"
    b"0201001001"
    b"02213003010000000100"
    b"0010000100003001012022"
    b"00003\0\x00\x00\x01\x00\xff\x9c"
)
"""A message by the fields of the specification: head, kind, divisor, time between samples, samples; the last is -1."""


def test_golden_message_is_read() -> None:
    curve = parse_curve(GOLDEN)
    assert (curve.result, curve.time, curve.name, curve.unit) == (4711, AT, "Torque", "N·m")
    assert [round(value, 3) for value in curve.values] == [0.0, 2.56, -1.0]
    assert curve.interval_ms == 2.0


def test_encoded_message_equals_the_specification() -> None:
    assert encode_curve(4711, AT, TORQUE, "001", [0, 256, -100], divisor=100, interval_ms=2) == GOLDEN


def test_factor_scales_the_samples() -> None:
    assert parse_curve(GOLDEN.replace(b"02213", b"02214")).values[1] == 25_600


def test_subscription_to_traces_equals_the_published_example() -> None:
    """Chapter 5.27.1.1 of the specification; the second one is by the same table."""
    assert subscription_of((1,)) == b"0900001350" + b" " * 29 + b"01001"
    assert subscription_of((1, 2)) == b"0900001380" + b" " * 29 + b"02001002"
    assert parse_message(new_message(Mid.SUBSCRIBE_DATA, mid=900, revision=1))["mid"] == 900


@given(st.data())
def test_damaged_message_is_read_or_refused(data: st.DataObject) -> None:
    raw = bytearray(GOLDEN)
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with suppress(Refused):
        parse_curve(bytes(raw[: data.draw(st.integers(0, len(raw)))]))


def test_negative_number_of_samples_is_refused() -> None:
    with pytest.raises(Refused, match="-1 is not a number"):
        parse_curve(GOLDEN.replace(b"00003\0", b"-0001\0"))


def test_missing_samples_are_reported() -> None:
    with pytest.raises(Refused, match="3 are announced, 1 are there"):
        parse_curve(GOLDEN[:-4])
