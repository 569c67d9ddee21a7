"""A gateway that ends at any write to its store, before or after it is durable: each bolt is reported once."""

from collections import Counter
from contextlib import AbstractAsyncContextManager

import pytest
from msgspec.structs import replace

from edge.station.equipment import Command
from tests.conftest import WaitUntil
from tests.equipment.crashing_station import CrashingStation
from tests.equipment.strict_controller import StrictBench, attached, bolt, memory_at
from tests.outside.devices.openprotocol_controller import StrictController, open_strict_controller
from tests.outside.devices.openprotocol_quirks import Quirks
from tests.outside.devices.openprotocol_tool import Habits

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SINGLE, BATCH = bolt(1), bolt(1, batch_size=3, classification="batch")


class Job:
    """One command at a strict controller, with its operator, through the end of a gateway and the life of the next."""

    def __init__(
        self, controller: StrictController, station: CrashingStation, command: Command, correlation: str
    ) -> None:
        self._controller = controller
        self._station = station
        self._command = command
        self._correlation = correlation
        station.unanswered = [command]

    def _has_ended(self) -> bool:
        return bool(self._station.answers or self._station.unknown)

    def _is_inbox_empty(self) -> bool:
        return self._station.memory[memory_at(self._controller)].get("unsettled_results:edge", "[]") == "[]"

    def _work(self) -> bool:
        """Pull the trigger when the bolt before is confirmed; return whether the command has ended."""
        tool, size = self._controller.tool, self._command.parameters.get("batch_size", 1)
        is_next = len(self._controller.acknowledged) == len(tool.results) < size
        if tool.enabled and is_next:
            tool.tighten()
        return self._has_ended() and not tool.enabled

    def _attached(self) -> AbstractAsyncContextManager[StrictBench]:
        return attached(self._controller, self._station, correlation=self._correlation)

    async def run(self, wait_until: WaitUntil) -> None:
        """Carry out the job until its gateway has crashed, or it has ended, and the inbox is empty."""
        station = self._station
        async with self._attached() as bench:
            await wait_until(lambda: bench.equipment.connected or station.crashed.is_set())
            if not station.crashed.is_set():
                await bench.equipment.send(self._command)
                await wait_until(lambda: station.crashed.is_set() or (self._work() and self._is_inbox_empty()))
        station.unanswered = [replace(self._command, begun=self._command.command_id in station.begun)]
        station.restart()

    async def end(self, wait_until: WaitUntil, *, expires: bool) -> None:
        """Start the gateway again; it ends the job, unless this one expires, and reports an own bolt."""
        if expires and not self._has_ended():
            self._station.stopped_meanwhile.add(self._command.command_id)
        async with self._attached() as bench:
            await wait_until(lambda: bench.equipment.connected and (expires or self._work()))
            await self._settle(bench, wait_until)

    async def _settle(self, bench: StrictBench, wait_until: WaitUntil) -> None:
        self._controller.tool.tighten(vin="OWN")
        await wait_until(lambda: len(self.reported()) >= len(self._controller.tool.results))
        await wait_until(lambda: bench.equipment.connected and self._is_inbox_empty())

    def reported(self) -> list[float]:
        """Return the torque of each bolt that was reported: no two are equal."""
        data = [answer.data for answer in self._station.answers] + [late.data for late in self._station.late_results]
        parts = (part for found in data for part in found.get("results", {"1": found}).values())
        return [part["torque"]["value"] for part in parts]


async def crash(
    number: int, command: Command, correlation: str, wait_until: WaitUntil, *, is_durable: bool, expires: bool
) -> bool:
    """End a gateway at a write, and start it again; return False where it writes less often."""
    station = CrashingStation(number, is_durable=is_durable)
    async with open_strict_controller(Quirks(resends=True), Habits(absent=True)) as controller:
        job = Job(controller, station, command, correlation)
        await job.run(wait_until)
        await job.end(wait_until, expires=expires)
        bolts = [int(result["torque"]) / 100 for result in controller.tool.results]
        assert Counter(job.reported()) == Counter(bolts), f"write {number}"
        assert controller.violations == []
    return station.crashed.is_set()


@pytest.mark.parametrize("expires", [False, True], ids=["in time", "timed out"])
@pytest.mark.parametrize("correlation", ["mark", "next"])
@pytest.mark.parametrize("command", [SINGLE, BATCH], ids=["single", "batch"])
@pytest.mark.parametrize("is_durable", [False, True], ids=["before", "after"])
async def test_gateway_may_end_at_each_write(
    command: Command, correlation: str, wait_until: WaitUntil, *, is_durable: bool, expires: bool
) -> None:
    number = 1
    while await crash(number, command, correlation, wait_until, is_durable=is_durable, expires=expires):
        number += 1
    assert number > 8
