"""The wire format: values are unchanged after encoding and decoding; malformed bytes raise MalformedPayload."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.sparkplug.wire import (
    MalformedPayload,
    as_double,
    as_float,
    as_number,
    as_signed,
    as_text,
    bytes_field,
    double_field,
    read_fields,
    varint_field,
)

NUMBERS = st.integers(1, 1 << 28)


@given(NUMBERS, st.integers(0, (1 << 64) - 1))
def test_varint_is_unchanged_after_encoding_and_decoding(number: int, value: int) -> None:
    assert list(read_fields(varint_field(number, value))) == [(number, value)]


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_signed_number_is_unchanged_after_encoding_and_decoding(value: int) -> None:
    ((_, raw),) = read_fields(varint_field(1, value))
    assert as_signed(as_number(raw), 64) == value


@given(NUMBERS, st.floats(allow_nan=False))
def test_double_is_unchanged_after_encoding_and_decoding(number: int, value: float) -> None:
    ((found, raw),) = read_fields(double_field(number, value))
    assert (found, as_double(as_number(raw))) == (number, value)


@given(NUMBERS, st.binary())
def test_bytes_are_unchanged_after_encoding_and_decoding(number: int, value: bytes) -> None:
    assert list(read_fields(bytes_field(number, value))) == [(number, value)]


def test_four_byte_float_is_decoded() -> None:
    ((_, raw),) = read_fields(b"\x65\x00\x00\xc0\x3f")
    assert as_float(as_number(raw)) == 1.5
    ((_, raw),) = read_fields(b"\x65\x00\x00\xc0\x7f")
    assert math.isnan(as_float(as_number(raw)))


@pytest.mark.parametrize(
    "data", [b"\x00\x01", b"\x08", b"\x08" + b"\xff" * 11, b"\x12\x05ab", b"\x0b", b"\x0c", b"\x09\x01", b"\x0e\x01"]
)
def test_malformed_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedPayload):
        list(read_fields(data))


def test_content_of_another_type_is_refused() -> None:
    with pytest.raises(MalformedPayload, match="a number stands"):
        as_text(1)
    with pytest.raises(MalformedPayload, match="bytes stand"):
        as_number(b"")
    with pytest.raises(MalformedPayload, match="UTF-8"):
        as_text(b"\xff")


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_fields_or_malformed(data: bytes) -> None:
    try:
        size = sum(len(raw) if isinstance(raw, bytes) else 0 for _, raw in read_fields(data))
    except MalformedPayload:
        return
    assert size <= len(data)
