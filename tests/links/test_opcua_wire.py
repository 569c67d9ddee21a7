"""A few bytes of a peer do not become gigabytes, nor does what it sends without end."""

import asyncio
import logging
import struct

import pytest
from asyncua import ua
from asyncua.common.utils import Buffer, NotEnoughData
from asyncua.ua.ua_binary import variant_from_binary

from edge.errors import Unavailable
from edge.links.opcua import open_client
from edge.links.opcua_wire import MESSAGE_BYTES, refuse_bombs


@pytest.mark.parametrize(
    "bomb", [b"\x80" + struct.pack("<i", 2**31 - 1), b"\x8c" + struct.pack("<ii", 2**31 - 1, -4) + bytes(8)]
)
async def test_a_few_bytes_do_not_become_gigabytes(bomb: bytes) -> None:
    refuse_bombs()
    with pytest.raises((ua.UaError, NotEnoughData)):
        variant_from_binary(Buffer(bomb))


@pytest.mark.parametrize(
    "flood",
    [
        b"ACKF" + struct.pack("<i", 2**31 - 1),
        b"ACKF" + struct.pack("<i", 3),
        (b"MSGC" + struct.pack("<i", 1 << 20) + bytes((1 << 20) - 8)) * (MESSAGE_BYTES >> 20) + b"MSGF\x20\0\0\0",
    ],
)
async def test_of_a_message_that_is_too_large_no_more_is_taken(flood: bytes) -> None:
    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(flood)
        await reader.read()
        writer.close()

    async with await asyncio.start_server(pour, "127.0.0.1", 0) as there:
        url = f"opc.tcp://127.0.0.1:{there.sockets[0].getsockname()[1]}"
        with pytest.raises(Unavailable):
            async with asyncio.timeout(3), open_client(url):
                pytest.fail("it let itself be poured full")


async def test_what_asyncua_says_again_and_again_is_told_once_and_in_one_short_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    talker = logging.getLogger("asyncua.client.ua_client.UASocketProtocol")
    for _ in range(1000):
        talker.error("Exception raised while parsing message from server", exc_info=ValueError("x" * 1_000_000))
    (record,) = caplog.records
    assert record.getMessage().startswith("Exception raised while parsing message from server: ValueError: xxx")
    assert (len(record.getMessage()), record.exc_info) == (500, None)
