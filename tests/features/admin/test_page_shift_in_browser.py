"""The shift of a shift leader: who stopped it, alarms, equipment that may be active still, results and their export."""

import csv
import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.features.archive.database import ArchiveFile, ArchiveLimits
from edge.features.archive.service import Archive
from edge.features.page.services import WebServices
from edge.model.job_state import Cause
from edge.ports.alarm import AlarmChangeKind
from edge.store import equipment_memory
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from edge.store.kept_alarms import AlarmChange
from tests.features.admin.test_page import WRENCH, unconfirmed  # noqa: F401 - a fixture
from tests.features.archive.archived import end_jobs, open_writer
from tests.features.page.chromium import Chromium, chromium
from tests.features.page.serving import Browser, services_of, serving, write_people
from tests.features.page.test_caller_signatures import PANELS
from tests.features.page.ways import WAYS, act, download, enter, go_to
from tests.features.telemetry.test_page import ALARM
from tests.passwords import PASSWORD
from tests.station.plant import LINEAR, PHOTO, TIGHTEN, Clock, FakeEquipment, Plant, obliging, order, until_true

pytestmark = pytest.mark.long

DAY_MS = 86_400_000
REASON = "part is bent"
TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"


@pytest_asyncio.fixture
async def plant(store: Store) -> AsyncIterator[Plant]:
    """A station at which two jobs have been completed, and a third one is at work."""
    tool = FakeEquipment()
    station = Plant(store, {TIGHTEN: tool, PHOTO: tool}, Clock())
    await station.teach("linear", LINEAR)
    tool.replies = obliging
    await end_jobs(station, ["J1", "J2"])
    tool.replies = silent
    async with station.at_work():
        await station.order(Cause.STORE_AND_START, order("J3"))
        await until_true(lambda: any("J3" in command.command_id for command in tool.commands))
        yield station


def silent(_: object) -> None:
    """Answer nothing."""


@pytest_asyncio.fixture
async def archive_file(plant: Plant, tmp_path: Path) -> AsyncIterator[ArchiveFile]:
    """The archive of the two jobs."""
    file = ArchiveFile(tmp_path / "archive" / "results.sqlite", ArchiveLimits(365 * DAY_MS, 1 << 30))
    await (await open_writer(plant, file)).flush()
    yield file
    file.close()


@pytest.mark.usefixtures("unconfirmed")
@pytest.mark.parametrize("way", WAYS)
async def test_shift_of_a_shift_leader(plant: Plant, archive_file: ArchiveFile, tmp_path: Path, way: str) -> None:
    users = write_people(tmp_path / "users")
    services = services_of(plant, users, ports={"archive": Archive(archive_file.file, ())}, most_requests=10_000)
    services = replace(services, equipment=lambda: (WRENCH,), panels=PANELS if way == "touch" else services.panels)
    await raise_alarms(plant)
    async with serving(services) as browser, chromium() as screen:
        await screen.show(*((800, 480) if way == "touch" else (1280, 800)))
        await screen.log_in(browser.origin, "alice", PASSWORD)
        await see_who_stopped(screen, browser)
        await release_equipment(screen, way, services)
        await acknowledge_all(screen, way, plant)
        await export_results(screen, way, tmp_path / "downloads")
        assert screen.faults == []


async def raise_alarms(plant: Plant) -> None:
    """Raise three alarms."""
    for number in range(1, 4):
        stored = await alarms.load(plant.store)
        change = AlarmChange(replace(ALARM, id=f"a{number}"), AlarmChangeKind.RAISED)
        await plant.store.commit(alarms.save(plant.store.keys, stored, [change]))


async def see_who_stopped(screen: Chromium, browser: Browser) -> None:
    """Another person stops a job: the open page of the station says who, and why."""
    await screen.until("document.querySelector('.card.job')")
    engineer = await browser.logged_in("max")
    assert (await engineer.post("/api/v1/jobs/J3/stop", {"comment": REASON})).status == 200
    await screen.until("document.querySelector('.rows .outcome-stopped')")
    ended = await screen.run("document.querySelector('.rows li:has(.outcome-stopped)').innerText")
    assert [text for text in ("Stopped", "J3", "max", REASON) if text not in ended] == [], ended


async def release_equipment(screen: Chromium, way: str, services: WebServices) -> None:
    """The banner is red and leads to the equipment; once it was made safe by hand its stop is released."""
    assert "wrench" in await screen.run("document.querySelector('.status.bad').innerText")
    await act(screen, way, ".status.bad a")
    await screen.until("location.pathname === '/equipment' && document.querySelector('.asked .danger')")
    assert not await screen.run(TOO_WIDE)
    await act(screen, way, ".asked .danger")
    await screen.until("document.getElementById('intervene').open")
    await enter(screen, way, "#intervene input[name=reason]", "air cut off")
    await act(screen, way, "#intervene button[value=yes]")
    await screen.until("!document.getElementById('intervene').open && document.getElementById('notice').hidden")
    while not (stop := (await equipment_memory.load_all_safing(services.store))[0]).released_by:
        assert await screen.run("document.getElementById('notice').hidden")
    assert (stop.released_by, stop.release_reason) == ("alice", "air cut off")


async def acknowledge_all(screen: Chromium, way: str, plant: Plant) -> None:
    """All alarms are acknowledged at once, with a comment that each of them keeps."""
    await go_to(screen, way, "/alarms")
    assert not await screen.run(TOO_WIDE)
    await act(screen, way, "[data-all]")
    await screen.until("document.getElementById('ask').open")
    await enter(screen, way, "#ask input[name=comment]", "seen")
    await act(screen, way, "#ask-yes")
    await screen.until("!document.querySelector('[data-post$=\"/acknowledge\"]')")
    kept = (await alarms.load(plant.store)).alarms
    assert [(kept[f"a{number}"].by, kept[f"a{number}"].comment) for number in range(1, 4)] == [("alice", "seen")] * 3
    await screen.until("document.querySelector('.alarm q')?.textContent === 'seen'")


async def export_results(screen: Chromium, way: str, folder: Path) -> None:
    """The results of the day are listed, and exported as a table."""
    await go_to(screen, way, "/results")
    await screen.run("document.querySelector('select[name=days]').value = '1'")
    await act(screen, way, ".filter button")
    await screen.until("location.search.includes('days=1') && document.querySelector('tbody tr')")
    assert not await screen.run(TOO_WIDE)
    shown = await screen.run("[...document.querySelectorAll('tbody strong')].map((each) => each.textContent)")
    assert sorted(shown) == ["VIN-J1", "VIN-J2"]
    table = await download(screen, way, "a[download][href*='format=csv']", folder)
    assert sorted(row["job_order_id"] for row in csv.DictReader(io.StringIO(table))) == ["J1", "J2"]
