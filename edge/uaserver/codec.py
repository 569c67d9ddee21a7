"""Writes and reads what the fields of a structure hold: numbers, text, instants, arrays (OPC 10000-6, 5.2)."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from asyncua import ua
from asyncua.common.utils import Buffer, NotEnoughData
from asyncua.ua.ua_binary import Primitives, nodeid_from_binary, nodeid_to_binary

from edge.model.isa95 import BrowseName, LocalizedText
from edge.uaserver.namespaces import OFFICIAL_URI, Namespace

# A decoder reads at least this many levels (OPC 10000-6, 5.1.9); one without an end would run out of stack.
MAX_DEPTH = 100

_LENGTH = struct.Struct("<i")
# A sub-state machine is a component of the state machine: forward, subtypes of the reference count too.
_ANY_COMPONENT: bytes = nodeid_to_binary(ua.NodeId(ua.ObjectIds.HasComponent)) + b"\0\1"
_NAMESPACE_OF = {"": Namespace.UA, **{uri: namespace for namespace, uri in OFFICIAL_URI.items()}}
_URI_OF = {namespace.value: uri for uri, namespace in _NAMESPACE_OF.items()}


class DecodeError(Exception):
    """The bytes are not what they should be; the message says what is wrong with them."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How one kind of value is written, and how it is read at a depth of nesting. `read` raises Unreadable."""

    pack: Callable[[Any], bytes]
    read: Callable[[Buffer, int], Any]


def take(data: Buffer, size: int) -> bytes:
    """Take the next bytes."""
    try:
        taken: bytes = data.read(size)
    except NotEnoughData as error:
        raise DecodeError("it ends too early") from error
    return taken


def read_length(data: Buffer) -> int:
    """Read how many elements follow: none for the null array; every element takes a byte at least."""
    (length,) = _LENGTH.unpack(take(data, _LENGTH.size))
    if length > len(data):
        raise DecodeError(f"it announces {length} elements in {len(data)} bytes")
    return max(0, int(length))


def read_node_id(data: Buffer) -> ua.NodeId:
    """Read a NodeId or ExpandedNodeId."""
    try:
        node_id = nodeid_from_binary(data)
        for text in (node_id.Identifier, getattr(node_id, "NamespaceUri", None)):
            if isinstance(text, str):
                text.encode()  # asyncua lets everything pass for text
        return node_id
    except (NotEnoughData, ua.UaError, ValueError, TypeError, struct.error) as error:
        raise DecodeError(f"a NodeId is malformed: {error}") from error


def array(codec: Codec) -> Codec:
    """Make the codec of an array of values."""

    def pack_array(values: Sequence[Any]) -> bytes:
        return _LENGTH.pack(len(values)) + b"".join([codec.pack(value) for value in values])

    def read_array(data: Buffer, depth: int) -> tuple[Any, ...]:
        return tuple([codec.read(data, depth) for _ in range(read_length(data))])

    return Codec(pack_array, read_array)


def _integer(code: str) -> Codec:
    # JSON knows no widths: a number that does not fit is the nearest that does, rather than no list at all.
    form = struct.Struct(f"<{code}")
    values = 1 << 8 * form.size
    lowest = -values // 2 if code.islower() else 0
    highest = lowest + values - 1

    def pack_integer(value: int) -> bytes:
        return form.pack(min(max(value, lowest), highest))

    def read_integer(data: Buffer, _depth: int) -> int:
        (value,) = form.unpack(take(data, form.size))
        return int(value)

    return Codec(pack_integer, read_integer)


def _read_string(data: Buffer, _depth: int) -> str:
    try:
        # The null string has the length -1; where we keep text, it is the empty one.
        return take(data, read_length(data)).decode()
    except UnicodeDecodeError as error:
        raise DecodeError(f"a text is not UTF-8: {error}") from error


def _pack_localized_text(value: LocalizedText | None) -> bytes:
    if value is None:
        return b"\0"
    mask = (1 if value.locale else 0) | (2 if value.text else 0)
    return bytes((mask,)) + b"".join([STRING.pack(text) for text in (value.locale, value.text) if text])


def _read_localized_text(data: Buffer, depth: int) -> LocalizedText:
    (mask,) = take(data, 1)
    locale = _read_string(data, depth) if mask & 1 else ""
    return LocalizedText(locale=locale, text=_read_string(data, depth) if mask & 2 else "")


def _pack_path_element(value: BrowseName) -> bytes:
    # ReferenceTypeId, IsInverse, IncludeSubtypes, TargetName
    return _ANY_COMPONENT + UINT16.pack(_NAMESPACE_OF[value.namespace_uri]) + STRING.pack(value.name)


def _read_path_element(data: Buffer, depth: int) -> BrowseName:
    read_node_id(data)
    take(data, 2)
    namespace = UINT16.read(data, depth)
    if namespace not in _URI_OF:
        raise DecodeError(f"a browse path is in namespace {namespace}, which has no states")
    return BrowseName(namespace_uri=_URI_OF[namespace], name=_read_string(data, depth))


def _read_date_time(data: Buffer, _depth: int) -> Any:
    return Primitives.DateTime.unpack(Buffer(take(data, 8)))


STRING = Codec(Primitives.String.pack, _read_string)
DATE_TIME = Codec(Primitives.DateTime.pack, _read_date_time)
INT16 = _integer("h")
UINT16 = _integer("H")
INT32 = _integer("i")
UINT32 = _integer("I")
LOCALIZED_TEXT = Codec(_pack_localized_text, _read_localized_text)
LOCALIZED_TEXTS = array(LOCALIZED_TEXT)
BROWSE_PATH = array(Codec(_pack_path_element, _read_path_element))
