"""A simulated tightening controller under control of a test, and the equipment connected to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from edge.features.joining.equipment import IjtTimes, open_ijt
from edge.features.joining.settings import IjtSettings
from edge.features.joining.simulated.controller import IjtFault, JoiningController
from edge.station.equipment import EquipmentAnswer
from tests.conftest import WaitUntil
from tests.equipment.contract import SCOPES, TYPE_ID, WORK, Bench
from tests.equipment.recording_station import RecordingStation

TIMES = IjtTimes(poll=0.1, search=0.5, settled=0.0)


class ByHand:
    """The simulated controller under control of a test."""

    def __init__(self, controller: JoiningController) -> None:
        self.controller = controller

    @property
    def begun(self) -> list[str]:
        return self.controller.begun

    @property
    def stopped(self) -> list[str]:
        return self.controller.stopped

    async def finish(self) -> None:
        await self.controller.end_joining()

    async def fail(self, reason: str) -> None:
        await self.controller.break_down(reason)

    async def report_again(self) -> None:
        await self.controller.send_result()

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        async with self.cut_off():
            self.controller.forget()
            yield

    @asynccontextmanager
    async def cut_off(self) -> AsyncIterator[None]:
        async with self.controller.device.unplugged():
            yield


@asynccontextmanager
async def equipped(controller: JoiningController, wait_until: WaitUntil, **keys: Any) -> AsyncIterator[Bench]:
    """Connect equipment to a controller that has forgotten its earlier work; `keys` are settings of the equipment."""
    controller.forget()
    controller.begun.clear()
    controller.stopped.clear()
    controller.declined.clear()
    controller.acknowledged.clear()
    controller.fault = IjtFault.NONE
    controller.echoes_identifiers = controller.accepts_abort = True
    station = RecordingStation()
    async with open_ijt("wrench", settings(controller, **keys), station, SCOPES, times=TIMES) as equipment:
        await wait_until(lambda: equipment.connected)
        yield Bench(equipment, station, ByHand(controller))


def settings(controller: JoiningController, **keys: Any) -> IjtSettings:
    return IjtSettings(kind="ijt", type_ids=(TYPE_ID,), url=controller.device.url, security="none", **keys)


async def begun(bench: Bench, wait_until: WaitUntil) -> None:
    """Start a joining and wait until it has begun."""
    await bench.equipment.send(WORK)
    await wait_until(lambda: bench.device.begun)


async def answered(bench: Bench, wait_until: WaitUntil, **parameters: Any) -> EquipmentAnswer:
    """Complete a joining with success and return the answer to its command."""
    await bench.equipment.send(replace(WORK, parameters=parameters or WORK.parameters))
    await wait_until(lambda: bench.device.begun or bench.station.answers)
    await bench.device.finish()
    await wait_until(lambda: bench.station.answers)
    return bench.station.answers[0]
