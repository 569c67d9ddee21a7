"""Payloads of Sparkplug B: metrics with values of the data types that the gateway uses, as Protocol Buffers."""

import struct
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Final, TypeAlias, assert_never

from msgspec import Struct, field

Field: TypeAlias = tuple[int, int | bytes]
"""The number of a field, and its content: a varint or a fixed number as integer, else the bytes."""

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5
_MAX_VARINT_BYTES: Final = 10
_U64: Final = (1 << 64) - 1
_FIXED: Final = {FIXED64: 8, FIXED32: 4}
_DOUBLE: Final = struct.Struct("<d")
_FLOAT: Final = struct.Struct("<f")
_U64_STRUCT: Final = struct.Struct("<Q")
_U32_STRUCT: Final = struct.Struct("<I")


_CONTINUED: Final = 0x80
"""The bit of each byte of a varint but the last."""


class MalformedPayload(ValueError):
    """Bytes that are not payload; the message says why."""


def encode_varint(number: int) -> bytes:
    """Return a varint; a negative number takes the ten bytes of its two's complement."""
    number &= _U64
    encoded = bytearray()
    while number >= _CONTINUED:
        encoded.append(number & 0x7F | _CONTINUED)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def varint_field(number: int, value: int) -> bytes:
    """Return a field with a varint."""
    return encode_varint(number << 3 | VARINT) + encode_varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """Return a field with bytes, a text or a message."""
    return encode_varint(number << 3 | BYTES) + encode_varint(len(value)) + value


def double_field(number: int, value: float) -> bytes:
    """Return a field with a double."""
    return encode_varint(number << 3 | FIXED64) + _DOUBLE.pack(value)


