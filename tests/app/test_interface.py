"""An interface whose address is taken is opened later; meanwhile its reason is a problem of the gateway."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from edge.app.interface import open_interface
from edge.foundation.errors import SettingsError, Unavailable
from edge.foundation.text import Text
from edge.links.http_server import Page, serve_page
from edge.store.background import Defects
from tests.conftest import WaitUntil
from tests.english import english

RETRY_S = (0.01, 0.02)
WITHIN_S = 20.0


async def page() -> Page:
    return Page("text/plain", b"here")


async def test_taken_address_is_a_problem_until_it_is_free(wait_until: WaitUntil) -> None:
    problems: dict[str, Text] = {}
    async with AsyncExitStack() as stack:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            opened = await open_interface(
                stack, "metrics page", lambda: serve_page(f"127.0.0.1:{port}", "/m", page), problems, Defects(), RETRY_S
            )
            assert opened == ""
            assert "cannot listen for HTTP" in str(problems["metrics page"])
        await wait_until(lambda: not problems)
        async with asyncio.timeout(WITHIN_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /m HTTP/1.1\r\n\r\n")
            assert (await reader.read()).endswith(b"here")
            writer.close()


async def test_free_address_is_returned_and_is_not_a_problem() -> None:
    problems: dict[str, Text] = {}
    async with AsyncExitStack() as stack:
        url = await open_interface(
            stack, "metrics page", lambda: serve_page("127.0.0.1:0", "/m", page), problems, Defects()
        )
        assert url.startswith("http://127.0.0.1:")
    assert english(problems) == {}


async def test_defect_of_an_interface_is_counted_and_it_is_opened_again(wait_until: WaitUntil) -> None:
    problems: dict[str, Text] = {}
    defects, tries = Defects(), 0

    @asynccontextmanager
    async def opened_at_the_third_try() -> AsyncIterator[str]:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise KeyError("unforeseen")
        yield "here"

    async with AsyncExitStack() as stack:
        assert await open_interface(stack, "metrics page", opened_at_the_third_try, problems, defects, RETRY_S) == ""
        assert english(problems) == {"metrics page": "a defect of this software: KeyError"}
        await wait_until(lambda: not problems)
    assert (defects.counts["metrics page"], defects.failing) == (2, 0)


async def test_wrong_settings_of_an_interface_end_the_start() -> None:
    @asynccontextmanager
    async def refused() -> AsyncIterator[str]:
        raise SettingsError(["metrics.listen: is not an address"], "Set it.")
        yield ""

    async with AsyncExitStack() as stack:
        with pytest.raises(SettingsError):
            await open_interface(stack, "metrics page", refused, {}, Defects())


async def test_reason_of_the_last_attempt_is_the_problem(wait_until: WaitUntil) -> None:
    reasons = iter(("first", "second"))

    @asynccontextmanager
    async def unavailable() -> AsyncIterator[str]:
        raise Unavailable(next(reasons, "third"))
        yield ""

    problems: dict[str, Text] = {}
    async with AsyncExitStack() as stack:
        await open_interface(stack, "RPC server", unavailable, problems, Defects(), RETRY_S)
        assert english(problems) == {"RPC server": "first"}
        await wait_until(lambda: str(problems["RPC server"]) == "third")
