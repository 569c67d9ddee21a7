"""The budgets of the page, measured by a real browser: what a first view transfers, and when a change is visible."""

import statistics
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from edge.access.login import Users
from edge.features.page.services import WebServices
from edge.model.job_state import Cause
from tests.features.page.chromium import Chromium, chromium
from tests.features.page.serving import Browser, services_of
from tests.features.page.test_pages_in_browser import PAGES
from tests.passwords import PASSWORD
from tests.station.plant import Plant

pytestmark = pytest.mark.long

MOST_BYTES = 150_000
VISIBLE_S = 0.2
CHANGES = 9
TRANSFERRED = """performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource"))
  .reduce((sum, entry) => sum + entry.transferSize, 0)"""
WATCH = """{
  window.seen = {};
  new MutationObserver(() => {
    for (const state of ["Running", "Interrupted"])
      if (document.querySelector(`.state.${state}`)) window.seen[state] ??= Date.now() / 1000;
  }).observe(document.body, { childList: true, subtree: true });
}"""


@pytest.fixture
def services(plant: Plant, users: Users) -> WebServices:
    return services_of(plant, users, most_requests=10_000)


@pytest_asyncio.fixture
async def screen(browser: Browser) -> AsyncIterator[Chromium]:
    """A browser in which an engineer has logged in, and which keeps no file."""
    async with chromium() as found:
        await found.show(1280, 800)
        await found.log_in(browser.origin, "max", PASSWORD)
        await found.call("Network.setCacheDisabled", cacheDisabled=True)
        yield found


async def test_first_view_of_each_page_transfers_at_most_150_kb(browser: Browser, screen: Chromium) -> None:
    sizes = {}
    for path in PAGES:
        await screen.go(browser.origin + path)
        sizes[path] = await screen.run(TRANSFERRED)
    assert min(sizes.values()) > 1_000
    assert {path: size for path, size in sizes.items() if size > MOST_BYTES} == {}


async def test_change_is_visible_within_200_ms(browser: Browser, screen: Chromium, plant: Plant) -> None:
    delays = []
    await screen.go(browser.origin)
    await screen.until("document.querySelector('.state.Running')")
    await screen.run(WATCH)
    for number in range(CHANGES):
        method, state = ((Cause.PAUSE, "Interrupted"), (Cause.RESUME, "Running"))[number % 2]
        # The page is calm: the former change is shown, and the pause between two readings is over.
        await screen.run("new Promise((resolve) => setTimeout(resolve, 400))")
        await screen.run("window.seen = {}")
        changed_at = time.time()
        await plant.ask(method, "J1")
        await screen.until(f"window.seen.{state}")
        delays.append(await screen.run(f"window.seen.{state}") - changed_at)
    assert statistics.median(delays) <= VISIBLE_S, delays