def read_fields(data: bytes) -> Iterator[Field]:
    """Yield the fields of a message in their order. Raises MalformedPayload."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        number, kind = key >> 3, key & 7
        if not number:
            raise MalformedPayload("a field has the number 0")
        if kind == VARINT:
            value, at = _read_varint(data, at)
            yield number, value
        elif kind == BYTES:
            size, at = _read_varint(data, at)
            yield number, _slice(data, at, size)
            at += size
        elif kind in _FIXED:
            raw = _slice(data, at, _FIXED[kind])
            at += _FIXED[kind]
            yield number, int.from_bytes(raw, "little")
        else:
            raise MalformedPayload(f"wire type {kind} is not used")


def as_double(raw: int) -> float:
    """Return the double of a fixed number."""
    found: float = _DOUBLE.unpack(_U64_STRUCT.pack(raw & _U64))[0]
    return found


def as_float(raw: int) -> float:
    """Return the float of a fixed number."""
    found: float = _FLOAT.unpack(_U32_STRUCT.pack(raw & 0xFFFF_FFFF))[0]
    return found


def as_signed(raw: int, bits: int) -> int:
    """Return the signed number of the lowest bits of a varint."""
    lowest = raw & ((1 << bits) - 1)
    return lowest - (1 << bits) if lowest >> (bits - 1) else lowest


def as_text(raw: int | bytes) -> str:
    """Return the text of a field. Raises MalformedPayload."""
    try:
        return as_bytes(raw).decode()
    except UnicodeDecodeError:
        raise MalformedPayload("a text is not UTF-8") from None


def as_bytes(raw: int | bytes) -> bytes:
    """Return the bytes of a field. Raises MalformedPayload for a number."""
    if isinstance(raw, int):
        raise MalformedPayload("a number stands where bytes are expected")
    return raw


def as_number(raw: int | bytes) -> int:
    """Return the number of a field. Raises MalformedPayload for bytes."""
    if isinstance(raw, bytes):
        raise MalformedPayload("bytes stand where a number is expected")
    return raw


def _slice(data: bytes, at: int, size: int) -> bytes:
    if size > len(data) - at:
        raise MalformedPayload("a field is longer than its message")
    return data[at : at + size]


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for position, byte in enumerate(data[at : at + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * position
        if byte < _CONTINUED:
            return value & _U64, at + position + 1
    raise MalformedPayload("a number does not end")


MAX_PAYLOAD: Final = 16_384
"""Bytes of a received payload; commands are small, and decoding holds up other work."""
MAX_METRICS: Final = 1_000
"""Metrics of a received payload."""

Value: TypeAlias = bool | int | float | str | None


class DataType(IntEnum):
    """The data types of Sparkplug B that the gateway sends; it reads the other basic types, too."""

    INT32 = 3
    INT64 = 4
    UINT64 = 8
    DOUBLE = 10
    BOOLEAN = 11
    STRING = 12


_SIGNED_BITS: Final = {1: 8, 2: 16, 3: 32, 4: 64}


class MetricProperty(Struct, frozen=True):
    """A property of a metric."""

    type: DataType
    value: Value


class Metric(Struct, frozen=True):
    """A metric; what is None is not sent. Its value is null when `value` is None.

    `datatype` is a number, because a received metric may have a type that the gateway does not use.
    """

    value: Value
    name: str | None = None
    alias: int | None = None
    timestamp: int | None = None
    datatype: int | None = None
    is_historical: bool = False
    properties: Mapping[str, MetricProperty] = field(default_factory=dict)


class MetricPayload(Struct, frozen=True):
    """A payload; `timestamp` is in milliseconds since the epoch."""

    timestamp: int | None
    metrics: tuple[Metric, ...] = ()
    seq: int | None = None


def encode_payload(payload: MetricPayload) -> bytes:
    """Return the bytes of a payload."""
    return b"".join(encode_parts(payload.timestamp, payload.metrics, payload.seq))


def encode_parts(timestamp: int | None, metrics: Iterable[Metric], seq: int | None) -> Iterator[bytes]:
    """Yield the bytes of a payload metric by metric: a birth certificate may have thousands."""
    if timestamp is not None:
        yield varint_field(1, max(0, timestamp))
    for metric in metrics:
        yield bytes_field(2, encode_metric(metric))
    if seq is not None:
        yield varint_field(3, seq)


def encode_metric(metric: Metric) -> bytes:
    """Return the bytes of a metric; one that is named by its alias alone has announced its data type before."""
    parts: list[bytes] = []
    if metric.name is not None:
        parts.append(bytes_field(1, metric.name.encode(errors="replace")))
    if metric.alias is not None:
        parts.append(varint_field(2, metric.alias))
    if metric.timestamp is not None:
        parts.append(varint_field(3, max(0, metric.timestamp)))
    if metric.datatype is not None and metric.name is not None:
        parts.append(varint_field(4, metric.datatype))
    if metric.is_historical:
        parts.append(varint_field(5, 1))
    if metric.value is None or metric.datatype is None:
        parts.append(varint_field(7, 1))
    if metric.properties:
        parts.append(bytes_field(9, _encode_properties(metric.properties)))
    if metric.value is not None and metric.datatype is not None:
        parts.append(_encode_value(DataType(metric.datatype), metric.value, 10))
    return b"".join(parts)


def _encode_properties(properties: Mapping[str, MetricProperty]) -> bytes:
    parts = [bytes_field(1, name.encode()) for name in properties]
    parts += (bytes_field(2, _encode_property(metric_property)) for metric_property in properties.values())
    return b"".join(parts)


def _encode_property(one: MetricProperty) -> bytes:
    # The numbers of the values are those of a metric, less seven.
    value = varint_field(2, 1) if one.value is None else _encode_value(one.type, one.value, 3)
    return varint_field(1, one.type) + value


def _encode_value(type: DataType, value: Value, first: int) -> bytes:
    """Return the field of a value; `first` is the number of the field of an `int_value`."""
    match type:
        case DataType.INT32:
            return varint_field(first, int(value or 0) & 0xFFFF_FFFF)
        case DataType.INT64 | DataType.UINT64:
            return varint_field(first + 1, int(value or 0))
        case DataType.DOUBLE:
            return double_field(first + 3, float(value or 0))
        case DataType.BOOLEAN:
            return varint_field(first + 4, bool(value))
        case DataType.STRING:
            return bytes_field(first + 5, str(value).encode(errors="replace"))
        case _:
            assert_never(type)


def decode_payload(data: bytes, most_bytes: int = MAX_PAYLOAD, most_metrics: int = MAX_METRICS) -> MetricPayload:
    """Return a payload. Raises MalformedPayload, also for more than `most_bytes` bytes or `most_metrics` metrics."""
    if len(data) > most_bytes:
        raise MalformedPayload(f"{len(data)} bytes are more than {most_bytes}")
    timestamp = seq = None
    metrics: list[Metric] = []
    for number, raw in read_fields(data):
        match number:
            case 1:
                timestamp = as_number(raw)
            case 2:
                if len(metrics) >= most_metrics:
                    raise MalformedPayload(f"there are more than {most_metrics} metrics")
                metrics.append(_decode_metric(as_bytes(raw)))
            case 3:
                seq = as_number(raw)
            case _:
                # An identifier of a payload, or a body: not used by commands.
                pass
    return MetricPayload(timestamp, tuple(metrics), seq)


def _decode_metric(data: bytes) -> Metric:
    found: dict[str, int | str | bool | Mapping[str, MetricProperty]] = {}
    raw_value: tuple[int, int | bytes] | None = None
    for number, raw in read_fields(data):
        match number:
            case 1:
                found["name"] = as_text(raw)
            case 2:
                found["alias"] = as_number(raw)
            case 3:
                found["timestamp"] = as_number(raw)
            case 4:
                found["datatype"] = as_number(raw)
            case 5:
                found["is_historical"] = bool(as_number(raw))
            case 9:
                found["properties"] = _decode_properties(as_bytes(raw))
            case 10 | 11 | 12 | 13 | 14 | 15:
                raw_value = number - 10, raw
            case _:
                # Null, metadata, bytes, data sets and templates have no value here.
                pass
    datatype = found.get("datatype")
    value = _decode_value(datatype if isinstance(datatype, int) else None, raw_value)
    return Metric(value, **found)  # type: ignore[arg-type]


def _decode_properties(data: bytes) -> dict[str, MetricProperty]:
    names: list[str] = []
    values: list[MetricProperty | None] = []
    for number, raw in read_fields(data):
        match number:
            case 1:
                names.append(as_text(raw))
            case 2:
                values.append(_decode_property(as_bytes(raw)))
            case _:
                pass
    if len(names) != len(values):
        raise MalformedPayload("properties have another number of names than of values")
    return {
        name: metric_property
        for name, metric_property in zip(names, values, strict=True)
        if metric_property is not None
    }


def _decode_property(data: bytes) -> MetricProperty | None:
    """Return a property; None for one of a type that the gateway does not use."""
    type = 0
    raw_value: tuple[int, int | bytes] | None = None
    for number, raw in read_fields(data):
        match number:
            case 1:
                type = as_number(raw)
            case 3 | 4 | 5 | 6 | 7 | 8:
                raw_value = number - 3, raw
            case _:
                pass
    if type not in {*DataType}:
        return None
    return MetricProperty(DataType(type), _decode_value(type, raw_value))


def _decode_value(datatype: int | None, raw_value: tuple[int, int | bytes] | None) -> Value:
    """Return a value by its field, counted from that of an `int_value`."""
    match raw_value:
        case None:
            return None
        case 0 | 1 as offset, raw:
            bits = _SIGNED_BITS.get(datatype or 0)
            number = as_number(raw)
            if bits is not None:
                return as_signed(number, bits)
            return number & 0xFFFF_FFFF if offset == 0 else number
        case 2, raw:
            return as_float(as_number(raw))
        case 3, raw:
            return as_double(as_number(raw))
        case 4, raw:
            return bool(as_number(raw))
        case _, raw:
            return as_text(raw)
    return None
