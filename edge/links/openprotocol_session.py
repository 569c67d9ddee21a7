"""A session with an Open Protocol controller, as its client: requests, messages of the controller, keep alive."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from msgspec import Struct

from edge.errors import Refused, Unavailable, unwrap_group
from edge.links.background_task import background_task
from edge.links.connection_fault import ConnectionFailed
from edge.links.openprotocol_frame import FrameReader, MidFrame, encode_frame
from edge.links.openprotocol_link import LinkLayer, LinkLimits
from edge.links.openprotocol_mids import DECLINES, Decline, Mid, decline_of, new_message, parse_message, revisions_of
from edge.model.equipment_connection import ConnectionFault

_READ_BYTES = 1 << 16
_WAITING_MESSAGES = 1000

ExchangeListener = Callable[[MidFrame, MidFrame | None, str], None]
"""Receives a request, its answer if one came, and the reason of a failure."""


class DeclinedError(Refused):
    """A message that the controller declined with MID 0004; `error` is its number."""

    def __init__(self, mid: int, error: int) -> None:
        self.error = error
        super().__init__("device", f"MID {mid:04d} declined: {DECLINES.get(error, f'error {error}')}")


class SessionTimes(Struct, frozen=True):
    """Times in seconds: for a connection, for an answer, between two signs of life, and of silence at most."""

    connect: float = 5.0
    answer: float = 5.0
    keep_alive: float = 5.0
    silence: float = 15.0


DEFAULT_TIMES = SessionTimes()
DEFAULT_LIMITS = LinkLimits()


@asynccontextmanager
async def open_openprotocol(
    host: str,
    port: int,
    *,
    times: SessionTimes = DEFAULT_TIMES,
    limits: LinkLimits = DEFAULT_LIMITS,
    link_layer: bool = True,
    on_request: ExchangeListener = lambda *_: None,
) -> AsyncIterator["OpenProtocolSession"]:
    """Connect to a controller and start the communication; stop it at the end of the block.

    The link layer is used when the controller offers it, unless `link_layer` is false.
    Raises Unavailable when the controller cannot be reached or is lost, DeclinedError when it accepts no client.
    """
    try:
        async with asyncio.timeout(times.connect):
            reader, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError) as error:
        raise Unavailable(f"cannot connect to {host}:{port}: {str(error) or 'no answer'}") from error
    session = OpenProtocolSession(writer, times, limits, on_request)
    try:
        with unwrap_group():
            async with background_task(session.read(reader), f"open protocol {host}:{port}"):
                await session.start(link_layer=link_layer)
                async with background_task(session.keep_alive(), f"keep alive {host}:{port}"):
                    try:
                        yield session
                    finally:
                        session.stop()
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


class OpenProtocolSession:
    """One connection; `controller` are the fields of MID 0002, `revisions` the negotiated revision by message."""

    def __init__(
        self, writer: asyncio.StreamWriter, times: SessionTimes, limits: LinkLimits, on_request: ExchangeListener
    ) -> None:
        self.controller: dict[str, Any] = {}
        self.revisions: dict[int, int] = {}
        self._writer = writer
        self._times = times
        self._on_request = on_request
        self._link = LinkLayer(self._write, limits)
        self._messages: asyncio.Queue[tuple[MidFrame, float] | None] = asyncio.Queue(_WAITING_MESSAGES)
        self._requesting = asyncio.Lock()
        self._request: tuple[int, frozenset[int], asyncio.Future[MidFrame]] | None = None
        self._lost: Unavailable | None = None
        self._is_stopping = False
        self.received_at = 0.0
        """The second, by the clock of the loop, at which the message came that `messages` yielded last."""
        self._last_sent = self._last_received = asyncio.get_running_loop().time()
        self._keep_alive_s = times.keep_alive

    @property
    def has_link_layer(self) -> bool:
        """Whether frames are numbered and acknowledged."""
        return self._link.active

    async def start(self, *, link_layer: bool) -> None:
        """Start the communication in the newest revision that the controller accepts."""
        answer = await self.negotiate(Mid.START, revisions_of(Mid.STARTED), answers={Mid.STARTED})
        self.controller = parse_message(answer)
        self._link.active = link_layer and bool(self.controller.get("sequence_numbers"))

    def stop(self) -> None:
        """Stop the communication; the controller closes the connection then, and that is no failure."""
        if self._lost is None:
            self._is_stopping = True
            self._write(encode_frame(MidFrame(Mid.STOP)))

    def set_keep_alive(self, seconds: float) -> None:
        """Set the seconds between two signs of life: some makes need other ones than the default."""
        self._keep_alive_s = seconds

    async def messages(self) -> AsyncIterator[MidFrame]:
        """Yield the messages that the controller sends by itself; end when the connection is lost."""
        while (received := await self._messages.get()) is not None:
            message, self.received_at = received
            yield message

    async def send(self, message: MidFrame) -> None:
        """Send a message that has no answer, such as an acknowledgement; raises Unavailable."""
        self._require_connection()
        self._last_sent = asyncio.get_running_loop().time()
        await self._link.send(message)
        with suppress(OSError):
            await self._writer.drain()

    async def request(self, message: MidFrame, answers: Collection[int] = (Mid.ACCEPTED,)) -> MidFrame:
        """Send a message and return its answer, one request at a time.

        Raises DeclinedError when the controller declines it, Unavailable when it does not answer or is lost.
        """
        async with self._requesting:
            self._require_connection()
            answered: asyncio.Future[MidFrame] = asyncio.get_running_loop().create_future()
            self._request = message.mid, frozenset(answers), answered
            try:
                async with asyncio.timeout(self._times.answer):
                    await self.send(message)
                    answer = await answered
            except TimeoutError:
                reason = f"MID {message.mid:04d}: no answer within {self._times.answer:g} s"
                error = ConnectionFailed(ConnectionFault.SILENT, reason)
                self._on_request(message, None, error.message)
                # A late answer would be taken for that of the next request.
                self._end(error)
                raise error from None
            except (Refused, Unavailable) as error:
                self._on_request(message, None, error.message)
                raise
            finally:
                self._request = None
                # The reason of a lost connection may come after the request was cancelled.
                if not answered.cancel() and not answered.cancelled():
                    answered.exception()
            self._on_request(message, answer, "")
            return answer

    async def negotiate(
        self, mid: int, revisions: Sequence[int], *, answers: Collection[int] = (Mid.ACCEPTED,), **values: Any
    ) -> MidFrame:
        """Request a message in the newest of these revisions that the controller accepts, and remember it."""
        known = self.revisions.get(mid)
        tried = [known] if known is not None else list(revisions)
        for revision in tried[:-1]:
            try:
                answer = await self.request(new_message(mid, revision, **values), answers)
            except DeclinedError as declined:
                if declined.error not in {Decline.REVISION, Decline.UNKNOWN_MID, Decline.INVALID_DATA}:
                    raise
            else:
                self.revisions[mid] = revision
                return answer
        answer = await self.request(new_message(mid, tried[-1], **values), answers)
        self.revisions[mid] = tried[-1]
        return answer

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Read frames until the connection is lost; then raise Unavailable."""
        frames = FrameReader()
        fault, reason = ConnectionFault.CLOSED, "the controller has closed the connection"
        try:
            while received := await reader.read(_READ_BYTES):
                self._last_received = asyncio.get_running_loop().time()
                for frame in frames.feed(received):
                    self._receive(frame)
        except OSError as error:
            reason = f"the connection is lost: {error}"
        except Refused as refusal:
            fault, reason = ConnectionFault.PROTOCOL, refusal.message
        lost = self._end(ConnectionFailed(fault, reason))
        if not self._is_stopping:
            raise lost

    async def keep_alive(self) -> None:
        """Send a sign of life where nothing else was sent; raise Unavailable after too long a silence."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(self._keep_alive_s, self._times.silence) / 4)
            if self._lost is not None:
                raise self._lost
            if loop.time() - self._last_received > self._times.silence:
                reason = f"the controller is silent for {self._times.silence:g} s"
                raise self._end(ConnectionFailed(ConnectionFault.SILENT, reason))
            if loop.time() - self._last_sent >= self._keep_alive_s:
                await self.send(MidFrame(Mid.KEEP_ALIVE))

    def _receive(self, frame: MidFrame) -> None:
        message = self._link.receive(frame)
        if message is None or message.mid == Mid.KEEP_ALIVE:
            return
        if self._is_answer(message):
            return
        if self._messages.full():
            # A handler that cannot follow gets the results again as old ones.
            self._end(Unavailable(f"more than {_WAITING_MESSAGES} messages wait to be handled"))
            return
        self._messages.put_nowait((message, self._last_received))

    def _is_answer(self, message: MidFrame) -> bool:
        """Return whether a message answers the waiting request, which then has its answer."""
        if self._request is None or self._request[2].done():
            return False
        mid, answers, answered = self._request
        if message.mid == Mid.DECLINED:
            declined, error = decline_of(message)
            if declined != mid:
                return False
            answered.set_exception(DeclinedError(declined, error))
            return True
        if message.mid not in answers:
            return False
        if message.mid == Mid.ACCEPTED and parse_message(message)["mid"] != mid:
            return False
        answered.set_result(message)
        return True

    def _write(self, data: bytes) -> None:
        self._require_connection()
        self._writer.write(data)

    def _require_connection(self) -> None:
        if self._lost is not None:
            raise self._lost

    def _end(self, error: Unavailable) -> Unavailable:
        """End the session: fail the waiting request and the messages; return the first reason."""
        if self._lost is not None:
            return self._lost
        self._lost = error
        if self._request and not self._request[2].done():
            self._request[2].set_exception(error)
        self._writer.close()
        if self._messages.full():
            self._messages.get_nowait()
        self._messages.put_nowait(None)
        return error
