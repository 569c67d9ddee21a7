"""Start and stop of a gateway: in order, within the deadline, and with a clear reason."""

import asyncio
import os
import signal

import msgspec
import pytest
from structlog.testing import capture_logs

from edge.app.lifecycle import serve
from edge.config import MqttEquipmentSettings, MqttSettings, RedisSettings, Settings
from edge.foundation.errors import SettingsError, Unavailable
from tests.app.running import NO_OPCUA
from tests.conftest import WaitUntil


def least(redis: RedisSettings) -> Settings:
    """Return the settings of a gateway that has a store and nothing else."""
    return Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=NO_OPCUA)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_stops_the_gateway_and_restores_the_signal_handlers(
    redis: RedisSettings, wait_until: WaitUntil, number: signal.Signals
) -> None:
    before = [signal.getsignal(text) for text in (signal.SIGTERM, signal.SIGINT)]
    with capture_logs() as logs:
        life = asyncio.create_task(serve(least(redis)))
        async with asyncio.timeout(60):
            await wait_until(lambda: "ready" in {entry["event"] for entry in logs})
            os.kill(os.getpid(), number)
            await life
    assert [signal.getsignal(text) for text in (signal.SIGTERM, signal.SIGINT)] == before
    ours = [entry["event"] for entry in logs if entry["event"] in {"starting", "ready", "stopping", "stopped"}]
    assert ours == ["starting", "ready", "stopping", "stopped"]


async def test_signal_during_the_start_stops_the_gateway(redis: RedisSettings, wait_until: WaitUntil) -> None:
    with capture_logs() as logs:
        life = asyncio.create_task(serve(least(redis)))
        async with asyncio.timeout(60):
            await wait_until(lambda: "starting" in {entry["event"] for entry in logs})
            os.kill(os.getpid(), signal.SIGTERM)
            await life
    assert logs[-1]["event"] == "stopped"


async def test_missing_store_or_broker_is_named_in_the_error(redis: RedisSettings) -> None:
    settings = msgspec.structs.replace(least(redis), redis=RedisSettings(url="unix:///nowhere/redis.sock"))
    with pytest.raises(Unavailable, match=r"/nowhere/redis\.sock"):
        await serve(settings)
    wrench = MqttEquipmentSettings(type_ids=("tighten.v1",))
    with pytest.raises(SettingsError, match=r"southbound\.wrench: has no broker"):
        await serve(msgspec.structs.replace(least(redis), southbound={"wrench": wrench}))


async def test_cancellation_during_the_start_ends_the_gateway(redis: RedisSettings) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await serve(least(redis))
