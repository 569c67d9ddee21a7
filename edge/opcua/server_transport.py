"""Receives the messages of a connection.

asyncua buffers as much as a chunk header announces, reads on while the client reads no answers, and refuses every new
connection when connections without a session use all places.
"""

import asyncio
import struct
from typing import Any, TypeVar

import asyncua
from asyncua import ua
from asyncua.common.utils import Buffer
from asyncua.server.binary_server_asyncio import BinaryServer, OPCUAProtocol
from asyncua.server.internal_server import InternalServer
from asyncua.ua.ua_binary import header_from_binary, uatcp_to_binary

from edge.opcua.client_transport import patch_decoder_limits
from edge.opcua.limits import CHUNK_BYTES
from edge.opcua.request_processor import RequestProcessor

_FLUSH_S = 0.5
"""Time in which a client can still read what was sent to it."""


async def stop_listener(listener: BinaryServer) -> None:
    """Close the port and every connection; abort those that are still open after a short time.

    asyncua closes the port last and then waits until each client is gone. A client that was accepted meanwhile stays as
    long as it likes, and so does a client that does not read.
    """
    aborting = asyncio.create_task(_keep_aborting(listener.iserver), name="opcua connections at stop")
    try:
        await BinaryServer.stop(listener)
    finally:
        aborting.cancel()


async def _keep_aborting(server: InternalServer) -> None:
    while True:
        await asyncio.sleep(_FLUSH_S)
        for transport in tuple(server.asyncio_transports):
            transport.abort()


_HEADER = struct.Struct("<3scI")
_SMALLEST = {b"HEL": 32, b"OPN": 24, b"MSG": 24, b"CLO": 24}
_LARGEST_HELLO = 32 + 4096  # with its endpoint URL (OPC 10000-6, 7.1.2.3)
_PAUSE_AT = 16  # messages that wait while one is being answered


REFUSAL_S = 5.0
"""The time limit, in seconds, for the Hello of a connection above the limit."""

_NO_PLACE = ua.ErrorMessage(ua.StatusCode(ua.StatusCodes.BadTcpNotEnoughResources), "too many connections")


class InvalidChunk(Exception):
    """The client sent an invalid chunk, or one larger than negotiated."""


class ChunkProtocol(OPCUAProtocol):
    """One connection: chunks in, flow control both ways."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._received = bytearray()
        self._refused: asyncio.Transport | None = None
        """The connection above the limit; it waits for a Hello to answer."""
        self._refusal: asyncio.TimerHandle | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Close the oldest connection without a session when there are too many (OPC 10000-4, 5.5.2)."""
        if len(self.clients) >= self.iserver.max_connections:
            idle = next((client for client in self.clients if not _has_session(client)), None)
            if idle is not None:
                self.clients.remove(idle)
                idle.transport.abort()
        if len(self.clients) >= self.iserver.max_connections:
            self._refused = transport
            self._refusal = asyncio.get_running_loop().call_later(REFUSAL_S, transport.abort)
            return
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Take every whole chunk; look at the header of the next before any more of it is kept."""
        if self._refused is not None:
            # The client waits for the answer to its Hello; an earlier error message could be lost (OPC 10000-6, 7.1.3).
            self._refused.write(uatcp_to_binary(ua.MessageType.Error, _NO_PLACE))
            self._refused.close()
            return
        if self.transport is None or self.transport.is_closing():
            return
        self._received += data
        try:
            while (size := _chunk_size(self._received)) and len(self._received) >= size:
                chunk = Buffer(bytes(self._received[:size]))
                del self._received[:size]
                self.messages.put_nowait((header_from_binary(chunk), chunk))
        except (InvalidChunk, asyncio.QueueFull):
            self._received.clear()
            self.transport.abort()
            return
        if self.messages.qsize() >= _PAUSE_AT:
            self.transport.pause_reading()

    def connection_lost(self, ex: BaseException | None) -> None:
        """Cancel the waits for the client to read its answers."""
        if self._refusal is not None:
            self._refusal.cancel()
        self._writable.set()
        super().connection_lost(ex)

    def pause_writing(self) -> None:
        """Pause answers while the client does not read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Resume answering."""
        self._writable.set()

    async def _process_one_msg(self, header: ua.Header, buf: Buffer) -> bool:
        await self._writable.wait()
        if self.transport.is_closing():  # what they asked before they left needs no answer
            return False
        continues: bool = await super()._process_one_msg(header, buf)
        if continues and not self.transport.is_closing() and self.messages.qsize() < _PAUSE_AT:
            self.transport.resume_reading()
        return continues


def _chunk_size(received: bytearray) -> int:
    """Return the size of the chunk that begins here; 0 while its header is not complete."""
    if len(received) < _HEADER.size:
        return 0
    kind, final, size = _HEADER.unpack_from(received)
    largest = _LARGEST_HELLO if kind == b"HEL" else CHUNK_BYTES
    finals = b"FCA" if kind == b"MSG" else b"F"
    if kind not in _SMALLEST or final not in finals or not _SMALLEST[kind] <= size <= largest:
        raise InvalidChunk
    return int(size)


def _has_session(client: OPCUAProtocol) -> bool:
    session = client.processor and client.processor.session
    return bool(session and session.is_activated())


class ClientConnection(ChunkProtocol):
    """One connection of a client."""

    processor: RequestProcessor | None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Process the messages with our processor, unless the connection is refused."""
        super().connection_made(transport)
        if self.processor is not None:
            self.processor = RequestProcessor(self.iserver, transport, self.limits, self._writable)
            self.processor.set_policies(self.policies)


_Connection = TypeVar("_Connection", bound=ClientConnection)


class TcpListener(BinaryServer):
    """Accepts connections."""

    def connection(self, kind: type[_Connection]) -> _Connection:
        """Return a new connection of this kind, with the policies and limits of the listener."""
        return kind(self.iserver, self._policies, self.clients, self.closing_tasks, self.limits)

    async def stop(self) -> None:
        """Stop listening, and end every connection."""
        await stop_listener(self)

    def _make_protocol(self) -> ClientConnection:
        return self.connection(ClientConnection)


class ProtocolServer(asyncua.Server):
    """asyncua's server with our connections."""

    async def start(self) -> None:
        """Listen. Raises OSError when the address cannot be used."""
        patch_decoder_limits()
        await self._setup_server_nodes()
        await self.iserver.start()
        host, port = self._get_bind_socket_info()
        self.bserver = TcpListener(self.iserver, host, port, self.limits)
        self.bserver.set_policies(self._policies)
        try:
            await self.bserver.start()
        except OSError:
            await self.iserver.stop()
            raise
