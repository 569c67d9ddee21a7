"""The CloudEvents 1.0 envelope with its MicroDCS extensions."""

import base64
import re
import uuid
from collections.abc import Mapping
from typing import Any

import msgspec

from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.payload import decode_msgpack

JSON = "application/json"
MSGPACK = "application/msgpack"
STRUCTURED_JSON = "application/cloudevents+json"
MSGPACK_TYPES = frozenset({MSGPACK, "application/x-msgpack", "application/vnd.msgpack"})

MAX_NESTING = 36
"""Levels that the deepest order needs (16 levels of parameters, each in a list); no recipe needs more.

The data are stored, and read again within more levels."""

_BEYOND_DOUBLE = 1 << 1023
"""Integers from here on fit neither a score of Redis nor a number of OPC UA."""

MAX_ATTRIBUTE_LENGTH = 65_535
"""In characters, the limit of an MQTT user property; a structured envelope has none, but logs and answers repeat it."""

REQUIRED = ("id", "source", "type")
_ATTRIBUTE_NAME = re.compile(r"[a-z0-9]+")
_UINT32_DIGITS = re.compile(r"[0-9]{1,10}")


class CloudEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event (CloudEvents 1.0.2): the attributes we read by name, the others in `extensions`.

    `correlationid` is constant for the life of a job, `causationid` is the `id` of the event that this one
    answers. `data` is the decoded payload. `expiryinterval` is in seconds (MQTT 5 Message Expiry Interval).
    """

    id: str
    source: str
    type: str
    specversion: str = "1.0"
    subject: str | None = None
    time: str | None = None
    datacontenttype: str = JSON
    dataschema: str | None = None
    correlationid: str | None = None
    causationid: str | None = None
    expiryinterval: int | None = None
    mdcserrorkind: str | None = None
    mdcserrormessage: str | None = None
    extensions: Mapping[str, str] = {}
    data: Any = None


_FIELDS = frozenset(CloudEvent.__struct_fields__)
_NAMED = _FIELDS - {"extensions", "data", "expiryinterval", "datacontenttype"}
_NAMED_IN_ORDER = sorted(_NAMED)


def decode_data(content_type: str, payload: bytes) -> Any:
    """Decode a payload by its media type; an empty payload is None.

    Raises Refused(`unreadable`) for bytes that do not fit the media type, for values that JSON cannot express, and for
    data nested deeper than MAX_NESTING.
    """
    if not payload:
        return None
    media_type = _media_type(content_type)
    try:
        if media_type in MSGPACK_TYPES:
            data = decode_msgpack(payload)
        elif media_type == JSON or media_type.endswith("+json"):
            data = msgspec.json.decode(payload)
        else:
            message = Text.of("content type {media_type!r} is not supported", media_type=media_type)
            raise Refused("unreadable", message, Text.of("Use {json} or {msgpack}.", json=JSON, msgpack=MSGPACK))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        message = Text.of("the payload is not {media_type}: {reason}", media_type=media_type, reason=error)
        raise Refused("unreadable", message, "Send the payload in the format that its content type names.") from None
    if fault := _fault_of(data):
        raise Refused(
            "unreadable", Text.of("the payload {fault}", fault=fault), "Send what JSON can say, in a few levels."
        )
    return data


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower() or JSON


def _fault_of(data: object) -> Text | None:
    """Return the reason why decoded data cannot be stored; None when they can. The data is checked level by level."""
    level = [data]
    for _ in range(MAX_NESTING + 1):
        inner: list[object] = []
        for value in level:
            if isinstance(value, dict):
                if not all(isinstance(key, str) for key in value):
                    return Text("has a key that is not a text")
                inner.extend(value.values())
            elif isinstance(value, list):
                inner.extend(value)
            elif isinstance(value, msgspec.msgpack.Ext):
                return Text("holds an extension type of MessagePack")
            elif isinstance(value, int) and abs(value) >= _BEYOND_DOUBLE:
                return Text("holds a whole number beyond every double")
        if not inner:
            return None
        level = inner
    return Text.of("is nested deeper than {most} levels", most=MAX_NESTING)


def encode_data(content_type: str, data: object) -> bytes:
    """Encode `data` (builtins or msgspec Structs) in the given media type; None is no bytes."""
    if data is None:
        return b""
    if _media_type(content_type) in MSGPACK_TYPES:
        return msgspec.msgpack.encode(data)
    return msgspec.json.encode(data)


def from_attributes(attributes: Mapping[str, str], content_type: str, payload: bytes) -> CloudEvent:
    """Build an event from binary mode: attributes by name and the payload.

    Raises Refused(`unreadable`) when a required attribute is missing, one is longer than MAX_ATTRIBUTE_LENGTH, or the
    payload does not decode.
    """
    if any(len(value) > MAX_ATTRIBUTE_LENGTH for value in attributes.values()):
        message = Text.of(
            "not a CloudEvent: an attribute is longer than {max_attribute_length} characters",
            max_attribute_length=MAX_ATTRIBUTE_LENGTH,
        )
        raise Refused("unreadable", message, "Send in the data what is so long.")
    missing = [name for name in REQUIRED if not attributes.get(name)]
    if missing:
        message = Text.of("not a CloudEvent: attribute {missing} missing", missing=", ".join(missing))
        raise Refused("unreadable", message, "Send CloudEvents 1.0 in binary mode (attributes as user properties).")
    expiry = attributes.get("expiryinterval", "")
    return CloudEvent(
        **{name: value for name, value in attributes.items() if name in _NAMED},
        datacontenttype=content_type or attributes.get("datacontenttype") or JSON,
        expiryinterval=int(expiry) if _UINT32_DIGITS.fullmatch(expiry) else None,
        extensions={
            name: value for name, value in attributes.items() if name not in _FIELDS and _ATTRIBUTE_NAME.fullmatch(name)
        },
        data=decode_data(content_type or attributes.get("datacontenttype") or JSON, payload),
    )


def from_structured(payload: bytes) -> CloudEvent:
    """Build an event from structured mode (`application/cloudevents+json`).

    Raises Refused(`unreadable`) when the envelope is not one.
    """
    envelope = decode_data(STRUCTURED_JSON, payload)
    if not isinstance(envelope, dict):
        message = "not a CloudEvent: the structured envelope is not a JSON object"
        raise Refused("unreadable", message, "Send CloudEvents 1.0 in structured JSON mode.")
    attributes = {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in envelope.items()
        if name not in {"data", "data_base64"} and value is not None
    }
    event = from_attributes(attributes, JSON, b"")
    content_type = attributes.get("datacontenttype", JSON)
    data = envelope.get("data")
    if "data_base64" in envelope:
        try:
            data = decode_data(content_type, base64.b64decode(envelope["data_base64"], validate=True))
        except (TypeError, ValueError) as error:
            reason = Text.of("not a CloudEvent: data_base64 is not Base64: {reason}", reason=error)
            raise Refused("unreadable", reason, "Send CloudEvents 1.0 in structured JSON mode.") from None
    return msgspec.structs.replace(event, datacontenttype=content_type, data=data)


def binary_attributes(event: CloudEvent) -> dict[str, str]:
    """Return the attributes of binary mode, all as text, without the payload and its content type."""
    attributes = {name: value for name in _NAMED_IN_ORDER if (value := getattr(event, name)) is not None}
    if event.expiryinterval is not None:
        attributes["expiryinterval"] = str(event.expiryinterval)
    return attributes | dict(event.extensions)


def new_id() -> str:
    """Return a new id for an event that is sent once; an event that may be repeated derives its id instead."""
    return str(uuid.uuid4())


def correlation_bytes(correlationid: str) -> bytes:
    """Return MQTT's Correlation Data for a correlation id: the 16 bytes of a UUID, else the text itself."""
    try:
        return uuid.UUID(correlationid).bytes
    except ValueError:
        return correlationid.encode()
