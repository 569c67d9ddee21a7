"""The connection that serves all reads and commits: one socket, many calls in flight, reconnected on demand."""

import asyncio
import ssl
from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from edge.foundation.errors import EdgeError, Unavailable
from edge.store.errors import ADVICE_START, error_of_reply
from edge.store.pipeline import Command, Pipeline, ReplyError, pack_command

_BACKOFF_S = (0.02, 0.5)


class Endpoint(Struct, frozen=True):
    """Where a server listens, a Unix socket or TCP, and who we are to it."""

    path: str = ""
    host: str = ""
    port: int = 6379
    tls: ssl.SSLContext | None = None
    username: str = ""
    password: str = ""
    database: int = 0
    client_name: str = ""


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
            case TimeoutError() if error.errno is None:
                self._last_failure = Unavailable("Redis does not answer: no reply in time", ADVICE_START)
            case _:
                self._last_failure = Unavailable(f"Redis does not answer: {error}", ADVICE_START)
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


async def connect(pipeline: Pipeline, endpoint: Endpoint, greeting: Greeting | None = None) -> None:
    """Open the socket of a pipeline and greet the server. Raises OSError and EdgeError; the pipeline has ended then."""
    loop = asyncio.get_running_loop()
    try:
        if endpoint.path:
            await loop.create_unix_connection(lambda: pipeline, endpoint.path)
        else:
            await loop.create_connection(lambda: pipeline, endpoint.host, endpoint.port, ssl=endpoint.tls)
        await _run(pipeline, _login(endpoint))
        if greeting is not None:
            greeting.accept(await _run(pipeline, greeting.commands))
    except BaseException:
        # Cancelled, too: a socket without greeting must not be used.
        pipeline.fail("the connection was not opened")
        raise


async def _run(pipeline: Pipeline, commands: Sequence[Command]) -> Sequence[Any]:
    replies = await pipeline.call(b"".join(map(pack_command, commands)), len(commands))
    for reply in replies:
        if isinstance(reply, ReplyError):
            raise error_of_reply(str(reply))
    return replies


def _login(endpoint: Endpoint) -> Sequence[Command]:
    """Return the commands that begin a connection: RESP3, who we are, and which database."""
    hello: list[str] = ["HELLO", "3"]
    if endpoint.password:
        hello += ["AUTH", endpoint.username or "default", endpoint.password]
    if endpoint.client_name:
        hello += ["SETNAME", endpoint.client_name]
    return [hello, ["SELECT", str(endpoint.database)]] if endpoint.database else [hello]
