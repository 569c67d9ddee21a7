"""A session with an Open Protocol controller, as its client: requests, messages of the controller, keep alive."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any

import structlog
from msgspec import Struct
from msgspec.structs import replace

from edge.features.openprotocol.protocol.frame import FrameReader, MidFrame, encode_frame
from edge.features.openprotocol.protocol.link import LinkLayer, LinkLimits
from edge.features.openprotocol.protocol.mids import (
    DECLINES,
    REPLIES,
    SUBSTITUTED_BY_LINK,
    Mid,
    decline_of,
    named_mids,
    new_message,
    parse_message,
    revisions_of,
)
from edge.features.openprotocol.protocol.revisions import Revisions, rejects_revision
from edge.foundation.errors import Refused, Unavailable, unwrap_group
from edge.foundation.task_group import background_task
from edge.foundation.text import Text
from edge.links.connection_fault import ConnectionFailed
from edge.links.tcp import open_tcp
from edge.model.equipment_connection import ConnectionFault


class DeclinedError(Refused):
    """A message that the controller declined with MID 0004; `error` is its number."""

    def __init__(self, mid: int, error: int) -> None:
        self.error = error
        reason = DECLINES.get(error, f"error {error}")
        super().__init__("device", Text.of("MID {mid:04d} declined: {reason}", mid=mid, reason=reason))


class UnansweredError(ConnectionFailed):
    """A message that the controller has not answered in time."""

    def __init__(self, mid: int, seconds: float) -> None:
        message = Text.of("MID {mid:04d}: no answer within {seconds:g} s", mid=mid, seconds=seconds)
        super().__init__(ConnectionFault.SILENT, message)


_READ_BYTES = 1 << 14
_WAITING_MESSAGES = 1000
_RESULTS = frozenset({Mid.RESULT, Mid.SPINDLES_RESULT})
_OF_RESULTS = frozenset({Mid.RESULT_ACKNOWLEDGE, Mid.SPINDLES_ACKNOWLEDGE})

_log = structlog.get_logger(__name__)

ExchangeListener = Callable[[MidFrame, MidFrame | None, str], None]
"""Receives a request, its answer if one came, and the reason of a failure."""

KeepResult = Callable[[MidFrame], Awaitable[bool]]
"""Keeps a result; returns whether it is durable."""

PermitRequest = Callable[[MidFrame], Awaitable[object]]
"""Returns when a request may leave, right before it does; raises Unavailable when it may not any more."""


async def _nothing(_: MidFrame) -> bool:
    return False


class SessionTimes(Struct, frozen=True):
    """Times in seconds.

    The limits for a connection, an answer and an optional answer; the interval of keep-alive messages; the limit of
    silence.
    """

    connect: float = 5.0
    answer: float = 5.0
    optional: float = 2.0
    keep_alive: float = 5.0
    silence: float = 15.0


DEFAULT_TIMES, DEFAULT_LIMITS = SessionTimes(), LinkLimits()


@asynccontextmanager
async def open_openprotocol(
    host: str,
    port: int,
    *,
    times: SessionTimes = DEFAULT_TIMES,
    limits: LinkLimits = DEFAULT_LIMITS,
    link_layer: bool = True,
    on_request: ExchangeListener = lambda *_: None,
    revisions: Revisions | None = None,
    keep: KeepResult = _nothing,
    permit: PermitRequest = _nothing,
) -> AsyncIterator["OpenProtocolSession"]:
    """Connect to a controller and start the communication; stop it at the end of the block.

    The link layer is used when the controller offers it, unless `link_layer` is false. With it, a result is confirmed
    at once if `keep` has kept it: the controller sends nothing else before. `revisions` are those that earlier
    connections have learnt; a controller that closes the connection after a decline is connected again at once.
    Raises Unavailable when the controller cannot be reached or is lost, DeclinedError when it accepts no client.
    """
    known = revisions or Revisions()
    while True:
        async with AsyncExitStack() as stack:
            opened = partial(OpenProtocolSession, times, limits, on_request, known, keep, permit)
            session = await stack.enter_async_context(_connected(host, port, times.connect, opened))
            before = known.rejections
            try:
                await session.start(link_layer=link_layer)
            except UnansweredError:
                raise
            except Unavailable:
                if known.rejections <= before:
                    raise
                continue
            async with background_task(session.keep_alive(), f"keep alive {host}:{port}"):
                try:
                    yield session
                finally:
                    session.stop()
            return


@asynccontextmanager
async def _connected(
    host: str, port: int, seconds: float, opened: Callable[[asyncio.StreamWriter], "OpenProtocolSession"]
) -> AsyncIterator["OpenProtocolSession"]:
    """Connect to a controller and read its messages for the length of the block."""
    async with open_tcp(host, port, seconds) as (reader, writer):
        session = opened(writer)
        with unwrap_group():
            async with background_task(session.read(reader), f"open protocol {host}:{port}"):
                yield session


class OpenProtocolSession:
    """One connection; `controller`: fields of MID 0002, `origin`: its header; `revisions`: those negotiated by MID."""

    def __init__(
        self,
        times: SessionTimes,
        limits: LinkLimits,
        on_request: ExchangeListener,
        known: Revisions,
        keep: KeepResult,
        permit: PermitRequest,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.controller: dict[str, Any] = {}
        self.revisions: dict[int, int] = {}
        self._known = known
        self._keep = keep
        self._permit = permit
        self._writer = writer
        self._times = times
        self._on_request = on_request
        self._link = LinkLayer(self._write, limits, held=_RESULTS)
        self._messages: asyncio.Queue[tuple[MidFrame, float] | None] = asyncio.Queue(_WAITING_MESSAGES)
        self._requesting = asyncio.Lock()
        self._request: tuple[frozenset[int], frozenset[int], asyncio.Future[MidFrame]] | None = None
        """The messages that an answer may name, the numbers of the answers, and the future of the answer."""
        self._lost: Unavailable | None = None
        self._is_stopping = False
        self.received_at = 0.0
        """The second of the loop at which the message came that `messages` yielded last."""
        self._last_sent = self._last_received = asyncio.get_running_loop().time()
        self._keep_alive_s = times.keep_alive

    @property
    def has_link_layer(self) -> bool:
        """Whether frames are numbered and acknowledged."""
        return self._link.active

    async def start(self, *, link_layer: bool) -> None:
        """Start the communication in the newest revision that the controller accepts."""
        newest = revisions_of(Mid.STARTED)[0]
        answer = await self.negotiate(Mid.START, revisions_of(Mid.STARTED), answers={Mid.STARTED})
        # All additions are optional, and the revision in the header is not always that of the data.
        self.controller = parse_message(replace(answer, revision=newest)) | {"origin": (answer.station, answer.spindle)}
        self._link.active = link_layer and self.controller["sequence_numbers"] == 1

    def stop(self) -> None:
        """Stop the communication; the controller closes the connection then, and that is not a failure."""
        if self._lost is None:
            self._is_stopping = True
            self._write(encode_frame(MidFrame(Mid.STOP)))

    def set_keep_alive(self, seconds: float) -> None:
        """Set the seconds between two heartbeats: some makes need other ones than the default."""
        self._keep_alive_s = seconds

    async def messages(self) -> AsyncIterator[MidFrame]:
        """Yield the messages that the controller sends by itself; end when the connection is lost."""
        while (received := await self._messages.get()) is not None:
            message, self.received_at = received
            yield message

    async def send(self, message: MidFrame) -> None:
        """Send a message that has no answer, such as an acknowledgement; raises Unavailable.

        With the link layer, an acknowledgement is not sent: its own one (MID 9997) substitutes it. That of a result
        is sent here, as a result is confirmed only when it is durable; that of others was sent at their receipt.
        """
        self._require_connection()
        if self._link.active and message.mid in SUBSTITUTED_BY_LINK:
            if message.mid in _OF_RESULTS:
                self._link.confirm()
            return
        self._last_sent = asyncio.get_running_loop().time()
        await self._link.send(message)
        with suppress(OSError):
            await self._writer.drain()

    async def request(self, message: MidFrame, answers: Collection[int] = (Mid.ACCEPTED,)) -> MidFrame:
        """Send a message and return its answer, one request at a time.

        Raises DeclinedError when the controller declines it, Unavailable when it does not answer or is lost.
        """
        try:
            return await self._exchange(message, answers, self._times.answer)
        except UnansweredError as error:
            # A late answer would be taken for that of the next request.
            raise self._end(error) from None

    async def inquire(self, message: MidFrame, answers: Collection[int] = (Mid.ACCEPTED,)) -> MidFrame | None:
        """Send a message that the gateway can do without; return None where it is declined or not answered."""
        try:
            return await self._exchange(message, answers, self._times.optional)
        except (DeclinedError, UnansweredError) as error:
            _log.info("optional message not accepted", reason=error.message)
            return None

    async def negotiate(
        self, mid: int, revisions: Sequence[int], *, answers: Collection[int] = (Mid.ACCEPTED,), **values: Any
    ) -> MidFrame:
        """Request a message in the newest of these revisions that the controller accepts, and remember it."""
        try:
            return await self.attempt(mid, revisions, answers, values)
        except UnansweredError as error:
            raise self._end(error) from None

    async def inquire_newest(
        self, mid: int, revisions: Sequence[int], *, answers: Collection[int] = (Mid.ACCEPTED,), **values: Any
    ) -> MidFrame | None:
        """Negotiate a message that the gateway can do without; return None where it is declined or not answered."""
        try:
            return await self.attempt(mid, revisions, answers, values, self._times.optional)
        except (DeclinedError, UnansweredError) as error:
            _log.info("optional message not accepted", reason=error.message)
            return None

    async def attempt(
        self,
        mid: int,
        revisions: Sequence[int],
        answers: Collection[int],
        values: Mapping[str, Any],
        seconds: float | None = None,
    ) -> MidFrame:
        """Negotiate as `negotiate`; one that is not answered raises UnansweredError, and the connection stays open.

        Its late answer may come as that of the next request.
        """
        seconds = seconds or self._times.answer
        *others, last = candidates = self._known.candidates(mid, revisions)
        for revision in others:
            try:
                return await self._try_revision(mid, revision, answers, seconds, values)
            except DeclinedError as declined:
                if not rejects_revision(mid, declined.error):
                    raise
            except UnansweredError:
                raise
            except Unavailable:
                if revision == candidates[0]:
                    self._known.note_closed(mid, revision)
                raise
            self._known.reject(mid, revision)
        return await self._try_revision(mid, last, answers, seconds, values)

    async def _try_revision(
        self, mid: int, revision: int, answers: Collection[int], seconds: float, values: Mapping[str, Any]
    ) -> MidFrame:
        try:
            answer = await self._exchange(new_message(mid, revision, **values), answers, seconds)
        except UnansweredError:
            self._known.note_unanswered(mid, revision)
            raise
        # Some controllers answer in their own newest revision.
        accepted = min(revision, answer.revision) if answer.mid != Mid.ACCEPTED and answer.revision > 1 else revision
        self.revisions[mid] = accepted
        self._known.accept(mid, accepted)
        return answer

    async def _exchange(self, message: MidFrame, answers: Collection[int], seconds: float) -> MidFrame:
        """Send a message and return its answer; raises UnansweredError, and leaves the connection open."""
        async with self._requesting:
            await self._permit(message)
            self._require_connection()
            answered: asyncio.Future[MidFrame] = asyncio.get_running_loop().create_future()
            self._request = named_mids(message), frozenset(answers), answered
            try:
                async with asyncio.timeout(seconds):
                    await self.send(message)
                    answer = await answered
            except TimeoutError:
                error = UnansweredError(message.mid, seconds)
                self._on_request(message, None, error.message)
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

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Read frames until the connection is lost; then raise Unavailable."""
        frames = FrameReader()
        fault, reason = ConnectionFault.CLOSED, Text("the controller has closed the connection")
        try:
            while received := await reader.read(_READ_BYTES):
                self._last_received = asyncio.get_running_loop().time()
                for frame in frames.feed(received):
                    self._receive(frame)
                    if (message := self._link.held) is not None and await self._keep(message):
                        self._link.confirm()
                # A controller that sends without end must not block the others.
                await asyncio.sleep(0)
        except OSError as error:
            reason = Text.of("the connection is lost: {reason}", reason=error)
        except Refused as refusal:
            fault, reason = ConnectionFault.PROTOCOL, refusal.text
        lost = self._end(ConnectionFailed(fault, reason))
        if not self._is_stopping:
            raise lost

    async def keep_alive(self) -> None:
        """Send a heartbeat where nothing was sent or received; raise Unavailable after too long a silence."""
        loop = asyncio.get_running_loop()
        last_sign = loop.time()
        while True:
            await asyncio.sleep(min(self._keep_alive_s, self._times.silence) / 4)
            if self._lost is not None:
                raise self._lost
            if loop.time() - self._last_received > self._times.silence:
                reason = Text.of("the controller is silent for {silence:g} s", silence=self._times.silence)
                raise self._end(ConnectionFailed(ConnectionFault.SILENT, reason))
            if loop.time() - min(self._last_sent, max(last_sign, self._last_received)) >= self._keep_alive_s:
                last_sign = loop.time()
                await self.send(MidFrame(Mid.KEEP_ALIVE))

    def _receive(self, frame: MidFrame) -> None:
        message = self._link.receive(frame)
        if message is None or message.mid == Mid.KEEP_ALIVE:
            return
        if self._is_answer(message) or message.mid in REPLIES:
            # An answer that nothing waits for any more is dropped.
            return
        if self._messages.full():
            # A handler that cannot follow gets the results again as old ones.
            self._end(
                Unavailable(
                    Text.of(
                        "more than {waiting_messages} messages wait to be handled", waiting_messages=_WAITING_MESSAGES
                    )
                )
            )
            return
        self._messages.put_nowait((message, self._last_received))

    def _is_answer(self, message: MidFrame) -> bool:
        """Return whether a message answers the waiting request, which then has its answer."""
        if self._request is None or self._request[2].done():
            return False
        named, answers, answered = self._request
        if message.mid == Mid.DECLINED:
            declined, error = decline_of(message)
            if declined not in named:
                return False
            answered.set_exception(DeclinedError(declined, error))
            return True
        is_of_another = message.mid == Mid.ACCEPTED and parse_message(message)["mid"] not in named
        if message.mid not in answers or is_of_another:
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
