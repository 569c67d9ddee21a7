"""Receives the messages of a connection.

asyncua buffers as much as a chunk header announces, reads on while the client reads no answers, refuses every new
connection when connections without a session use all places, and waits at its end until each client is gone.
"""

import asyncio
import contextlib
import struct
from typing import cast

from asyncua import ua
from asyncua.common.utils import Buffer
from asyncua.ua.ua_binary import header_from_binary, uatcp_to_binary

from edge.opcua.client_transport import patch_decoder_limits
from edge.opcua.limits import ACTIVATION_S, CHUNK_BYTES, NegotiatedLimits
from edge.opcua.request_processor import RequestProcessor
from edge.opcua.server_core import ServerCore

_FLUSH_S = 0.5
"""Time in which a client can still read what was sent to it."""

_HEADER = struct.Struct("<3scI")
_SMALLEST = {b"HEL": 32, b"OPN": 24, b"MSG": 24, b"CLO": 24}
_LARGEST_HELLO = 32 + 4096  # with its endpoint URL (OPC 10000-6, 7.1.2.3)
_PAUSE_AT = 16  # messages that wait while one is being answered
_MOST_WAITING = 500

_TURNS_OF_ACCEPT = 3
"""Turns of the event loop in which a connection that waits at the port is accepted, made and aborted."""

REFUSAL_S = 5.0
"""The time limit, in seconds, for the Hello of a connection above the limit."""

_NO_PLACE = ua.ErrorMessage(ua.StatusCode(ua.StatusCodes.BadTcpNotEnoughResources), "too many connections")


class InvalidChunk(Exception):
    """The client sent an invalid chunk, or one larger than allowed; `code` is the status that it is answered with."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class ClientConnection(asyncio.Protocol):
    """One connection of a client: chunks in, flow control both ways."""

    transport: asyncio.Transport
    processor: RequestProcessor

    def __init__(self, listener: "TcpListener") -> None:
        self._listener = listener
        self._received = bytearray()
        self._waiting: asyncio.Queue[tuple[ua.Header, Buffer]] = asyncio.Queue(_MOST_WAITING)
        self._is_refused = False
        """Whether it is above the limit of connections, and waits for a Hello to answer."""
        self._timer: asyncio.TimerHandle | None = None
        """Ends a connection that was refused, or has no session in time."""
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close the oldest connection without a session when there are too many (OPC 10000-4, 5.5.2)."""
        self.transport = cast("asyncio.Transport", transport)
        loop, listener = asyncio.get_running_loop(), self._listener
        self._is_refused = listener.is_stopped or not listener.make_room()
        if self._is_refused:
            self._timer = loop.call_later(0.0 if listener.is_stopped else REFUSAL_S, self.transport.abort)
            return
        self.processor = RequestProcessor(listener.core, self.transport, NegotiatedLimits(), self._writable)
        listener.clients.append(self)
        self._task = asyncio.create_task(self._answer_all(), name="opcua connection")
        self._timer = loop.call_later(listener.activation_s, self._close_without_session)

    @property
    def has_session(self) -> bool:
        """Whether it has an activated session."""
        session = self.processor.session
        return session is not None and session.is_activated

    def _close_without_session(self) -> None:
        if not self.has_session:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Take every whole chunk; look at the header of the next before any more of it is kept."""
        if self._is_refused:
            # The client waits for the answer to its Hello; an earlier error message could be lost (OPC 10000-6, 7.1.3).
            self.transport.write(uatcp_to_binary(ua.MessageType.Error, _NO_PLACE))
            self.transport.close()
            return
        if self.transport.is_closing():
            return
        self._received += data
        try:
            while (size := _chunk_size(self._received)) and len(self._received) >= size:
                chunk = Buffer(bytes(self._received[:size]))
                del self._received[:size]
                self._waiting.put_nowait((header_from_binary(chunk), chunk))
        except InvalidChunk as invalid:
            # OPC 10000-6, 7.1.5: the client learns why, then the connection ends.
            self._received.clear()
            error = ua.ErrorMessage(ua.StatusCode(invalid.code), "")
            self.transport.write(uatcp_to_binary(ua.MessageType.Error, error))
            self.transport.close()
            return
        except asyncio.QueueFull:
            self._received.clear()
            self.transport.abort()
            return
        if self._waiting.qsize() >= _PAUSE_AT:
            self.transport.pause_reading()

    async def _answer_all(self) -> None:
        """Answer one message after the other, as fast as the client reads the answers."""
        while True:
            header, chunk = await self._waiting.get()
            await self._writable.wait()
            if self.transport.is_closing():  # what they asked before they left needs no answer
                return
            if not await self.answer(header, chunk):
                self.transport.close()
                return
            if not self.transport.is_closing() and self._waiting.qsize() < _PAUSE_AT:
                self.transport.resume_reading()

    async def answer(self, header: ua.Header, chunk: Buffer) -> bool:
        """Answer one chunk; return whether the connection stays open."""
        return await self.processor.process(header, chunk)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Close what belongs to the connection."""
        del exc
        if self._timer is not None:
            self._timer.cancel()
        self._writable.set()
        if self._task is not None:
            self._task.cancel()
            self._listener.forget(self)

    def pause_writing(self) -> None:
        """Pause answers while the client does not read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Resume answering."""
        self._writable.set()


