"""Serves one page by HTTP: a request, an answer, and the connection ends."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from urllib.parse import urlsplit

import structlog
from msgspec import Struct

from edge.foundation.errors import Unavailable
from edge.foundation.task_group import TaskGroup, background_task
from edge.foundation.text import Text

_HEAD_BYTES = 8192
_TIME_LIMIT_S = 10.0
_CLIENT_LIMIT = 8
_BACKLOG = 8

logger = structlog.get_logger(__name__)


class Page(Struct, frozen=True):
    """The body of a response and its media type."""

    media_type: str
    body: bytes


Render = Callable[[], Awaitable[Page]]
"""Renders the page for each request."""

_Visit = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def serve_page(
    listen: str, path: str, render: Render, *, client_limit: int = _CLIENT_LIMIT, time_limit_s: float = _TIME_LIMIT_S
) -> AsyncIterator[str]:
    """Answer GET and HEAD of `path` at `listen`, `host:port`, until the end of the block; yields the URL.

    At most `client_limit` clients are served at a time, each for `time_limit_s` seconds.
    Raises Unavailable when the address is taken.
    """
    address = urlsplit(f"//{listen}")
    visits: asyncio.Queue[_Visit] = asyncio.Queue()
    here: set[asyncio.StreamWriter] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(here) >= client_limit:
            writer.transport.abort()
            return
        here.add(writer)
        visits.put_nowait((reader, writer))

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _serve(reader, writer, path, render, time_limit_s)
        finally:
            here.discard(writer)

    async def serve() -> None:
        async with TaskGroup() as tasks:
            while True:
                tasks.create_task(receive(*await visits.get()), name=f"http visitor of {path}")

    async with background_task(serve(), f"http server of {path}"):
        try:
            server = await asyncio.start_server(
                accept, address.hostname, address.port, limit=_HEAD_BYTES, backlog=_BACKLOG
            )
        except OSError as error:
            message = Text.of(
                "cannot listen for HTTP at {listen}: {reason}", listen=listen, reason=error.strerror or error
            )
            raise Unavailable(message, "Is another program there already, and is the address ours?") from None
        try:
            host, port, *_ = server.sockets[0].getsockname()
            yield f"http://[{host}]:{port}{path}" if ":" in host else f"http://{host}:{port}{path}"
        finally:
            server.close()
            for writer in here:
                writer.transport.abort()


async def _serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, render: Render, time_limit_s: float
) -> None:
    try:
        async with asyncio.timeout(time_limit_s):
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(await _answer(head, path, render))
            writer.close()
            await writer.wait_closed()
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        logger.debug("http client not served", path=path, reason=repr(error))
    finally:
        writer.transport.abort()


async def _answer(head: bytes, path: str, render: Render) -> bytes:
    match head.partition(b"\r\n")[0].split():
        case [b"GET" | b"HEAD" as method, target, version] if version.startswith(b"HTTP/1."):
            if target.partition(b"?")[0] != path.encode():
                return _response(HTTPStatus.NOT_FOUND, _text_page(f"the page is {path}"))
            try:
                page = await render()
            except Exception:
                # A page that cannot be made must not end what the gateway is for.
                logger.exception("http page could not be made", path=path)
                return _response(HTTPStatus.INTERNAL_SERVER_ERROR, _text_page("look at the log"))
            return _response(HTTPStatus.OK, page, body=method == b"GET")
        case [_, _, version] if version.startswith(b"HTTP/1."):
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, _text_page("only GET and HEAD"), "Allow: GET, HEAD\r\n")
        case _:
            return _response(HTTPStatus.BAD_REQUEST, _text_page("this is not a request of HTTP/1"))


def _text_page(text: str) -> Page:
    return Page("text/plain; charset=utf-8", f"{text}\n".encode())


def _response(status: HTTPStatus, page: Page, headers: str = "", *, body: bool = True) -> bytes:
    """Encode a response (RFC 9112) that announces the end of the connection."""
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        f"Content-Type: {page.media_type}\r\nContent-Length: {len(page.body)}\r\n"
        f"Cache-Control: no-store\r\nConnection: close\r\n{headers}\r\n"
    )
    return head.encode() + (page.body if body else b"")
