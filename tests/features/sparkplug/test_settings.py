"""`[sparkplug]` is off without a group, and its conflicts are reported."""

from typing import Literal, get_type_hints

import pytest

from edge.config import MqttSettings, Settings, value
from edge.features.sparkplug.settings import SparkplugSettings
from edge.features.telemetry.settings import TelemetrySettings

BROKER = "mqtt://127.0.0.1:1883"


def settings(broker: str, telemetry: Literal["on", "off"]) -> Settings:
    return Settings(mqtt=MqttSettings(url=broker), sections={"telemetry": TelemetrySettings(mode=telemetry)})


def test_sparkplug_without_a_group_has_no_conflicts() -> None:
    assert list(SparkplugSettings().conflicts(settings("", "off"))) == []


def test_edge_node_needs_a_broker_and_samples() -> None:
    assert list(SparkplugSettings(group="plant").conflicts(settings(BROKER, "on"))) == []
    assert list(SparkplugSettings(group="plant", url=BROKER).conflicts(settings("", "on"))) == []
    assert list(SparkplugSettings(group="plant").conflicts(settings("", "off"))) == [
        "url: needed, because mqtt.url is empty",
        "group: telemetry.mode is off, so there are no tags to publish",
    ]
    assert list(SparkplugSettings(group="plant", username="x").conflicts(settings(BROKER, "on"))) == [
        "url: needed, because a user or certificates are given for it"
    ]


@pytest.mark.parametrize(
    ("url", "further", "faults"),
    [
        (BROKER, ("mqtt://other", "mqtt://user:secret@third:1884"), 0),
        ("mqtts://a", ("mqtt://other", "mqtts://b"), 1),
        (BROKER, ("http://secret@a", "mqtt://", "mqtt://a:x", "mqtt://a:0"), 4),
        (BROKER, tuple(f"mqtt://b{number}" for number in range(5)), 1),
        ("", ("mqtt://b",), 1),
    ],
)
def test_invalid_further_broker_is_reported(url: str, further: tuple[str, ...], faults: int) -> None:
    found = list(SparkplugSettings(group="plant", url=url, further_urls=further).conflicts(settings(BROKER, "on")))
    assert len(found) == faults
    assert all(text.startswith("further_urls: ") and "secret" not in text for text in map(str, found))


@pytest.mark.parametrize("key", ["group", "edge_node", "primary_host"])
def test_ids_have_no_character_that_topics_reserve(key: str) -> None:
    hint = get_type_hints(SparkplugSettings, include_extras=True)[key]
    assert value.from_toml("plant-1", hint) == value.Reading("plant-1")
    for wrong in ("a/b", "a+", "#", "a b"):
        assert value.from_toml(wrong, hint).faults
