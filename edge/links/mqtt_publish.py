"""Encodes and decodes PUBLISH packets of MQTT 5: the bytes are read once, every check of the standard."""

import functools
import re
from typing import Any, Final

from msgspec import Struct

from edge.foundation.errors import EdgeError, Refused
from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.links.cloudevent_mqtt import Message

PUBLISH: Final = 0x30
_RETAIN: Final = 0x01
_QOS_SHIFT: Final = 1
_QOS_MASK: Final = 0x03

_USER_PROPERTY: Final = 0x26
_LONGEST_STRING = 65_535
_BYTES_PER_CHARACTER = 4
LENGTH_BYTES = 4
CONTINUES = 0x80
"""The bit of a byte of a length that says that another one follows (MQTT 5, 1.5.5)."""
"""A Variable Byte Integer takes at most four bytes (MQTT 5, 1.5.5)."""

# A broker ends the connection of a client that sends one of these in a string (MQTT 5, 1.5.4; mosquitto
# does), and the next connection too if the client insists. U+FEFF is allowed, but clients on paho disconnect over it.
_FORBIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufeff"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x11_0000, 0x1_0000))
    + "]"
)


class MalformedPublish(EdgeError):
    """A PUBLISH packet that MQTT does not allow.

    `packet_id` is that of a message which can be refused by a PUBACK, 0 for QoS 0, and None where the packet has to
    end the connection.
    """

    def __init__(self, message: str | Text, packet_id: int | None) -> None:
        super().__init__(message)
        self.packet_id = packet_id


class PublishHead(Struct, frozen=True):
    """The first part of a PUBLISH packet: enough to route the message, or to drop it without decoding."""

    topic: str
    packet_id: int
    retain: bool
    end: int
    """The number of bytes of the packet that the head takes."""


def encode_publish(message: Message, packet_id: int) -> bytes:
    """Return a PUBLISH packet; `packet_id` 0 means QoS 0, any other QoS 1.

    Text in the properties loses its control characters. Raises Refused(`topic`) for a topic that MQTT does not allow.
    """
    topic = encode_topic(message.topic)
    properties = _encode_properties(message)
    head = len(topic).to_bytes(2, "big") + topic
    if packet_id:
        head += packet_id.to_bytes(2, "big")
    head += _encode_length(len(properties)) + properties
    flags = PUBLISH | bool(packet_id) << _QOS_SHIFT | (_RETAIN if message.retain else 0)
    return bytes((flags,)) + _encode_length(len(head) + len(message.payload)) + head + message.payload


def encode_topic(topic: str) -> bytes:
    """Return the bytes of a topic to publish to. Raises Refused(`topic`) for one that MQTT does not allow."""
    if topic and "+" not in topic and "#" not in topic and (_is_plain(topic) or not _FORBIDDEN.search(topic)):
        encoded = topic.encode()
        if len(encoded) <= _LONGEST_STRING:
            return encoded
    raise Refused(
        "topic",
        Text.of("{topic!r} is not a topic to publish to", topic=topic[:200]),
        "Avoid +, # and control characters.",
    )


def _encode_properties(message: Message) -> bytes:
    parts: list[bytes] = []
    if message.expiry is not None:
        parts += (b"\x02", message.expiry.to_bytes(4, "big"))
    if message.content_type is not None:
        parts += (b"\x03", _encode_string(message.content_type))
    if message.response_topic is not None:
        topic = encode_topic(message.response_topic)
        parts += (b"\x08", len(topic).to_bytes(2, "big"), topic)
    if message.correlation_data is not None:
        parts += (b"\x09", len(message.correlation_data).to_bytes(2, "big"), message.correlation_data)
    for name, value in message.user_properties.items():
        parts += (b"\x26", _encode_name(name), _encode_string(value))
    return b"".join(parts)


