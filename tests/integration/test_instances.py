"""Two gateways share a store and a broker; after a kill of either no work is lost or published twice."""

import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from edge.config import GatewaySettings, MqttSettings, RedisSettings
from edge.features.simulator.controller import SimulatedController, open_controller
from edge.features.simulator.mes import Mes, open_mes
from edge.links.mqtt import open_session
from edge.model.isa95 import JobOrder, OrderCall, ReturnStatus, WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA
from tests.app.running import NO_OPCUA, Gateway, edge_run, settings_of, written
from tests.conftest import WaitUntil
from tests.integration.plant import PUSHING, SCOPE, Heard

pytestmark = pytest.mark.slow

JOBS = 12


class Pair:
    """What is around the gateways, and how to start one."""

    def __init__(self, controller: SimulatedController, mes: Mes, heard: Heard, directory: Path) -> None:
        self.controller = controller
        self.mes = mes
        self.heard = heard
        self._directory = directory

    def file(self, redis: RedisSettings, mqtt: MqttSettings, prefix: str, name: str) -> Path:
        """Write the settings of a gateway of that name."""
        shared = settings_of(redis, mqtt, prefix, NO_OPCUA)
        wrench = {"wrench": shared.southbound["wrench"]}
        own = msgspec.structs.replace(
            shared,
            gateway=GatewaySettings(name=f"{prefix}-{name}"),
            mqtt=msgspec.structs.replace(mqtt, client_id=f"{prefix}-{name}"),
            southbound=wrench,
        )
        directory = self._directory / name
        directory.mkdir(exist_ok=True)
        return written(own, directory)

    async def start_jobs(self) -> None:
        """Order jobs of two steps each, and wait until all have begun."""
        for number in range(JOBS):
            call = OrderCall(job_order=JobOrder(job_order_id=f"J{number}", work_master_id=(WorkMaster(id="WM-1"),)))
            answer = await self.mes.call(SCOPE, "StoreAndStart", call)
            assert answer.status is ReturnStatus.NO_ERROR, answer.reasons

    def ended(self) -> int:
        """Count the jobs whose end was published."""
        return sum(self.heard.states(f"J{number}")[-1:] == ["Ended/Completed"] for number in range(JOBS))


@pytest.fixture
async def pair(mqtt: MqttSettings, unique: str, tmp_path: Path) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        listener = await enter(open_session(mqtt, f"{unique}-listener"))
        device = await enter(open_session(mqtt, f"{unique}-device"))
        heard = Heard()
        for below in ("events", "order/+", "result/+"):
            await listener.subscribe(f"{unique}/{SCOPE}/{below}", heard.take)
        controller = await enter(open_controller(device, "wrench", topic_prefix=unique, delay=0.5))
        mes = await enter(open_mes(mqtt, f"{unique}-mes", topic_prefix=unique))
        yield Pair(controller, mes, heard, tmp_path)


@asynccontextmanager
async def ready(file: Path) -> AsyncIterator[Gateway]:
    async with edge_run("--settings", file) as gateway:
        await gateway.until("ready")
        yield gateway


async def test_jobs_of_a_killed_gateway_are_completed_and_reported_by_the_other(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, pair: Pair, wait_until: WaitUntil
) -> None:
    async with (
        ready(pair.file(redis, mqtt, unique, "one")) as gateway,
        ready(pair.file(redis, mqtt, unique, "two")),
    ):
        master = WorkMaster(id="WM-1", data=PUSHING, dataschema=RECIPE_DATASCHEMA)
        await pair.mes.configure(SCOPE, "workmaster", master)
        await pair.start_jobs()
        gateway.send(signal.SIGKILL)
        await wait_until(lambda: pair.ended() == JOBS)
    for number in range(JOBS):
        assert pair.heard.states(f"J{number}") == ["Running", "Ended/Completed"]
    ids = [command.id for command in pair.controller.commands]
    assert len(ids) == len(set(ids)) == 2 * JOBS


async def test_name_of_a_live_gateway_is_refused_and_of_a_killed_one_reused(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, pair: Pair
) -> None:
    file = pair.file(redis, mqtt, unique, "one")
    async with ready(file) as first:
        async with edge_run("--settings", file) as second:
            assert await second.ended() == 1
            assert any("another gateway of the name" in line for line in second.log)
        first.send(signal.SIGKILL)
        await first.ended()
        async with ready(file) as again:
            await again.stop()
