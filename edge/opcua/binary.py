"""The binary codec of OPC UA values (OPC 10000-6, 5.2) for server and client, bounded in depth and in size.

A codec encodes and decodes the values of one type. Structures are decoded by tables of fields, never by classes that
asyncua keeps for the whole process under a namespace *index*: two address spaces in one process would decode each
other's structures (github.com/FreeOpcUa/opcua-asyncio/issues/781, 1678, 1700, 1800).
"""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from asyncua import ua
from asyncua.common.utils import Buffer, NotEnoughData
from asyncua.ua.ua_binary import Primitives, nodeid_from_binary, pack_uatype, unpack_uatype
from msgspec import Struct

from edge.model.isa95 import LocalizedText

MAX_DEPTH = 100
"""The nesting that every decoder must support (OPC 10000-6, 5.1.9), and the limit of this decoder."""

_LENGTH = struct.Struct("<i")
_ARRAY = 0x80
_MATRIX = 0x40
_HIGHEST_BUILTIN = ua.VariantType.DiagnosticInfo.value


class DecodeError(Exception):
    """The bytes do not encode a value of the expected type; the message says why."""


class NestingError(DecodeError):
    """The value is nested deeper than MAX_DEPTH."""


class BoundedBuffer(Buffer):
    """The bytes of a value; their number bounds how many structures it may contain, MAX_DEPTH how deep."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._structures_left = len(data) + MAX_DEPTH
        self._depth = 0

    def enter(self) -> None:
        """Start a nested value. Raises NestingError when it is nested too deep."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NestingError(f"nested more than {MAX_DEPTH} levels deep")

    def leave(self) -> None:
        """End the current nested value."""
        self._depth -= 1

    def count_structure(self) -> None:
        """Count one more structure: some have no bytes. Raises DecodeError when there are too many."""
        self._structures_left -= 1
        if self._structures_left < 0:
            raise DecodeError("contains more structures than bytes")


class Codec(Struct, frozen=True):
    """The encoding of one type. `decode` raises DecodeError."""

    encode: Callable[[Any], bytes]
    decode: Callable[[BoundedBuffer], Any]


class Field(Struct, frozen=True):
    """A field of a structure: its name, its codec, whether it may be absent."""

    name: str
    codec: Codec
    optional: bool = False


class StructureCodec(Struct):
    """The encoding of a structure by its fields in order: `get` reads a field of a value, `build` makes a value.

    Fields may be added later, because a structure may contain itself.
    """

    get: Callable[[Any, str], Any]
    build: Callable[[dict[str, Any]], Any]
    fields: list[Field]
    has_mask: bool

    def encode(self, value: Any) -> bytes:
        """Encode the mask of the present optional fields, if the structure has one, then the fields."""
        mask, bit = 0, 1
        parts = [b""]
        for field in self.fields:
            content = self.get(value, field.name)
            if field.optional:
                mask |= bit if content is not None else 0
                bit <<= 1
            if content is not None or not field.optional:
                parts.append(field.codec.encode(content))
        if self.has_mask:
            parts[0] = UINT32.encode(mask)
        return b"".join(parts)

    def decode(self, data: BoundedBuffer) -> Any:
        """Decode the fields that are present. Raises DecodeError."""
        data.enter()
        data.count_structure()
        mask = UINT32.decode(data) if self.has_mask else 0
        values: dict[str, Any] = {}
        for field in self.fields:
            if not field.optional or mask & 1:
                values[field.name] = field.codec.decode(data)
            mask >>= field.optional
        if mask:
            raise DecodeError("the mask of optional fields has bits without a field")
        data.leave()
        return self.build(values)


def read_bytes(data: Buffer, size: int) -> bytes:
    """Read the next bytes. Raises DecodeError when there are fewer."""
    try:
        content: bytes = data.read(size)
    except NotEnoughData as error:
        raise DecodeError("the value is truncated") from error
    return content


