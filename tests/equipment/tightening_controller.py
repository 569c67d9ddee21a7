"""A simulated Open Protocol controller under control of a test, and the equipment connected to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from edge.features.openprotocol.device import OpenProtocolTimes
from edge.features.openprotocol.equipment import open_openprotocol_equipment
from edge.features.openprotocol.protocol.session import SessionTimes
from edge.features.openprotocol.settings import OpenProtocolSettings
from edge.features.openprotocol.simulated.controller import JAMMED, TighteningController
from edge.station.equipment import EquipmentAnswer
from tests.conftest import WaitUntil
from tests.equipment.contract import SCOPES, TYPE_ID, WORK, Bench
from tests.equipment.recording_station import RecordingStation

TIMES = OpenProtocolTimes(SessionTimes(connect=30.0, answer=30.0), poll=0.1, curves=30.0, pause=0.01)
BOLT = replace(WORK, parameters={"parameter_set": 3, "vin": "WDB1HXQZKRAMPLE"})


class ByHandController:
    """The simulated controller under control of a test."""

    def __init__(self, controller: TighteningController) -> None:
        self.controller = controller

    @property
    def begun(self) -> list[str]:
        return self.controller.begun

    @property
    def stopped(self) -> list[str]:
        return self.controller.stopped

    async def finish(self) -> None:
        self.controller.end_tightening()

    async def fail(self, reason: str) -> None:
        assert reason == JAMMED
        self.controller.break_down(reason)

    async def report_again(self) -> None:
        self.controller.report()

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        async with self.controller.server.unplugged():
            self.controller.forget()
            yield

    @asynccontextmanager
    async def cut_off(self) -> AsyncIterator[None]:
        async with self.controller.server.unplugged():
            yield


@asynccontextmanager
async def connected(controller: TighteningController, wait_until: WaitUntil, **keys: Any) -> AsyncIterator[Bench]:
    """Connect equipment to a controller as from the factory; `keys` are settings of the equipment."""
    controller.clear()
    controller.server.missing.clear()
    async with attached(controller, wait_until, RecordingStation(), **keys) as bench:
        yield bench


@asynccontextmanager
async def attached(
    controller: TighteningController, wait_until: WaitUntil, station: RecordingStation, **keys: Any
) -> AsyncIterator[Bench]:
    """Connect equipment to a controller as it is, for a station that may know commands from before."""
    settings = settings_for(controller, **keys)
    async with open_openprotocol_equipment("wrench", settings, station, SCOPES, times=TIMES) as equipment:
        await wait_until(lambda: equipment.connected)
        yield Bench(equipment, station, ByHandController(controller))


def settings_for(controller: TighteningController, **keys: Any) -> OpenProtocolSettings:
    url = f"tcp://127.0.0.1:{controller.server.port}"
    return OpenProtocolSettings(kind="openprotocol", type_ids=(TYPE_ID,), url=url, **keys)


async def tightened(bench: Bench, wait_until: WaitUntil, **parameters: Any) -> EquipmentAnswer:
    """Complete a tightening and return the answer to its command."""
    await bench.equipment.send(replace(WORK, parameters=parameters))
    await wait_until(lambda: bench.device.begun or bench.station.answers)
    if bench.device.begun:
        await bench.device.finish()
    await wait_until(lambda: bench.station.answers)
    return bench.station.answers[0]
