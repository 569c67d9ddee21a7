"""How a CloudEvent travels as a map of MessagePack: its attributes by name, and `data` in one of three forms."""

import base64
import binascii
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, assert_never

import msgspec

from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.cloudevent import MSGPACK, CloudEvent, binary_attributes, decode_data, encode_data, from_attributes


class DataForm(Enum):
    """What `data` is; an answer takes the form of its call."""

    STRUCTURE = auto()
    """The data itself."""
    BYTES = auto()
    """The payload, in the format that `datacontenttype` names."""
    BASE64 = auto()
    """The payload as text, which is how MicroDCS writes bytes in a map."""


def form_of(event: Mapping[Any, Any]) -> DataForm:
    """Return the form of an event's data; a structure where it has none."""
    match event.get("data"):
        case bytes():
            return DataForm.BYTES
        case str():
            return DataForm.BASE64
        case _:
            return DataForm.STRUCTURE


def from_map(event: Mapping[Any, Any]) -> CloudEvent:
    """Read an event.

    Attributes may be numbers; nil values and unknown types are ignored. Raises Refused(`unreadable`) when the map is
    not a CloudEvent.
    """
    attributes = {
        name: text
        for name, value in event.items()
        if isinstance(name, str) and name != "data" and (text := _text(value)) is not None
    }
    match form_of(event):
        case DataForm.BYTES:
            return from_attributes(attributes, "", event["data"])
        case DataForm.BASE64:
            return from_attributes(attributes, "", _payload(event["data"]))
        case DataForm.STRUCTURE:
            # Encoding the data applies the same limits as to data in bytes.
            data = decode_data(MSGPACK, msgspec.msgpack.encode(event.get("data")))
            return msgspec.structs.replace(from_attributes(attributes, "", b""), data=data)
        case form:
            assert_never(form)


def to_map(event: CloudEvent, form: DataForm = DataForm.STRUCTURE) -> dict[str, Any]:
    """Return the map of an event, without absent attributes."""
    parts: dict[str, Any] = binary_attributes(event) | {"datacontenttype": event.datacontenttype}
    if event.expiryinterval is not None:
        parts["expiryinterval"] = event.expiryinterval
    if event.data is None:
        return parts
    match form:
        case DataForm.STRUCTURE:
            return parts | {"data": event.data}
        case DataForm.BYTES:
            return parts | {"data": encode_data(event.datacontenttype, event.data)}
        case DataForm.BASE64:
            return parts | {"data": base64.b64encode(encode_data(event.datacontenttype, event.data)).decode()}
        case _:
            assert_never(form)


def _text(value: object) -> str | None:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            return None


def _payload(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        message = Text.of("the data is a text, but no base64: {reason}", reason=error)
        raise Refused("unreadable", message, "Send the data itself, or its payload as bytes or base64.") from None
