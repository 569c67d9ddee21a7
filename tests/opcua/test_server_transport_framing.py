"""An invalid chunk ends its connection at once; connections and memory of other clients are protected (S5)."""

import asyncio
import contextlib
import resource
import struct
from collections.abc import AsyncIterator
from typing import NamedTuple, cast

import pytest
import pytest_asyncio
from asyncua import Client, ua
from asyncua.ua.ua_binary import struct_to_binary

from edge.opcua import limits
from edge.opcua.request_processor import RequestProcessor
from edge.opcua.server_core import ServerCore
from edge.opcua.server_transport import ClientConnection, TcpListener
from edge.uaserver.security import AccessControl
from edge.uaserver.server import UaServer
from tests.opcua_client import patient_client
from tests.uaserver.clients import serves
from tests.uaserver.running import MACHINES, SETTINGS, served
from tests.uaserver.wire import Wire

pytestmark = pytest.mark.asyncio(loop_scope="module")

GIB = 2**30
_TOO_LARGE, _TYPE_INVALID = ua.StatusCodes.BadTcpMessageTooLarge, ua.StatusCodes.BadTcpMessageTypeInvalid


@pytest_asyncio.fixture(loop_scope="module")
async def wire(server: UaServer) -> AsyncIterator[Wire]:
    async with Wire.to(server.endpoint) as connected:
        yield connected


def header(kind: bytes, final: bytes, size: int) -> bytes:
    return struct.pack("<3scI", kind, final, size)


@pytest.mark.parametrize(
    ("bytes_sent", "code"),
    [
        (header(b"MSG", b"F", 4 * GIB - 1), _TOO_LARGE),
        (header(b"HEL", b"F", 2 * GIB), _TOO_LARGE),
        (header(b"HEL", b"F", 4129), _TOO_LARGE),
        (header(b"HEL", b"F", 65_535), _TOO_LARGE),
        (header(b"OPN", b"F", 4 * GIB - 1), _TOO_LARGE),
        (header(b"OPN", b"F", limits.CHUNK_BYTES + 1), _TOO_LARGE),
        (header(b"MSG", b"F", 0), ua.StatusCodes.BadDecodingError),
        (header(b"MSG", b"F", 8), ua.StatusCodes.BadDecodingError),
        (header(b"HEL", b"F", 31), ua.StatusCodes.BadDecodingError),
        (header(b"OPN", b"C", 100), _TYPE_INVALID),
        (header(b"MSG", b"X", 100), _TYPE_INVALID),
        (header(b"XYZ", b"F", 100), _TYPE_INVALID),
        (header(b"ACK", b"F", 100), _TYPE_INVALID),
        (header(b"ERR", b"F", 100), _TYPE_INVALID),
        (header(b"RHE", b"F", 100), _TYPE_INVALID),
        (b"GET / HTTP/1.1\r\n\r\n", _TYPE_INVALID),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", _TYPE_INVALID),  # a TLS greeting
        (bytes(8), _TYPE_INVALID),
    ],
    ids=lambda value: value[:8].hex() if isinstance(value, bytes) else "",
)
async def test_invalid_chunk_header_is_answered_with_its_error(wire: Wire, bytes_sent: bytes, code: int) -> None:
    """The connection ended without a reason (OPC 10000-6, 7.1.5)."""
    wire.writer.write(bytes_sent)
    await wire.is_ended_with(code)


async def test_a_chunk_may_come_byte_by_byte(wire: Wire) -> None:
    body = struct_to_binary(ua.Hello(EndpointUrl="opc.tcp://localhost"))
    for byte in header(b"HEL", b"F", 8 + len(body)) + body:
        wire.writer.write(bytes([byte]))
        await asyncio.sleep(0)
    assert (await wire.receive())[0] == b"ACK"


async def test_chunk_header_with_a_huge_size_allocates_no_memory(server: UaServer, client: Client) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with Wire.to(server.endpoint) as wire:
        wire.writer.write(header(b"MSG", b"F", 4 * GIB - 1))
        with contextlib.suppress(ConnectionError):
            for _ in range(500):
                wire.writer.write(bytes(100_000))
                await wire.writer.drain()
    assert await serves(client)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KiB


