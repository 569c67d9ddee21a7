"""The shift of a quality engineer: what happened to this VIN last week, and why are parts not OK."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.features.archive.database import ArchiveFile, ArchiveLimits
from edge.features.archive.plant import forward
from edge.features.archive.service import Archive
from edge.features.traces.files import TraceFiles, TraceLimits
from edge.sfc.signal import Phase
from edge.station.equipment import Command, EquipmentAnswer
from edge.store import dead_letters
from edge.store.client import Store
from edge.store.dead_letters import Letter, LetterKind
from tests.features.archive.archived import end_jobs, open_writer
from tests.features.archive.postgres import own_postgres
from tests.features.page.chromium import Chromium, chromium
from tests.features.page.serving import services_of, serving, write_people
from tests.features.page.test_caller_signatures import PANELS
from tests.features.page.ways import WAYS, act, download, enter, go_to
from tests.passwords import PASSWORD
from tests.station.plant import LINEAR, PHOTO, SCOPE, TIGHTEN, Clock, FakeEquipment, Plant, action, linear

pytestmark = pytest.mark.long

DAY_MS = 86_400_000
CURVES = [{"name": "Torque", "unit": "N·m", "values": [0.0, 42.1, 85.2]}]
VIOLATION = {"violations": {"torque": {"measured": 91, "violation": "High"}}}
NEW_RECIPE = linear(action("a", "one"), action("b", "renamed"))
ROWS = "[...document.querySelectorAll('tbody strong')].map((each) => each.textContent)"
SMALLEST = """(async () => {
  const sizes = [];
  for (const image of document.querySelectorAll("main img:not(.prompt-picture)")) {
    image.loading = "eager";
    await image.decode();
    const text = await (await fetch(image.src)).text();
    const units = Number(/viewBox="0 0 ([\\d.]+)/.exec(text)[1]);
    const base = [...text.replace(/@media[^}]*\\}[^}]*\\}/g, "").matchAll(/font(?:-size)?:[^;}]*?(\\d+)px/g)];
    let size = Math.min(...base.map((found) => Number(found[1])));
    for (const [, most, step] of text.matchAll(/@media\\(max-width:(\\d+)px\\)\\{text\\{font-size:(\\d+)px/g)) {
      if (image.offsetWidth <= Number(most)) size = Number(step);
    }
    if (image.offsetWidth) sizes.push([size * image.offsetWidth / units, image.src]);
  }
  return sizes.filter(([size]) => size < 11.99).concat(sizes.length ? [] : [["no picture"]]);
})()"""
FIRST_PART = """[...document.querySelectorAll("main section, main article, main img")][0].dataset.part"""
CLEARING_SIGN_PX = 24
ROOM_BESIDE_A_VIN = """(() => {
  const field = document.querySelector("input[type=search]");
  const style = getComputedStyle(field);
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `${style.fontSize} ${style.fontFamily}`;
  const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
  return field.clientWidth - padding - pen.measureText("WVWZZZ1JZXW000215").width;
})()"""
TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"


@pytest.fixture
def traces(tmp_path: Path) -> TraceFiles:
    return TraceFiles(tmp_path / "traces", TraceLimits(1 << 20, 100, 3600))


@pytest_asyncio.fixture
async def plant(store: Store, traces: TraceFiles) -> AsyncIterator[Plant]:
    """A station six days after its jobs: the third one was not OK, the fourth one ran the next revision."""
    tool, clock = FakeEquipment(), Clock()
    station = Plant(store, {TIGHTEN: tool, PHOTO: tool}, clock)
    await station.teach("linear", LINEAR)
    kept = await traces.keep("J3", {"torque": {"value": 91, "unit": "N·m"}, "trace": {"channels": CURVES}})

    def reply(command: Command) -> EquipmentAnswer | None:
        clock.now += 700
        if command.phase is not Phase.START:
            return None
        return EquipmentAnswer(command.command_id, kept | VIOLATION if "J3" in command.command_id else {"ok": True})

    tool.replies = reply
    await end_jobs(station, ["J1", "J2", "J3"])
    await station.teach("linear", NEW_RECIPE)
    await end_jobs(station, ["J4"])
    clock.now += 6 * DAY_MS
    letter = Letter(LetterKind.START, SCOPE, "J4", "its start met a defect", clock.now)
    await store.commit(dead_letters.add(store.keys, letter, 60_000))
    yield station


@pytest_asyncio.fixture
async def file(plant: Plant, tmp_path: Path) -> AsyncIterator[ArchiveFile]:
    """The archive of the station."""
    archive = ArchiveFile(tmp_path / "archive" / "results.sqlite", ArchiveLimits(365 * DAY_MS, 1 << 30))
    await (await open_writer(plant, archive)).flush()
    yield archive
    archive.close()


@pytest.mark.parametrize("way", WAYS)
async def test_shift_of_a_quality_engineer(
    plant: Plant, file: ArchiveFile, traces: TraceFiles, tmp_path: Path, way: str
) -> None:
    users = write_people(tmp_path / "users")
    ports = {"archive": Archive(file.file, ()), "traces": traces}
    services = services_of(plant, users, ports=ports, most_requests=10_000)
    services = replace(services, panels=PANELS if way == "touch" else services.panels)
    async with serving(services) as browser, chromium() as screen:
        await screen.show(*((800, 480) if way == "touch" else (1280, 800)))
        await screen.log_in(browser.origin, "max", PASSWORD)
        await find_vin(screen, way)
        await look_at_the_job(screen, way)
        await compare(screen, way)
        await export(screen, way, tmp_path / "downloads")
        await drop_letter(screen, way, plant)
        assert screen.faults == []


async def find_vin(screen: Chromium, way: str) -> None:
    """Search the VIN in the last week; the Pareto chart says why parts were not OK."""
    await go_to(screen, way, "/results")
    assert sorted(await screen.run(ROWS)) == ["VIN-J1", "VIN-J2", "VIN-J3", "VIN-J4"]
    assert await screen.run(SMALLEST) == []
    assert "torque high" in await screen.run("fetch(document.querySelector('aside img').src).then((got) => got.text())")
    assert not await screen.run(TOO_WIDE)
    assert await screen.run(ROOM_BESIDE_A_VIN) > CLEARING_SIGN_PX
    await screen.run("document.querySelector('select[name=days]').value = '7'")
    await enter(screen, way, "input[name=text]", "vin-j3")
    if way != "touch":
        await screen.press("Enter")
    await screen.until("location.search.includes('vin-j3') && document.querySelector('tbody tr')")
    assert await screen.run(ROWS) == ["VIN-J3"]


async def look_at_the_job(screen: Chromium, way: str) -> None:
    """The job has the chart of the revision that it ran, what was violated, and its curve."""
    await act(screen, way, "tbody a")
    await screen.until("location.pathname === '/result' && document.querySelector('summary')")
    text = await screen.run("document.querySelector('main').innerText")
    assert [part for part in ("a: torque high", "91", "VIN-J3") if part not in text] == [], text
    chart = await screen.run("fetch(document.querySelector('.paper img').src).then((got) => got.text())")
    assert ">two<" in chart
    assert "renamed" not in chart
    # Pictures above move what is below them.
    await screen.until(
        "[...document.querySelectorAll('.paper img')].slice(0, 1).every((each) => each.naturalHeight > 9)"
    )
    await act(screen, way, "article summary")
    await screen.until("document.querySelector('article details[open] img.plot')?.naturalWidth > 0")
    assert await screen.run(SMALLEST) == []
    assert not await screen.run(TOO_WIDE)


async def compare(screen: Chromium, way: str) -> None:
    """The job is compared with another one: charts of both revisions, and the times of their steps."""
    await go_to(screen, way, "/results")
    await act(screen, way, "tbody a[href*='with=']")
    await screen.until("location.search.includes('with=') && document.querySelectorAll('section .paper').length > 3")
    assert "Compare" in await screen.run("document.querySelector('h1').innerText")
    assert "different revisions" in await screen.run("document.querySelector('main [role=alert]').innerText")
    differs = await screen.run("document.querySelector('[data-part=differences]').innerText")
    assert "torque 91 too high" in differs
    assert await screen.run(FIRST_PART) == "differences"
    assert await screen.run("document.querySelectorAll('main table:last-of-type th.number').length") == 3
    assert not await screen.run(TOO_WIDE)


async def export(screen: Chromium, way: str, folder: Path) -> None:
    """The jobs of the search are exported, one on each line."""
    await go_to(screen, way, "/results")
    lines = await download(screen, way, "a[download][href*='format=jsonl']", folder)
    assert sorted(json.loads(line)["job_order_id"] for line in lines.splitlines()) == ["J1", "J2", "J3", "J4"]


async def drop_letter(screen: Chromium, way: str, plant: Plant) -> None:
    """A dead letter says what failed; it is dropped after a question."""
    await go_to(screen, way, "/gateway")
    await act(screen, way, "main a[href='/messages']")
    await screen.until("location.pathname === '/messages' && document.querySelector('[data-part=letters] li')")
    assert "its start met a defect" in await screen.run("document.querySelector('[data-part=letters]').innerText")
    assert not await screen.run(TOO_WIDE)
    await act(screen, way, "[data-part=letters] .danger")
    await screen.until("document.getElementById('ask').open")
    await act(screen, way, "#ask-yes")
    await screen.until("!document.querySelector('[data-part=letters] li')")
    assert await dead_letters.load_all(plant.store) == {}


async def test_results_are_those_of_the_database_of_the_plant(plant: Plant, file: ArchiveFile, tmp_path: Path) -> None:
    services = services_of(plant, write_people(tmp_path / "users"), ports={"archive": Archive(file.file, ())})
    with own_postgres() as postgres:
        if postgres is None:
            pytest.skip("needs PostgreSQL: apt install postgresql")
        assert forward(file.file, postgres.url, "", "edge-1") == 4
        async with serving(services) as browser, chromium() as screen:
            await screen.log_in(browser.origin, "max", PASSWORD)
            await screen.go(f"{browser.origin}/results")
            shown = await screen.run(ROWS)
            found = await screen.run("fetch('/api/v1/results').then((got) => got.json())")
        rows = postgres.rows(
            "SELECT job_order_id, outcome, verdict, remark, facts->0->>'vin' FROM microdcs.job"
            " ORDER BY ended_at DESC, job_order_id DESC"
        )
    assert sorted(str(row[-1]) for row in rows) == sorted(shown)
    of_page = [(job["job_order_id"], job["outcome"], job["verdict"], job["remark"]) for job in found["jobs"]]
    assert sorted(of_page) == sorted(row[:-1] for row in rows)