def read_length(data: Buffer) -> int:
    """Read the length of an array, 0 for the null array; every element takes at least one byte."""
    (length,) = _LENGTH.unpack(read_bytes(data, _LENGTH.size))
    if length > len(data):
        raise DecodeError(f"{length} elements announced in {len(data)} bytes")
    return max(0, int(length))


def read_node_id(data: Buffer) -> ua.NodeId:
    """Read a NodeId or ExpandedNodeId. Raises DecodeError."""
    try:
        node_id = nodeid_from_binary(data)
        for text in (node_id.Identifier, getattr(node_id, "NamespaceUri", None)):
            if isinstance(text, str):
                text.encode()  # asyncua decodes invalid UTF-8 to surrogates
        return node_id
    except (NotEnoughData, ua.UaError, ValueError, TypeError, struct.error) as error:
        raise DecodeError(f"malformed NodeId: {error}") from error


def array(codec: Codec) -> Codec:
    """Return the codec of arrays of these values; None is encoded as the null array."""

    def encode_array(values: Sequence[Any] | None) -> bytes:
        if values is None:
            return _LENGTH.pack(-1)
        return _LENGTH.pack(len(values)) + b"".join([codec.encode(value) for value in values])

    def decode_array(data: BoundedBuffer) -> list[Any]:
        return [codec.decode(data) for _ in range(read_length(data))]

    return Codec(encode_array, decode_array)


def builtin(kind: ua.VariantType) -> Codec:
    """Return the codec of a built-in type; encoding takes the values of asyncua."""
    return Codec(partial(pack_uatype, kind), partial(_decode_builtin, kind))


