"""Serves MessagePack-RPC: handles calls of many clients concurrently and notifies all of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

import structlog
from msgspec import Struct

from edge.config import RpcSettings
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.task_group import TaskGroup, background_task
from edge.foundation.text import Text
from edge.links.rpc_transport import (
    MESSAGE_BYTES,
    READ_BYTES,
    Frames,
    InvalidRequest,
    Notification,
    Request,
    Response,
    encode,
    listen,
    read,
)

Method = Callable[[Sequence[Any]], Awaitable[object]]
"""Receives the parameters of a call and returns its result; raises Refused, or Unavailable when a retry may succeed."""

_GOODBYE_SECONDS = 1.0

logger = structlog.get_logger(__name__)


class RpcLimits(Struct, frozen=True):
    """The limits of one client; beyond them it waits or is disconnected. Times are in seconds."""

    message_bytes: int = MESSAGE_BYTES
    calls: int = 16
    """The most calls of a client in progress: the next is read after one is answered."""
    in_hand_bytes: int = MESSAGE_BYTES
    """The most bytes of calls in progress, of all clients together."""
    clients: int = 32
    unsent_bytes: int = 4 * 1024 * 1024
    """The most unread bytes of a client before a notification."""
    unread: float = 30.0
    """The longest time for which an answer may remain unread."""
    silent: float = 300.0


@asynccontextmanager
async def open_server(
    settings: RpcSettings, methods: Mapping[str, Method], limits: RpcLimits | None = None
) -> AsyncIterator["RpcServer"]:
    """Serve calls at `settings.listen` until the end of the block; calls in progress are cancelled then.

    Raises as `listen` does.
    """
    server = RpcServer(methods, limits or RpcLimits())
    async with background_task(server.run(), "rpc server"), listen(settings, server.accept) as server.url:
        yield server


class RpcServer:
    """The connected clients."""

    def __init__(self, methods: Mapping[str, Method], limits: RpcLimits) -> None:
        self.url = ""
        self._methods = methods
        self._limits = limits
        self._numbers = count(1)
        self._clients: set[_Client] = set()
        self._accepted: asyncio.Queue[_Client] = asyncio.Queue()
        self._room = _ByteBudget(limits.in_hand_bytes)

    @property
    def clients(self) -> int:
        """The number of connected clients."""
        return len(self._clients)

    def notify(self, method: str, *params: object) -> None:
        """Notify every client, in order; a client with too many unread bytes is disconnected instead."""
        if self._clients:
            frame = encode(Notification(method, params))
            for client in tuple(self._clients):
                client.notify(frame)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Accept a client; disconnect it when there are too many."""
        client = _Client(_name(writer, next(self._numbers)), reader, writer, self._methods, self._limits, self._room)
        if len(self._clients) >= self._limits.clients:
            logger.warning("rpc client refused, too many connected", client=client.name)
            writer.write(_goodbye(f"there are {self._limits.clients} clients already"))
            writer.close()
            return
        self._clients.add(client)
        self._accepted.put_nowait(client)

    async def run(self) -> None:
        """Serve accepted clients until cancelled."""
        try:
            async with TaskGroup() as tasks:
                while True:
                    client = await self._accepted.get()
                    tasks.create_task(self._serve(client), name=f"rpc client {client.name}")
        finally:
            for client in self._clients:
                client.abort()

    async def _serve(self, client: "_Client") -> None:
        try:
            await client.serve()
        finally:
            self._clients.discard(client)


