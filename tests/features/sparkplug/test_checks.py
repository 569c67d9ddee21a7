"""The brokers of the edge node, and the host there, are examined by `edge doctor`."""

import pytest

from edge.config import MqttSettings, Settings
from edge.features.admin.broker_check import brokers, examine_broker
from edge.features.sparkplug.settings import SparkplugSettings
from edge.links.mqtt import open_session
from edge.model.finding import Level, PublicHealthFinding, public_form


async def examined(settings: Settings) -> dict[str, PublicHealthFinding]:
    return {
        str(finding.subject): public_form(finding)
        for mqtt, listeners in brokers(settings)
        async for finding in examine_broker(mqtt, listeners)
    }


def named(settings: Settings) -> list[tuple[str, list[str]]]:
    return [(mqtt.url, [str(listener.subject) for listener in listeners]) for mqtt, listeners in brokers(settings)]


def test_each_broker_of_the_edge_node_is_examined() -> None:
    sparkplug = SparkplugSettings(group="plant", url="mqtt://a", further_urls=("mqtt://b",), primary_host="scada")
    settings = Settings(mqtt=MqttSettings(url="mqtt://main"), sections={"sparkplug": sparkplug})
    assert named(settings)[1:] == [(f"mqtt://{text}", ["Sparkplug host scada"]) for text in "ab"]


@pytest.mark.parametrize(
    ("state", "level"),
    [
        (b'{"online":true,"timestamp":1}', Level.OK),
        (b'{"online":false,"timestamp":1}', Level.FAILING),
        (b"ONLINE", Level.OK),
    ],
)
async def test_state_of_the_sparkplug_host_is_reported(
    mqtt: MqttSettings, unique: str, state: bytes, level: Level
) -> None:
    sparkplug = SparkplugSettings(group=unique, primary_host=unique)
    settings = Settings(mqtt=mqtt, sections={"sparkplug": sparkplug})
    async with open_session(mqtt, f"{unique}-host") as session:
        await session.publish(f"spBv1.0/STATE/{unique}", state, retain=True)
        finding = (await examined(settings))[f"Sparkplug host {unique}"]
    assert finding.level is level
    if level is Level.FAILING:
        assert "the edge node waits for it" in finding.advice