async def test_silent_connection_is_closed_for_a_new_client() -> None:
    async with served(SETTINGS, MACHINES[:1]) as server, contextlib.AsyncExitStack() as stack:
        working = await stack.enter_async_context(patient_client(server.endpoint))
        silent = [
            await stack.enter_async_context(Wire.to(server.endpoint)) for _ in range(limits.DEFAULTS.connections + 5)
        ]
        await silent[0].is_ended()
        await silent[-1].hello()
        assert await serves(working)
        async with patient_client(server.endpoint) as another:
            assert await serves(another)


async def test_connection_is_refused_while_all_others_are_active() -> None:
    async with served(SETTINGS, MACHINES[:1]) as server, contextlib.AsyncExitStack() as stack:
        working = [
            await stack.enter_async_context(patient_client(server.endpoint)) for _ in range(limits.DEFAULTS.connections)
        ]
        async with Wire.to(server.endpoint) as late:
            await late.is_ended()
        for client in working:
            assert await serves(client)


class Transport(asyncio.Transport):
    """A fake of the socket that records the operations on it."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 4840)})
        self.done: list[str] = []

    def is_closing(self) -> bool:
        return "abort" in self.done or "close" in self.done

    def abort(self) -> None:
        self.done.append("abort")

    def close(self) -> None:
        self.done.append("close")

    def pause_reading(self) -> None:
        self.done.append("pause_reading")

    def resume_reading(self) -> None:
        self.done.append("resume_reading")


class CallProcessor:
    """A processor that counts the messages and does not answer."""

    def __init__(self) -> None:
        self.processed = 0
        self.session = None

    async def process(self, _header: object, _body: object) -> bool:
        self.processed += 1
        return True

    def close(self) -> None:
        pass


class Bench(NamedTuple):
    """A connection on fakes."""

    connection: ClientConnection
    transport: Transport
    processor: CallProcessor


@pytest_asyncio.fixture(loop_scope="module")
async def framing() -> AsyncIterator[Bench]:
    listener = TcpListener(ServerCore(None, AccessControl(SETTINGS), 30.0))
    bench = Bench(ClientConnection(listener), Transport(), CallProcessor())
    bench.connection.connection_made(bench.transport)
    bench.connection.processor = cast("RequestProcessor", bench.processor)
    yield bench
    bench.connection.connection_lost(None)
    await settled()


def hellos(count: int) -> bytes:
    return (header(b"HEL", b"F", 32) + bytes(24)) * count


async def settled() -> None:
    for _ in range(200):
        await asyncio.sleep(0)


async def test_requests_wait_while_the_client_reads_no_answers(framing: Bench) -> None:
    framing.connection.pause_writing()
    framing.connection.data_received(hellos(3))
    await settled()
    assert framing.processor.processed == 0
    framing.connection.resume_writing()
    await settled()
    assert framing.processor.processed == 3


async def test_reading_pauses_while_too_many_requests_wait(framing: Bench) -> None:
    framing.connection.pause_writing()
    framing.connection.data_received(hellos(15))
    assert "pause_reading" not in framing.transport.done
    framing.connection.data_received(hellos(1))
    assert framing.transport.done == ["pause_reading"]
    framing.connection.resume_writing()
    await settled()
    assert "resume_reading" in framing.transport.done
    assert framing.processor.processed == 16


async def test_requests_of_a_closed_connection_are_dropped(framing: Bench) -> None:
    framing.connection.data_received(hellos(3))
    framing.transport.close()
    await settled()
    assert framing.processor.processed == 0


async def test_too_many_queued_requests_end_the_connection(framing: Bench) -> None:
    framing.connection.data_received(hellos(501))
    assert framing.transport.done[-1] == "abort"
    framing.connection.data_received(hellos(1))  # data that was in transit
    assert framing.transport.done[-1] == "abort"
