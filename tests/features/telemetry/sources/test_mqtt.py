"""Samples from MQTT: payloads in three forms, values by pointer, names from topics."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from edge.config import MqttSettings
from edge.features.telemetry.settings import MqttSourceSettings
from edge.features.telemetry.sources.mqtt import MAX_PAYLOAD, MISSING, SampleSource, resolve_pointer, tag_name
from edge.links.mqtt import Message, MqttSession, open_session
from edge.ports.sample_lines import Sample
from tests.conftest import WaitUntil
from tests.equipment.samples import Sink


@pytest.mark.parametrize(
    ("pointer", "value"),
    [("", {"a/b": [1, {"~": 2}]}), ("/a~1b/0", 1), ("/a~1b/1/~0", 2), ("/x", MISSING), ("/a~1b/9", MISSING)],
)
def test_pointer_is_resolved(pointer: str, value: Any) -> None:
    assert resolve_pointer({"a/b": [1, {"~": 2}]}, pointer) == value


def test_tag_name_is_built_from_the_topic() -> None:
    assert tag_name("{topic}", "plant/oven/temp") == "plant.oven.temp"
    assert tag_name("oven.{2}{9}", "plant/oven/temp") == "oven.oven"


async def test_message_becomes_a_sample_or_is_dropped() -> None:
    sink = Sink()
    source = SampleSource("oven", MqttSourceSettings(topic="#", pointer="/v", tag="{2}"), sink, lambda: 7)
    await source.take(Message("plant/temp", b'{"v": 81.5}'))
    await source.take(Message("plant/temp", b'{"w": 81.5}'))
    await source.take(Message("plant/temp", b'{"v": 1, "x": "' + b"x" * MAX_PAYLOAD + b'"}'))
    assert sink.taken == [Sample(7, "temp", 81.5)]


async def test_undecodable_bytes_are_dropped_with_the_reason() -> None:
    sink = Sink()
    source = SampleSource("oven", MqttSourceSettings(topic="#"), sink, lambda: 7)
    with capture_logs() as logs:
        await source.take(Message("plant/temp", b"52.0\xb0C"))
    assert (sink.taken, sink.refused) == ([], {"oven": 1})
    assert [entry["reason"] for entry in logs] == ["it is neither JSON nor MessagePack nor UTF-8 text"]


@pytest.fixture
async def sender(mqtt: MqttSettings, unique: str) -> AsyncIterator[MqttSession]:
    async with open_session(mqtt, f"{unique}-sender") as session:
        yield session


async def test_message_is_redelivered_if_its_sample_was_not_stored(
    mqtt: MqttSettings, unique: str, sender: MqttSession, wait_until: WaitUntil
) -> None:
    """The acknowledgement came before the sample was in the stream: a kill in between lost the sample."""
    settings = MqttSourceSettings(topic=f"{unique}/#", tag="{2}", encoding="json")
    lost, sink = Sink(), Sink()
    async with open_session(mqtt, unique) as session:
        await SampleSource("oven", settings, lost, lambda: 7).open(session)
        for number in range(3):
            await sender.publish(f"{unique}/temp", str(number).encode())
        await wait_until(lambda: len(lost.taken) == 3)
    async with open_session(mqtt, unique) as session:
        await SampleSource("oven", settings, sink, lambda: 7).open(session)
        await wait_until(lambda: len(sink.taken) == 3)
        sink.stored.set()
        await sender.publish(f"{unique}/temp", b"3")
        await wait_until(lambda: len(sink.taken) == 4)
    assert sink.taken == [Sample(7, "temp", number) for number in range(4)]
