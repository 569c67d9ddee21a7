"""The sections of telemetry: sources by name, and when telemetry is on."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from edge.app.features import declared_sections
from edge.config import load_settings
from edge.features.telemetry.rules.rule_form import parse_rules
from edge.features.telemetry.settings import MqttSourceSettings, SourceSettings, TelemetrySettings
from edge.foundation.errors import SettingsError

PAGES = sorted((Path(__file__).parents[3] / "docs" / "how-to").glob("samples-*.md"))


def test_sources_are_read_by_name_from_file_and_environment(tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text("[source.oven]\ntopic = 'plant/+/temp'\npointer = '/value'\n[source.x]\nkind = 'mqtt'\ntopic = 'a'")
    settings = load_settings(file, {"EDGE_SOURCE__OVEN__TAG": "oven.{2}"}, declared_sections())
    assert settings.named(SourceSettings) == {
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
        (
            "[source.plc]\ntopic = 'a'\npayload = 'morse'",
            "source.plc.payload: expected one of value",
        ),
        ("telemetry.rules = '/no/such/file'", "telemetry.rules: there is no file"),
    ],
)
def test_faults_are_reported_with_their_key(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_settings(file, {}, declared_sections())
    assert problem in str(caught.value)


def test_telemetry_is_on_by_default() -> None:
    assert TelemetrySettings().mode == "on"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_settings_and_rules_of_each_page_are_valid(page: Path, tmp_path: Path) -> None:
    for name in ("rules.json", "opcua-client.pem", "opcua-client.key"):
        (tmp_path / name).write_text("[]")
    (tmp_path / "opcua-devices").mkdir()
    assert blocks(page, "toml")
    for number, text in enumerate(blocks(page, "toml")):
        file = tmp_path / f"edge{number}.toml"
        file.write_text('[mqtt]\nurl = "mqtt://127.0.0.1"\n' + text.replace("/etc/microdcs-edge", str(tmp_path)))
        load_settings(file, {}, declared_sections())
    assert blocks(page, "json")
    for text in blocks(page, "json"):
        rules: Any = json.loads(text)
        assert parse_rules(rules)[1] == ()
