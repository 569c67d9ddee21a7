"""Connections are limited in number and time, so that one client cannot block the page or the gateway."""

import asyncio

from edge.features.page.server import ConnectionBounds
from edge.features.page.services import WebServices
from tests.conftest import WaitUntil
from tests.features.page.serving import Browser, serving


def test_connections_are_limited_in_total_and_per_address() -> None:
    bounds = ConnectionBounds(3, 2)
    assert [bounds.admit("a"), bounds.admit("a"), bounds.admit("a")] == [True, True, False]
    assert [bounds.admit("b"), bounds.admit("c")] == [True, False]
    bounds.leave("a")
    assert bounds.admit("c")


async def test_connection_beyond_the_limit_is_closed(services: WebServices, wait_until: WaitUntil) -> None:
    bounds = ConnectionBounds(2, 2)
    async with serving(services, bounds) as browser, asyncio.timeout(60):
        held = [await browser.connect() for _ in range(2)]
        assert await refused(browser)
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        await wait_until(lambda: not bounds.open, 60)
        assert await browser_answers(browser)


async def test_connection_with_a_slow_request_header_is_closed(services: WebServices) -> None:
    async with serving(services, ConnectionBounds(8, 8, head_s=0.2)) as browser, asyncio.timeout(60):
        reader, writer = await browser.connect()
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: ")
        assert await ended(reader)
        writer.close()


async def test_connection_with_a_slow_second_header_is_closed(services: WebServices) -> None:
    async with serving(services, ConnectionBounds(8, 8, head_s=1.0)) as browser, asyncio.timeout(60):
        reader, writer = await browser.connect()
        writer.write(b"GET /static/page.css HTTP/1.1\r\nhost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"GET / HT")
        assert await ended(reader)
        writer.close()


async def test_client_that_does_not_read_is_disconnected(services: WebServices, wait_until: WaitUntil) -> None:
    bounds = ConnectionBounds(8, 8, unread_s=0.2)
    async with serving(services, bounds) as browser, asyncio.timeout(60):
        _, writer = await browser.connect()
        request = b"GET /static/page.css HTTP/1.1\r\nhost: x\r\n\r\n"
        writer.write(request * 5000)
        await wait_until(lambda: not bounds.open, 60)
        writer.transport.abort()


async def test_request_that_is_not_http_is_refused(services: WebServices) -> None:
    async with serving(services) as browser:
        assert (await browser.exchange(b"\x16\x03\x01\x02\x00\r\n\r\n")).status == 400


async def test_content_length_with_transfer_encoding_closes_the_connection(services: WebServices) -> None:
    """A proxy that takes the other length of the two hands the rest of the body over as a request of another client."""
    smuggled = b"GET /static/icon.svg HTTP/1.1\r\nhost: x\r\n\r\n"
    both = b"content-length: 4\r\ntransfer-encoding: chunked\r\n"
    async with serving(services) as browser, asyncio.timeout(60):
        reader, writer = await browser.connect()
        writer.write(b"POST /api/v1/session HTTP/1.1\r\nhost: x\r\n" + both + b"\r\n0\r\n\r\n" + smuggled)
        received = await reader.read()
        writer.close()
    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.count(b"HTTP/1.1 ") == 1


async def refused(browser: Browser) -> bool:
    """Return whether a new connection is closed at once."""
    reader, writer = await browser.connect()
    found = await ended(reader)
    writer.close()
    return found


async def browser_answers(browser: Browser) -> bool:
    """Return whether a new connection is served."""
    reader, writer = await browser.connect()
    writer.write(b"GET /static/icon.svg HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    received = await reader.read()
    writer.close()
    return b"200 OK" in received


async def ended(reader: asyncio.StreamReader) -> bool:
    """Read until the connection ends."""
    try:
        await reader.read()
    except ConnectionError:
        return True
    return True
