"""The connection that serves all reads and commits: one socket, many calls in flight, reconnected on demand."""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, cast

import hiredis
from msgspec import Struct

from edge.foundation.errors import Defect, EdgeError, SettingsError, Unavailable
from edge.foundation.text import Text

ADVICE_START = "Start the Redis server, or correct [redis] url."


class AccessDenied(Unavailable):
    """The server refuses our user or a command: at the start a fault of the settings, later possibly temporary."""


class WrongServer(Unavailable):
    """The server is not one that can hold a store: a node of a Redis Cluster, or a sentinel."""


class TlsFailed(Unavailable):
    """The TLS of both sides does not match: certificate, authority, or a side without TLS."""


class OutOfMemory(Unavailable):
    """The server has reached its memory limit: commands that need memory are refused until some is freed."""


class GroupExists(Unavailable):
    """A consumer group exists already."""


def settings_advice(error: EdgeError) -> str | Text:
    """Return the advice of an error that the settings or the server's rights cause; empty for a silent server."""
    return error.advice_text if isinstance(error, AccessDenied | WrongServer | TlsFailed | SettingsError) else ""


def error_of_reply(reply: str) -> EdgeError:
    """Return the error for an error reply of the server, by its first word."""
    match reply.partition(" ")[0]:
        case "WRONGPASS" | "NOAUTH":
            return AccessDenied(
                Text.of("Redis refuses our password: {reply}", reply=reply),
                "Set [redis] password or password_file to that of the server.",
            )
        case "NOPERM":
            advice = "Allow the user in [redis] url all commands on keys and channels that begin with [redis] prefix."
            return AccessDenied(Text.of("our user may not do what we must in Redis: {reply}", reply=reply), advice)
        case "OOM":
            advice = "Raise `maxmemory` of the Redis server or shorten [retention]."
            return OutOfMemory(Text.of("Redis is out of memory: {reply}", reply=reply), advice)
        case "READONLY":
            return Unavailable(
                Text.of("Redis is a read-only replica: {reply}", reply=reply),
                "Point [redis] url at the primary server.",
            )
        case "LOADING":
            return Unavailable(Text.of("Redis does not answer: {reply}", reply=reply), ADVICE_START)
        case "MASTERDOWN" | "BUSY":
            return Unavailable(
                Text.of("Redis cannot serve now: {reply}", reply=reply), "Read the log of the Redis server."
            )
        case "MISCONF" | "NOREPLICAS":
            return Unavailable(
                Text.of("Redis cannot serve now: {reply}", reply=reply),
                "Read the log of the Redis server (disk full?).",
            )
        case "BUSYGROUP":
            return GroupExists(Text.of("a consumer group exists already: {reply}", reply=reply))
        case "NOGROUP" | "UNBLOCKED":
            return Unavailable(
                Text.of("a consumer group came or went: {reply}", reply=reply),
                "Find out who empties the Redis database.",
            )
        case "ERR" if "AUTH" in reply:
            return AccessDenied(
                Text.of("Redis refuses our password: {reply}", reply=reply),
                "Correct [redis] password and the user in url.",
            )
        case _:
            return Defect(Text.of("Redis refuses a command of ours: {reply}", reply=reply), "Report this with the log.")


Argument = str | bytes | int
Command = Sequence[Argument]

_INCOMPLETE = object()
_GRACE_S = 0.02
_LONGEST_HANDSHAKE_S = 60.0
_TOO_SLOW = "no reply in time"


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
        self.lost_by: Exception | None = None
        """The error of the socket that ended it."""

    @property
    def handshake_within_s(self) -> float:
        """The time for a TLS handshake, shorter than that of a call."""
        return min(_LONGEST_HANDSHAKE_S, 0.8 * self._timeout)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        """Fail every call in flight."""
        self.lost_by = error
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
            self.fail(_TOO_SLOW)

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
        return Unavailable(Text.of("Redis does not answer: {failure}", failure=self.failure), ADVICE_START)


_BACKOFF_S = (0.02, 0.5)


class Endpoint(Struct, frozen=True):
    """Where a server listens, a Unix socket or TCP, and who we are to it.

    The server of a store must be neither a node of a Redis Cluster nor a sentinel.
    """

    path: str = ""
    host: str = ""
    port: int = 6379
    tls: ssl.SSLContext | None = None
    username: str = ""
    password: str = ""
    database: int = 0
    client_name: str = ""
    is_store: bool = True


