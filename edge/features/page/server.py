"""Builds the application of the station page, and listens for browsers and programs, with or without TLS.

Connections over HTTP/1.1 have bounds: their number, the time for a request, and clients that do not read.
"""

import asyncio
import functools
import importlib
import logging
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any, TypeAlias

import structlog
from msgspec import Struct, field
from starlette.requests import Request
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from edge.features.page.api import Api, json_response
from edge.features.page.caller import Callers
from edge.features.page.guard import Guard
from edge.features.page.models import Problem
from edge.features.page.openapi import PREFIX
from edge.features.page.pages import Pages
from edge.features.page.services import WebServices
from edge.features.page.shared_results import SharedResults
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import TaskGroup, background_task
from edge.foundation.text import Text

# Starlette imports it at the first stream of changes: the gateway would stand still for a tenth of a second.
importlib.import_module("anyio._backends._asyncio")

_NOT_FOUND = 404
_PAGES_SHARE = 0.1
_PICTURES_SHARE = 0.05
_PAGE_INTERVAL_S = 0.01
_PICTURE_INTERVAL_S = 0.02
"""For each open page."""


def build_app(services: WebServices) -> ASGIApp:
    """Return the application of a gateway."""
    callers = Callers(
        services.users, services.sessions, services.panels, is_kiosk=services.is_kiosk, is_tls=services.is_tls
    )
    # Apart, so that no page waits for the rest after a picture.
    events = services.events
    shared_pages = SharedResults(lambda: events.changes, _PAGES_SHARE, lambda: _PAGE_INTERVAL_S * events.subscribers)
    shared_pictures = SharedResults(
        lambda: events.changes, _PICTURES_SHARE, lambda: _PICTURE_INTERVAL_S * events.subscribers
    )
    pages = Pages(services, callers, shared_pages)

    async def missing(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.scope["path"].startswith("/api/"):
            problem = Problem(
                kind="not_found", reason="there is no such address.", advice=f"See {PREFIX}/openapi.json."
            )
            response = json_response(problem, _NOT_FOUND)
        else:
            response = await pages.missing(request)
        await response(scope, receive, send)

    # Routes are tried in this order: pages are asked for most.
    routes = [*pages.routes(), *Api(services, callers, shared_pictures).routes()]
    return Guard(Router(routes=routes, redirect_slashes=False, default=missing))


HEAD_BYTES = 16 * 1024
KEEP_ALIVE_S = 15
_HEAD_S = 10.0
_UNREAD_S = 10.0

# Each invalid request would write a line: a client must not be able to fill the log.
logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)


class ConnectionBounds(Struct):
    """The most connections in all and of one address, and how many of each address are open."""

    most: int
    most_of_address: int
    head_s: float = _HEAD_S
    unread_s: float = _UNREAD_S
    open: Counter[str] = field(default_factory=Counter)

    def admit(self, address: str) -> bool:
        """Count a connection; return False when it is one too many."""
        if self.open.total() >= self.most or self.open[address] >= self.most_of_address:
            return False
        self.open[address] += 1
        return True

    def leave(self, address: str) -> None:
        """Count the end of an admitted connection."""
        self.open[address] -= 1
        if self.open[address] <= 0:
            del self.open[address]


def server_config(app: ASGIApp) -> Config:
    """Return the configuration of the protocol: no log of its own, no WebSocket, no trust in forwarded addresses."""
    config = Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        h11_max_incomplete_event_size=HEAD_BYTES,
    )
    config.load()
    return config


