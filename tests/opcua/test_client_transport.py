"""The memory for the messages of a peer is bounded, for a few malicious bytes and for an endless stream."""

import asyncio
import logging
import os
import struct
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from asyncua import Server, ua
from asyncua.common.utils import Buffer, NotEnoughData
from asyncua.ua.ua_binary import variant_from_binary

from edge.foundation.errors import Refused, Unavailable
from edge.links.connection_fault import ConnectionFailed
from edge.links.opcua import EventField, TypeName, open_client
from edge.model.equipment_connection import ConnectionFault
from edge.opcua.client_transport import ClientLimits, NotificationQueue, RepeatedLogFilter, patch_decoder_limits

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DEVICES = ROOT / "tests" / "outside" / "devices"


@pytest.mark.parametrize(
    "bomb", [b"\x80" + struct.pack("<i", 2**31 - 1), b"\x8c" + struct.pack("<ii", 2**31 - 1, -4) + bytes(8)]
)
async def test_malicious_array_length_does_not_allocate_memory(bomb: bytes) -> None:
    patch_decoder_limits()
    with pytest.raises((ua.UaError, NotEnoughData)):
        variant_from_binary(Buffer(bomb))


@pytest.mark.parametrize("size", [2**31 - 1, 3, -1])
async def test_chunk_with_an_invalid_size_ends_the_connection(size: int) -> None:
    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"ACKF" + struct.pack("<i", size))
        await reader.read()
        writer.close()

    async with await asyncio.start_server(pour, "127.0.0.1", 0) as there:
        url = f"opc.tcp://127.0.0.1:{there.sockets[0].getsockname()[1]}"
        with pytest.raises(Unavailable, match="sends a message of more than 4194304 bytes"):
            async with asyncio.timeout(60), open_client(url):
                pytest.fail("it let itself be poured full")


async def test_reason_of_ours_to_end_a_connection_is_in_each_error(server: Server) -> None:
    """Before, a later request failed with "Connection is closed", which was the state of the equipment."""
    await server.nodes.objects.add_variable(1, "Small", bytes(10))
    async with open_client(f"opc.tcp://127.0.0.1:{server.bserver.port}") as session:
        small = await session.find("Small")
        session._client.uaclient.protocol.data_received(b"MSGF" + struct.pack("<i", 1 << 30))  # noqa: SLF001
        for _ in range(2):
            with pytest.raises(ConnectionFailed, match="sends a message of more than 4194304 bytes") as caught:
                await session.read(small)
            assert caught.value.fault is ConnectionFault.PROTOCOL


@pytest_asyncio.fixture
async def server(unused_tcp_port: int) -> AsyncIterator[Server]:
    server = Server()
    await server.init()
    server.set_endpoint(f"opc.tcp://127.0.0.1:{unused_tcp_port}")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    async with server:
        yield server


@pytest.fixture
def new_filters() -> None:
    """Remove the filters of earlier clients: they pass a repeated message once in ten minutes."""
    logger = logging.getLogger("asyncua.client.ua_client.UASocketProtocol")
    for repeated_log_filter in [item for item in logger.filters if isinstance(item, RepeatedLogFilter)]:
        logger.removeFilter(repeated_log_filter)


async def test_message_beyond_the_limit_is_refused_and_the_next_is_read(server: Server) -> None:
    """Before, the connection ended at such a message, and again at the same request on the next one."""
    for name, size in (("Small", 200_000), ("Large", 400_000)):
        await server.nodes.objects.add_variable(1, name, bytes(size))
    limits = ClientLimits(message_bytes=300_000)
    async with open_client(f"opc.tcp://127.0.0.1:{server.bserver.port}", limits=limits) as session:
        large, small = await session.find("Large"), await session.find("Small")
        for _ in range(3):
            with pytest.raises(Refused, match="bytes was skipped: max_message_bytes is 300000") as caught:
                await session.read(large)
            assert caught.value.kind == "too_large"
            assert len(await session.read(small)) == 200_000