def _encode_string(text: str) -> bytes:
    """Return a string that MQTT carries; four bytes is the most that a character takes."""
    text = text[: _LONGEST_STRING // _BYTES_PER_CHARACTER]
    encoded = (text if _is_plain(text) else _FORBIDDEN.sub(" ", text)).encode()
    return len(encoded).to_bytes(2, "big") + encoded


def _is_plain(text: str) -> bool:
    """Return whether a text is printable ASCII, as nearly every text is; the search in the others takes longer."""
    return text.isascii() and text.isprintable()


@functools.lru_cache(maxsize=256)
def _encode_name(name: str) -> bytes:
    """Return the string of a name; few names occur, each in every message."""
    return _encode_string(name)


def _encode_length(length: int) -> bytes:
    encoded = bytearray()
    while length >= CONTINUES:
        encoded.append(length & 0x7F | CONTINUES)
        length >>= 7
    encoded.append(length)
    return bytes(encoded)


def decode_head(flags: int, body: bytes) -> PublishHead:
    """Return the head of a PUBLISH packet: `flags` is its first byte, `body` what follows the remaining length.

    Raises MalformedPublish.
    """
    qos = flags >> _QOS_SHIFT & _QOS_MASK
    if qos > 1:
        # Our subscriptions have QoS 1 at most.
        raise MalformedPublish(Text.of("a message of QoS {qos}", qos=qos), None)
    end = 2 + int.from_bytes(body[:2], "big")
    packet_id = 0
    if qos:
        packet_id = int.from_bytes(body[end : end + 2], "big")
        end += 2
        if not packet_id:
            raise MalformedPublish("a message of QoS 1 without a packet id", None)
    if end > len(body):
        raise MalformedPublish("a topic that is longer than its packet", None)
    topic = _decode_string(body[2 : end - 2 if qos else end], packet_id)
    return PublishHead(topic, packet_id, bool(flags & _RETAIN), end)


def decode_publish(head: PublishHead, body: bytes) -> Message:
    """Return the message of a PUBLISH packet whose head was read. Raises MalformedPublish.

    A string that MQTT forbids refuses this message; lengths that contradict each other end the connection.
    """
    size, at = _decode_length(body, head.end)
    end = at + size
    if end > len(body):
        raise MalformedPublish("properties that are longer than their packet", None)
    found: dict[int, Any] = {}
    user_properties: dict[str, str] = {}
    while at < end:
        kind, at = body[at], at + 1
        if kind == _USER_PROPERTY:
            name, at = _read_string(body, at, end, head.packet_id)
            value, at = _read_string(body, at, end, head.packet_id)
            user_properties[name] = value
            continue
        if kind in found:
            raise MalformedPublish(Text.of("property {kind:#04x} occurs twice", kind=kind), None)
        match kind:
            case 0x03 | 0x08:  # Content Type, Response Topic
                found[kind], at = _read_string(body, at, end, head.packet_id)
            case 0x09:  # Correlation Data
                found[kind], at = _read_bytes(body, at, end)
            case 0x02:  # Message Expiry Interval
                found[kind], at = int.from_bytes(body[at : at + 4], "big"), at + 4
            case 0x01:  # Payload Format Indicator
                if body[at : at + 1] not in {b"\0", b"\1"}:
                    raise MalformedPublish("an invalid payload format", None)
                found[kind], at = True, at + 1
            case 0x0B:  # Subscription Identifier, one for each subscription that matches
                number, at = _decode_length(body, at)
                if not number:
                    raise MalformedPublish("an invalid subscription identifier", None)
            case _:
                # A topic alias as well: CONNECT allows the broker none.
                raise MalformedPublish(Text.of("property {kind:#04x} is not allowed here", kind=kind), None)
    if at != end:
        raise MalformedPublish("a property that is longer than all properties", None)
    return Message(
        topic=head.topic,
        payload=body[at:],
        content_type=found.get(0x03),
        user_properties=user_properties,
        response_topic=found.get(0x08),
        correlation_data=found.get(0x09),
        expiry=found.get(0x02),
        retain=head.retain,
        received_at=now_ms(),
    )


def _read_bytes(body: bytes, at: int, end: int) -> tuple[bytes, int]:
    start = at + 2
    stop = start + int.from_bytes(body[at:start], "big")
    if stop > end:
        raise MalformedPublish("a string that is longer than all properties", None)
    return body[start:stop], stop


def _read_string(body: bytes, at: int, end: int, packet_id: int) -> tuple[str, int]:
    raw, stop = _read_bytes(body, at, end)
    return _decode_string(raw, packet_id), stop


def _decode_string(raw: bytes, packet_id: int) -> str:
    """Return a string of MQTT: UTF-8 without surrogates and U+0000; U+FEFF is allowed (MQTT 5, 1.5.4)."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise MalformedPublish("a string that is not UTF-8", packet_id) from None
    if "\0" in text:
        raise MalformedPublish("a string with the character U+0000", packet_id)
    return text


def _decode_length(body: bytes, at: int) -> tuple[int, int]:
    """Return a Variable Byte Integer and where it ends."""
    value = 0
    for position, byte in enumerate(body[at : at + LENGTH_BYTES]):
        value |= (byte & 0x7F) << 7 * position
        if byte < CONTINUES:
            return value, at + position + 1
    raise MalformedPublish("a length that does not end", None)