class BoundedConnection(H11Protocol):
    """One connection: aborted when a head takes too long, or when the client does not read what it asked for."""

    def __init__(self, config: Config, state: ServerState, bounds: ConnectionBounds, ended: Callable[[], None]) -> None:
        """Call `ended` once when the connection has ended."""
        super().__init__(config, state, {})
        self._ended = ended
        self._bounds = bounds
        self._head_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Accept the connection and expect its first request."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self._bounds.head_s, self.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        for timer in (self._head_timer, self._unread_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)
        self._ended()

    def data_received(self, data: bytes) -> None:
        """Parse what arrived; limit the time until a request is complete."""
        super().data_received(data)
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._stop_head_timer()
        elif self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self._bounds.head_s, self.abort)

    def on_response_complete(self) -> None:
        """Expect the next request."""
        self._stop_head_timer()
        super().on_response_complete()
        if self.transport.is_closing() and self._unread_timer is None:
            self._unread_timer = self.loop.call_later(self._bounds.unread_s, self.abort)

    def pause_writing(self) -> None:
        """Limit the time for which the client does not read."""
        super().pause_writing()
        if self._unread_timer is None:
            self._unread_timer = self.loop.call_later(self._bounds.unread_s, self.abort)

    def resume_writing(self) -> None:
        """End the limit: the client reads again."""
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close the idle connection; abort it when the client has not read the last response."""
        if self.transport.get_write_buffer_size():
            self.abort()
        else:
            super().timeout_keep_alive_handler()

    def abort(self) -> None:
        """Abort the connection without waiting for the client."""
        self.transport.abort()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


logger = structlog.get_logger(__name__)

_HANDSHAKE_S = 5.0
_STOP_WITHIN_S = 1.0
_BACKLOG = 64
_PAUSE_S = 0.1

Application: TypeAlias = ASGIApp
"""What serves the requests."""

Connection = Callable[[Callable[[], None]], BoundedConnection]
"""Makes a connection; its argument is called at the end of the connection."""


class WebAddress(Struct, frozen=True):
    """Where to listen; without `tls` in the clear."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None


@asynccontextmanager
async def serve(app: Application, address: WebAddress, bounds: ConnectionBounds) -> AsyncIterator[str]:
    """Serve an application until the end of the block; yield the URL. Raises Unavailable when the address is taken."""
    state = ServerState()
    connection = functools.partial(BoundedConnection, server_config(app), state, bounds)
    with _listener(address) as listener:
        host, port, *_ = listener.getsockname()
        scheme = "https" if address.tls else "http"
        try:
            async with background_task(_accept(listener, connection, address.tls, bounds), "web connections"):
                # A person cannot open the address of all interfaces.
                name = socket.gethostname() if ip_address(host).is_unspecified else host
                yield f"{scheme}://[{name}]:{port}/" if ":" in name else f"{scheme}://{name}:{port}/"
        finally:
            await _end(state)


def _listener(address: WebAddress) -> socket.socket:
    try:
        family, *_, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(place[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        message = Text.of(
            "cannot listen for browsers at {host}:{port}: {reason}",
            host=address.host,
            port=address.port,
            reason=error.strerror or error,
        )
        raise Unavailable(message, "Is another program there already, and is the address ours?") from None
    listener.setblocking(False)  # noqa: FBT003 - the signature of socket
    return listener


async def _accept(
    listener: socket.socket, connection: Connection, tls: ssl.SSLContext | None, bounds: ConnectionBounds
) -> None:
    """Accept connections until cancelled; one beyond the bounds is closed before it costs a handshake."""
    loop = asyncio.get_running_loop()
    async with TaskGroup() as tasks:
        while True:
            try:
                accepted, place = await loop.sock_accept(listener)
            except OSError:
                # No descriptor is left: others must end first.
                await asyncio.sleep(_PAUSE_S)
                continue
            if bounds.admit(place[0]):
                tasks.create_task(_open(accepted, place[0], connection, tls, bounds), name="web handshake")
            else:
                accepted.close()


async def _open(
    accepted: socket.socket, host: str, connection: Connection, tls: ssl.SSLContext | None, bounds: ConnectionBounds
) -> None:
    """Open a connection, which leaves the bounds at its end; after a failed handshake it leaves them at once."""
    wait = _HANDSHAKE_S if tls else None
    try:
        made = functools.partial(connection, lambda: bounds.leave(host))
        await asyncio.get_running_loop().connect_accepted_socket(made, accepted, ssl=tls, ssl_handshake_timeout=wait)
    except Exception as error:  # noqa: BLE001 - no client may end the server
        logger.debug("web connection not opened", address=host, reason=repr(error))
        accepted.close()
        bounds.leave(host)


async def _end(state: ServerState) -> None:
    """End every connection: idle ones at once, requests within a second, streams by cancellation."""
    for connection in tuple(state.connections):
        connection.shutdown()
    if tasks := set(state.tasks):
        _, pending = await asyncio.wait(tasks, timeout=_STOP_WITHIN_S)
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending, timeout=_STOP_WITHIN_S)
    for item in tuple(state.connections):
        item.transport.abort()
    await asyncio.sleep(0)