@asynccontextmanager
async def other_vendor(port: int, directory: Path) -> AsyncIterator[str]:
    """Run a server on node-opcua, which keeps the limits that we announce and sends a message as one chunk."""
    command = ["node", str(DEVICES / "large_value.js"), str(port), str(directory)]
    environment = {"PATH": os.environ["PATH"], "NODE_PATH": str(ROOT / ".node" / "node_modules")}
    device = await asyncio.create_subprocess_exec(*command, env=environment, stdin=PIPE, stdout=PIPE)
    assert device.stdout
    try:
        async with asyncio.timeout(60):
            assert b"listening" in await device.stdout.readline()
        yield f"opc.tcp://127.0.0.1:{port}"
    finally:
        device.kill()
        await device.wait()


@pytest.mark.parametrize("limit", [300_000, 4 << 20])
async def test_other_vendor_that_declines_a_large_answer_stays_connected(
    unused_tcp_port: int, tmp_path: Path, limit: int
) -> None:
    """node-opcua declines sessions when the limit is below 512 KiB."""
    async with (
        other_vendor(unused_tcp_port, tmp_path) as url,
        open_client(url, limits=ClientLimits(message_bytes=limit)) as session,
    ):
        large, small = await session.find("Large"), await session.find("Small")
        for _ in range(2):
            with pytest.raises(Refused) as caught:
                await session.read(large)
            assert caught.value.kind == "too_large"
            assert len(await session.read(small)) == 200_000


async def test_large_answer_in_one_chunk_does_not_end_the_connection(unused_tcp_port: int, tmp_path: Path) -> None:
    """Before, it did, again on each connection, until the server had no session left."""
    async with (
        other_vendor(unused_tcp_port, tmp_path) as url,
        open_client(url, limits=ClientLimits(message_bytes=65_536)) as session,
    ):
        small = await session.find("Small")
        for _ in range(2):
            with pytest.raises(Refused, match="bytes was skipped: max_message_bytes is 65536"):
                await session.read(small)


async def test_notification_beyond_the_limit_is_reported_and_the_next_comes(server: Server) -> None:
    fields = [EventField(TypeName("http://opcfoundation.org/UA/", 2041), "Message")]
    events = await server.get_event_generator()
    url, limits = f"opc.tcp://127.0.0.1:{server.bserver.port}", ClientLimits(message_bytes=100_000)
    async with open_client(url, limits=limits) as session, session.watch(None, fields, {}) as happening:
        async with asyncio.timeout(60):
            for size, expected in ((10, "x" * 10), (200_000, "too_large"), (20, "x" * 20)):
                await events.trigger(message="x" * size)
                event = await anext(happening)
                assert (event.kind if isinstance(event, Refused) else event["Message"]) == expected


async def test_only_queued_notifications_are_counted() -> None:
    received_bytes = 0
    queue = NotificationQueue(10, lambda: received_bytes)
    for received_bytes in (300, 500, 900):
        queue.put_nowait(received_bytes)
    assert queue.waiting_bytes() == 600
    assert [queue.get_nowait(), queue.waiting_bytes()] == [300, 400]
    assert [queue.get_nowait(), queue.get_nowait(), queue.waiting_bytes()] == [500, 900, 0]


@pytest.mark.usefixtures("new_filters")
async def test_unread_notifications_are_bounded(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    fields = [EventField(TypeName("http://opcfoundation.org/UA/", 2041), "Message")]
    events = await server.get_event_generator()
    too_much = "an OPC UA server sends faster than its notifications are taken: 100000 bytes wait"

    async def take_all(events_seen: AsyncIterator[Mapping[str, Any] | Refused]) -> None:
        async for entry in events_seen:
            assert not isinstance(entry, Refused)

    url = f"opc.tcp://127.0.0.1:{server.bserver.port}"
    async with (
        open_client(url, limits=ClientLimits(waiting_bytes=100_000)) as session,
        session.watch(None, fields, {}) as events_seen,
        open_client(url) as taker,
        taker.watch(None, fields, {}) as taken,
    ):
        async with asyncio.timeout(60):
            # The second client receives the same events: it shows when each one was sent.
            while too_much not in caplog.messages:
                await events.trigger(message="x" * 40_000)
                await anext(taken)
        with pytest.raises(Unavailable, match="is lost"):
            await take_all(events_seen)


async def test_repeated_asyncua_errors_are_logged_once_in_one_short_line(
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
