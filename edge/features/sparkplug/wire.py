"""The wire format of Protocol Buffers, as far as a Sparkplug B payload needs it: varints, fixed numbers, bytes."""

import struct
from collections.abc import Iterator
from typing import Final, TypeAlias

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


class MalformedPayload(ValueError):
    """Bytes that are not payload; the message says why."""


def encode_varint(number: int) -> bytes:
    """Return a varint; a negative number takes the ten bytes of its two's complement."""
    number &= _U64
    encoded = bytearray()
    while number >= 0x80:  # noqa: PLR2004 - seven bits a byte
        encoded.append(number & 0x7F | 0x80)
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
        if byte < 0x80:  # noqa: PLR2004 - the last byte has no continuation bit
            return value & _U64, at + position + 1
    raise MalformedPayload("a number does not end")
