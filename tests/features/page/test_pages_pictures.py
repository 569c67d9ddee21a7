"""Draw the pictures of the how-to page from pages in a browser; EDGE_PICTURES is the folder."""

import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import pytest_asyncio

from edge.access.login import Users
from edge.features.traces.files import TraceFiles, TraceLimits
from edge.model.job_state import Cause, JobState
from edge.ports.alarm import AckState, ActiveState, Alarm, AlarmChangeKind
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from edge.store.kept_alarms import AlarmChange
from tests.features.page.chromium import Chromium, chromium
from tests.features.page.serving import Browser, services_of, serving
from tests.passwords import PASSWORD
from tests.station.plant import Clock, FakeEquipment, Plant, order, until_true

pytestmark = pytest.mark.long

SNAPSHOT = (Path(__file__).parent / "snapshot.js").read_text(encoding="utf-8")
HOW_TO = Path("docs/how-to/station-page.md").read_text(encoding="utf-8")
RECIPE = json.loads(Path("edge/features/simulator/recipes/rear-axle.json").read_text(encoding="utf-8"))
PICTURES = {
    "page-station.svg": ("/", 1180, 460),
    "page-job.svg": ("/job?id=AXLE-0001", 1180, 1130),
    "page-alarms.svg": ("/alarms", 1180, 400),
}
CURVE = [85.2 * (n / 100) ** 2 for n in range(101)]
RESULT = {
    "evaluation": "OK",
    "torque": {"value": 85.2, "unit": "N·m"},
    "trace": {"channels": [{"name": "Torque", "unit": "N·m", "values": CURVE}]},
}
TYPES = [f"com.example.station.{name}.v1" for name in ("position", "tighten", "qa_result", "torque_result")]


@pytest_asyncio.fixture
async def browser(store: Store, users: Users, tmp_path: Path) -> AsyncIterator[Browser]:
    """The page of a station with jobs of the example recipe, an alarm and its history."""
    tool, clock = FakeEquipment(), Clock()
    plant = Plant(store, dict.fromkeys(TYPES, tool), clock)
    await plant.teach("WM-AXLE", RECIPE)
    traces = TraceFiles(tmp_path / "traces", TraceLimits(1 << 20, 10, 3600))
    kept = await traces.keep("AXLE-0001", RESULT)
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("AXLE-0001", "WM-AXLE"))
        await until_true(lambda: tool.received() == ["position_axle"])
        clock.now += 2500
        await plant.answer(tool.commands[0], {"done": True})
        await until_true(lambda: tool.received()[1:] == ["tighten"])
        clock.now += 4200
        await plant.answer(tool.commands[1], kept)
        clock.now += 1500
        for number in (2, 3):
            await plant.order(Cause.STORE, order(f"AXLE-000{number}", "WM-AXLE"))
        await plant.until_state("AXLE-0001", JobState.RUNNING)
        await _raise_alarms(plant)
        async with serving(services_of(plant, users, ports={"traces": traces})) as found:
            yield found


async def _raise_alarms(plant: Plant) -> None:
    at = plant.runs.clock()
    alarm = Alarm(
        id="a1",
        rule="heat",
        subject="wrench",
        active=ActiveState.ACTIVE,
        acknowledgement=AckState.UNACKNOWLEDGED,
        severity=700,
        changed_at=at,
        raised_at=at,
        value=81.5,
        message={"en": "the motor of the wrench is hot"},
    )
    for kind in (AlarmChangeKind.RAISED, AlarmChangeKind.CLEARED, AlarmChangeKind.RAISED):
        stored_alarms = await alarms.load(plant.store)
        await plant.store.commit(alarms.save(plant.store.keys, stored_alarms, [AlarmChange(alarm, kind)]))


async def test_pictures_of_the_how_to_page_are_drawn(browser: Browser, tmp_path: Path) -> None:
    folder = Path(os.environ.get("EDGE_PICTURES", tmp_path))
    async with chromium() as screen:
        await screen.show(1180, 800)
        await screen.log_in(browser.origin, "max", PASSWORD)
        for name, (path, width, height) in PICTURES.items():
            picture = await _drawn(screen, browser.origin + path, (width, height))
            (folder / name).write_text(picture, encoding="utf-8")
    assert set(re.findall(r"images/(page-[a-z]+\.svg)", HOW_TO)) == PICTURES.keys()


async def _drawn(screen: Chromium, url: str, size: tuple[int, int]) -> str:
    await screen.show(*size)
    await screen.go(url)
    await screen.run("document.querySelectorAll('article details').forEach((each) => (each.open = true))")
    picture: str = await screen.run(SNAPSHOT)
    assert "<script" not in picture
    assert not re.search(r'(href|src)="https?:', picture)
    ET.fromstring(picture)  # noqa: S314 - our own page
    return picture
