"""Connection cuts, power cuts and gateway kills at random times during a tightening."""

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack

import pytest
from msgspec.structs import replace

from edge.features.openprotocol.conversion import identifier_of
from edge.features.openprotocol.equipment import open_openprotocol_equipment
from edge.features.openprotocol.leased_equipment import LeasedEquipment
from edge.features.openprotocol.simulated.controller import TighteningController, open_openprotocol_controller
from edge.station.equipment import Command
from tests.conftest import WaitUntil
from tests.equipment.contract import SCOPES, WORK
from tests.equipment.crashing_station import DurableStation
from tests.equipment.tightening_controller import TIMES, settings_for

JOBS = 12
WORK_S = 0.1


class RestartedEquipment:
    """The equipment of a gateway that is killed and started again."""

    def __init__(self, controller: TighteningController, station: DurableStation) -> None:
        self._controller = controller
        self._station = station
        self._stack = AsyncExitStack()
        self.equipment: LeasedEquipment | None = None

    @property
    def is_connected(self) -> bool:
        return self.equipment is not None and bool(self.equipment.connected)

    @property
    def port(self) -> LeasedEquipment:
        assert self.equipment
        return self.equipment

    async def start(self) -> None:
        opened = open_openprotocol_equipment(
            "wrench", settings_for(self._controller), self._station, SCOPES, times=TIMES
        )
        self.equipment = await self._stack.enter_async_context(opened)

    async def kill(self) -> None:
        self.equipment = None
        await self._stack.aclose()

    async def disturb(self, what: str, seconds: float) -> None:
        """Kill the gateway, cut the connection or the power of the controller, as `what` says."""
        if "gateway" in what:
            await self.kill()
        if "cut" in what or "power" in what:
            async with self._controller.server.unplugged():
                if "power" in what:
                    self._controller.forget()
                await asyncio.sleep(seconds)
        if "gateway" in what:
            await self.start()


def command_of(number: int) -> Command:
    return replace(
        WORK,
        command_id=f"J{number}/run/work/1",
        job_id=f"J{number}",
        parameters={"vin": f"V{number}", "parameter_set": 3},
    )


async def carry_out(
    command: Command, gateway: RestartedEquipment, station: DurableStation, chance: random.Random, wait_until: WaitUntil
) -> bool:
    """Run a command and disturb it; return whether it ended before its time limit."""
    await wait_until(lambda: gateway.is_connected)
    station.unanswered = [command]
    await gateway.port.send(command)
    await asyncio.sleep(chance.uniform(0, 2 * WORK_S))
    what = chance.choice(["cut", "power", "gateway", "gateway and power", "gateway and cut"])
    await gateway.disturb(what, chance.uniform(0.01, 0.3))
    try:
        await wait_until(lambda: station.is_settled(command.command_id), 15.0)
    except AssertionError:
        # The gateway was killed between the mark and the enabling of the tool.
        station.stopped_meanwhile.add(command.command_id)
        await wait_until(lambda: gateway.is_connected)
        await gateway.port.stop(command)
        return False
    return True


@pytest.mark.parametrize("seed", [1])
async def test_no_bolt_is_tightened_twice_and_no_result_is_lost(seed: int, wait_until: WaitUntil) -> None:
    chance, station = random.Random(seed), DurableStation()
    async with open_openprotocol_controller(delay=WORK_S) as controller:
        gateway = RestartedEquipment(controller, station)
        await gateway.start()
        commands = [command_of(number) for number in range(JOBS)]
        ended = [await carry_out(command, gateway, station, chance, wait_until) for command in commands]
        await gateway.kill()
    begun = Counter(controller.begun)
    answered = {answer.data["identifier"] for answer in station.answers if answer.data}
    late = {result.data["identifier"] for result in station.late_results}
    assert [
        begun[identifier_of(command, "mark")] for command in commands if begun[identifier_of(command, "mark")] > 1
    ] == []
    assert set(controller.finished) <= answered | late
    assert sum(ended) >= JOBS - 1
