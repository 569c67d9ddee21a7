"""The sections of telemetry: sources by name, and when telemetry is on."""

from pathlib import Path

import pytest

from edge.config import MqttSourceSettings, TelemetrySettings, load_settings
from edge.errors import SettingsError


def test_sources_are_read_by_name_from_file_and_environment(tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text("[source.oven]\ntopic = 'plant/+/temp'\npointer = '/value'\n[source.x]\nkind = 'mqtt'\ntopic = 'a'")
    settings = load_settings(file, {"EDGE_SOURCE__OVEN__TAG": "oven.{2}"}, {})
    assert settings.source == {
        "oven": MqttSourceSettings(topic="plant/+/temp", pointer="/value", tag="oven.{2}"),
        "x": MqttSourceSettings(topic="a"),
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[source.oven]", "source.oven.topic: missing"),
        ("[source.oven]\nkind = 'fax'\ntopic = 'a'", "source.oven.kind: expected one of mqtt, redis, opcua, got 'fax'"),
        ("[source.oven]\ntopic = 'a'\npointer = 'x'", "source.oven.pointer: expected a JSON Pointer"),
        ("[source.'a/b']\ntopic = 'a'", "source.a/b: expected a name"),
        ("mqtt.url = ''\nsource.oven.topic = 'a'", "source.oven.url: needed, because mqtt.url is empty"),
        ("telemetry.rules = '/no/such/file'", "telemetry.rules: there is no file"),
    ],
)
def test_faults_are_reported_with_their_key(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_settings(file, {}, {})
    assert problem in str(caught.value)


def test_telemetry_is_on_by_default() -> None:
    assert TelemetrySettings().mode == "on"
