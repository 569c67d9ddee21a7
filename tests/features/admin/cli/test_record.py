"""`edge record` as a process: it prints received messages, ends on Ctrl-C or timeout, and writes a file."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from edge.config import MqttSettings, RedisSettings, Settings
from edge.features.admin.cli.record import format_record
from edge.features.admin.recording import ExchangeRecord
from edge.features.lamps.settings import StackLightSettings
from edge.links.mqtt import open_session
from edge.model.equipment_traffic import TrafficKind
from edge.sfc.signal import Phase
from edge.store.client import Store
from edge.store.traffic_channel import listeners
from tests.app.running import NO_OPCUA, edge_run, settings_of, written
from tests.equipment.contract import WORK


@pytest.fixture
def settings(mqtt: MqttSettings, unique: str, tmp_path: Path) -> Path:
    return written(settings_of(RedisSettings(), mqtt, unique, NO_OPCUA), tmp_path)


async def started(*arguments: str | Path) -> Process:
    command = (sys.executable, "-m", "edge", "record", *map(str, arguments))
    return await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)


async def test_record_shows_received_messages_and_ends_by_ctrl_c(
    mqtt: MqttSettings, unique: str, settings: Path, tmp_path: Path
) -> None:
    file = tmp_path / "wrench.jsonl"
    process = await started("wrench", file, "--settings", settings)
    assert process.stdout
    async with asyncio.timeout(60), open_session(mqtt, unique) as session:
        assert f"recording {unique}/wrench/+" in (await process.stdout.readline()).decode()
        await session.publish(f"{unique}/wrench/presence", b"online")
        assert (await process.stdout.readline()).decode().split() == ["0.000", "s", "presence", "online"]
        process.send_signal(signal.SIGINT)
        rest = (await process.stdout.read()).decode()
        assert await process.wait() == 0
    assert rest == f"{file}: 1 lines; review the file before you pass it on\n"
    assert len(file.read_bytes().splitlines()) == 2


async def test_record_ends_after_its_time_limit(settings: Path, tmp_path: Path) -> None:
    process = await started("wrench", tmp_path / "wrench.jsonl", "--seconds", "0.1", "--settings", settings)
    async with asyncio.timeout(60):
        reported, _ = await process.communicate()
    assert process.returncode == 0
    assert reported.decode().endswith("0 lines; review the file before you pass it on\n")


async def test_unknown_equipment_is_reported(settings: Path, tmp_path: Path) -> None:
    process = await started("drill", tmp_path / "drill.jsonl", "--settings", settings)
    async with asyncio.timeout(60):
        _, reported = await process.communicate()
    assert process.returncode == 2
    assert "the settings have no equipment drill" in reported.decode()
    assert not (tmp_path / "drill.jsonl").exists()


async def test_trace_of_a_gateway_is_shown_from_the_first_connection(
    redis: RedisSettings, store: Store, tmp_path: Path
) -> None:
    light = StackLightSettings(kind="stacklight", type_ids=("light.v1",), chip="fake", lamps={"green": 22})
    plant = Settings(redis=redis, mqtt=MqttSettings(url=""), southbound={"light": light}, opcua=NO_OPCUA)
    settings, file = written(plant, tmp_path), tmp_path / "light.jsonl"
    process = await started("light", file, "--settings", settings)
    assert process.stdout
    async with asyncio.timeout(60):
        # A gateway that is faster than the recorder has made its first connection before anything is recorded.
        while not (await listeners(store, ["light"]))["light"]:  # noqa: ASYNC110 - Redis reports no new subscriber
            await asyncio.sleep(0.02)
        async with edge_run("--settings", settings) as gateway:
            lines = [(await process.stdout.readline()).decode() for _ in range(3)]
            process.send_signal(signal.SIGINT)
            await process.wait()
            await gateway.stop()
    assert any(line.startswith("recording the traffic of light") for line in lines)
    assert [line.split()[2:] for line in lines if " s " in line][:2] == [
        ["begun", "edge"],
        ["connected", "0", "commands", "outstanding"],
    ]


@pytest.mark.parametrize(
    ("what", "data", "words"),
    [
        (TrafficKind.COMMAND, WORK, f"{WORK.type_id}  start  {WORK.command_id}"),
        (TrafficKind.STOP, replace(WORK, phase=Phase.STOP), f"{WORK.type_id}  stop  {WORK.command_id}"),
        (TrafficKind.ANSWER, {"command_id": "J1/r/work/1", "data": 1, "error": None}, "J1/r/work/1  done"),
        (TrafficKind.ANSWER, {"command_id": "J1/r/work/1", "data": None, "error": "jammed"}, "J1/r/work/1  jammed"),
        (TrafficKind.ASKED, {"question": "call", "arguments": [{}, "EnableAsset", True]}, "EnableAsset"),
        (TrafficKind.ASKED, {"question": "read", "arguments": [{}], "error": "no answer"}, "read  no answer"),
        (TrafficKind.HAPPENING, {"EventType": "i=1", "Result": {}}, "EventType  Result"),
        (TrafficKind.LOST, "pulled out", "pulled out"),
        (TrafficKind.MISSED, 7, "7"),
    ],
)
def test_each_traffic_record_is_one_line(what: TrafficKind, data: object, words: str) -> None:
    line = ExchangeRecord(after=1.5, gateway="edge", what=what, data=msgspec.to_builtins(data))
    assert format_record(line) == f"    1.500 s  {what:<9} {words}"


@pytest.mark.parametrize(
    "data", ["done\n    9.000 s  answer    J1/r/work/1  done", "\x1b[2J\x1b]0;title\x07", "x" * 1_000_000]
)
def test_equipment_text_is_escaped_and_cut_to_one_line(data: str) -> None:
    line = format_record(ExchangeRecord(after=1.5, gateway="edge", what=TrafficKind.LOST, data=data))
    assert line.isprintable()
    assert len(line) < 300


@pytest.mark.parametrize("what", list(TrafficKind))
@pytest.mark.parametrize("data", [None, 7, [], {"question": "call", "arguments": []}])
def test_record_of_another_gateway_version_is_shown_unchanged(what: TrafficKind, data: object) -> None:
    assert format_record(ExchangeRecord(after=1.5, gateway="edge", what=what, data=data)).startswith(
        f"    1.500 s  {what}"
    )
