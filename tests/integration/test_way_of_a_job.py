"""The architecture page lists the files that decide on the way of a job, at most 40, and counts the others it meets."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings
from edge.model.isa95 import ReturnStatus
from tests.app.running import NO_OPCUA, settings_of
from tests.conftest import WaitUntil
from tests.integration.plant import PUSHING, SCOPE, opened_plant, order

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MOST = 40


def section() -> str:
    page = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8")
    return page.partition("### The files that it meets")[2].partition("\n## ")[0]


def listed() -> set[str]:
    return set(re.findall(r"`(edge/\S+\.py)`", section()))


def count_of_others() -> int:
    (count,) = re.findall(r"and (\d+) other files of these rooms", section())
    return int(count)


def room_of(file: str) -> str:
    return file.rpartition("/")[0]


@contextmanager
def functions_noted(files: set[str]) -> Iterator[None]:
    """Note the files of the product whose functions run in this thread."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name not in {"<module>", "<lambda>"}:
            files.add(frame.f_code.co_filename.removeprefix(f"{ROOT}/"))

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


async def test_job_meets_the_files_of_the_architecture_page(
    mqtt: MqttSettings, redis: RedisSettings, unique: str, wait_until: WaitUntil
) -> None:
    assert len(listed()) <= MOST
    met: set[str] = set()
    async with opened_plant(mqtt, unique) as plant, open_gateway(settings_of(redis, mqtt, unique, NO_OPCUA)):
        await plant.configure(PUSHING)
        await plant.wrench.release()
        with functions_noted(met):
            answer = await plant.mes.call(SCOPE, "StoreAndStart", order("J1"))
            await wait_until(plant.heard.ended)
        assert answer.status is ReturnStatus.NO_ERROR
    assert listed() - met == set()
    rooms = {room_of(file) for file in listed()}
    assert len({file for file in met if room_of(file) in rooms} - listed()) <= count_of_others()
