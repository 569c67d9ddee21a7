"""The gateway survives outages of broker and store, reports them, loses no data and catches up."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from edge.config import MqttSettings, RedisSettings
from edge.model.isa95 import ReturnStatus
from edge.model.job_state import JobState
from edge.store import jobs
from edge.store.client import Store
from tests.app.running import NO_OPCUA, Gateway, edge_run, settings_of, written
from tests.conftest import WaitUntil
from tests.integration.plant import PUSHING, SCOPE, Plant, opened_plant, order
from tests.local_broker import OwnBroker, open_broker
from tests.store.servers import own_server

pytestmark = pytest.mark.slow

ENDED = ["Running", "Ended/Completed"]


@pytest.fixture
async def own_broker() -> AsyncIterator[OwnBroker]:
    async with open_broker() as broker:
        yield broker


async def begun(plant: Plant, gateway: Gateway, wait_until: WaitUntil) -> None:
    """Start a job that waits for its wrench."""
    await gateway.until("ready")
    await plant.configure(PUSHING)
    await plant.mes.call(SCOPE, "StoreAndStart", order("J1"))
    await wait_until(lambda: plant.wrench.commands and plant.heard.states() == ["Running"])


async def test_changes_during_a_broker_outage_are_published_afterwards(
    own_broker: OwnBroker,
    mqtt: MqttSettings,
    store: Store,
    redis: RedisSettings,
    tmp_path: Path,
    wait_until: WaitUntil,
) -> None:
    north, unique = MqttSettings(url=own_broker.url), redis.prefix
    settings = settings_of(redis, north, unique, NO_OPCUA)
    southbound = {
        name: msgspec.structs.replace(equipment_settings, url=mqtt.url)
        for name, equipment_settings in settings.southbound.items()
    }
    file = written(msgspec.structs.replace(settings, southbound=southbound), tmp_path)
    async with edge_run("--settings", file) as gateway, opened_plant(north, unique, equipment=mqtt) as plant:
        await begun(plant, gateway, wait_until)
        await own_broker.stop()
        await plant.wrench.release()
        async with asyncio.timeout(60):
            while (job := await jobs.load(store, "J1")) is None or job.status.state is not JobState.ENDED:
                pass
        await gateway.until("mqtt not connected, retrying")
        await gateway.until("publishing waits")
        await own_broker.start()
        await wait_until(lambda: plant.heard.states() == ENDED)
        await gateway.until("publishing continued")
        answer = await plant.mes.call(SCOPE, "StoreAndStart", order("J2"))
        assert answer.status is ReturnStatus.NO_ERROR
        await wait_until(lambda: plant.heard.states("J2") == ENDED)
        await gateway.stop()


async def test_job_completes_after_a_restart_of_its_equipment_broker(
    own_broker: OwnBroker, redis: RedisSettings, unique: str, tmp_path: Path, wait_until: WaitUntil
) -> None:
    mqtt = MqttSettings(url=own_broker.url)
    file = written(settings_of(redis, mqtt, unique, NO_OPCUA), tmp_path)
    async with edge_run("--settings", file) as gateway, opened_plant(mqtt, unique) as plant:
        await begun(plant, gateway, wait_until)
        await own_broker.stop()
        await wait_until(lambda: not plant.connected)
        await own_broker.start()
        await wait_until(lambda: plant.connected)
        await plant.wrench.release()
        await wait_until(lambda: plant.heard.states() == ENDED)
        await gateway.stop()
    assert {action: len(ids) for action, ids in plant.wrench.ids().items()} == {"position": 1, "tighten": 1}


async def test_call_during_a_store_outage_is_answered_afterwards(
    mqtt: MqttSettings, unique: str, tmp_path_factory: pytest.TempPathFactory, wait_until: WaitUntil
) -> None:
    directory = tmp_path_factory.mktemp("v")
    async with own_server(directory) as server:
        file = written(settings_of(RedisSettings(url=server.url), mqtt, unique, NO_OPCUA), directory)
        async with edge_run("--settings", file) as gateway, opened_plant(mqtt, unique) as plant:
            await begun(plant, gateway, wait_until)
            await server.kill()
            call = asyncio.create_task(plant.mes.call(SCOPE, "StoreAndStart", order("J2")))
            await plant.wrench.release()
            await gateway.until("mqtt message waits for its handler")
            await gateway.until("store unavailable, retrying")
            await server.start()
            assert (await call).status is ReturnStatus.NO_ERROR
            await wait_until(lambda: plant.heard.states() == plant.heard.states("J2") == ENDED)
            await gateway.stop()
    assert {action: len(ids) for action, ids in plant.wrench.ids().items()} == {"position": 2, "tighten": 2}
