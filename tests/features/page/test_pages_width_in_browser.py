"""No page scrolls sideways, breaks a word or has letters below 12 px: at three widths and in each language."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.access.login import Users
from edge.features.page.services import WebServices
from edge.foundation.text import languages
from edge.model.job_state import Cause, JobState
from edge.ports.alarm import AlarmChangeKind
from edge.store import kept_alarms as alarms
from edge.store.kept_alarms import AlarmChange
from tests.features.page.chromium import Chromium, chromium
from tests.features.page.serving import Browser, services_of
from tests.features.page.test_pages_in_browser import PAGES, TOO_WIDE
from tests.features.telemetry.test_page import ALARM
from tests.passwords import PASSWORD
from tests.station.plant import FakeEquipment, Plant, action, linear, order, until_true

pytestmark = pytest.mark.long

VIN = "WVWZZZ1JZXW000386"
OTHER_VIN = "WVWZZZ1JZXW000387"
SIZES = {"panel": (1280, 800), "desk": (1920, 1080), "phone": (390, 844)}
LINES = """(range) => new Set([...range.getClientRects()].map((box) => Math.round(box.top / 4))).size"""
WORDS = "button, .button, nav a, summary, .state, .count, th, h1, h2, h3, label, legend"
BROKEN = f"""[...document.querySelectorAll("{WORDS}")]
  .filter((each) => each.checkVisibility() && !each.matches(".hidden"))
  .flatMap((each) => [...each.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE))
  .flatMap((node) => [...node.data.matchAll(/[\\p{{L}}\\p{{N}}]+/gu)].map((found) => {{
    const range = document.createRange();
    range.setStart(node, found.index);
    range.setEnd(node, found.index + found[0].length);
    return [found[0], ({LINES})(range)];
  }}))
  .filter(([, lines]) => lines > 1).map(([word]) => word)"""
TALL = f"""[...document.querySelectorAll("a")]
  .filter((each) => each.checkVisibility() && each.textContent.trim() === "{VIN}")
  .map((each) => {{
    const range = document.createRange();
    range.selectNodeContents(each);
    return ({LINES})(range);
  }})
  .filter((lines) => lines > 2)"""

BRANCHES = [f"Branch{number}" for number in range(6)]
WIDE = {
    "steps": [{"name": "Begin", "initial": True}, *({"name": name} for name in BRANCHES), {"name": "End"}],
    "branches": [{"name": "All", "type": "simultaneous", "branches": [[name] for name in BRANCHES]}],
    "transitions": [
        {"source": "Begin", "target": "All", "condition": "always"},
        {"source": "All", "target": "End", "condition": "always"},
    ],
    "actions": [action(f"act{number}", name) for number, name in enumerate(BRANCHES)],
}
"""A recipe whose chart is wider than each screen."""
LEAST_LETTERS_PX = 12
SMALL_LETTERS = f"""[...document.querySelectorAll("body *")]
  .filter((each) => each.checkVisibility() && !each.closest("svg")
    && [...each.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()))
  .filter((each) => parseFloat(getComputedStyle(each).fontSize) < {LEAST_LETTERS_PX})
  .map((each) => each.outerHTML.slice(0, 80))"""
SMALL_IN_PICTURES = f"""Promise.all([...document.querySelectorAll("img")]
  .filter((each) => each.checkVisibility() && !each.closest(".map") && /svg/.test(each.currentSrc))
  .map(async (image) => {{
    await image.decode();
    const text = await (await fetch(image.currentSrc)).text();
    const sizes = [...text.matchAll(/font(?:-size)?[:=][^;}}]*?(\\d+(?:\\.\\d+)?)px/g)];
    const least = Math.min(...sizes.map((found) => Number(found[1])));
    return [least * image.offsetWidth / image.naturalWidth, image.currentSrc];
  }})).then((found) => found.filter(([size]) => size < {LEAST_LETTERS_PX}))"""


@pytest.fixture
def services(plant: Plant, users: Users) -> WebServices:
    return services_of(plant, users, most_requests=10_000)


@pytest_asyncio.fixture
async def screen() -> AsyncIterator[Chromium]:
    """A browser without a login."""
    async with chromium() as found:
        yield found


async def _fill(plant: Plant, tool: FakeEquipment) -> None:
    """Run jobs that are named as vehicles, one that ended and one that asks a person; raise an urgent alarm."""
    titled = action("tighten", "one") | {
        "title": {"en": "Tighten the rear axle", "de": "Hinterachsträger verschrauben"}
    }
    await plant.teach("wide", WIDE)
    await plant.teach("helped", linear(titled) | {"interventions": ["retry", "skip"]})
    for vehicle in (OTHER_VIN, VIN):
        await plant.order(Cause.STORE_AND_START, order(vehicle, "helped"))
        count = 2 if vehicle == OTHER_VIN else 3
        await until_true(lambda count=count: len(tool.commands) == count)  # type: ignore[misc]
    await plant.ask(Cause.STOP, OTHER_VIN)
    await plant.until_state(OTHER_VIN, JobState.ENDED)
    await plant.answer(tool.commands[2], error="torque 61.2 Nm is below 80 Nm")
    stored = await alarms.load(plant.store)
    alarm = replace(ALARM, severity=900, subject="press.hydraulics.oil_temperature_of_the_main_cylinder", job=VIN)
    await plant.store.commit(alarms.save(plant.store.keys, stored, [AlarmChange(alarm, AlarmChangeKind.RAISED)]))


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("size", SIZES)
async def test_no_page_scrolls_sideways_or_breaks_a_word(
    browser: Browser, screen: Chromium, plant: Plant, tool: FakeEquipment, size: str, language: str
) -> None:
    await _fill(plant, tool)
    is_touched = size != "desk"
    await screen.show(*SIZES[size], language=language)
    await screen.call("Emulation.setTouchEmulationEnabled", enabled=is_touched, maxTouchPoints=5 if is_touched else 1)
    await screen.log_in(browser.origin, "max", PASSWORD)
    faults = {}
    for path in (*PAGES, "/recipe?scope=station-1&id=wide", f"/job?id={VIN}", f"/job?id={OTHER_VIN}"):
        await screen.go(browser.origin + path)
        questions = (TOO_WIDE, BROKEN, TALL, SMALL_LETTERS, SMALL_IN_PICTURES)
        found = [await screen.run(question) for question in questions]
        if found != [False, [], [], [], []]:
            faults[path] = found
    assert faults == {}
