"""The PUBLISH codec agrees with paho, except where paho forbids what MQTT allows."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paho.mqtt.exception import MQTTException
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties, VariableByteIntegers

from edge.foundation.errors import Refused
from edge.links.cloudevent_mqtt import Message
from edge.links.mqtt_publish import MalformedPublish, decode_head, decode_publish, encode_publish
from tests.examples import examples

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff"), max_size=30)
TOPIC = st.text(st.characters(categories=["L", "N"]) | st.just("/"), min_size=1, max_size=20)
MESSAGE = st.builds(
    Message,
    topic=TOPIC,
    payload=st.binary(max_size=300),
    content_type=st.none() | TEXT,
    user_properties=st.dictionaries(TEXT, TEXT, max_size=4),
    response_topic=st.none() | TOPIC,
    correlation_data=st.none() | st.binary(max_size=20),
    expiry=st.none() | st.integers(0, 2**32 - 1),
    retain=st.booleans(),
)


def split(packet: bytes) -> tuple[int, bytes]:
    """Return the first byte of a packet and what follows its remaining length."""
    length, size = VariableByteIntegers.decode(packet[1:])  # type: ignore[no-untyped-call]
    assert len(packet) == 1 + size + length
    return packet[0], packet[1 + size :]


def decode(flags: int, body: bytes) -> Message:
    return decode_publish(decode_head(flags, body), body)


def decode_by_paho(flags: int, body: bytes) -> Message:
    """Read a packet as paho does; raises what paho raises."""
    qos = flags >> 1 & 3
    (length,) = struct.unpack("!H", body[:2])
    topic, rest = struct.unpack(f"!{length}s{len(body) - 2 - length}s", body[2:])
    rest = rest[2:] if qos else rest
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    _, size = properties.unpack(rest)  # type: ignore[no-untyped-call]
    return Message(
        topic.decode(),
        bytes(rest[size:]),
        getattr(properties, "ContentType", None),
        dict(getattr(properties, "UserProperty", ())),
        getattr(properties, "ResponseTopic", None),
        getattr(properties, "CorrelationData", None),
        retain=bool(flags & 1),
    )


@given(MESSAGE, st.integers(0, 65_535))
def test_encoded_publish_is_decoded_by_paho_and_by_the_product(message: Message, packet_id: int) -> None:
    flags, body = split(encode_publish(message, packet_id))
    assert decode_head(flags, body).packet_id == packet_id
    assert decode_by_paho(flags, body) == decode(flags, body)
    assert decode(flags, body) == message
    assert decode(flags, body).expiry == message.expiry


@settings(max_examples=examples(3000), deadline=None)
@given(MESSAGE, st.data())
def test_damaged_packets_are_read_or_refused_as_paho_does(message: Message, data: st.DataObject) -> None:
    flags, body = split(encode_publish(message, 7))
    damaged = bytearray(body)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    damaged = damaged[: data.draw(st.integers(2, len(damaged)))]
    try:
        ours: Message | None = decode(flags, bytes(damaged))
    except MalformedPublish:
        ours = None
    try:
        theirs: Message | None = decode_by_paho(flags, bytes(damaged))
    except (MQTTException, struct.error, UnicodeDecodeError, KeyError, IndexError, AttributeError, TypeError):
        theirs = None
    if ours is not None and theirs is not None:
        assert ours == theirs
    elif ours is None and theirs is not None:
        assert _is_stricter_than_paho(bytes(damaged), theirs)
    elif ours is not None:
        assert "\ufeff" in str(ours)


def _is_stricter_than_paho(body: bytes, read: Message) -> bool:
    """Return whether MQTT forbids what paho accepts: excessive topic aliases, lengths beyond the properties."""
    head = 2 + len(read.topic.encode()) + 2
    length, size = VariableByteIntegers.decode(body[head:])  # type: ignore[no-untyped-call]
    properties = body[head + size : head + size + length]
    return (
        "\0" in read.topic
        or not body[head - 2 : head].strip(b"\0")
        or b"\x23" in properties
        or len(properties) < length
        or head + size + length != len(body) - len(read.payload)
        or b"\x02" in properties
        or b"\x0b" in properties
    )


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        (b"\x03\x00\x01a\x03\x00\x01b", "occurs twice"),
        (b"\x02\x00\x00\x00\x01\x02\x00\x00\x00\x02", "occurs twice"),
        (b"\x01\x02", "payload format"),
        (b"\x0b\x00", "subscription identifier"),
        (b"\x23\x00\x01", "not allowed here"),
        (b"\x7f", "not allowed here"),
        (b"\x03\x00\x09a", "longer than all properties"),
        (b"\x02\x00\x00", "longer than all properties"),
        (b"\x26\x00\x01a", "longer than all properties"),
    ],
)
def test_properties_that_contradict_the_standard_end_the_connection(properties: bytes, reason: str) -> None:
    body = b"\x00\x01t\x00\x07" + bytes((len(properties),)) + properties + b"payload"
    with pytest.raises(MalformedPublish, match=reason) as malformed:
        decode(0x32, body)
    assert malformed.value.packet_id is None


@pytest.mark.parametrize("text", [b"\xff", b"\xed\xa0\x80", b"a\x00"])
def test_message_with_a_forbidden_string_is_refused_alone(text: bytes) -> None:
    string = len(text).to_bytes(2, "big") + text
    with pytest.raises(MalformedPublish) as in_property:
        decode(0x32, b"\x00\x01t\x00\x07" + bytes((len(string) + 1,)) + b"\x03" + string)
    with pytest.raises(MalformedPublish) as in_topic:
        decode(0x32, string + b"\x00\x07\x00")
    assert (in_property.value.packet_id, in_topic.value.packet_id) == (7, 7)


def test_byte_order_mark_is_accepted_but_not_sent() -> None:
    """MQTT allows U+FEFF, but a client on paho that receives one disconnects, and again at each redelivery."""
    body = b"\x00\x01t\x00\x07\x09\x26\x00\x01a\x00\x03\xef\xbb\xbf"
    assert decode(0x32, body).user_properties == {"a": "\ufeff"}
    flags, sent = split(encode_publish(Message("t", user_properties={"a": "b\ufeffc"}), 1))
    assert decode(flags, sent).user_properties == {"a": "b c"}
    with pytest.raises(Refused):
        encode_publish(Message("jobs/J\ufeff1"), 1)


def test_several_subscription_identifiers_are_allowed() -> None:
    assert decode(0x30, b"\x00\x01t\x04\x0b\x01\x0b\x02x").payload == b"x"


@pytest.mark.parametrize(
    ("flags", "body"),
    [(0x34, b"\x00\x01t\x00\x07\x00"), (0x32, b"\x00\x01t\x00\x00\x00"), (0x30, b"\x00\x09t"), (0x32, b"\x00\x01t")],
)
def test_malformed_publish_header_ends_the_connection(flags: int, body: bytes) -> None:
    with pytest.raises(MalformedPublish) as malformed:
        decode_head(flags, body)
    assert malformed.value.packet_id is None


@pytest.mark.parametrize("topic", ["", "a/+", "a/#", "a\nb", "a\x00", "a\ud800", "é" * 40_000])
def test_a_forbidden_topic_is_refused_before_it_is_sent(topic: str) -> None:
    with pytest.raises(Refused):
        encode_publish(Message(topic), 1)
    with pytest.raises(Refused):
        encode_publish(Message("t", response_topic=topic), 1)
