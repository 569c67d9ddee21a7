"""The server side of Open Protocol for simulated controllers: connections, revisions, subscriptions, link layer."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from msgspec.structs import replace

from edge.features.openprotocol.protocol.frame import FrameReader, MidFrame
from edge.features.openprotocol.protocol.link import LinkLayer, LinkLimits
from edge.features.openprotocol.protocol.mids import Decline, Mid, named_mids, new_message
from edge.foundation.errors import EdgeError, Refused, Unavailable
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.links.host_addresses import free_port

SILENCE_SECONDS = 15.0
"""A client that is silent for longer is disconnected."""

_READ_BYTES = 1 << 16
_LOOPBACK = "127.0.0.1"

Handler = Callable[["ServedClient", MidFrame], Sequence[MidFrame]]
"""Handles a message and returns its answer, and what follows it at once; raises DeclineError."""


class DeclineError(Exception):
    """A message that the controller declines, with the number of the error."""

    def __init__(self, error: int) -> None:
        super().__init__(error)
        self.error = error


class ServedClient:
    """One client; `subscriptions` maps the messages that it receives to their revisions."""

    def __init__(self, writer: asyncio.StreamWriter, on_delivered: Callable[[MidFrame], None]) -> None:
        self.subscriptions: dict[int, int] = {}
        self._on_delivered = on_delivered
        self.has_started = False
        self.writer = writer
        self.link = LinkLayer(writer.write, LinkLimits())
        self._outbox: asyncio.Queue[MidFrame] = asyncio.Queue()

    def push(self, mid: int, **values: Any) -> None:
        """Send a message that the client has subscribed to."""
        if mid in self.subscriptions:
            self._outbox.put_nowait(new_message(mid, self.subscriptions[mid], **values))

    def send(self, message: MidFrame) -> None:
        """Send a message after those that wait."""
        self._outbox.put_nowait(message)

    async def write(self) -> None:
        """Send what waits, one message after the other."""
        while True:
            message = await self._outbox.get()
            with suppress(EdgeError, OSError):
                await self.link.send(message)
                if self.link.active:
                    self._on_delivered(message)


def named_mid(message: MidFrame) -> int:
    """Return the number that MID 0004 and 0005 carry: of MID 0008 and 0009, that of the message subscribed to."""
    return min(named_mids(message) - {message.mid}, default=message.mid)


class OpenProtocolServer:
    """Serves clients at a loopback port with the `handlers` of a controller.

    `highest` are the newest revisions that it accepts, by message; `missing` are the messages that it does not know.
    A client that is silent for `silence_s` seconds is disconnected.
    """

    def __init__(
        self, handlers: Mapping[int, Handler], highest: Mapping[int, int], silence_s: float = SILENCE_SECONDS
    ) -> None:
        self._silence_s = silence_s
        self.port = 0
        self.highest = dict(highest)
        self.missing: set[int] = set()
        self.received: list[MidFrame] = []
        self.on_delivered: Callable[[MidFrame], None] = lambda _: None
        """Called for each message that a client has acknowledged by its link layer."""
        self._handlers = handlers
        self._clients: dict[ServedClient, asyncio.Task[None]] = {}
        self._server: asyncio.Server | None = None

    async def listen(self, port: int = 0) -> None:
        """Accept connections at a port, 0 for a free one; raises Unavailable when it is in use."""
        port = port or free_port()
        try:
            self._server = await asyncio.start_server(self._serve, _LOOPBACK, port)
        except OSError as error:
            raise Unavailable(
                Text.of(
                    "cannot listen on {loopback}:{port}: {reason}", loopback=_LOOPBACK, port=port, reason=error.strerror
                ),
                "Choose another port.",
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Close the port and every connection."""
        if self._server:
            self._server.close()
            for client, task in tuple(self._clients.items()):
                client.writer.transport.abort()
                await asyncio.wait((task,))
            await self._server.wait_closed()
            self._server = None

    @asynccontextmanager
    async def unplugged(self) -> AsyncIterator[None]:
        """Disconnect every client for the length of the block and refuse new ones."""
        await self.close()
        try:
            yield
        finally:
            await self.listen(self.port)

    def publish(self, mid: int, **values: Any) -> None:
        """Send a message to each client that has subscribed to it."""
        for client in self._clients:
            client.push(mid, **values)

    def publish_frame(self, message: MidFrame) -> None:
        """Send a message as it is to each client that has subscribed to it."""
        for client in self._clients:
            if message.mid in client.subscriptions:
                client.send(message)

    def send_raw(self, message: MidFrame) -> None:
        """Send a message to each client as it is, also a wrong one."""
        for client in self._clients:
            client.send(message)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = ServedClient(writer, self.on_delivered)
        task = asyncio.current_task()
        if task is None or self._server is None or not self._server.is_serving():
            # Accepted just before the port was closed: `close` does not know it.
            writer.transport.abort()
            return
        self._clients[client] = task
        try:
            async with TaskGroup() as tasks:
                sender = tasks.create_task(client.write())
                await self._read(client, reader)
                sender.cancel()
        finally:
            del self._clients[client]
            writer.close()

    async def _read(self, client: ServedClient, reader: asyncio.StreamReader) -> None:
        frames = FrameReader()
        with suppress(TimeoutError, OSError, Refused):
            while True:
                async with asyncio.timeout(self._silence_s):
                    received = await reader.read(_READ_BYTES)
                if not received:
                    return
                for frame in frames.feed(received):
                    # A client that numbers its frames uses the link layer.
                    client.link.active |= bool(frame.sequence)
                    message = client.link.receive(frame)
                    if message is None:
                        continue
                    self._handle(client, message)

    def _handle(self, client: ServedClient, message: MidFrame) -> None:
        self.received.append(message)
        if message.mid == Mid.KEEP_ALIVE:
            client.send(replace(message, sequence=0))
            return
        try:
            for answer in self._handler_for(client, message)(client, message):
                client.send(answer)
            client.has_started = message.mid != Mid.STOP
        except DeclineError as declined:
            client.send(new_message(Mid.DECLINED, mid=named_mid(message), error=declined.error))
        except Refused:
            client.send(new_message(Mid.DECLINED, mid=named_mid(message), error=Decline.INVALID_DATA))

    def _handler_for(self, client: ServedClient, message: MidFrame) -> Handler:
        handler = self._handlers.get(message.mid)
        if handler is None or message.mid in self.missing or not (client.has_started or message.mid == Mid.START):
            raise DeclineError(Decline.UNKNOWN_MID)
        if message.revision > self.highest.get(message.mid, 1):
            raise DeclineError(Decline.REVISION)
        return handler
