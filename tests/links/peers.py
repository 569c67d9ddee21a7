"""Peers that answer a client in the wrong way, and the kind of the failure that it reports."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from edge.foundation.errors import Refused, Unavailable
from edge.links.connection_fault import fault_of
from edge.model.equipment_connection import ConnectionFault

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Peer = Callable[[str, int], AbstractAsyncContextManager[object]]
NO_PORT = 9
"""The port of the discard service, on which nothing listens here."""
NO_HOST = "-no-host-"
"""A name that the resolver refuses by its form: no name server is asked, which may be slow."""


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[int]:
    """Serve on a free port; yield it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read(100)
            await answer(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def speak_http(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer in HTTP."""
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


async def keep_silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Read on without an answer."""
    while await reader.read(100):
        pass


async def close(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Return at once: the connection is closed."""


async def fault(peer: Peer, host: str, port: int) -> tuple[ConnectionFault, str]:
    """Connect, and return the kind of the failure with its message."""
    with pytest.raises((Unavailable, Refused)) as raised:
        async with peer(host, port):
            pytest.fail("the peer accepted the connection")
    return fault_of(raised.value), raised.value.message
