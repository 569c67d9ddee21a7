"""Listens for browsers and programs, with or without TLS, until the end of a block."""

import asyncio
import functools
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import structlog
from msgspec import Struct
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from edge.features.page.protocol import BoundedConnection, ConnectionBounds, server_config
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import TaskGroup
from edge.links.background_task import background_task

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
                yield f"{scheme}://[{host}]:{port}/" if ":" in host else f"{scheme}://{host}:{port}/"
        finally:
            await _end(state)


def _listener(address: WebAddress) -> socket.socket:
    try:
        family, *_, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(place[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        message = f"cannot listen for browsers at {address.host}:{address.port}: {error.strerror or error}"
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
    for each in tuple(state.connections):
        each.shutdown()
    if tasks := set(state.tasks):
        _, pending = await asyncio.wait(tasks, timeout=_STOP_WITHIN_S)
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending, timeout=_STOP_WITHIN_S)
    for each in tuple(state.connections):
        each.transport.abort()
    await asyncio.sleep(0)
