"""The server side of Open Protocol: missing start, invalid data, silent clients, concurrent clients."""

import asyncio
import socket
from contextlib import suppress

import pytest

from edge.features.openprotocol.protocol.session import open_openprotocol
from edge.features.openprotocol.simulated.controller import open_openprotocol_controller
from edge.features.openprotocol.simulated.server import OpenProtocolServer
from edge.foundation.errors import Unavailable


async def exchange(port: int, message: bytes) -> bytes:
    """Send bytes on a new connection and return what comes until it is closed, or the first answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(message)
    try:
        async with asyncio.timeout(60):
            return await reader.read(1000)
    finally:
        writer.close()


async def test_message_before_the_start_is_declined() -> None:
    async with open_openprotocol_controller() as controller:
        assert await exchange(controller.server.port, b"00200043001         \0") == b"00260004001         004399\0"
        assert controller.begun == []


async def test_client_that_sends_garbage_is_disconnected() -> None:
    async with open_openprotocol_controller() as controller:
        assert await exchange(controller.server.port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n") == b""


async def test_silent_client_is_disconnected() -> None:
    server = OpenProtocolServer({}, {}, silence_s=0.05)
    await server.listen()
    try:
        assert await exchange(server.port, b"") == b""
    finally:
        await server.close()


async def test_keep_alive_is_answered() -> None:
    async with open_openprotocol_controller() as controller:
        assert await exchange(controller.server.port, b"00209999001         \0") == b"00209999001         \0"


async def test_port_in_use_is_reported() -> None:
    async with open_openprotocol_controller() as controller:
        with pytest.raises(Unavailable, match="cannot listen"):
            async with open_openprotocol_controller(port=controller.server.port):
                pass


async def test_two_clients_are_served() -> None:
    async with open_openprotocol_controller() as controller:
        port = controller.server.port
        async with (
            open_openprotocol("127.0.0.1", port) as open_protocol_session,
            open_openprotocol("127.0.0.1", port) as other,
        ):
            assert open_protocol_session.controller == other.controller


@pytest.mark.parametrize("turns", [0, 1, 3, 4])  # at 2, asyncio of Python 3.11 loses the socket itself
async def test_client_accepted_while_the_port_closes_is_disconnected(turns: int) -> None:
    server = OpenProtocolServer({}, {})
    await server.listen()
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await server.close()
            client.setblocking(False)
            with suppress(ConnectionResetError):
                assert await asyncio.get_running_loop().sock_recv(client, 1) == b""