class _Client:
    """One connection: its calls, answers and notifications."""

    def __init__(
        self,
        name: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        methods: Mapping[str, Method],
        limits: RpcLimits,
        room: "_ByteBudget",
    ) -> None:
        self.name = name
        self._reader = reader
        self._writer = writer
        self._methods = methods
        self._limits = limits
        self._free = asyncio.Semaphore(limits.calls)
        self._room = room

    async def serve(self) -> None:
        """Serve calls until the end of the connection; calls in progress end first: they have an effect."""
        logger.info("rpc client connected", client=self.name)
        try:
            async with TaskGroup() as calls:
                fault = await self._take_calls(calls)
            await self._send_closing(fault)
        finally:
            self.abort()
        logger.info("rpc client gone", client=self.name)

    def notify(self, frame: bytes) -> None:
        """Send a notification, unless the client does not read."""
        if self._writer.is_closing():
            return
        if self._writer.transport.get_write_buffer_size() + len(frame) > self._limits.unsent_bytes:
            self._disconnect("it does not read its notifications")
        else:
            self._writer.write(frame)

    def abort(self) -> None:
        """End the connection at once and drop unread bytes."""
        self._writer.transport.abort()

    async def _take_calls(self, calls: TaskGroup) -> str | None:
        """Read calls until the client disconnects; return the reason when the server ends the connection."""
        frames = Frames(self._limits.message_bytes)
        try:
            while data := await self._receive():
                frames.feed(data)
                for frame in frames.split_frames():
                    await self._free.acquire()
                    await self._begin(frame, calls)
        except Refused as refusal:
            return refusal.message
        except TimeoutError:
            return f"silent for {self._limits.silent:g} s"
        except OSError as error:
            logger.debug("rpc connection lost", client=self.name, reason=str(error))
        return None

    async def _receive(self) -> bytes:
        async with asyncio.timeout(self._limits.silent):
            return await self._reader.read(READ_BYTES)

    async def _begin(self, frame: bytes, calls: TaskGroup) -> None:
        """Read a message when the limits allow it, and start its handler; raises Refused."""
        await self._room.take(len(frame))
        try:
            message = _call_in(frame)
        except Refused:
            self._room.give_back(len(frame))
            raise
        calls.create_task(self._act(message, len(frame)), name=f"rpc call of {self.name}")

    async def _act(self, message: Request | Notification | InvalidRequest, size: int) -> None:
        try:
            try:
                answer = await self._do(message)
            finally:
                # A client that does not read its answer must hold neither budget nor memory.
                del message
                self._room.give_back(size)
            if answer is not None:
                await self._send(answer)
        finally:
            self._free.release()

    async def _do(self, message: Request | Notification | InvalidRequest) -> bytes | None:
        """Handle a message; return the answer to a request."""
        match message:
            case Request(id, method, params):
                return await self._answer(id, method, params)
            case Notification(method, params):
                await self._answer(0, method, params)
                return None
            case InvalidRequest(id, fault):
                return encode(Response(id, f"invalid_params: {fault}", None))

    async def _answer(self, id: int, method: str, params: Sequence[Any]) -> bytes:
        try:
            return encode(Response(id, None, await self._find(method)(params)))
        except Refused as refusal:
            error = f"{refusal.kind}: {refusal.sentences}"
        except Unavailable as unavailable:
            error = f"unavailable: {unavailable.message}"
        except Exception as defect:
            # A call with a defect must not end the others.
            logger.exception("rpc call could not be done", client=self.name, method=method)
            error = f"internal: the call met a defect of this software: {type(defect).__name__}"
        logger.warning("rpc call failed", client=self.name, method=method, reason=error)
        return encode(Response(id, error, None))

    def _find(self, method: str) -> Method:
        if method in self._methods:
            return self._methods[method]
        known = ", ".join(sorted(self._methods))
        raise Refused(
            "unknown_method",
            Text.of("there is no method {method!r}.", method=method),
            Text.of("There are {known}.", known=known),
        )

    async def _send(self, frame: bytes) -> None:
        """Send an answer and wait until most of it is read: a call that waits here still counts."""
        if self._writer.is_closing():
            return
        self._writer.write(frame)
        try:
            async with asyncio.timeout(self._limits.unread):
                await self._writer.drain()
        except TimeoutError:
            self._disconnect("it does not read its answers")
        except OSError as error:
            logger.debug("rpc answer not read", client=self.name, reason=str(error))

    def _disconnect(self, reason: str) -> None:
        logger.warning("rpc client disconnected", client=self.name, reason=reason)
        self.abort()

    async def _send_closing(self, fault: str | None) -> None:
        if self._writer.is_closing():
            return
        if fault is not None:
            logger.warning("rpc client disconnected", client=self.name, reason=fault)
            self._writer.write(_goodbye(fault))
        self._writer.close()
        with suppress(OSError):
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await self._writer.wait_closed()


def _call_in(frame: bytes) -> Request | Notification | InvalidRequest:
    message = read(frame)
    if isinstance(message, Response):
        raise Refused("malformed", "a response without a request")
    return message


class _ByteBudget:
    """A byte budget that serves requests in order; a larger request waits until the budget is unused."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._turn = asyncio.Lock()
        self._returned = asyncio.Event()

    async def take(self, size: int) -> None:
        async with self._turn:
            while self._taken and self._taken + size > self._most:
                self._returned.clear()
                await self._returned.wait()
            self._taken += size

    def give_back(self, size: int) -> None:
        self._taken -= size
        self._returned.set()


def _goodbye(reason: str) -> bytes:
    return encode(Notification("closing", [reason]))


def _name(writer: asyncio.StreamWriter, number: int) -> str:
    """Return a client for people: by its certificate, its address, or its number."""
    certificate = writer.get_extra_info("peercert") or {}
    named = dict(pair for part in certificate.get("subject", ()) for pair in part).get("commonName", "")
    match writer.get_extra_info("peername"):
        case (host, port, *_):
            address = f"{host}:{port}"
        case _:
            address = f"#{number}"
    return f"{named} {address}".strip()
