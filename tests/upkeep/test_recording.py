"""What equipment says and hears is written down without what others must not know."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from edge.config import MqttEquipmentSettings, MqttSettings, OpcuaEquipmentSettings, Settings
from edge.errors import EdgeError, Unavailable
from edge.links.mqtt import open_session
from edge.upkeep.recording import Recorded, recording
from tests.conftest import WaitUntil


def settings_of(mqtt: MqttSettings, prefix: str) -> Settings:
    return Settings(
        mqtt=mqtt,
        southbound={
            "wrench": MqttEquipmentSettings(type_ids=("tighten.v1",), topic_prefix=prefix),
            "eye": OpcuaEquipmentSettings(kind="vision", type_ids=("inspect.v1",), url="opc.tcp://eye:4840"),
        },
    )


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]


async def test_each_message_is_a_line_as_it_came(
    mqtt: MqttSettings, unique: str, tmp_path: Path, wait_until: WaitUntil
) -> None:
    file, told = tmp_path / "wrench.jsonl", list[Recorded]()
    topic = f"{unique}/wrench"
    async with open_session(mqtt, unique) as session:
        await session.publish(f"{topic}/presence", b"online", retain=True)
        async with recording("wrench", settings_of(mqtt, unique), {"sesame"}, file, told.append) as source:
            assert source == f"{topic}/+ at {mqtt.url.removeprefix('mqtt://')}"
            await session.publish(
                f"{topic}/commands",
                b'{"parameters":{"serial_number":"A-4711","program":7}}',
                content_type="application/json",
                user_properties={"id": "J1/r/tighten/1", "user": "erika"},
                response_topic=f"{topic}/answers",
                correlation_data=b"\x01",
            )
            await session.publish(f"{topic}/data", b"sesame at 10.0.0.7")
            await session.publish(f"{topic}/data", b"\xff\xfe")
            await wait_until(lambda: len(told) == 4)
    head, *lines = lines_of(file)
    assert (head["equipment"], head["kind"], head["type_ids"]) == ("wrench", "mqtt", ["tighten.v1"])
    assert [line.pop("after") >= 0 for line in lines] == [True] * 4
    assert sorted(lines, key=lambda line: str(line["topic"])) == [
        {
            "topic": "commands",
            "payload": {"parameters": {"serial_number": "***", "program": 7}},
            "content_type": "application/json",
            "properties": {"id": "J1/r/tighten/1", "user": "***"},
            "response_topic": "answers",
            "correlation_data": "01",
        },
        {"topic": "data", "payload": "*** at ***"},
        {"topic": "data", "hidden_bytes": 2},
        {"topic": "presence", "payload": "online", "retain": True},
    ]


@pytest.mark.parametrize(
    ("name", "reason", "advice"),
    [
        ("drill", "the settings have no equipment drill", "There is: wrench, eye."),
        ("eye", "only what goes over MQTT", "edge jobs watch"),
        ("wrench", "is there already", "Name a new file"),
    ],
)
async def test_what_cannot_be_recorded_is_told(
    mqtt: MqttSettings, unique: str, tmp_path: Path, name: str, reason: str, advice: str
) -> None:
    file = tmp_path / "recording.jsonl"
    file.write_text("precious")
    with pytest.raises(EdgeError) as refused:
        async with recording(name, settings_of(mqtt, unique), set(), file, print):
            pytest.fail("it was recorded")
    assert reason in refused.value.message
    assert advice in refused.value.advice
    assert file.read_text() == "precious"


async def test_where_the_broker_is_away_no_file_is_left_behind(
    unused_tcp_port: int, unique: str, tmp_path: Path
) -> None:
    nowhere = MqttSettings(url=f"mqtt://127.0.0.1:{unused_tcp_port}")
    with pytest.raises(Unavailable):
        async with recording("wrench", settings_of(nowhere, unique), set(), tmp_path / "wrench.jsonl", print):
            pytest.fail("it was recorded")
    assert not (tmp_path / "wrench.jsonl").exists()


async def test_data_nested_without_end_is_hidden_and_those_behind_it_are_recorded(
    mqtt: MqttSettings, unique: str, tmp_path: Path, wait_until: WaitUntil
) -> None:
    file, told = tmp_path / "wrench.jsonl", list[Recorded]()
    async with (
        open_session(mqtt, unique) as session,
        recording("wrench", settings_of(mqtt, unique), set(), file, told.append),
    ):
        for depth in (900, 100_000):
            payload = b"[" * depth + b"]" * depth
            await session.publish(f"{unique}/wrench/data", payload, content_type="application/json")
        await session.publish(f"{unique}/wrench/data", b"behind")
        await wait_until(lambda: len(told) == 3)
    assert [each.hidden_bytes for each in told] == [1800, 200_000, 0]
