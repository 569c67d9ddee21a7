"""Two gateways at one strict controller: a bolt counts once, also when the gateway of its command is gone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.conftest import WaitUntil
from tests.integration.test_strict_results import Plant
from tests.outside.devices.openprotocol_controller import open_strict_controller
from tests.outside.devices.openprotocol_quirks import Quirks
from tests.outside.devices.openprotocol_tool import Habits
from tests.southbound.strict_controller import StrictBench, attached, bolt


class SharedPlant(Plant):
    """The station of both gateways: one store."""

    async def has_result(self, command_id: str, result_id: str) -> bool:
        return any(each.command_id == command_id and each.data["result_id"] == result_id for each in self.answers)


@asynccontextmanager
async def two_gateways(
    wait_until: WaitUntil, *, link: bool
) -> AsyncIterator[tuple[StrictBench, StrictBench, SharedPlant]]:
    """Open a controller and the equipment of two gateways at it, on one station."""
    station = SharedPlant()
    async with (
        open_strict_controller(Quirks(link=link), Habits(absent=True)) as controller,
        attached(controller, station) as first,
        attached(controller, station) as second,
    ):
        await wait_until(lambda: first.equipment.connected and second.equipment.connected)
        yield first, second, station


@pytest.mark.parametrize("link", [False, True])
async def test_bolt_of_another_gateway_is_not_reported_as_unsolicited(wait_until: WaitUntil, *, link: bool) -> None:
    async with two_gateways(wait_until, link=link) as (first, _, station):
        controller = first.controller
        for n in range(3):
            station.unanswered = [bolt(n)]
            await first.equipment.send(bolt(n))
            await wait_until(lambda: controller.tool.enabled)
            controller.tool.tighten()
            await wait_until(lambda n=n: len(station.answers) == n + 1)
            # Both clients have confirmed it.
            await wait_until(lambda n=n: controller.acknowledged.count(n + 1) == 2 or link)
            await wait_until(lambda: not controller.tool.enabled)
    assert [each.command_id for each in station.answers] == [bolt(n).command_id for n in range(3)]
    assert station.late_results == []


@pytest.mark.parametrize("link", [False, True])
async def test_bolt_of_a_gateway_that_is_gone_is_answered_by_another(wait_until: WaitUntil, *, link: bool) -> None:
    station, command = SharedPlant(), bolt(1)
    async with (
        open_strict_controller(Quirks(link=link), Habits(absent=True)) as controller,
        attached(controller, station) as second,
    ):
        await wait_until(lambda: second.equipment.connected)
        async with attached(controller, station) as first:
            await wait_until(lambda: first.equipment.connected)
            station.unanswered = [command]
            await first.equipment.send(command)
            await wait_until(lambda: controller.tool.enabled)
        controller.tool.tighten()
        await wait_until(lambda: station.answers)
        assert not controller.tool.enabled
        await wait_until(lambda: 1 in controller.acknowledged)
    (answer,) = station.answers
    assert (answer.command_id, answer.data["vin"], station.late_results) == (command.command_id, "J1", [])
