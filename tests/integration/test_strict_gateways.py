"""Two gateways of one store at one strict controller: one connects, a bolt counts once, and the other takes over."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from edge.config import RedisSettings
from edge.features.openprotocol.equipment_lease import EquipmentLease
from edge.foundation.errors import Unavailable
from edge.sfc.signal import Phase
from edge.station.equipment import Command
from edge.station.instance import open_instance
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.conftest import WaitUntil
from tests.equipment.contract import SCOPES
from tests.equipment.strict_controller import StrictBench, attached, bolt
from tests.integration.test_strict_results import Plant
from tests.outside.devices.openprotocol_controller import StrictController, open_strict_controller
from tests.outside.devices.openprotocol_quirks import Quirks
from tests.outside.devices.openprotocol_tool import Habits

ONE_CLIENT = Quirks(clients=1)
LOOK_S = 0.1


class LostLease(EquipmentLease):
    """The lease of a gateway that ends without a word, as after a power cut: it stays in the store."""

    async def release(self) -> None:
        return


class GatewayStation(Plant):
    """The station as one gateway sees it: the jobs of `shared`, under a name of its own."""

    def __init__(self, shared: Plant, store: Store) -> None:
        super().__init__()
        self.__dict__ |= shared.__dict__
        self._store = store

    @property
    def gateway(self) -> str:
        """The name of the gateway."""
        return self._store.consumer


@dataclass
class Line:
    """A controller, and the gateways of one store at it by their names."""

    controller: StrictController
    redis: RedisSettings
    station: Plant
    keys: dict[str, Any]

    @asynccontextmanager
    async def gateway(self, name: str) -> AsyncIterator[StrictBench]:
        """Run a gateway for the length of the block; its end is a power cut."""
        async with open_store(self.redis, name) as store, AsyncExitStack() as stack:
            await stack.enter_async_context(open_instance(store, SCOPES))
            station, lease_of = GatewayStation(self.station, store), partial(LostLease, store, look_every_s=LOOK_S)
            yield await stack.enter_async_context(attached(self.controller, station, lease_of=lease_of, **self.keys))

    def waits_for(self, command: Command) -> Command:
        """Return a command whose answer the station waits for now, as committed in the store."""
        self.station.unanswered[:] = [command]
        return command


@asynccontextmanager
async def line(redis: RedisSettings, quirks: Quirks | None = None, **keys: Any) -> AsyncIterator[Line]:
    async with open_strict_controller(quirks, Habits(absent=True)) as controller:
        yield Line(controller, redis, Plant(), keys)


@pytest.mark.parametrize("correlation", ["mark", "next"])
@pytest.mark.parametrize("quirks", [Quirks(), Quirks(link=True), ONE_CLIENT], ids=["plain", "link", "one client"])
async def test_each_bolt_of_two_gateways_counts_once(
    wait_until: WaitUntil, redis: RedisSettings, quirks: Quirks, correlation: str
) -> None:
    async with line(redis, quirks, correlation=correlation) as plant, plant.gateway("first") as first:
        controller, station = plant.controller, plant.station
        await wait_until(lambda: first.equipment.connected)
        async with plant.gateway("second") as second:
            await wait_until(lambda: second.equipment.connection.holder == "first")
            for n in range(4):
                await (first, second)[n % 2].equipment.send(plant.waits_for(bolt(n)))
                await wait_until(lambda: controller.tool.enabled)
                controller.tool.tighten()
                await wait_until(lambda n=n: len(station.answers) == n + 1)
                await wait_until(lambda: not controller.tool.enabled)
            assert second.equipment.connected is None
        assert controller.connections == 1
    assert [answer.command_id for answer in station.answers] == [bolt(n).command_id for n in range(4)]
    assert (station.late_results, station.unknown, len(controller.tool.results)) == ([], [], 4)
    assert controller.violations == []


@pytest.mark.parametrize("correlation", ["mark", "next"])
async def test_stop_of_another_gateway_disables_the_tool(
    wait_until: WaitUntil, redis: RedisSettings, correlation: str
) -> None:
    async with line(redis, correlation=correlation) as plant, plant.gateway("first") as first:
        await wait_until(lambda: first.equipment.connected)
        async with plant.gateway("second") as second:
            await wait_until(lambda: second.equipment.connection.holder)
            await first.equipment.send(plant.waits_for(bolt(1)))
            await wait_until(lambda: plant.controller.tool.enabled)
            await second.equipment.stop(replace(bolt(1), phase=Phase.STOP))
            await wait_until(lambda: not plant.controller.tool.enabled)
            await wait_until(lambda: plant.station.stops)
    assert plant.station.stops == [(bolt(1).command_id, None)]


@pytest.mark.parametrize("quirks", [Quirks(), Quirks(link=True), ONE_CLIENT], ids=["plain", "link", "one client"])
async def test_gateway_takes_over_the_batch_of_one_that_ended(
    wait_until: WaitUntil, redis: RedisSettings, quirks: Quirks
) -> None:
    batch = bolt(1, classification="batch", batch_size=3)
    async with line(redis, quirks) as plant, AsyncExitStack() as others:
        controller, tool, station = plant.controller, plant.controller.tool, plant.station
        async with plant.gateway("first") as first:
            await wait_until(lambda: first.equipment.connected)
            second = await others.enter_async_context(plant.gateway("second"))
            await first.equipment.send(plant.waits_for(batch))
            await wait_until(lambda: tool.enabled)
            tool.tighten()
            await wait_until(lambda: controller.acknowledged)
        tool.tighten()
        await wait_until(lambda: second.equipment.connected)
        tool.tighten()
        await wait_until(lambda: station.answers)
        await wait_until(lambda: not tool.enabled)
    (answer,) = station.answers
    assert answer.data["counts"] == {"ok": 3, "not_ok": 0}
    assert [result["result_id"] for result in answer.data["results"].values()] == ["1", "2", "3"]
    assert (station.late_results, station.unknown) == ([], [])


async def test_command_of_an_ended_gateway_is_unknown_with_next(wait_until: WaitUntil, redis: RedisSettings) -> None:
    async with line(redis, ONE_CLIENT, correlation="next") as plant, AsyncExitStack() as others:
        async with plant.gateway("first") as first:
            await wait_until(lambda: first.equipment.connected)
            await others.enter_async_context(plant.gateway("second"))
            await first.equipment.send(plant.waits_for(bolt(1)))
            await wait_until(lambda: plant.controller.tool.enabled)
        await wait_until(lambda: plant.station.unknown)
        await wait_until(lambda: not plant.controller.tool.enabled)
    assert [outcome_unknown.command_id for outcome_unknown in plant.station.unknown] == [bolt(1).command_id]


async def test_result_confirmed_by_an_ended_gateway_is_answered(wait_until: WaitUntil, redis: RedisSettings) -> None:
    """The first gateway has confirmed the bolt from its inbox, and ended before it could answer."""
    async with line(redis, Quirks(link=True)) as plant, AsyncExitStack() as others:
        tool, station = plant.controller.tool, plant.station
        async with plant.gateway("first") as first:
            await wait_until(lambda: first.equipment.connected)
            second = await others.enter_async_context(plant.gateway("second"))
            await first.equipment.send(plant.waits_for(bolt(1)))
            await wait_until(lambda: tool.enabled)
            first.station.failures += [Unavailable("the store is gone")] * 1000
            tool.tighten()
            await wait_until(lambda: plant.controller.acknowledged)
        station.failures.clear()
        await wait_until(lambda: second.equipment.connected)
        await wait_until(lambda: station.answers)
        await wait_until(lambda: not tool.enabled)
    (answer,) = station.answers
    assert (answer.command_id, answer.data["result_id"], station.late_results) == (bolt(1).command_id, "1", [])
