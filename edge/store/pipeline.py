"""One socket to Redis on which many calls are in flight: replies are matched to calls by their order."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

import hiredis

from edge.foundation.errors import Unavailable
from edge.store.errors import ADVICE_START

Argument = str | bytes | int
Command = Sequence[Argument]

_INCOMPLETE = object()
_GRACE_S = 0.02


class ReplyError(Exception):
    """An error reply of the server, in its own words."""


def pack_command(command: Command) -> bytes:
    """Return a command as RESP; a surrogate, which UTF-8 does not know, is sent as its escape."""
    try:
        packed: bytes = hiredis.pack_command(tuple(command))  # type: ignore[arg-type]
    except UnicodeEncodeError:
        escaped = (text.encode(errors="backslashreplace") if isinstance(text, str) else text for text in command)
        packed = hiredis.pack_command(tuple(escaped))  # type: ignore[arg-type]
    return packed


class _Call:
    """Commands that were sent together; the future gets the list of their replies."""

    __slots__ = ("missing", "replies", "result", "sent_at")

    def __init__(self, commands: int, result: asyncio.Future[list[Any]], sent_at: float) -> None:
        self.missing = commands
        self.replies: list[Any] = []
        self.result = result
        self.sent_at = sent_at


class Pipeline(asyncio.Protocol):
    """Sends commands in order and hands each call its replies; after any fault every call in flight fails.

    A call whose caller was cancelled keeps its place, and its replies are dropped. When the oldest call has waited for
    `timeout` seconds, the connection ends: the calls behind it cannot be answered before it. The effect of the commands
    in flight is unknown then.
    """

    def __init__(self, timeout: float, most_in_flight: int, pushed: Callable[[Any], None] | None = None) -> None:
        """Pass each push message to `pushed`, and None at the end of the connection."""
        self._timeout = timeout
        self._most_in_flight = most_in_flight
        self._pushed = pushed
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(
            encoding="utf-8",
            # Binary values of another application must not hide other values.
            errors="backslashreplace",
            replyError=ReplyError,
            notEnoughData=_INCOMPLETE,
        )
        self._transport: asyncio.Transport | None = None
        self._calls: deque[_Call] = deque()
        self._outgoing: list[bytes] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._paused = False
        self._deadline: asyncio.TimerHandle | None = None
        self._overdue: _Call | None = None
        self.failure: str | None = None
        """Why the connection ended; None while it is open."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        """Fail every call in flight."""
        self.fail(str(error) if error else "the server has closed the connection")

    def pause_writing(self) -> None:
        """Pause new calls: the server does not read."""
        self._paused = True

    def resume_writing(self) -> None:
        """Resume sending calls."""
        self._paused = False
        self._wake()

    async def call(self, packed: bytes, commands: int) -> list[Any]:
        """Send packed commands and return their replies; ReplyErrors are among them. Raises Unavailable."""
        if self._paused or len(self._calls) >= self._most_in_flight:
            await self._wait_for_room()
        if self.failure is not None:
            raise self._unavailable()
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(packed)
        call = _Call(commands, self._loop.create_future(), self._loop.time())
        self._calls.append(call)
        if self._deadline is None:
            self._deadline = self._loop.call_later(self._timeout, self._check_deadline)
        return await call.result

    async def _wait_for_room(self) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                while self.failure is None and (self._paused or len(self._calls) >= self._most_in_flight):
                    turn = self._loop.create_future()
                    self._waiting.append(turn)
                    await turn
        except TimeoutError:
            raise Unavailable("Redis does not answer: too many calls wait for it", ADVICE_START) from None

    def _flush(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()

    def data_received(self, data: bytes) -> None:
        """Return every reply that is complete to the oldest call."""
        try:
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not _INCOMPLETE:
                if not isinstance(reply, hiredis.PushNotification):
                    self._take(reply)
                elif self._pushed is not None:
                    self._pushed(reply)
        except (hiredis.ProtocolError, IndexError) as error:
            self.fail(f"an unexpected reply, or not RESP: {error!r}")
        if self._waiting:
            self._wake()

    def _take(self, reply: object) -> None:
        call = self._calls[0]
        call.replies.append(reply)
        call.missing -= 1
        if call.missing:
            return
        self._calls.popleft()
        if not call.result.done():
            call.result.set_result(call.replies)

    def _wake(self) -> None:
        """Wake waiting calls, in their order."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)

    def _check_deadline(self) -> None:
        self._deadline = None
        if not self._calls:
            return
        oldest = self._calls[0]
        due = oldest.sent_at + self._timeout
        if due > self._loop.time():
            self._deadline = self._loop.call_at(due, self._check_deadline)
        elif oldest is not self._overdue:
            # The process may have been stopped, with the reply in the socket: read that first.
            self._overdue = oldest
            self._deadline = self._loop.call_later(_GRACE_S, self._check_deadline)
        else:
            self.fail("no reply in time")

    def fail(self, reason: str) -> None:
        """End the connection: every call in flight raises Unavailable."""
        if self.failure is not None:
            return
        self.failure = reason
        if self._deadline is not None:
            self._deadline.cancel()
        if self._transport is not None:
            self._transport.abort()
        for call in self._calls:
            if not call.result.done():
                call.result.set_exception(self._unavailable())
        self._calls.clear()
        self._wake()
        if self._pushed is not None:
            self._pushed(None)

    def _unavailable(self) -> Unavailable:
        return Unavailable(f"Redis does not answer: {self.failure}", ADVICE_START)
