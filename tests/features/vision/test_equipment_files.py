"""The image of a result is fetched where the settings want it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.features.vision.equipment import open_vision
from edge.features.vision.settings import VisionSettings
from edge.features.vision.simulated.camera import VisionCamera
from edge.features.vision.simulated.camera import open_vision as open_camera
from tests.conftest import WaitUntil
from tests.equipment.contract import SCOPES, TYPE_ID, WORK
from tests.equipment.recording_station import RecordingStation

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

IMAGE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2500


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def camera() -> AsyncIterator[VisionCamera]:
    """A camera that offers an image."""
    async with open_camera(delay=0.0, image=IMAGE) as running:
        yield running


async def result_of(camera: VisionCamera, wait_until: WaitUntil, **settings: Any) -> tuple[Any, RecordingStation]:
    station = RecordingStation()
    section = VisionSettings(kind="vision", type_ids=(TYPE_ID,), url=camera.device.url, security="none", **settings)
    async with open_vision("camera", section, station, SCOPES) as equipment:
        await wait_until(lambda: equipment.connected)
        command = replace(WORK, parameters={"recipe_id": "P1"}, command_id=f"{WORK.command_id}{settings.get('files')}")
        await equipment.send(command)
        await wait_until(lambda: station.answers)
    return station.answers[0].data, station


async def test_image_of_a_result_is_fetched_and_closed(camera: VisionCamera, wait_until: WaitUntil) -> None:
    data, station = await result_of(camera, wait_until, files="on")
    (content,) = station.files.values()
    assert (content, data["file"]["size"]) == (IMAGE, len(IMAGE))
    assert camera.transfer is not None
    assert camera.transfer.open_files == {}
    records = [value for _, value in station.traffic if getattr(value, "arguments", ())[1:2] == ("Read",)]
    assert ["262144 bytes"] in [record.found for record in records]


async def test_image_is_not_fetched_without_the_setting(camera: VisionCamera, wait_until: WaitUntil) -> None:
    assert camera.transfer is not None
    before = len(camera.transfer.generated)
    data, station = await result_of(camera, wait_until)
    assert ("file" in data, station.files, len(camera.transfer.generated)) == (False, {}, before)
