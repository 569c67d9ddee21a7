"""A stop of a server ends although a client connects meanwhile or does not read."""

import asyncio
import socket
import struct
from contextlib import AsyncExitStack, suppress
from urllib.parse import urlsplit

import pytest

from edge.links.simulated_device import open_device
from tests.uaserver.running import served

STOPS_WITHIN_S = 10.0
HELLO = struct.pack("<4s6Ii", b"HELF", 32, 0, 65536, 65536, 0, 0, -1)
ACKNOWLEDGE_BYTES = 28


@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_server_stops_while_a_client_connects(turns: int) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(served())
        with socket.create_connection(("127.0.0.1", urlsplit(server.endpoint).port)) as client:
            for _ in range(turns):
                await asyncio.sleep(0)
            async with asyncio.timeout(STOPS_WITHIN_S):
                await stack.aclose()
                await assert_disconnected(client)


@pytest.mark.slow
async def test_device_is_unplugged_while_a_client_connects() -> None:
    async with open_device("device", ()) as device:
        with socket.create_connection(("127.0.0.1", device.server.bserver.port)) as client:
            async with asyncio.timeout(STOPS_WITHIN_S), device.unplugged():
                await assert_disconnected(client)


@pytest.mark.slow
async def test_device_is_unplugged_while_a_client_does_not_read() -> None:
    async with open_device("device", ()) as device:
        transports = device.server.iserver.asyncio_transports
        reader, writer = await asyncio.open_connection("127.0.0.1", device.server.bserver.port)
        async with asyncio.timeout(STOPS_WITHIN_S):
            writer.write(HELLO)
            assert (await reader.readexactly(ACKNOWLEDGE_BYTES)).startswith(b"ACKF")
            transports[0].write(bytes(50_000_000))
            async with device.unplugged():
                assert transports == []
        writer.transport.abort()


async def assert_disconnected(client: socket.socket) -> None:
    client.setblocking(False)
    with suppress(ConnectionResetError):
        assert await asyncio.get_running_loop().sock_recv(client, 1) == b""
