"""A recipe is edited in a real browser: step by step."""

# ruff: noqa: F811 - the arguments are the fixtures of these names

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from edge.access.login import Users
from edge.features.page.services import WebServices
from edge.features.recipes.desk import Desk
from tests.features.page.chromium import Chromium, chromium
from tests.features.page.conftest import browser, clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser, services_of
from tests.features.recipes.desks import desk_on
from tests.features.recipes.editor_screen import (
    FORM,
    SMALL_TARGETS,
    edited,
    element,
    open_draft,
    recipe_of,
    selected,
    version,
)
from tests.passwords import PASSWORD
from tests.station.plant import Plant

pytestmark = pytest.mark.long


@pytest.fixture
def desk(plant: Plant) -> Desk:
    return desk_on(plant.store)


@pytest.fixture
def services(plant: Plant, users: Users, desk: Desk) -> WebServices:
    return services_of(plant, users, most_requests=10_000, ports={"recipes": desk})


@pytest_asyncio.fixture
async def screen(browser: Browser) -> AsyncIterator[Chromium]:
    """A screen at which an engineer has logged in."""
    async with chromium() as found:
        await found.show(1280, 800)
        await found.log_in(browser.origin, "max", PASSWORD)
        yield found


async def test_step_is_inserted_condition_changed_and_undone(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk)
    await screen.click(element("step", "A"))
    await screen.click("[data-command=step]")
    await version(screen, 2)
    await screen.until("document.activeElement.name === 'name'")
    await screen.type("Verify")
    await screen.press("Enter")
    await version(screen, 3)
    assert await screen.run("document.activeElement.dataset.key") == "Verify"
    way = element("transition", "1")
    await screen.click(way)
    await screen.click("#properties [name=condition]")
    await screen.run("document.activeElement.select()")
    await screen.type("actions.a.failed")
    await screen.press("Enter")
    await version(screen, 4)
    conditions = {
        (way["source"], way["target"]): way["condition"] for way in (await recipe_of(desk, draft))["transitions"]
    }
    assert conditions["Verify", "B"] == "actions.a.failed"
    await screen.click("[data-command=undo]")
    await screen.until("document.querySelector('#properties [name=condition]').value === 'always'")
    assert screen.faults == []


async def test_touch_on_a_small_panel_adds_a_step_and_an_action(browser: Browser, screen: Chromium, desk: Desk) -> None:
    await screen.show(800, 480)
    await screen.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=5)
    draft = await open_draft(browser, screen, desk)
    await screen.tap(element("step", "A"))
    await screen.tap("[data-command=step]")
    await edited(screen, "name")
    await screen.type("Verify")
    await screen.press("Enter")
    await selected(screen, "Verify")
    await screen.tap("#properties form:not([hidden]) [data-command=action]")
    await edited(screen, "name")
    await screen.type("verify")
    await screen.press("Enter")
    await screen.until("document.querySelector('#paper').textContent.includes('verify')")
    recipe = await recipe_of(desk, draft)
    assert [action["name"] for action in recipe["actions"] if action["step"] == "Verify"] == ["verify"]
    small = await screen.run(SMALL_TARGETS)
    assert small == []
    assert not await screen.run("document.documentElement.scrollWidth > innerWidth")
    assert screen.faults == []


async def test_keys_of_a_panel_write_a_condition(browser: Browser, screen: Chromium, desk: Desk) -> None:
    await screen.show(800, 480)
    await screen.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=5)
    draft = await open_draft(browser, screen, desk)
    await screen.tap(element("transition", "0"))
    await screen.tap(f"{FORM} [name=condition]")
    await screen.run(
        "(() => { const field = document.activeElement; field.value = '';"
        " field.dispatchEvent(new Event('input', {bubbles: true})) })()"
    )
    for name in ("x", "signs", "shift", ">", "2", "done"):
        await screen.tap(f".keypad [data-key='{name}']")
    await version(screen, 2)
    assert (await recipe_of(desk, draft))["transitions"][0]["condition"] == "x>2"
    assert screen.faults == []
