"""`edge record` as a process: it shows what it hears, ends by Ctrl-C or by itself, and leaves a file."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from edge.config import MqttSettings, RedisSettings
from edge.links.mqtt import open_session
from tests.app.running import NO_OPCUA, settings_of, written


@pytest.fixture
def settings(mqtt: MqttSettings, unique: str, tmp_path: Path) -> Path:
    return written(settings_of(RedisSettings(), mqtt, unique, NO_OPCUA), tmp_path)


async def started(*arguments: str | Path) -> Process:
    command = (sys.executable, "-m", "edge", "record", *map(str, arguments))
    return await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)


async def test_it_shows_what_it_hears_and_ends_by_ctrl_c(
    mqtt: MqttSettings, unique: str, settings: Path, tmp_path: Path
) -> None:
    file = tmp_path / "wrench.jsonl"
    process = await started("wrench", file, "--settings", settings)
    assert process.stdout
    async with asyncio.timeout(20), open_session(mqtt, unique) as session:
        assert f"listening to {unique}/wrench/+" in (await process.stdout.readline()).decode()
        await session.publish(f"{unique}/wrench/presence", b"online")
        assert (await process.stdout.readline()).decode().split() == ["0.000", "s", "presence", "online"]
        process.send_signal(signal.SIGINT)
        rest = (await process.stdout.read()).decode()
        assert await process.wait() == 0
    assert rest == f"{file}: 1 lines; look through it before you hand it on\n"
    assert len(file.read_bytes().splitlines()) == 2


async def test_it_ends_by_itself_after_so_many_seconds(settings: Path, tmp_path: Path) -> None:
    process = await started("wrench", tmp_path / "wrench.jsonl", "--seconds", "0.1", "--settings", settings)
    async with asyncio.timeout(20):
        told, _ = await process.communicate()
    assert process.returncode == 0
    assert told.decode().endswith("0 lines; look through it before you hand it on\n")


async def test_equipment_that_is_not_there_is_told(settings: Path, tmp_path: Path) -> None:
    process = await started("drill", tmp_path / "drill.jsonl", "--settings", settings)
    async with asyncio.timeout(20):
        _, told = await process.communicate()
    assert process.returncode == 2
    assert "the settings have no equipment drill" in told.decode()
    assert not (tmp_path / "drill.jsonl").exists()
