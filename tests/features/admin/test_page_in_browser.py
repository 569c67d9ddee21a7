"""A person administers a gateway in a real browser, at the size of a panel and by the keyboard alone."""
# ruff: noqa: F811 - the arguments are the fixtures of these names

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from edge.store import equipment_memory
from edge.store.client import Store
from edge.store.dead_letters import load_all
from tests.features.admin.test_page import letter_id, unconfirmed  # noqa: F401 - fixtures
from tests.features.page.chromium import Chromium, chromium
from tests.features.page.conftest import browser, clock, plant, services, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser
from tests.passwords import PASSWORD

pytestmark = pytest.mark.long

TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"
SMALL = """[...document.querySelectorAll("main a, main button, main input, main summary")]
  .filter((each) => each.offsetParent && each.getBoundingClientRect().height < 43.5).map((each) => each.outerHTML)"""
FOCUS = "[...document.querySelectorAll('main button')].find((each) => each.textContent.trim() === '{}').focus()"


@pytest_asyncio.fixture
async def screen() -> AsyncIterator[Chromium]:
    """A browser on a panel of seven inches."""
    async with chromium() as found:
        await found.show(800, 480)
        yield found


async def _open(screen: Chromium, browser: Browser, path: str) -> None:
    await screen.log_in(browser.origin, "max", PASSWORD)
    await screen.go(browser.origin + path)
    assert not await screen.run(TOO_WIDE)
    assert await screen.run(SMALL) == []


@pytest.mark.usefixtures("unconfirmed")
async def test_stop_is_released_by_the_keyboard(browser: Browser, screen: Chromium, store: Store) -> None:
    await _open(screen, browser, "/equipment")
    await screen.run(FOCUS.format("Release"))
    await screen.press("Enter")
    await screen.until("document.getElementById('intervene').open")
    await screen.type("air cut off")
    await screen.press("Enter")
    await screen.until("!document.getElementById('intervene').open")
    await screen.until("document.getElementById('notice').hidden")
    while not (stop := (await equipment_memory.load_all_safing(store))[0]).released_by:
        assert not await screen.run("document.getElementById('notice').hidden === false")
    assert (stop.released_by, stop.release_reason) == ("max", "air cut off")


@pytest.mark.usefixtures("letter_id")
async def test_dead_letter_is_dropped_by_the_keyboard(browser: Browser, screen: Chromium, store: Store) -> None:
    await _open(screen, browser, "/messages")
    await screen.run(FOCUS.format("Drop"))
    await screen.press("Enter")
    await screen.until("document.getElementById('ask').open")
    await screen.run("document.getElementById('ask-yes').focus()")
    await screen.press("Enter")
    await screen.until("!document.querySelector('[data-part=letters] li')")
    assert await load_all(store) == {}


async def test_audit_trail_is_verified_by_the_keyboard(browser: Browser, screen: Chromium) -> None:
    await _open(screen, browser, "/audit")
    await screen.run(FOCUS.format("Verify"))
    await screen.press("Enter")
    await screen.until("document.querySelector('.banner.good[role=status]')")
    assert not await screen.run(TOO_WIDE)
    assert screen.faults == []
