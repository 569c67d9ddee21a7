"""Payloads are unchanged after encoding and decoding, and compatible with the npm package sparkplug-payload."""

import base64
import contextlib
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.sparkplug.payload import (
    DataType,
    MalformedPayload,
    Metric,
    MetricPayload,
    MetricProperty,
    as_double,
    as_float,
    as_number,
    as_signed,
    as_text,
    bytes_field,
    decode_payload,
    double_field,
    encode_payload,
    read_fields,
    varint_field,
)
from tests.features.sparkplug.peers import Codec, running

VALUES = {
    DataType.INT32: st.integers(-(1 << 31), (1 << 31) - 1),
    DataType.INT64: st.integers(-(1 << 63), (1 << 63) - 1),
    DataType.UINT64: st.integers(0, (1 << 64) - 1),
    DataType.DOUBLE: st.floats(allow_nan=False),
    DataType.BOOLEAN: st.booleans(),
    DataType.STRING: st.text(),
}
TIMES = st.integers(0, (1 << 63) - 1)


@st.composite
def metrics(draw: st.DrawFn) -> Metric:
    """Return a metric of a birth certificate."""
    type = draw(st.sampled_from(DataType))
    value: Any = draw(st.none() | VALUES[type])
    properties = {"Quality": MetricProperty(DataType.INT32, draw(st.sampled_from([0, 192, 500])))}
    alias = draw(st.none() | st.integers(0, 1 << 40))
    return Metric(value, draw(st.text()), alias, draw(TIMES), type, draw(st.booleans()), draw(st.just(properties)))


@given(st.builds(MetricPayload, TIMES, st.lists(metrics(), max_size=5).map(tuple), st.none() | st.integers(0, 255)))
def test_payload_is_unchanged_after_encoding_and_decoding(payload: MetricPayload) -> None:
    assert decode_payload(encode_payload(payload)) == payload


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_a_payload_or_malformed(data: bytes) -> None:
    with contextlib.suppress(MalformedPayload):
        decode_payload(data)


@given(st.lists(metrics(), min_size=1, max_size=3).map(tuple), st.integers(0, 400), st.integers(0, 255))
def test_payload_with_a_changed_byte_is_decoded_or_malformed(found: tuple[Metric, ...], at: int, byte: int) -> None:
    data = bytearray(encode_payload(MetricPayload(1, found, 2)))
    data[at % len(data)] = byte
    with contextlib.suppress(MalformedPayload):
        decode_payload(bytes(data))


def test_metric_with_an_alias_has_no_name_and_type() -> None:
    data = encode_payload(MetricPayload(5, (Metric(True, alias=7, timestamp=4, datatype=DataType.BOOLEAN),), 3))
    assert decode_payload(data) == MetricPayload(5, (Metric(True, alias=7, timestamp=4),), 3)


def test_large_payloads_are_refused() -> None:
    with pytest.raises(MalformedPayload, match="more than 16384"):
        decode_payload(bytes(65_537))
    with pytest.raises(MalformedPayload, match="more than 1000 metrics"):
        decode_payload(b"\x12\x00" * 1_001)
    with pytest.raises(MalformedPayload, match="another number"):
        decode_payload(b"\x12\x06\x4a\x04\x0a\x00\x0a\x00")


SENT = MetricPayload(
    1_700_000_000_000,
    (
        Metric(42, "bdSeq", None, 1, DataType.INT64),
        Metric(-3, "a/b", 1, 2, DataType.INT32, True),
        Metric(-(1 << 60), "big", 2, 3, DataType.INT64),
        Metric(2.5, "d", 3, 4, DataType.DOUBLE, False, {"Quality": MetricProperty(DataType.INT32, 192)}),
        Metric(False, "f", 4, 5, DataType.BOOLEAN),
        Metric("grün", "s", 5, 6, DataType.STRING, False, {"engUnit": MetricProperty(DataType.STRING, "°C")}),
        Metric(None, "n", 6, 7, DataType.DOUBLE, False, {"engLow": MetricProperty(DataType.DOUBLE, -1.5)}),
    ),
    0,
)


async def test_independent_decoder_reads_encoded_payloads() -> None:
    async with running("codec.js") as process:
        read = await Codec(process).call(decode=base64.b64encode(encode_payload(SENT)).decode())
    assert (read["timestamp"], read["seq"]) == ("1700000000000", "0")
    found = {metric["name"]: metric for metric in read["metrics"]}
    assert {name: value["type"] for name, value in found.items()} == {
        "bdSeq": "Int64",
        "a/b": "Int32",
        "big": "Int64",
        "d": "Double",
        "f": "Boolean",
        "s": "String",
        "n": "Double",
    }
    assert [found[name]["value"] for name in ("bdSeq", "a/b", "big", "d", "f", "s")] == [
        # The package leaves a negative number of 64 bits in its two's complement.
        *("42", -3, str((1 << 64) - (1 << 60)), 2.5, False, "grün")
    ]
    assert found["n"]["value"] is None
    assert found["a/b"]["isHistorical"] is True
    assert found["d"]["properties"] == {"Quality": {"type": "Int32", "value": 192}}
    assert found["s"]["properties"] == {"engUnit": {"type": "String", "value": "°C"}}
    assert [metric.get("alias") for metric in read["metrics"]] == [None, "1", "2", "3", "4", "5", "6"]


async def test_payload_of_an_independent_encoder_is_decoded() -> None:
    sent = [
        {"name": "Node Control/Rebirth", "type": "Boolean", "value": True, "timestamp": 9},
        *({"name": f"i{bits}", "type": f"Int{bits}", "value": -5} for bits in (8, 16, 32)),
        *({"name": f"u{bits}", "type": f"UInt{bits}", "value": 5} for bits in (8, 16, 32, 64)),
        {"name": "f", "type": "Float", "value": 1.5},
        {"name": "d", "type": "Double", "value": 1.1},
        {"name": "t", "type": "Text", "value": "x"},
        {"name": "at", "type": "DateTime", "value": 1_700_000_000_000},
        {"name": "b", "type": "Bytes", "value": [1, 2]},
        {"name": "p", "type": "Double", "value": 1, "properties": {"Quality": {"type": "Int32", "value": 0}}},
    ]
    async with running("codec.js") as process:
        answer = await Codec(process).call(encode={"timestamp": 8, "metrics": sent, "seq": 3})
    read = decode_payload(base64.b64decode(answer))
    assert (read.timestamp, read.seq) == (8, 3)
    assert [metric.value for metric in read.metrics] == [
        *(True, -5, -5, -5, 5, 5, 5, 5, 1.5, 1.1, "x", 1_700_000_000_000, None, 1.0)
    ]
    assert read.metrics[-1].properties == {"Quality": MetricProperty(DataType.INT32, 0)}


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
