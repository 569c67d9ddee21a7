"""Connects to a device that is a TCP server; a device that answers no probes is lost."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from edge.foundation.errors import Unavailable
from edge.foundation.text import Text

_PROBES = 3


@asynccontextmanager
async def open_tcp(
    host: str, port: int, connect_s: float, keepalive_s: int = 0
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect to a server for the length of the block. Raises Unavailable when it does not accept within `connect_s`.

    The connection is lost when the server answers no probe for `keepalive_s` seconds; 0 sends none.

    Example: `async with open_tcp("10.0.0.5", 4545, 5.0) as (reader, writer): …`
    """
    try:
        async with asyncio.timeout(connect_s):
            reader, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError) as error:
        reason = str(error) or Text.of("no answer")
        problem = Text.of("cannot connect to {host}:{port}: {reason}", host=host, port=port, reason=reason)
        raise Unavailable(problem) from error
    if keepalive_s:
        _probe(writer.get_extra_info("socket"), keepalive_s)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def _probe(connection: socket.socket, keepalive_s: int) -> None:
    """Set the probes that end a connection whose peer has not answered for about `keepalive_s` seconds."""
    pause_s = max(1, keepalive_s // (2 * _PROBES))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, max(1, keepalive_s - _PROBES * pause_s))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, pause_s)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
