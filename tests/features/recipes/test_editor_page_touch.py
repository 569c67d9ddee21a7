"""The editor by fingers alone, on a panel and on a phone: structure, properties, undo, findings, two fingers."""

# ruff: noqa: F811 - the arguments are the fixtures of these names

import pytest

from edge.features.recipes.desk import Desk
from edge.features.recipes.workbench_requests import text_of
from tests.features.page.chromium import Chromium
from tests.features.page.conftest import browser, clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser
from tests.features.page.test_pages_in_browser import TOO_WIDE
from tests.features.recipes.editor_screen import (
    FORM,
    SMALL_TARGETS,
    drawn,
    edited,
    element,
    open_draft,
    recipe_of,
    version,
)
from tests.features.recipes.test_editor_page_in_browser import screen, services  # noqa: F401 - fixtures
from tests.features.recipes.test_offers import TIGHTEN, desk_with_equipment
from tests.sfc.recipes import action, chain
from tests.station.plant import Plant

pytestmark = pytest.mark.long
SIZES = [(800, 480), (390, 844)]
SCALE = "document.querySelector('#paper svg').getBoundingClientRect().width"


@pytest.fixture
def desk(plant: Plant) -> Desk:
    return desk_with_equipment(plant.store)


async def by_touch(screen: Chromium, size: tuple[int, int]) -> None:
    await screen.show(*size)
    await screen.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=5)


async def hide_keys(screen: Chromium) -> None:
    """Hide the keys of a panel, which cover the lower half of the screen; a phone has its own."""
    if await screen.run("document.querySelector('.keypad [data-key=hide]') !== null"):
        await screen.tap(".keypad [data-key=hide]")


@pytest.mark.parametrize("size", SIZES)
async def test_structure_is_edited_by_fingers_alone(
    browser: Browser, screen: Chromium, desk: Desk, size: tuple[int, int]
) -> None:
    await by_touch(screen, size)
    draft = await open_draft(browser, screen, desk, text_of(chain("A B C", action("a", "A"))))
    await screen.tap(element("step", "B"))
    await screen.tap("[data-command=parallel]")
    await edited(screen, "step")
    await hide_keys(screen)
    await screen.tap("#ask-parallel .primary")
    await version(screen, 2)
    await screen.tap(element("step", "A"))
    await screen.tap("[data-command=action]")
    await edited(screen, "name")
    await hide_keys(screen)
    await screen.tap(f"{FORM} [name=type_id]")
    await screen.until(f"document.querySelector('{FORM} .offering .offers:not([hidden]) li')")
    await screen.tap(f"{FORM} .offering .offers li")
    await hide_keys(screen)
    await screen.tap(f"{FORM} h2")
    await version(screen, 4)
    assert (await recipe_of(desk, draft))["actions"][-1]["type_id"] == TIGHTEN
    await screen.tap("[popovertarget=more-commands]")
    await screen.tap("#more-commands [data-command=before]")
    await version(screen, 5)
    await edited(screen, "name")
    await hide_keys(screen)
    await screen.tap("[data-command=undo]")
    await version(screen, 4)
    await screen.tap(element("step", "C"))
    await screen.tap("[data-command=remove]")
    await version(screen, 7)
    assert not await screen.run(TOO_WIDE)
    assert await screen.run(SMALL_TARGETS) == []
    assert screen.faults == []


@pytest.mark.parametrize("size", SIZES)
async def test_finding_leads_to_its_element_by_touch(
    browser: Browser, screen: Chromium, desk: Desk, size: tuple[int, int]
) -> None:
    await by_touch(screen, size)
    await open_draft(browser, screen, desk, text_of(chain("A B", action("a", "A", type_id="?"))))
    await screen.tap(".finding.fault")
    await edited(screen, "type_id")
    assert screen.faults == []


async def test_two_fingers_enlarge_the_chart(browser: Browser, screen: Chromium, desk: Desk) -> None:
    await by_touch(screen, (800, 480))
    await open_draft(browser, screen, desk, text_of(chain("A B C")))
    await drawn(screen, "A")
    before = await screen.run(SCALE)
    place = await screen.run(
        "(() => { const box = document.getElementById('paper').getBoundingClientRect();"
        " return {x: box.x + box.width / 2, y: box.y + box.height / 2} })()"
    )
    await fingers(screen, "touchStart", place, 40)
    for apart in (60, 90, 120):
        await fingers(screen, "touchMove", place, apart)
    await screen.lift()
    enlarged = await screen.run(SCALE)
    assert enlarged > before * 1.5
    await fingers(screen, "touchStart", place, 120)
    for apart in (90, 60):
        await fingers(screen, "touchMove", place, apart)
    await screen.lift()
    assert await screen.run(SCALE) < enlarged * 0.8
    assert await screen.run("visualViewport.scale") == 1
    await screen.tap(element("step", "B"))
    await screen.until(f"document.querySelector('{FORM} [name=name]').value === 'B'")
    assert screen.faults == []


async def fingers(screen: Chromium, kind: str, place: dict[str, float], apart: float) -> None:
    """Put or move two fingers, so many pixels apart from the middle."""
    points = [{"x": place["x"] + side * apart, "y": place["y"], "id": side + 1} for side in (-1, 1)]
    await screen.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)
