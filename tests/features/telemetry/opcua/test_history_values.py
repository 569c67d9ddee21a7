"""Samples are encoded as asyncua decodes DataValues."""

from datetime import UTC, datetime
from typing import Any

import pytest
from asyncua import ua
from asyncua.common.utils import Buffer
from asyncua.ua.ua_binary import struct_from_binary
from hypothesis import given
from hypothesis import strategies as st

from edge.features.telemetry.opcua.history_values import Raw, ValueEncoder, history_data, variant_of
from edge.ports.sample_lines import Quality, Sample

AT = 1_790_000_000_123
VALUES = st.one_of(
    st.booleans(), st.integers(-(1 << 63), (1 << 63) - 1), st.floats(allow_nan=False), st.text(max_size=50), st.none()
)


def decoded(data: bytes) -> ua.DataValue:
    found: ua.DataValue = struct_from_binary(ua.DataValue, Buffer(data))
    return found


@given(VALUES, st.sampled_from(list(Quality)))
def test_encoded_history_value_is_decoded_unchanged(value: Any, quality: Quality) -> None:
    found = decoded(ValueEncoder(ua.TimestampsToReturn.Both).sample(Sample(AT, "t", value, quality)))
    assert (found.Value.Value if found.Value else None) == value
    assert found.StatusCode.name == quality.value.capitalize()
    assert found.SourceTimestamp == found.ServerTimestamp == datetime.fromtimestamp(AT / 1000, UTC)


@pytest.mark.parametrize(
    ("wanted", "source", "server"),
    [(ua.TimestampsToReturn.Source, True, False), (ua.TimestampsToReturn.Server, False, True)],
)
def test_only_requested_timestamps_are_sent(wanted: Any, source: bool, server: bool) -> None:  # noqa: FBT001 - a parameter
    found = decoded(ValueEncoder(wanted).sample(Sample(AT, "t", 1.5)))
    assert (found.SourceTimestamp is not None, found.ServerTimestamp is not None) == (source, server)


def test_number_beyond_64_bits_is_a_double() -> None:
    assert decoded(ValueEncoder(ua.TimestampsToReturn.Source).sample(Sample(AT, "t", 1 << 70))).Value.Value == 2.0**70
    assert variant_of(1 << 70).VariantType is ua.VariantType.Double
    assert variant_of(1 << 63) == ua.Variant(1 << 63, ua.VariantType.UInt64)


def test_history_data_begins_with_the_number_of_values() -> None:
    encoder = ValueEncoder(ua.TimestampsToReturn.Source)
    data = history_data([encoder.count(AT, 3, 0)] * 2)
    assert data.Body[:4] == b"\x02\x00\x00\x00"


@pytest.mark.parametrize(
    ("start", "end", "is_backward"),
    [(1, 2, False), (2, 2, False), (1, None, False), (None, 2, True), (2, 1, True)],
)
def test_newest_value_comes_first_when_the_end_is_before_the_start(
    start: int | None, end: int | None, *, is_backward: bool
) -> None:
    assert Raw("tag", start, end, 10).is_backward is is_backward
