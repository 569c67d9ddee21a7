"""A gateway that is killed between two writes: each bolt that it has confirmed is reported once."""

import asyncio

import pytest
from msgspec.structs import replace

from edge.station.equipment import Command, EquipmentAnswer, OutcomeUnknown
from tests.conftest import WaitUntil
from tests.equipment.crashing_station import StoringStation
from tests.equipment.strict_controller import attached, bolt, memory_at
from tests.outside.devices.openprotocol_controller import StrictController, open_strict_controller
from tests.outside.devices.openprotocol_quirks import Quirks
from tests.outside.devices.openprotocol_tool import Habits

SINGLE, BATCH = bolt(1), bolt(1, batch_size=3, classification="batch")


class KilledStation(StoringStation):
    """A station whose answers do not return until `returns`; `commits` says whether they are durable then."""

    def __init__(self, *, commits: bool) -> None:
        super().__init__()
        self.commits = commits
        self.returns = False
        self.is_answering = False

    async def answer(self, answer: EquipmentAnswer | OutcomeUnknown) -> None:
        if self.commits or self.returns:
            await super().answer(answer)
        self.is_answering = True
        if not self.returns:
            await asyncio.get_running_loop().create_future()


async def work(
    controller: StrictController, station: KilledStation, command: Command, correlation: str, wait_until: WaitUntil
) -> None:
    """Tighten the bolts of a command, and kill the gateway while it commits the answer."""
    async with attached(controller, station, correlation=correlation) as bench:
        await wait_until(lambda: bench.equipment.connected)
        await bench.equipment.send(command)
        await wait_until(lambda: controller.tool.enabled)
        for number in range(1, 1 + command.parameters.get("batch_size", 1)):
            controller.tool.tighten()
            await wait_until(lambda number=number: controller.acknowledged == list(range(1, number + 1)))
        await wait_until(lambda: station.is_answering)
    station.unanswered = [replace(command, begun=True)]
    station.returns = True


async def begin_again(
    controller: StrictController, station: KilledStation, correlation: str, wait_until: WaitUntil
) -> None:
    """Start the gateway again, and wait until it has reported what it had confirmed, and a bolt of the operator's."""
    async with attached(controller, station, correlation=correlation) as bench:
        await wait_until(lambda: bench.equipment.connected)
        number = str(controller.tool.tighten(vin="OWN"))
        await wait_until(lambda: number in {result.data["result_id"] for result in station.late_results})
        await wait_until(lambda: station.memory[memory_at(controller)]["unsettled_results:edge"] == "[]")


@pytest.mark.parametrize("correlation", ["mark", "next"])
@pytest.mark.parametrize("command", [SINGLE, BATCH], ids=["single", "batch"])
@pytest.mark.parametrize("numbers", ["rising", "zero"])
async def test_bolts_of_a_durable_answer_are_reported_once(
    command: Command, correlation: str, numbers: str, wait_until: WaitUntil
) -> None:
    """The gateway is killed between the commit of the answer and the removal of its bolts from the inbox."""
    station = KilledStation(commits=True)
    async with open_strict_controller(Quirks(resends=True), Habits(absent=True, numbers=numbers)) as controller:
        await work(controller, station, command, correlation, wait_until)
        await begin_again(controller, station, correlation, wait_until)
        assert (len(station.answers), station.unknown) == (1, [])
        assert [result.data["identifier"] for result in station.late_results] == ["OWN"]
        assert controller.violations == []


@pytest.mark.parametrize("correlation", ["mark", "next"])
@pytest.mark.parametrize("command", [SINGLE, BATCH], ids=["single", "batch"])
async def test_bolts_of_a_command_that_timed_out_after_a_kill_are_late(
    command: Command, correlation: str, wait_until: WaitUntil
) -> None:
    """Its time limit ends before the gateway is connected again: the bolts in the inbox were reported nowhere."""
    station = KilledStation(commits=False)
    async with open_strict_controller(Quirks(), Habits(absent=True)) as controller:
        await work(controller, station, command, correlation, wait_until)
        station.stopped_meanwhile.add(command.command_id)
        await begin_again(controller, station, correlation, wait_until)
        reported = [answer.data for answer in station.answers] + [result.data for result in station.late_results]
        assert sorted(data["result_id"] for data in reported) == [
            str(result["number"]) for result in controller.tool.results
        ]
