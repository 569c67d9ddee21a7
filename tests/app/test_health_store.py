"""A fault of a server behind Sentinel reaches tags, status line and alarms of the gateway."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from edge.app.health import StoreWatch
from edge.app.lifecycle import serve
from edge.config import MqttSettings, RedisSettings, Settings
from edge.foundation.task_group import background_task
from edge.store import kept_alarms as alarms
from edge.store.open_store import open_store
from tests.app.running import NO_OPCUA
from tests.conftest import WaitUntil
from tests.store.sentinel_line import Line, open_line, until

_LASTS_S = 5.0
"""A fault of this length is sampled: the gateway samples itself every two seconds."""


@asynccontextmanager
async def watched(line: Line, unique: str) -> AsyncIterator[StoreWatch]:
    settings = line.settings(unique)
    async with open_store(settings, "edge") as store:
        watch = StoreWatch(store)
        async with background_task(watch.run(0.2), "store watch"):
            yield watch


async def test_sound_line_has_tags_without_problems(tmp_path: Path, unique: str, wait_until: WaitUntil) -> None:
    async with open_line(tmp_path) as line, watched(line, unique) as watch:
        await wait_until(lambda: watch.state is not None)
        assert set(dict(watch.tags()).values()) == {0}
        assert list(watch.notes()) == []


def _kill_replica(line: Line) -> None:
    process = line.nodes[1].process
    assert process
    process.kill()


def _freeze_replica(line: Line) -> None:
    line.nodes[1].signal(signal.SIGSTOP)


def _freeze(count: int) -> Callable[[Line], None]:
    def freeze(line: Line) -> None:
        for sentinel in line.sentinels[:count]:
            sentinel.signal(signal.SIGSTOP)

    return freeze


def _thaw(line: Line) -> None:
    for sentinel in line.sentinels:
        sentinel.signal(signal.SIGCONT)


@pytest.mark.parametrize(
    ("fault", "tag", "note"),
    [
        (_kill_replica, "gateway.store_replicas_away", "the replica 127.0.0.1:"),
        (_freeze_replica, "gateway.store_replicas_away", "the replica 127.0.0.1:"),
        (_freeze(1), "gateway.sentinels_away", "the sentinel 127.0.0.1:"),
        (_freeze(2), "gateway.primary_unconfirmed", "the sentinel 127.0.0.1:"),
    ],
    ids=["replica killed", "replica frozen", "sentinel silent", "no majority"],
)
async def test_fault_of_a_server_is_counted_and_noted(
    tmp_path: Path, unique: str, wait_until: WaitUntil, fault: Callable[[Line], None], tag: str, note: str
) -> None:
    async with open_line(tmp_path) as line, watched(line, unique) as watch:
        fault(line)
        await wait_until(lambda: dict(watch.tags()).get(tag) == 1)
        await wait_until(lambda: any(str(text).startswith(note) for text in watch.notes()))
        _thaw(line)


async def test_replica_without_append_only_file_is_counted(tmp_path: Path, unique: str, wait_until: WaitUntil) -> None:
    async with open_line(tmp_path, replica="appendonly no\n") as line, watched(line, unique) as watch:
        await wait_until(lambda: dict(watch.tags()).get("gateway.store_without_file") == 1)


async def test_single_server_has_no_tags(redis: RedisSettings, wait_until: WaitUntil) -> None:
    async with open_store(redis, "edge") as store:
        watch = StoreWatch(store)
        async with background_task(watch.run(), "store watch"):
            await wait_until(lambda: watch.state is not None)
        assert list(watch.tags()) == []


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        (_kill_replica, "gateway.store_replica_away"),
        (_freeze(1), "gateway.store_sentinel_away"),
        (_freeze(2), "gateway.store_no_majority"),
    ],
    ids=["replica killed", "sentinel silent", "no majority"],
)
async def test_fault_of_a_server_raises_an_alarm(
    tmp_path: Path, unique: str, wait_until: WaitUntil, fault: Callable[[Line], None], rule: str
) -> None:
    """Without a majority the store takes no alarm: it is raised, and ends, when a majority is back."""
    async with open_line(tmp_path) as line:
        settings = Settings(redis=line.settings(unique), mqtt=MqttSettings(url=""), opcua=NO_OPCUA)
        with capture_logs() as logs:
            life = asyncio.create_task(serve(settings))
            await wait_until(lambda: any(entry["event"] == "ready" for entry in logs))
            fault(line)
            if rule == "gateway.store_no_majority":
                await wait_until(lambda: any(entry["event"] == "primary not confirmed, work waits" for entry in logs))
                await asyncio.sleep(_LASTS_S)
                _thaw(line)
            async with open_store(settings.redis, None) as store:

                async def is_raised() -> bool:
                    return any(alarm_change.alarm.rule == rule for alarm_change in await alarms.newest(store, 20))

                await until(is_raised)
            _thaw(line)
            os.kill(os.getpid(), signal.SIGTERM)
            await life
