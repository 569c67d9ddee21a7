"""Samples from MQTT: payloads in three forms, values by pointer, names from topics."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.config import MqttSourceSettings
from edge.links.mqtt import Message
from edge.rules.sample_lines import Line, Sample
from edge.southbound.mqtt_source import MAX_PAYLOAD, MISSING, SampleSource, decode_payload, resolve_pointer, tag_name


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        (b"", None),
        (b"5", 5),
        (b"42", 42),
        (b"81.5", 81.5),
        (b"true", True),
        (b'{"v": 1}', {"v": 1}),
        (b"on", "on"),
        (msgspec.msgpack.encode({"v": 1.5}), {"v": 1.5}),
        (msgspec.msgpack.encode(300), 300),
        (b"\xc3", True),
        (b"[" * 50_000, "[" * 50_000),
        (b"\x91" * 50_000, ...),
    ],
)
def test_payload_is_messagepack_else_json_else_text(payload: bytes, value: Any) -> None:
    decoded = decode_payload(payload)
    assert value is ... or decoded == value


@given(st.binary(max_size=200))
def test_no_payload_raises(payload: bytes) -> None:
    decode_payload(payload)


@pytest.mark.parametrize(
    ("pointer", "value"),
    [("", {"a/b": [1, {"~": 2}]}), ("/a~1b/0", 1), ("/a~1b/1/~0", 2), ("/x", MISSING), ("/a~1b/9", MISSING)],
)
def test_pointer_is_resolved(pointer: str, value: Any) -> None:
    assert resolve_pointer({"a/b": [1, {"~": 2}]}, pointer) == value


def test_name_of_a_tag_is_made_of_the_topic() -> None:
    assert tag_name("{topic}", "plant/oven/temp") == "plant.oven.temp"
    assert tag_name("oven.{2}{9}", "plant/oven/temp") == "oven.oven"


async def test_message_becomes_a_sample_or_is_dropped() -> None:
    taken: list[Line] = []
    source = SampleSource("oven", MqttSourceSettings(topic="#", pointer="/v", tag="{2}"), taken.append, lambda: 7)
    await source.take(Message("plant/temp", b'{"v": 81.5}'))
    await source.take(Message("plant/temp", b'{"w": 81.5}'))
    await source.take(Message("plant/temp", b'{"v": 1, "x": "' + b"x" * MAX_PAYLOAD + b'"}'))
    assert taken == [Sample(7, "temp", 81.5)]
