"""Listens for browsers and programs, with or without TLS, until the end of a block."""

import asyncio
import functools
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.types import ASGIApp
from uvicorn.server import ServerState

from edge.errors import Unavailable
from edge.web.protocol import BoundedConnection, ConnectionBounds, server_config

_HANDSHAKE_S = 5.0
_STOP_WITHIN_S = 1.0
_BACKLOG = 64


@dataclass(frozen=True, slots=True)
class WebAddress:
    """Where to listen; without `tls` in the clear."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None


@asynccontextmanager
async def serve(app: ASGIApp, address: WebAddress, bounds: ConnectionBounds) -> AsyncIterator[str]:
    """Serve an application until the end of the block; yield the URL. Raises Unavailable when the address is taken."""
    state = ServerState()
    connection = functools.partial(BoundedConnection, server_config(app), state, bounds)
    try:
        server = await asyncio.get_running_loop().create_server(
            connection,
            address.host,
            address.port,
            ssl=address.tls,
            ssl_handshake_timeout=_HANDSHAKE_S if address.tls else None,
            backlog=_BACKLOG,
        )
    except OSError as error:
        message = f"cannot listen for browsers at {address.host}:{address.port}: {error.strerror or error}"
        raise Unavailable(message, "Is another program there already, and is the address ours?") from None
    try:
        host, port, *_ = server.sockets[0].getsockname()
        scheme = "https" if address.tls else "http"
        yield f"{scheme}://[{host}]:{port}/" if ":" in host else f"{scheme}://{host}:{port}/"
    finally:
        server.close()
        await _end(state)


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