def _chunk_size(received: bytearray) -> int:
    """Return the size of the chunk that begins here; 0 while its header is not complete. Raises InvalidChunk."""
    if len(received) < _HEADER.size:
        return 0
    kind, final, size = _HEADER.unpack_from(received)
    largest = _LARGEST_HELLO if kind == b"HEL" else CHUNK_BYTES
    finals = b"FCA" if kind == b"MSG" else b"F"
    if kind not in _SMALLEST or final not in finals:
        raise InvalidChunk(ua.StatusCodes.BadTcpMessageTypeInvalid)
    if size > largest:
        raise InvalidChunk(ua.StatusCodes.BadTcpMessageTooLarge)
    if size < _SMALLEST[kind]:
        raise InvalidChunk(ua.StatusCodes.BadDecodingError)
    return int(size)


class TcpListener:
    """Accepts connections to a core; `activation_s` is the time in which each needs a session."""

    def __init__(self, core: ServerCore) -> None:
        self.core = core
        self.activation_s = ACTIVATION_S
        self.port = 0
        self.is_stopped = False
        self.clients: list[ClientConnection] = []
        self._server: asyncio.Server | None = None
        self._is_empty = asyncio.Event()

    @property
    def has_room(self) -> bool:
        """Whether another connection has a place."""
        return len(self.clients) < self.core.limits.connections

    def make_room(self) -> bool:
        """End the oldest connection without a session if that is needed; return whether there is a place."""
        if not self.has_room and (idle := next((client for client in self.clients if not client.has_session), None)):
            self.clients.remove(idle)
            idle.transport.abort()
        return self.has_room

    def forget(self, client: ClientConnection) -> None:
        """Close what belongs to a connection that has ended."""
        if client in self.clients:
            self.clients.remove(client)
        client.processor.close()
        if not self.clients:
            self._is_empty.set()

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises OSError when the address cannot be used."""
        patch_decoder_limits()
        self._server = await asyncio.get_running_loop().create_server(lambda: ClientConnection(self), host, port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port and every connection; abort those that are still open after a short time."""
        self.is_stopped = True
        self._is_empty.clear()
        for client in self.clients:
            client.transport.close()
        if self.clients:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FLUSH_S):
                    await self._is_empty.wait()
        for client in self.clients:
            client.transport.abort()
        if self.clients:
            await self._is_empty.wait()
        if self._server is not None:
            # asyncio loses a connection that it has accepted, and not made yet, when it closes the port.
            for _ in range(_TURNS_OF_ACCEPT):
                await asyncio.sleep(0)
            self._server.close()
            await self._server.wait_closed()
