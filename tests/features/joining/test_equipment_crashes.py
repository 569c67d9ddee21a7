"""A gateway that ends at any write to its store, before or after it is durable: each joining is reported once."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from msgspec.structs import replace

from edge.equipment.connected_equipment import ConnectedEquipment
from edge.features.joining.equipment import open_ijt
from edge.features.joining.simulated.controller import JoiningController
from edge.station.equipment import Command
from tests.conftest import WaitUntil
from tests.equipment.contract import SCOPES, WORK
from tests.equipment.crashing_station import CrashingStation
from tests.equipment.tightening import TIMES, settings

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow, pytest.mark.timeout(600)]

NO_LIMIT = 100
SINGLE = replace(WORK, parameters={"joining_process_id": "axle 85Nm"})
BATCH = replace(WORK, parameters={"joining_process_id": "axle 85Nm", "batch_size": 3, "classification": "batch"})


class Job:
    """One command at a controller, with its operator, through the end of a gateway and the life of the next."""

    def __init__(
        self, controller: JoiningController, station: CrashingStation, command: Command, correlation: str
    ) -> None:
        self._controller = controller
        self._station = station
        self._command = command
        self._is_named = correlation == "command_id"
        self._settings = settings(controller, correlation=correlation)
        self.made: list[str] = []
        """The ids of the joinings that have ended."""
        station.unanswered = [command]

    @property
    def _is_at_work(self) -> bool:
        controller, size = self._controller, self._command.parameters.get("batch_size", 1)
        return bool(controller.begun) and not controller.stopped and controller.enabled and len(self.made) < size

    @property
    def _has_ended(self) -> bool:
        return bool(self._station.answers or self._station.unknown)

    @property
    def _is_settled(self) -> bool:
        """Whether the joinings of an ended command are acknowledged; one without its id is not."""
        return self._has_ended and (not self._is_named or set(self.made) <= set(self._controller.acknowledged))

    def _attached(self) -> AbstractAsyncContextManager[ConnectedEquipment]:
        return open_ijt("wrench", self._settings, self._station, SCOPES, times=TIMES)

    async def _join(self) -> None:
        before = len(self._controller.store.ids)
        await self._controller.end_joining()
        # The result of a batch follows that of its last joining.
        self.made.append(self._controller.store.ids[before])

    async def run(self, wait_until: WaitUntil, *, most: int) -> None:
        """Carry out the job until its gateway has crashed, or its operator has made so many joinings, or it ends."""
        station, crashed = self._station, self._station.crashed
        async with self._attached() as equipment:
            await wait_until(lambda: equipment.connected or crashed.is_set())
            await equipment.send(self._command)
            await wait_until(lambda: crashed.is_set() or self._is_at_work)
            while self._is_at_work and len(self.made) < most and not crashed.is_set():
                await self._join()
            if len(self.made) < most or most == NO_LIMIT:
                await wait_until(lambda: crashed.is_set() or self._is_settled)
        station.unanswered = [replace(self._command, begun=self._command.command_id in station.begun)]
        station.restart()

    async def work_on(self) -> None:
        """Make the joinings that are left."""
        while self._is_at_work:
            await self._join()

    async def end(self, wait_until: WaitUntil, *, expires: bool) -> None:
        """Start the gateway again; it ends the job, unless this one expires, and reports an own joining."""
        if expires and not self._has_ended:
            self._station.stopped_meanwhile.add(self._command.command_id)
        async with self._attached() as equipment:
            await wait_until(lambda: equipment.connected)
            if expires:
                await equipment.stop(self._command)
            else:
                await wait_until(lambda: self._has_ended or self._is_at_work)
                await self.work_on()
                await wait_until(lambda: self._has_ended)
            # What the operator joins of his own is of no batch.
            self._controller.processes.clear()
            for _ in range(2):
                # The second one comes after whatever the first one has caused.
                await self._join()
                await wait_until(lambda: set(self.made) <= set(self.reported()))

    def reported(self) -> list[str]:
        """Return the id of each joining that was reported; a batch has an id of its own."""
        data = [answer.data for answer in self._station.answers] + [late.data for late in self._station.late_results]
        return [result_id for found in data if found for result_id in ids_in(found) if result_id in self.made]


def ids_in(data: Mapping[str, Any]) -> Iterator[str]:
    """Return the ids of a result and of those within it."""
    yield data["result_id"]
    for part in data.get("results", {}).values():
        yield from ids_in(part)


async def crash(
    controller: JoiningController,
    command: Command,
    wait_until: WaitUntil,
    *,
    number: int,
    is_durable: bool,
    expires: bool,
    continues: bool,
    most: int = NO_LIMIT,
    correlation: str = "command_id",
) -> bool:
    """End a gateway at a write, and start it again; return False where it writes less often."""
    controller.forget()
    for log in (controller.begun, controller.stopped, controller.declined, controller.acknowledged):
        log.clear()
    station = CrashingStation(number, is_durable=is_durable)
    controller.echoes_identifiers = correlation == "command_id"
    job = Job(controller, station, command, correlation)
    await job.run(wait_until, most=most)
    if continues:
        await job.work_on()
    await job.end(wait_until, expires=expires)
    assert Counter(job.reported()) == Counter(job.made), f"write {number}"
    assert len(controller.begun) <= 1
    return station.crashed.is_set()


@pytest.mark.parametrize("continues", [False, True], ids=["waits", "works on"])
@pytest.mark.parametrize("expires", [False, True], ids=["in time", "timed out"])
@pytest.mark.parametrize(
    ("command", "correlation"),
    [(SINGLE, "command_id"), (BATCH, "command_id"), (SINGLE, "next")],
    ids=["single", "batch", "next"],
)
@pytest.mark.parametrize("is_durable", [False, True], ids=["before", "after"])
async def test_gateway_may_end_at_each_write_of_a_joining(
    controller: JoiningController,
    command: Command,
    correlation: str,
    wait_until: WaitUntil,
    *,
    is_durable: bool,
    expires: bool,
    continues: bool,
) -> None:
    number = 1
    while await crash(
        controller,
        command,
        wait_until,
        number=number,
        is_durable=is_durable,
        expires=expires,
        continues=continues,
        correlation=correlation,
    ):
        number += 1
    assert number >= 3


@pytest.mark.parametrize("continues", [False, True], ids=["waits", "works on"])
@pytest.mark.parametrize("expires", [False, True], ids=["in time", "timed out"])
@pytest.mark.parametrize("most", [0, 1, 2, 3])
async def test_gateway_may_end_between_the_joinings_of_a_batch(
    controller: JoiningController,
    wait_until: WaitUntil,
    most: int,
    *,
    expires: bool,
    continues: bool,
) -> None:
    await crash(
        controller,
        BATCH,
        wait_until,
        number=NO_LIMIT,
        is_durable=False,
        expires=expires,
        continues=continues,
        most=most,
    )