class Greeting(Protocol):
    """Asks each new connection whether its server is the expected one, before any call uses it."""

    @property
    def commands(self) -> Sequence[Command]:
        """Return the questions."""
        ...

    def accept(self, replies: Sequence[Any]) -> None:
        """Accept the server. Raises an EdgeError for replies of another one: the connection is closed then."""
        ...


class CommandConnection:
    """Runs commands on one socket, in the order of the calls; opens it for the first call after a loss.

    Each new socket has to pass the greeting, if there is one. Times are in seconds. While attempts to connect fail,
    calls fail at once, and the next attempt waits for a growing delay. A lost connection raises Unavailable in all
    calls in flight: what they have done is unknown.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        greeting: Greeting | None = None,
        timeout: float = 5.0,
        most_in_flight: int = 1000,
        backoff: tuple[float, float] = _BACKOFF_S,
    ) -> None:
        self.endpoint = endpoint
        self._greeting = greeting
        self._timeout = timeout
        self._most_in_flight = most_in_flight
        self._backoff = backoff
        self._pipeline: Pipeline | None = None
        self._ended: EdgeError | None = None
        self._connecting = asyncio.Lock()
        self._failures = 0
        self._retry_at = 0.0
        self._last_failure: EdgeError = Unavailable("")

    async def call(self, *commands: Command) -> list[Any]:
        """Run commands in one round trip and return their replies, in which a ReplyError is an error of the server.

        Raises Unavailable when there is no connection or no reply in time.
        """
        pipeline = self._pipeline
        if pipeline is None or pipeline.failure is not None:
            pipeline = await self._connected()
        packed = pack_command(commands[0]) if len(commands) == 1 else b"".join(map(pack_command, commands))
        replies = await pipeline.call(packed, len(commands))
        for reply in replies:
            if isinstance(reply, ReplyError) and str(reply).startswith("READONLY"):
                # The server is a replica now; its name may lead to the primary soon.
                pipeline.fail("the server has become a replica")
                break
        return replies

    async def _connected(self) -> Pipeline:
        try:
            async with asyncio.timeout(self._timeout), self._connecting:
                if self._pipeline is not None and self._pipeline.failure is None:
                    return self._pipeline
                if self._ended is not None:
                    raise type(self._ended)(self._ended.message, self._ended.advice)
                if asyncio.get_running_loop().time() < self._retry_at:
                    raise type(self._last_failure)(self._last_failure.message, self._last_failure.advice)
                try:
                    self._pipeline = await self._open()
                except (OSError, EdgeError) as error:
                    raise self._note_failure(error) from None
        except TimeoutError as error:
            raise self._note_failure(error) from None
        self._failures = 0
        return self._pipeline

    def _note_failure(self, error: OSError | EdgeError) -> EdgeError:
        """Set the time of the next attempt; return the error for the caller."""
        shortest, longest = self._backoff
        self._retry_at = asyncio.get_running_loop().time() + min(longest, shortest * 2.0 ** min(self._failures, 16))
        self._failures += 1
        match error:
            case EdgeError():
                self._last_failure = error
            case ssl.SSLError() | ConnectionAbortedError() | ConnectionResetError() if self.endpoint.tls:
                self._last_failure = _tls_failure(error)
            case TimeoutError() if error.errno is None:
                self._last_failure = Unavailable("Redis does not answer: no reply in time", ADVICE_START)
            case _:
                self._last_failure = Unavailable(Text.of("Redis does not answer: {reason}", reason=error), ADVICE_START)
        return self._last_failure

    async def _open(self) -> Pipeline:
        pipeline = Pipeline(self._timeout, self._most_in_flight)
        await connect(pipeline, self.endpoint, self._greeting)
        if self._ended is not None:
            pipeline.fail(self._ended.message)
            raise self._ended
        return pipeline

    def close(self) -> None:
        """Close the socket; calls in flight raise Unavailable, and the next call connects again."""
        if self._pipeline is not None:
            self._pipeline.fail("the connection was closed")

    def end(self, error: Unavailable) -> None:
        """Close the socket for ever; from now on each call raises the error."""
        self._ended = error
        if self._pipeline is not None:
            self._pipeline.fail(error.message)


_HOST_MISMATCHES: Final = frozenset({62, 64})
"""Codes of OpenSSL: the certificate names neither the host (X509_V_ERR_HOSTNAME_MISMATCH) nor the IP address."""


def _tls_failure(error: OSError) -> TlsFailed:
    """Return the error for a TLS handshake that failed, with the setting that decides it."""
    match error:
        case ssl.SSLCertVerificationError() if error.verify_code in _HOST_MISMATCHES:
            advice = "Name the host in [redis] url as the certificate of the server does, or add it to the certificate."
        case ssl.SSLCertVerificationError():
            advice = "Set [redis] ca_file to the certificate of the authority that signed that of the server."
        case _:
            advice = (
                "Write redis instead of rediss in [redis] url for a port without TLS. "
                "For a server that checks its clients, set cert_file and key_file."
            )
    reason = Text.of("no TLS handshake in time") if isinstance(error, ConnectionAbortedError) else str(error)
    return TlsFailed(Text.of("Redis does not answer: {reason}", reason=reason), advice)


async def connect(pipeline: Pipeline, endpoint: Endpoint, greeting: Greeting | None = None) -> None:
    """Open the socket of a pipeline and greet the server. Raises OSError and EdgeError; the pipeline has ended then."""
    loop = asyncio.get_running_loop()
    try:
        if endpoint.path:
            await loop.create_unix_connection(lambda: pipeline, endpoint.path)
        else:
            await loop.create_connection(
                lambda: pipeline,
                endpoint.host,
                endpoint.port,
                ssl=endpoint.tls,
                ssl_handshake_timeout=pipeline.handshake_within_s if endpoint.tls else None,
            )
        await _log_in(pipeline, endpoint)
        if greeting is not None:
            greeting.accept(await _run(pipeline, greeting.commands))
    except BaseException as error:
        # Cancelled, too: a socket without greeting must not be used.
        pipeline.fail("the connection was not opened")
        lost_by = pipeline.lost_by
        if endpoint.tls and isinstance(error, Unavailable) and isinstance(lost_by, ssl.SSLError | ConnectionResetError):
            # With TLS 1.3 a server refuses the certificate of its client after the handshake.
            raise lost_by from error
        raise


async def _run(pipeline: Pipeline, commands: Sequence[Command]) -> Sequence[Any]:
    return _checked(await pipeline.call(b"".join(map(pack_command, commands)), len(commands)))


def _checked(replies: Sequence[Any]) -> Sequence[Any]:
    for reply in replies:
        if isinstance(reply, ReplyError):
            raise error_of_reply(str(reply))
    return replies


async def _log_in(pipeline: Pipeline, endpoint: Endpoint) -> None:
    """Begin a connection. Raises WrongServer for a server that cannot hold a store, and EdgeError."""
    commands = _login(endpoint)
    try:
        replies = await pipeline.call(b"".join(map(pack_command, commands)), len(commands))
    except Unavailable as error:
        if endpoint.tls or endpoint.path or pipeline.failure == _TOO_SLOW:
            raise
        # A port with TLS closes a connection that does not begin with a handshake, or sends a TLS alert.
        raise TlsFailed(
            error.text, "Look into the log of the server. Write rediss in [redis] url for a port with TLS."
        ) from None
    if endpoint.is_store and isinstance(replies[0], Mapping):
        _refuse_mode(replies[0].get("mode", ""))
    _checked(replies)


def _refuse_mode(mode: str) -> None:
    """Raise WrongServer for a mode, as HELLO answers it, in which a commit cannot run."""
    if mode == "cluster":
        raise WrongServer(
            "[redis] url leads to a Redis Cluster, which cannot carry out a commit on keys of several servers",
            'Use one primary with replicas behind Sentinel: url = "redis+sentinel://host:port,host:port/service"',
        )
    if mode == "sentinel":
        raise WrongServer(
            "[redis] url leads to a sentinel, which holds no data, as if it was a server",
            'Name the sentinels and their service: url = "redis+sentinel://host:port,host:port/service"',
        )


def _login(endpoint: Endpoint) -> Sequence[Command]:
    """Return the commands that begin a connection: RESP3, who we are, and which database."""
    hello: list[str] = ["HELLO", "3"]
    if endpoint.password:
        hello += ["AUTH", endpoint.username or "default", endpoint.password]
    if endpoint.client_name:
        hello += ["SETNAME", endpoint.client_name]
    return [hello, ["SELECT", str(endpoint.database)]] if endpoint.database else [hello]
