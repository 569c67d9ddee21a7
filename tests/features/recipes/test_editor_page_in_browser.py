"""A recipe is edited in a real browser: by mouse, by keyboard alone and by touch."""

# ruff: noqa: F811 - the arguments are the fixtures of these names

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from edge.access.login import Users
from edge.features.page.services import WebServices
from edge.features.recipes.desk import Author, Desk
from edge.features.recipes.editor_page import EDITOR
from edge.model.json_value import read_json_text
from tests.features.page.chromium import EXECUTABLE, Chromium, chromium
from tests.features.page.conftest import browser, clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser, services_of
from tests.features.recipes.desks import SCOPE, TEXT, desk_on
from tests.passwords import PASSWORD
from tests.station.plant import Plant

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(EXECUTABLE is None, reason="needs Chromium: apt install chromium"),
]

MAX = Author("max", "en")
READY = "document.getElementById('editor')?.dataset.ready !== undefined"


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


async def recipe_of(desk: Desk, draft: str) -> Any:
    return read_json_text((await desk.text(await desk.draft(draft))).encode())


async def open_draft(browser: Browser, screen: Chromium, desk: Desk, text: str | None = TEXT) -> str:
    """Open the editor with a new draft; return its id."""
    draft = (await desk.create(SCOPE, "WM", MAX, text)).id
    await screen.go(f"{browser.origin}{EDITOR}?draft={draft}")
    await screen.until(READY)
    return draft


def element(kind: str, key: str) -> str:
    return f".target[data-kind={kind}][data-key={key!r}]"


async def version(screen: Chromium, number: int) -> None:
    """Wait until the page shows a version."""
    await screen.until(f"document.getElementById('saved').textContent.endsWith(' {number}')")


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
