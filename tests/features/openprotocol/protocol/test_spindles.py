"""Results of several spindles (MID 0101), also damaged ones."""

from contextlib import suppress
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.openprotocol.protocol.spindles import encode_spindles, parse_spindles
from edge.foundation.errors import Refused

GOLDEN = (
    b"010202VIN-1                    030004003050004060001072080076500900935010008500"
    b"110000012099991300000"
    b"142026-05-01:12:00:00152026-05-01:12:00:00"
    b"1600007170"
    b"18010111008520100042020110010200100041"
)
"""A result field by field, as the specification has it: the second of two spindles is not OK."""


def test_golden_message_is_read() -> None:
    found = parse_spindles(GOLDEN)
    assert (found["identifier"], found["result"], found["status"]) == ("VIN-1", 7, 0)
    assert found["time"] == datetime(2026, 5, 1, 12)  # noqa: DTZ001 - the local time of a controller
    assert [
        (spindle["spindle"], spindle["status"], spindle["torque"], spindle["angle"]) for spindle in found["spindles"]
    ] == [
        (1, 1, 85.2, 42),
        (2, 1, 102.0, 41),
    ]
    assert found["spindles"][1]["torque_status"] == 0


def test_encoded_message_equals_the_specification() -> None:
    found = parse_spindles(GOLDEN)
    assert encode_spindles(found, found["spindles"]) == GOLDEN


@given(st.data())
def test_damaged_message_is_read_or_refused(data: st.DataObject) -> None:
    raw = bytearray(GOLDEN)
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with suppress(Refused):
        parse_spindles(bytes(raw[: data.draw(st.integers(0, len(raw)))]))


def test_missing_spindle_is_refused() -> None:
    with pytest.raises(Refused, match="ends before"):
        parse_spindles(GOLDEN[:-18])
