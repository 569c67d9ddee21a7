"""The Sparkplug source requests missed births, also those before its start."""

from typing import NoReturn

from edge.app.feature_ports import MqttSource
from edge.config import MqttSettings
from edge.features.sparkplug.payload import DataType, Metric, MetricPayload, decode_payload, encode_payload
from edge.features.sparkplug.source import SparkplugSource
from edge.foundation.task_group import background_task
from edge.links.mqtt import Message, open_session
from edge.ports.sample_lines import Quality, Sample
from tests.conftest import WaitUntil
from tests.equipment.samples import Sink


def source_of(topic: str, tag: str) -> MqttSource:
    def refuse(_stack: object, _largest: int) -> NoReturn:
        raise AssertionError("the test opens the session")

    return MqttSource("line", "sparkplug", topic, tag, refuse)


async def test_births_are_requested_at_start_and_after_a_broker_loss(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    messages: list[Message] = []
    sink = Sink()

    async def note(message: Message) -> None:
        messages.append(message)

    source = SparkplugSource(source_of(f"spBv1.0/{unique}/+/plc/#", "{metric}"), sink, lambda: 0)
    birth = encode_payload(MetricPayload(5, (Metric(3, "count", 1, 5, DataType.INT32),), 0))
    async with open_session(mqtt, f"{unique}-node") as node, open_session(mqtt, unique) as session:
        await node.subscribe(f"spBv1.0/{unique}/NCMD/plc", note)
        async with background_task(source.run(session), "source"):
            await source.open(session)
            await wait_until(lambda: len(messages) == 1)
            await node.publish(f"spBv1.0/{unique}/NBIRTH/plc", birth, qos=0)
            await wait_until(lambda: sink.taken == [Sample(5, "count", 3)])
            source.on_connection(connected=False)
            source.on_connection(connected=True)
            # The birth of the edge node comes; one of its devices may have come before we subscribed.
            await node.publish(f"spBv1.0/{unique}/NBIRTH/plc", birth, qos=0)
            await wait_until(lambda: len(sink.taken) == 3)
            await wait_until(lambda: len(messages) == 2)
    # The last of them is of the loss of the real connection at the end.
    assert sink.taken[1:3] == [Sample(0, "count", None, Quality.BAD), Sample(5, "count", 3)]
    (metric,) = decode_payload(messages[1].payload).metrics
    assert (messages[1].topic, metric.name, metric.value) == (
        f"spBv1.0/{unique}/NCMD/plc",
        "Node Control/Rebirth",
        True,
    )


async def test_hostile_messages_are_refused_and_counted() -> None:
    sink = Sink()
    source = SparkplugSource(source_of("spBv1.0/#", "{topic}"), sink, lambda: 7)
    hostile = [b"\x12\x00" * 100_000, bytes(1 << 20), b"\xff" * 50, encode_payload(MetricPayload(1, (Metric(1, "a"),)))]
    for payload in hostile:
        await source.take(Message("spBv1.0/g/NDATA/n", payload))
    assert (sink.refused, sink.taken) == ({"line": len(hostile)}, [])