def decode_with_asyncua(decode: Callable[[Buffer], Any], what: str, data: Buffer) -> Any:
    """Decode with asyncua. Raises DecodeError for malformed bytes, whatever asyncua raises."""
    try:
        return decode(data)
    except (ua.UaError, NotEnoughData, struct.error, RecursionError) as error:
        raise DecodeError(f"malformed {what}: {error}") from error
    except (ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
        raise DecodeError(f"malformed {what}: {type(error).__name__}: {error}") from error


def _decode_builtin(kind: ua.VariantType, data: BoundedBuffer) -> Any:
    decode = _DECODERS.get(kind)
    if decode is None:
        return _decode_scalar(kind, data)
    data.enter()
    value = decode(data)
    data.leave()
    return value


def _decode_scalar(kind: ua.VariantType, data: Buffer) -> Any:
    return decode_with_asyncua(partial(unpack_uatype, kind), kind.name, data)


def _integer(code: str) -> Codec:
    # JSON has no integer sizes: a number out of range is encoded as the nearest one, so that one job cannot make a
    # whole list unreadable.
    form = struct.Struct(f"<{code}")
    values = 1 << 8 * form.size
    lowest = -values // 2 if code.islower() else 0
    highest = lowest + values - 1

    def encode_integer(value: int) -> bytes:
        return form.pack(min(max(value, lowest), highest))

    def decode_integer(data: BoundedBuffer) -> int:
        (value,) = form.unpack(read_bytes(data, form.size))
        return int(value)

    return Codec(encode_integer, decode_integer)


def _decode_string(data: Buffer) -> str:
    try:
        # The null string has the length -1; the model has empty strings only.
        return read_bytes(data, read_length(data)).decode()
    except UnicodeDecodeError as error:
        raise DecodeError(f"a string is not UTF-8: {error}") from error


def _encode_localized_text(value: LocalizedText | None) -> bytes:
    if value is None:
        return b"\0"
    mask = (1 if value.locale else 0) | (2 if value.text else 0)
    return bytes((mask,)) + b"".join([STRING.encode(text) for text in (value.locale, value.text) if text])


def _decode_localized_text(data: Buffer) -> LocalizedText:
    (mask,) = read_bytes(data, 1)
    locale = _decode_string(data) if mask & 1 else ""
    return LocalizedText(locale=locale, text=_decode_string(data) if mask & 2 else "")


def _decode_date_time(data: Buffer) -> Any:
    return Primitives.DateTime.unpack(Buffer(read_bytes(data, 8)))


STRING = Codec(Primitives.String.pack, _decode_string)
DATE_TIME = Codec(Primitives.DateTime.pack, _decode_date_time)
INT16 = _integer("h")
UINT16 = _integer("H")
INT32 = _integer("i")
UINT32 = _integer("I")
LOCALIZED_TEXT = Codec(_encode_localized_text, _decode_localized_text)


def read_extension_object(data: Buffer) -> ua.ExtensionObject:
    """Read a structure as the bytes it was sent in. Raises DecodeError."""
    type_id = read_node_id(data)
    (encoding,) = read_bytes(data, 1)
    if encoding not in {0, 1}:
        raise DecodeError("a structure is not in the binary encoding")
    return ua.ExtensionObject(TypeId=type_id, Body=read_bytes(data, read_length(data)) if encoding else None)


def read_variant(data: BoundedBuffer) -> ua.Variant:
    """Read a variant; structures in it stay as the bytes they were sent in. Raises DecodeError.

    asyncua's reader would decode structures by process-wide classes, and expand an announced array of nulls.
    """
    (encoding,) = read_bytes(data, 1)
    number = encoding & 0x3F
    if number > _HIGHEST_BUILTIN or (kind := ua.VariantType(number)) is ua.VariantType.DiagnosticInfo:
        raise DecodeError(f"variants of type {number} are not supported")
    if not encoding & _ARRAY:
        if kind is ua.VariantType.Variant:
            raise DecodeError("a variant may contain variants only as an array")
        return ua.Variant(_read_element(kind, data), kind)
    if kind is ua.VariantType.Null:
        raise DecodeError("arrays of nulls do not exist")
    content = [_read_element(kind, data) for _ in range(read_length(data))]
    dimensions = [INT32.decode(data) for _ in range(read_length(data))] if encoding & _MATRIX else None
    if dimensions and (min(dimensions) < 0 or math.prod(dimensions) != len(content)):
        raise DecodeError(f"dimensions {dimensions} do not match {len(content)} elements")
    return ua.Variant(content, kind, dimensions, is_array=True)


def _read_element(kind: ua.VariantType, data: BoundedBuffer) -> Any:
    match kind:
        case ua.VariantType.String:
            is_null = INT32.decode(data.copy()) < 0
            text = STRING.decode(data)
            return None if is_null else text
        case ua.VariantType.XmlElement:
            return ua.XmlElement(STRING.decode(data))
        case ua.VariantType.LocalizedText:
            localized = LOCALIZED_TEXT.decode(data)
            return ua.LocalizedText(localized.text or None, localized.locale or None)
        case ua.VariantType.QualifiedName:
            index = UINT16.decode(data)
            return ua.QualifiedName(STRING.decode(data), index)
        case ua.VariantType.NodeId | ua.VariantType.ExpandedNodeId:
            return read_node_id(data)
        case ua.VariantType.ExtensionObject:
            return read_extension_object(data)
        case ua.VariantType.Variant | ua.VariantType.DataValue:
            data.enter()
            value = read_variant(data) if kind is ua.VariantType.Variant else _read_data_value(data)
            data.leave()
            return value
        case _:
            return _decode_scalar(kind, data)


def _read_data_value(data: BoundedBuffer) -> ua.DataValue:
    (mask,) = read_bytes(data, 1)
    value = read_variant(data) if mask & 1 else ua.Variant()
    status = UINT32.decode(data) if mask & 2 else 0
    source = DATE_TIME.decode(data) if mask & 4 else None
    read_bytes(data, 2 if mask & 16 else 0)  # picoseconds
    server = DATE_TIME.decode(data) if mask & 8 else None
    read_bytes(data, 2 if mask & 32 else 0)
    return ua.DataValue(value, ua.StatusCode(status), source, server)


_DECODERS: Mapping[ua.VariantType, Callable[[BoundedBuffer], Any]] = MappingProxyType(
    {
        ua.VariantType.Variant: read_variant,
        ua.VariantType.ExtensionObject: read_extension_object,
        ua.VariantType.DataValue: _read_data_value,
    }
)
