"""A page is served over HTTP; other or slow requests do not disturb the server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
import structlog

from edge.foundation.errors import Unavailable
from edge.links.http_server import Page, serve_page

PAGE = Page("text/plain", b"a page")


async def render() -> Page:
    return PAGE


async def fail() -> Page:
    raise ZeroDivisionError


@pytest_asyncio.fixture
async def url() -> AsyncIterator[str]:
    async with serve_page("127.0.0.1:0", "/metrics", render) as url:
        yield url


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def ended(reader: asyncio.StreamReader) -> None:
    """Wait until the other end has closed the connection, in order or not, without a word."""
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(reader.readexactly(1), 60)


async def ask(url: str, request: str) -> tuple[str, dict[str, str], str]:
    """Send a request; return the status line, headers and body of the answer, which ends the connection."""
    async with connected(url) as (reader, writer):
        writer.write(request.encode())
        head, _, body = (await asyncio.wait_for(reader.read(), 60)).decode().partition("\r\n\r\n")
    status, *headers = head.split("\r\n")
    return status, dict(header.split(": ", 1) for header in headers), body


async def test_get_request_returns_the_page(url: str) -> None:
    assert urlsplit(url).path == "/metrics"
    status, headers, body = await ask(url, "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: text/plain\r\n\r\n")
    assert (status, body) == ("HTTP/1.1 200 OK", "a page")
    assert (headers["Content-Type"], headers["Content-Length"], headers["Connection"]) == ("text/plain", "6", "close")
    assert (await ask(url, "GET /metrics?name=x HTTP/1.0\r\n\r\n"))[2] == "a page"


async def test_head_request_returns_no_body(url: str) -> None:
    status, headers, body = await ask(url, "HEAD /metrics HTTP/1.1\r\n\r\n")
    assert (status, headers["Content-Length"], body) == ("HTTP/1.1 200 OK", "6", "")


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET / HTTP/1.1", "HTTP/1.1 404 Not Found"),
        ("POST /metrics HTTP/1.1", "HTTP/1.1 405 Method Not Allowed"),
        ("GET /metrics", "HTTP/1.1 400 Bad Request"),
        ("PRI * HTTP/2.0", "HTTP/1.1 400 Bad Request"),
        ("\x00\x01 ü", "HTTP/1.1 400 Bad Request"),
    ],
)
async def test_other_request_gets_an_error_status(url: str, request_line: str, status: str) -> None:
    assert (await ask(url, f"{request_line}\r\n\r\n"))[0] == status


async def test_failed_page_is_logged_and_the_next_request_is_served() -> None:
    async with serve_page("127.0.0.1:0", "/metrics", fail) as url:
        for _ in range(2):
            with structlog.testing.capture_logs() as reported:
                status, _, _ = await ask(url, "GET /metrics HTTP/1.1\r\n\r\n")
            assert status == "HTTP/1.1 500 Internal Server Error"
            assert [entry["event"] for entry in reported] == ["http page could not be made"]


async def test_client_that_sends_too_much_or_leaves_is_disconnected(url: str) -> None:
    async with connected(url) as (_, writer):
        writer.write(b"GET /met")
    async with connected(url) as (reader, writer):
        writer.write(b"GET /metrics HTTP/1.1\r\nX: " + 100_000 * b"x")
        await ended(reader)
    assert (await ask(url, "GET /metrics HTTP/1.1\r\n\r\n"))[0] == "HTTP/1.1 200 OK"


async def test_silent_client_is_disconnected() -> None:
    async with serve_page("127.0.0.1:0", "/", render, time_limit_s=0.05) as url, connected(url) as (reader, _):
        await ended(reader)


async def test_client_beyond_the_limit_is_refused_until_another_leaves() -> None:
    async with serve_page("127.0.0.1:0", "/metrics", render, client_limit=1) as url, asyncio.timeout(60):
        async with connected(url), connected(url) as (reader, _):
            await ended(reader)
        while True:
            with suppress(ConnectionError, ValueError):
                status, _, _ = await ask(url, "GET /metrics HTTP/1.1\r\n\r\n")
                break
    assert status == "HTTP/1.1 200 OK"


async def test_port_in_use_is_reported(url: str) -> None:
    with pytest.raises(Unavailable, match=r"cannot listen for HTTP at 127\.0\.0\.1:"):
        async with serve_page(urlsplit(url).netloc, "/metrics", render):
            pytest.fail("it listens")


async def test_stopped_server_leaves_no_task() -> None:
    before = asyncio.all_tasks()
    async with serve_page("[::1]:0", "/metrics", render) as url:
        assert url.startswith("http://[::1]:")
        address = urlsplit(url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
    await ended(reader)
    writer.close()
    assert asyncio.all_tasks() <= before
