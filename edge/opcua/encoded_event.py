"""Encodes events when they are queued: one bytes object each, which the garbage collector does not visit.

A thousand queued events of twenty fields each would be 60,000 objects, and a collection of them holds the event loop.
"""

import struct
from collections.abc import Sequence
from typing import NewType

from asyncua import ua
from asyncua.common.utils import Buffer
from asyncua.ua.ua_binary import struct_from_binary, variant_to_binary

EncodedEvent = NewType("EncodedEvent", bytes)
"""The encoding of an EventFieldList (OPC 10000-4, 7.25.3)."""

_HEAD = struct.Struct("<Ii")


def encode_event(client_handle: int, fields: Sequence[ua.Variant]) -> EncodedEvent:
    """Encode the selected fields of an event for a monitored item."""
    return EncodedEvent(_HEAD.pack(client_handle, len(fields)) + b"".join(map(variant_to_binary, fields)))


def decode_event(event: EncodedEvent) -> ua.EventFieldList:
    """Decode an event."""
    decoded: ua.EventFieldList = struct_from_binary(ua.EventFieldList, Buffer(event))
    return decoded


def client_handle(event: EncodedEvent) -> int:
    """Return the client handle of the monitored item of an event."""
    handle, _ = _HEAD.unpack_from(event)
    return int(handle)


def without_largest_fields(event: EncodedEvent, excess: int, instead: ua.Variant) -> EncodedEvent:
    """Replace the largest fields of an event, so many that it is `excess` bytes smaller, as far as that is possible."""
    decoded = decode_event(event)
    fields = list(decoded.EventFields)
    sizes = [len(variant_to_binary(field)) for field in fields]
    replacement = len(variant_to_binary(instead))
    for at in sorted(range(len(fields)), key=lambda number: -sizes[number]):
        if excess <= 0:
            break
        fields[at] = instead
        excess -= sizes[at] - replacement
    return encode_event(decoded.ClientHandle, fields)
