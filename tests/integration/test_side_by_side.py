"""One slow device or one busy scope does not delay others."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from edge.app.wiring import open_gateway
from edge.config import (
    GatewaySettings,
    MqttEquipmentSettings,
    MqttSettings,
    NorthboundSettings,
    RedisSettings,
    Settings,
)
from edge.features.simulator.controller import open_controller
from edge.features.simulator.mes import Mes, open_mes
from edge.links.mqtt import open_session
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import STATUS_EVENT_TYPE
from edge.model.isa95 import JobOrder, OrderCall, ReturnStatus, WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA
from tests.app.running import NO_OPCUA
from tests.conftest import WaitUntil
from tests.local_broker import open_broker

pytestmark = pytest.mark.slow

SCOPES = ("station-1", "station-2")
STEPS = 5


def recipe(type_id: str, steps: int) -> dict[str, object]:
    names = [f"S{n}" for n in range(steps)]
    return {
        "steps": [{"name": name, **({"initial": True} if name == "S0" else {})} for name in (*names, "Done")],
        "transitions": [
            {"source": a, "target": b, "condition": "always"} for a, b in zip(names, (*names[1:], "Done"), strict=True)
        ],
        "actions": [
            {"name": name, "step": name, "qualifier": "N", "interaction": "push_command", "type_id": type_id}
            for name in names
        ],
    }


class Plant:
    """A MES that notes when each job ended."""

    def __init__(self, mes: Mes) -> None:
        self.mes = mes
        self.ended: dict[str, float] = {}

    async def open(self) -> None:
        for scope in SCOPES:
            await self.mes.watch(scope, self._take)
            for name, type_id, steps in (("slow", "slow.v1", 1), ("quick", "quick.v1", STEPS)):
                master = WorkMaster(id=name, data=recipe(type_id, steps), dataschema=RECIPE_DATASCHEMA)
                await self.mes.configure(scope, "workmaster", master)

    async def start(self, job_id: str, master: str, scope: str = SCOPES[0]) -> None:
        order = JobOrder(job_order_id=job_id, work_master_id=(WorkMaster(id=master),))
        answer = await self.mes.call(scope, "StoreAndStart", OrderCall(job_order=order))
        assert answer.status is ReturnStatus.NO_ERROR, answer.reasons

    async def seconds_for(self, name: str, wait_until: WaitUntil) -> float:
        """Run ten quick jobs; return the seconds until the end of the last one."""
        job_ids = {f"{name}-{number}" for number in range(10)}
        began = time.monotonic()
        for job_id in sorted(job_ids):
            await self.start(job_id, "quick")
        await wait_until(lambda: job_ids <= self.ended.keys())
        return max(self.ended[job_id] for job_id in job_ids) - began

    async def _take(self, _: str, event: CloudEvent) -> None:
        if event.type == STATUS_EVENT_TYPE and event.data["JobState"][0]["StateText"]["Text"] == "Ended":
            self.ended.setdefault(event.data["JobOrder"]["JobOrderID"], time.monotonic())


@pytest.fixture
async def plant(redis: RedisSettings, mqtt: MqttSettings, unique: str) -> AsyncIterator[Plant]:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        slow, quick = [await enter(open_session(mqtt, f"{unique}-{name}")) for name in ("slow", "quick")]
        await enter(open_controller(slow, "slow", topic_prefix=unique, delay=600.0))
        await enter(open_controller(quick, "quick", topic_prefix=unique, delay=0.0))
        settings = Settings(
            gateway=GatewaySettings(scopes=SCOPES),
            redis=redis,
            mqtt=MqttSettings(url=mqtt.url, client_id=f"{unique}-edge"),
            northbound=NorthboundSettings(topic_prefix=unique),
            southbound={
                name: MqttEquipmentSettings(type_ids=(f"{name}.v1",), topic_prefix=unique) for name in ("slow", "quick")
            },
            opcua=NO_OPCUA,
        )
        await enter(open_gateway(settings))
        plant = Plant(await enter(open_mes(mqtt, f"{unique}-mes", topic_prefix=unique)))
        await plant.open()
        yield plant


async def test_a_device_that_answers_after_minutes_delays_no_other_job(plant: Plant, wait_until: WaitUntil) -> None:
    alone_s = await plant.seconds_for("alone", wait_until)
    for number in range(10):
        await plant.start(f"slow-{number}", "slow")
    beside_s = await plant.seconds_for("beside", wait_until)
    assert len(plant.ended) == 20
    assert beside_s < 1.5 + 5 * alone_s


async def test_scope_with_many_jobs_does_not_starve_another_scope(plant: Plant, wait_until: WaitUntil) -> None:
    async with asyncio.TaskGroup() as tasks:
        for number in range(150):
            tasks.create_task(plant.start(f"many-{number}", "quick"))
        await asyncio.sleep(0)
        await plant.start("lonely", "quick", SCOPES[1])
        began = time.monotonic()
    await wait_until(lambda: len(plant.ended) == 151)
    # Jobs that end while the calls are answered, as on a slow machine, do not delay it.
    assert sum(began < at < plant.ended["lonely"] for at in plant.ended.values()) < 75


async def test_a_device_whose_broker_hangs_delays_no_other_job(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        other = await enter(open_broker())
        quick = await enter(open_session(mqtt, f"{unique}-quick"))
        await enter(open_controller(quick, "quick", topic_prefix=unique, delay=0.0))
        equipment = {"slow": other.url, "quick": mqtt.url}
        settings = Settings(
            gateway=GatewaySettings(scopes=SCOPES),
            redis=redis,
            mqtt=MqttSettings(url=mqtt.url, client_id=f"{unique}-edge"),
            northbound=NorthboundSettings(topic_prefix=unique),
            southbound={
                name: MqttEquipmentSettings(type_ids=(f"{name}.v1",), topic_prefix=unique, url=url)
                for name, url in equipment.items()
            },
            opcua=NO_OPCUA,
        )
        await enter(open_gateway(settings))
        plant = Plant(await enter(open_mes(mqtt, f"{unique}-mes", topic_prefix=unique)))
        await plant.open()
        alone_s = await plant.seconds_for("alone", wait_until)
        other.freeze()
        for number in range(10):
            await plant.start(f"slow-{number}", "slow")
        beside_s = await plant.seconds_for("beside", wait_until)
        assert beside_s < 1.5 + 5 * alone_s
        other.thaw()
