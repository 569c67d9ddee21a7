"""A simulated camera under control of a test, and the equipment connected to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from edge.features.vision.equipment import open_vision
from edge.features.vision.settings import VisionSettings
from edge.features.vision.simulated.camera import VisionCamera, VisionFault
from tests.conftest import WaitUntil
from tests.equipment.contract import SCOPES, TYPE_ID, Bench
from tests.equipment.recording_station import RecordingStation


class ByHand:
    """The simulated camera under control of a test."""

    def __init__(self, camera: VisionCamera) -> None:
        self.camera = camera

    @property
    def begun(self) -> list[str]:
        return self.camera.begun

    @property
    def stopped(self) -> list[str]:
        return self.camera.stopped

    async def finish(self) -> None:
        await self.camera.end_job()

    async def fail(self, reason: str) -> None:
        await self.camera.break_down()

    async def report_again(self) -> None:
        await self.camera.send_result()

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        async with self.cut_off():
            await self.camera.forget()
            yield

    @asynccontextmanager
    async def cut_off(self) -> AsyncIterator[None]:
        async with self.camera.device.unplugged():
            yield


@asynccontextmanager
async def equipped(camera: VisionCamera, wait_until: WaitUntil, **keys: Any) -> AsyncIterator[Bench]:
    """Connect equipment to a camera that has forgotten its earlier work; `keys` are settings of the equipment."""
    await camera.forget()
    camera.begun.clear()
    camera.recipes.clear()
    camera.jobs.clear()
    camera.state_texts = {}
    camera.stopped.clear()
    camera.fault = VisionFault.NONE
    settings = VisionSettings(kind="vision", type_ids=(TYPE_ID,), url=camera.device.url, security="none", **keys)
    station = RecordingStation()
    async with open_vision("camera", settings, station, SCOPES) as equipment:
        await wait_until(lambda: equipment.connected)
        yield Bench(equipment, station, ByHand(camera))
