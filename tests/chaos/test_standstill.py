"""A campaign that stands still ends with a report of what its parts wait for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from edge.config import GatewaySettings, MqttSettings, RedisSettings, Settings
from edge.links.mqtt import open_session
from tests.app.running import NO_OPCUA, edge_run, written
from tests.chaos.stacks import tasks_of
from tests.chaos.standstill import StandstillError, standstill_reported
from tests.local_broker import OwnBroker


@asynccontextmanager
async def never_open() -> AsyncIterator[None]:
    await asyncio.Event().wait()
    yield


async def open_it() -> None:
    async with never_open():
        pass


async def test_stack_names_each_frame_that_waits() -> None:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(open_it(), name="opener")
        await asyncio.sleep(0)
        frames = dict(tasks_of(asyncio.get_running_loop()))["opener"]
        task.cancel()
    assert [frame.rpartition(" ")[2] for frame in frames[:-1]] == [
        *("open_it", "_AsyncGeneratorContextManager.__aenter__", "never_open", "Event.wait")
    ]
    assert "<Future pending" in frames[-1]


@pytest.mark.slow
async def test_standstill_ends_with_stacks_logs_and_sessions(
    tmp_path: Path, redis: RedisSettings, mqtt: MqttSettings, broker: OwnBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(gateway=GatewaySettings(name="edge"), redis=redis, mqtt=mqtt, opcua=NO_OPCUA)
    file = written(settings, tmp_path)
    async with edge_run("--settings", file, module="tests.chaos.observed_gateway") as gateway:
        await gateway.until("ready")
        with pytest.raises(BaseExceptionGroup) as caught:
            async with open_session(mqtt, "mes"), standstill_reported(lambda: 7, lambda: gateway, broker, 0.2):
                await asyncio.Event().wait()
    assert caught.group_contains(StandstillError, match="no progress for 0.2 s after 7", depth=1)
    printed = capsys.readouterr().err
    assert "test_standstill_ends_with_stacks_logs_and_sessions" in printed
    assert "mes: connected True, connection 1, failure None, refused [], unacknowledged [], waiting {}" in printed
    assert "_Life._serve" in printed, "the stack of the gateway"
    assert "edge: connected True" in printed, "the session of the gateway"
    assert "New client connected from" in printed, "the log of the broker"


async def test_progress_is_not_a_standstill(broker: OwnBroker) -> None:
    counted = iter(range(10_000))
    async with standstill_reported(lambda: next(counted), lambda: None, broker, 0.05):
        await asyncio.sleep(0.2)
