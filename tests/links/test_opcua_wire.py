"""A few bytes of a peer do not become gigabytes, nor does what it sends without end."""

import asyncio
import logging
import struct

import pytest
from asyncua import Server, ua
from asyncua.common.connection import TransportLimits
from asyncua.common.utils import Buffer, NotEnoughData
from asyncua.ua.ua_binary import variant_from_binary

from edge.errors import Unavailable
from edge.links import opcua_wire
from edge.links.opcua import open_client
from edge.links.opcua_wire import refuse_bombs


@pytest.mark.parametrize(
    "bomb", [b"\x80" + struct.pack("<i", 2**31 - 1), b"\x8c" + struct.pack("<ii", 2**31 - 1, -4) + bytes(8)]
)
async def test_a_few_bytes_do_not_become_gigabytes(bomb: bytes) -> None:
    refuse_bombs()
    with pytest.raises((ua.UaError, NotEnoughData)):
        variant_from_binary(Buffer(bomb))


@pytest.mark.parametrize("size", [2**31 - 1, 3, -1])
async def test_of_a_chunk_that_is_too_large_or_too_small_nothing_is_awaited(size: int) -> None:
    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"ACKF" + struct.pack("<i", size))
        await reader.read()
        writer.close()

    async with await asyncio.start_server(pour, "127.0.0.1", 0) as there:
        url = f"opc.tcp://127.0.0.1:{there.sockets[0].getsockname()[1]}"
        with pytest.raises(Unavailable, match="sends a message of more than 4194304 bytes"):
            async with asyncio.timeout(3), open_client(url):
                pytest.fail("it let itself be poured full")


async def test_of_a_message_in_many_chunks_no_more_is_taken_than_one_may_be(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(opcua_wire, "_TOLD_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(opcua_wire, "MESSAGE_BYTES", 300_000)
    # A server that does not keep to what it was told.
    monkeypatch.setattr(TransportLimits, "is_msg_size_within_limit", lambda *_: True)
    server = Server()
    await server.init()
    server.set_endpoint("opc.tcp://127.0.0.1:0")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    index = await server.register_namespace("urn:vendor")
    for name, size in (("Small", 200_000), ("Large", 400_000)):
        await server.nodes.objects.add_variable(index, name, bytes(size))
    async with server, open_client(f"opc.tcp://127.0.0.1:{server.bserver.port}") as session:
        assert len(await session.read(await session.find("Small"))) == 200_000
        large = await session.find("Large")
        with pytest.raises(Unavailable):
            await session.read(large)
    assert "an OPC UA server sends a message of more than 300000 bytes" in caplog.messages


async def test_what_asyncua_says_again_and_again_is_told_once_and_in_one_short_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    talker = logging.getLogger("asyncua.client.ua_client.UASocketProtocol")
    for number in range(1000):
        talker.error(
            "Exception raised while parsing message from server", exc_info=ValueError(f"{number} {'x' * 1_000_000}")
        )
    (record,) = caplog.records
    assert record.getMessage().startswith("Exception raised while parsing message from server: ValueError: 0 xxx")
    assert (len(record.getMessage()), record.exc_info) == (500, None)
