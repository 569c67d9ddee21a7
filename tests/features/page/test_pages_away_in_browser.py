"""A page without its gateway says so: the lamps of equipment are grey, with the time of what is shown."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.config import RedisSettings
from edge.features.page.services import WebServices
from edge.store.open_store import open_store
from tests.conftest import WaitUntil
from tests.features.page.chromium import Chromium, chromium
from tests.features.page.serving import Browser, serving
from tests.passwords import PASSWORD

pytestmark = pytest.mark.long
COLOUR = "getComputedStyle(document.querySelector('[data-part=equipment] .dot')).backgroundColor"
GREEN = "rgb(22, 163, 74)"
NONE = "rgba(0, 0, 0, 0)"
ROW = "document.querySelector('[data-part=equipment] li').innerText"
AS_OF = r"/no connection · as of \d\d:\d\d:\d\d/"


@pytest_asyncio.fixture
async def screen() -> AsyncIterator[Chromium]:
    """A browser without a login."""
    async with chromium() as found:
        yield found


class Cable:
    """A connection to the page that can be unplugged: nothing is closed, nothing comes through."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.refused = 0
        """How many connections found nothing at the other end."""
        self.plugged = asyncio.Event()
        self.plugged.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry both directions of one connection until one of them ends."""
        try:
            far_reader, far_writer = await asyncio.open_connection(self.host, self.port)
        except OSError:
            self.refused += 1
            writer.close()
            return
        ways = [asyncio.create_task(self._way(*ends)) for ends in ((reader, far_writer), (far_reader, writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for end in (writer, far_writer):
            end.close()

    async def _way(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                await self.plugged.wait()
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def cable(browser: Browser) -> AsyncIterator[tuple[Cable, str]]:
    """Yield a cable to a page, and the address at its end."""
    laid = Cable(browser.host, browser.port)
    server = await asyncio.start_server(laid.carry, browser.host, 0)
    async with server:
        yield laid, f"http://{browser.host}:{server.sockets[0].getsockname()[1]}"
        laid.plugged.set()


async def test_lamps_are_grey_while_the_gateway_is_away(
    services: WebServices, screen: Chromium, wait_until: WaitUntil
) -> None:
    async with serving(services) as browser:
        await screen.log_in(browser.origin, "eve", PASSWORD)
        await wait_until(lambda: services.events.subscribers == 1)
        assert await screen.run(COLOUR) == GREEN
        assert "connected" in await screen.run(ROW)
    await screen.until("document.documentElement.matches('[data-away]')")
    assert await screen.run(COLOUR) == NONE
    assert await screen.run(f"{AS_OF}.test({ROW})"), await screen.run(ROW)
    assert await screen.run(r"/as of \d\d:\d\d:\d\d/.test(document.getElementById('offline').innerText)")


async def test_silent_connection_is_noticed_and_ends_when_it_speaks_again(
    services: WebServices, screen: Chromium, wait_until: WaitUntil
) -> None:
    async with serving(services) as browser, cable(browser) as (laid, origin):
        await screen.log_in(origin, "eve", PASSWORD)
        await wait_until(lambda: services.events.subscribers == 1)
        laid.plugged.clear()
        await screen.until("document.documentElement.matches('[data-away]')")
        assert await screen.run(COLOUR) == NONE
        laid.plugged.set()
        await screen.until("!document.documentElement.matches('[data-away]')")
        assert await screen.run(COLOUR) == GREEN
        assert "no connection" not in await screen.run(ROW)


async def test_page_states_why_work_waits_while_the_store_is_away(
    services: WebServices, screen: Chromium, wait_until: WaitUntil
) -> None:
    """It was "No connection to the gateway" above an old alarm; the gateway was there, and its store was not."""
    async with serving(services) as browser:
        await screen.log_in(browser.origin, "eve", PASSWORD)
        await wait_until(lambda: services.events.subscribers == 1)
        services.store.end("the test ends it")
        services.events.note_health()
        await screen.until("document.documentElement.matches('[data-away]')")
        shown = await screen.run("document.getElementById('offline').innerText")
        reason = "Work waits: the primary of the store has changed: the test ends it."
        assert shown.startswith(f"{reason} Call maintenance if it lasts.")
    await screen.until("document.getElementById('offline').innerText.startsWith('No connection to the gateway.')")


async def test_error_page_opens_itself_when_the_gateway_is_there_again(
    services: WebServices, screen: Chromium, redis: RedisSettings, wait_until: WaitUntil
) -> None:
    """It loaded itself while the port was closed, and was the error page of the browser from then on."""
    async with contextlib.AsyncExitStack() as stack:
        async with open_store(redis, None) as away:
            away.end("the test ends it")
            async with serving(replace(services, store=away)) as browser:
                laid, origin = await stack.enter_async_context(cable(browser))
                await screen.log_in(origin, "eve", PASSWORD)
                await screen.until("document.querySelector('[data-waits]')")
        await wait_until(lambda: laid.refused > 0)
        browser = await stack.enter_async_context(serving(services))
        laid.host, laid.port = browser.host, browser.port
        await screen.until("document.querySelector('[data-part=status]')")
