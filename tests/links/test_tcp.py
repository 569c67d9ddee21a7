"""A connection to a real TCP server is probed, closed at the end, and refused with its address."""

import asyncio
from pathlib import Path

import pytest

from edge.foundation.errors import Unavailable
from edge.links.tcp import open_tcp


def timers_of(port: int) -> list[str]:
    """Return the kind of timer of each connection to a port, as the kernel reports it: `02` is that of keepalive."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return [row[5].partition(":")[0] for row in rows if row[2].endswith(f":{port:04X}") and row[3] == "01"]


@pytest.mark.parametrize(("keepalive_s", "timer"), [(0, "00"), (30, "02")])
async def test_half_open_connection_is_probed_and_closed_at_the_end(keepalive_s: int, timer: str) -> None:
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read() == b"A1"
        writer.close()
        ended.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with open_tcp("127.0.0.1", port, 5.0, keepalive_s) as (_, writer):
            assert timers_of(port) == [timer]
            writer.write(b"A1")
        async with asyncio.timeout(30):
            await ended.wait()


async def test_server_that_accepts_no_connection_is_named() -> None:
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
    with pytest.raises(Unavailable, match=rf"cannot connect to 127\.0\.0\.1:{port}: .*Errno 111"):
        async with open_tcp("127.0.0.1", port, 5.0):
            pass
