"""The messages of equipment are recorded without secrets and personal data."""

import asyncio
import errno
from io import FileIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edge.config import MqttEquipmentSettings, MqttSettings, RedisSettings, Settings
from edge.features.admin.recording import ExchangeRecord, Line, MessageRecord, recording
from edge.features.joining.settings import IjtSettings
from edge.foundation.errors import EdgeError, SettingsError, Unavailable
from edge.foundation.task_group import background_task
from edge.links.mqtt import open_session
from edge.links.opcua import Node
from edge.model.equipment_traffic import EquipmentRequest, TrafficKind
from edge.station.traffic_publisher import TrafficPublisher
from edge.store import traffic_channel
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.conftest import WaitUntil
from tests.store.servers import own_server


def settings_of(mqtt: MqttSettings, prefix: str) -> Settings:
    return Settings(
        mqtt=mqtt,
        southbound={
            "wrench": MqttEquipmentSettings(type_ids=("tighten.v1",), topic_prefix=prefix),
        },
    )


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]


async def test_each_message_is_recorded_as_a_line_in_order(
    mqtt: MqttSettings, unique: str, tmp_path: Path, wait_until: WaitUntil
) -> None:
    file, reported = tmp_path / "wrench.jsonl", list[Line]()
    topic = f"{unique}/wrench"
    async with open_session(mqtt, unique) as session:
        await session.publish(f"{topic}/presence", b"online", retain=True)
        async with recording("wrench", settings_of(mqtt, unique), {"sesame"}, file, reported.append) as source:
            assert str(source) == f"{topic}/+ at {mqtt.url.removeprefix('mqtt://')}"
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
            await wait_until(lambda: len(reported) == 4)
    head, *lines = lines_of(file)
    assert (head["equipment"], head["settings"]["kind"], head["settings"]["type_ids"]) == (
        "wrench",
        "mqtt",
        ["tighten.v1"],
    )
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
        ("drill", "the settings have no equipment drill", "Known equipment: wrench."),
        ("wrench", "exists already", "Name a new file"),
    ],
)
async def test_equipment_that_cannot_be_recorded_is_reported(
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


async def test_unavailable_broker_leaves_no_file(unused_tcp_port: int, unique: str, tmp_path: Path) -> None:
    nowhere = MqttSettings(url=f"mqtt://127.0.0.1:{unused_tcp_port}")
    with pytest.raises(Unavailable):
        async with recording("wrench", settings_of(nowhere, unique), set(), tmp_path / "wrench.jsonl", print):
            pytest.fail("it was recorded")
    assert not (tmp_path / "wrench.jsonl").exists()


async def test_data_nested_too_deep_is_hidden_and_later_data_is_recorded(
    mqtt: MqttSettings, unique: str, tmp_path: Path, wait_until: WaitUntil
) -> None:
    file, reported = tmp_path / "wrench.jsonl", list[Line]()
    async with (
        open_session(mqtt, unique) as session,
        recording("wrench", settings_of(mqtt, unique), set(), file, reported.append),
    ):
        for depth in (900, 100_000):
            payload = b"[" * depth + b"]" * depth
            await session.publish(f"{unique}/wrench/data", payload, content_type="application/json")
        await session.publish(f"{unique}/wrench/data", b"behind")
        await wait_until(lambda: len(reported) == 3)
    assert [item.hidden_bytes for item in reported if isinstance(item, MessageRecord)] == [1800, 200_000, 0]


@pytest.fixture
def drill(redis: RedisSettings) -> Settings:
    uri = "urn:maker:D-4711"
    section = IjtSettings(
        kind="ijt", type_ids=("drill.v1",), url="opc.tcp://user:sesame@drill-7:4840", product_instance_uri=uri
    )
    return Settings(redis=redis, mqtt=MqttSettings(url=""), southbound={"drill": section})


async def test_trace_of_a_gateway_is_recorded_without_secrets(
    store: Store, drill: Settings, tmp_path: Path, wait_until: WaitUntil
) -> None:
    file, reported, gateway = (
        tmp_path / "drill.jsonl",
        list[Line](),
        TrafficPublisher(store, ("drill",), poll_interval_s=0.01),
    )
    equipment_request = EquipmentRequest(
        "call", (Node("i=7", "/0:Objects/0:Tool"), "EnableAsset", "urn:maker:D-4711", True)
    )
    identifiers = [{"Name": "VIN", "EntityId": "WDB1"}, {"Name": "CommandID", "EntityId": "J1/r/drill/1"}]
    async with (
        background_task(gateway.run(), "gateway"),
        recording("drill", drill, {"sesame"}, file, reported.append) as source,
    ):
        assert str(source) == "the traffic of drill by edge"
        gateway.of("drill")(TrafficKind.ASKED, equipment_request)
        gateway.of("drill")(TrafficKind.HAPPENING, {"AssociatedEntities": identifiers, "SerialNumber": "A-1"})
        gateway.of("drill")(TrafficKind.LOST, "opc.tcp://drill-7:4840 says sesame")
        await wait_until(lambda: len(reported) == 4)
    head, *lines = lines_of(file)
    assert (head["settings"]["url"], head["settings"]["product_instance_uri"]) == ("opc.tcp://***", "***")
    assert [(line["gateway"], line["what"]) for line in lines] == [
        ("edge", text) for text in ("begun", "asked", "happening", "lost")
    ]
    assert [line["data"] for line in lines[1:]] == [
        {
            "question": "call",
            "arguments": [{"id": "i=7", "path": "/0:Objects/0:Tool"}, "EnableAsset", "***", True],
        },
        {"AssociatedEntities": [{"Name": "VIN", "EntityId": "***"}, identifiers[1]], "SerialNumber": "***"},
        "opc.tcp://*** says ***",
    ]
    assert [line["after"] for line in lines] == sorted(line["after"] for line in lines)


async def test_second_recorder_adds_no_line(
    store: Store, drill: Settings, tmp_path: Path, wait_until: WaitUntil
) -> None:
    gateway, reported = TrafficPublisher(store, ("drill",), poll_interval_s=0.01), list[Line]()
    async with (
        background_task(gateway.run(), "gateway"),
        recording("drill", drill, set(), tmp_path / "one.jsonl", reported.append),
        recording("drill", drill, set(), tmp_path / "two.jsonl", print),
    ):
        gateway.of("drill")(TrafficKind.STOP, "J1/r/drill/1")
        await wait_until(lambda: len(reported) == 2)
    assert [item.what for item in reported if isinstance(item, ExchangeRecord)] == [TrafficKind.BEGUN, TrafficKind.STOP]


async def test_missing_gateway_trace_leaves_no_file(drill: Settings, tmp_path: Path) -> None:
    file = tmp_path / "drill.jsonl"
    with pytest.raises(Unavailable, match="no gateway has sent traffic of drill") as refused:
        async with recording("drill", drill, set(), file, print, begin_s=0.05) as source:
            assert str(source) == "the traffic of drill; no gateway is running yet"
    assert "systemctl status microdcs-edge" in refused.value.advice
    assert not file.exists()


async def test_recording_starts_no_embedded_store(drill: Settings, tmp_path: Path) -> None:
    settings = msgspec.structs.replace(drill, redis=RedisSettings(url=f"embedded:{tmp_path}/store"))
    with pytest.raises(Unavailable, match="no gateway runs the store") as refused:
        async with recording("drill", settings, set(), tmp_path / "drill.jsonl", print):
            pytest.fail("it listens to nobody")
    assert refused.value.advice.startswith("Start the gateway first")
    assert not (tmp_path / "store").exists()
    async with (
        open_store(settings.redis, "edge") as store,
        background_task(TrafficPublisher(store, ("drill",), poll_interval_s=0.01).run(), "gateway"),
        recording("drill", settings, set(), tmp_path / "drill.jsonl", print) as source,
    ):
        assert str(source) == "the traffic of drill by edge"


async def test_lines_recorded_before_a_store_loss_are_kept(drill: Settings, tmp_path: Path) -> None:
    file = tmp_path / "drill.jsonl"
    async with own_server(tmp_path) as server, open_store(RedisSettings(url=server.url), "edge") as store:
        settings = msgspec.structs.replace(drill, redis=RedisSettings(url=server.url))

        async def lose_the_store() -> None:
            async with recording("drill", settings, set(), file, print):
                await server.kill()
                await asyncio.Event().wait()

        async with background_task(TrafficPublisher(store, ("drill",), poll_interval_s=0.01).run(), "gateway"):
            with pytest.raises(Unavailable, match="Redis does not answer"):
                await lose_the_store()
    assert [line.get("what") for line in lines_of(file)] == [None, "begun"]


class Disk(FileIO):
    """A file on a disk with room for its first line only."""

    def write(self, data: Any) -> int:
        if self.tell():
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


@pytest.mark.parametrize("name", ["wrench", "drill"])
async def test_full_disk_ends_the_recording_with_the_reason(
    name: str,
    mqtt: MqttSettings,
    store: Store,
    drill: Settings,
    unique: str,
    tmp_path: Path,
) -> None:
    both = {**settings_of(mqtt, unique).southbound, **drill.southbound}
    settings = msgspec.structs.replace(settings_of(mqtt, unique), redis=drill.redis, southbound=both)

    async def record() -> None:
        full = tmp_path / "full.jsonl"
        opened = recording(name, settings, set(), full, print, create=lambda file: Disk(file, "x"))
        async with opened, asyncio.timeout(60):
            await session.publish(f"{unique}/wrench/presence", b"online")
            await asyncio.Event().wait()

    async with (
        open_session(mqtt, unique) as session,
        background_task(TrafficPublisher(store, ("drill",), poll_interval_s=0.01).run(), "gateway"),
    ):
        with pytest.raises(Unavailable, match="the recording ends: No space left on device") as refused:
            await record()
    assert "Free space on the disk" in refused.value.advice


async def test_recording_cancelled_before_the_first_line_leaves_no_file(drill: Settings, tmp_path: Path) -> None:
    file = tmp_path / "drill.jsonl"

    async def record() -> None:
        async with recording("drill", drill, set(), file, print):
            pytest.fail("there is no gateway")

    recorder = asyncio.create_task(record())
    while not file.exists():  # noqa: ASYNC110 - there is no event for a new file
        await asyncio.sleep(0)
    recorder.cancel()
    with pytest.raises(asyncio.CancelledError):
        await recorder
    assert not file.exists()


@pytest.mark.parametrize("garbage", ["hello", "[" * 100_000, '{"at":1,"gateway":"e","what":"lost","data":%s1%s}'])
async def test_malformed_trace_of_a_gateway_is_reported_in_one_line(
    garbage: str, store: Store, drill: Settings, tmp_path: Path
) -> None:
    reported = garbage.replace("%s", "[" * 3000, 1).replace("%s", "]" * 3000)

    async def record() -> None:
        async with recording("drill", drill, set(), tmp_path / "drill.jsonl", print), asyncio.timeout(60):
            await store.execute("PUBLISH", traffic_channel.channel(store, "drill"), reported)
            await asyncio.Event().wait()

    async with background_task(TrafficPublisher(store, ("drill",), poll_interval_s=0.01).run(), "gateway"):
        with pytest.raises(Unavailable, match=r"publishes unreadable records|nested too deep"):
            await record()


async def test_next_recorder_receives_the_trace_of_the_gateway(store: Store, drill: Settings, tmp_path: Path) -> None:
    gateway = TrafficPublisher(store, ("drill",), poll_interval_s=0.01)
    async with background_task(gateway.run(), "gateway"):
        for number in range(3):
            async with recording("drill", drill, set(), tmp_path / f"{number}.jsonl", print) as source:
                assert str(source) == "the traffic of drill by edge"


async def test_embedded_store_is_refused_for_recording(drill: Settings, tmp_path: Path) -> None:
    settings = msgspec.structs.replace(drill, redis=RedisSettings(url="embedded:"))
    with pytest.raises(SettingsError, match="lives and dies with one process"):
        async with recording("drill", settings, set(), tmp_path / "drill.jsonl", print):
            pytest.fail("it listens to nobody")


async def test_recording_ends_at_its_limit_and_keeps_its_records(
    mqtt: MqttSettings, unique: str, tmp_path: Path
) -> None:
    file, reported = tmp_path / "wrench.jsonl", list[Line]()

    async def record() -> None:
        limited = recording("wrench", settings_of(mqtt, unique), set(), file, reported.append, most_bytes=5000)
        async with limited, asyncio.timeout(60):
            for _ in range(10):
                await session.publish(f"{unique}/wrench/data", b"x" * 1000)
            await asyncio.Event().wait()

    async with open_session(mqtt, unique) as session:
        with pytest.raises(Unavailable, match="the recording ends: its limit of 5,000 bytes is reached"):
            await record()
    assert 0 < len(reported) < 5
    assert file.stat().st_size <= 5000
    assert len(lines_of(file)) == 1 + len(reported)
