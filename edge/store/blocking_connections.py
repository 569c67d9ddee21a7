"""Connections that wait: for commands that block, each one at a time, and for the messages of channels."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.store.connection import (
    ADVICE_START,
    Command,
    CommandConnection,
    Endpoint,
    Greeting,
    Pipeline,
    ReplyError,
    connect,
    error_of_reply,
    pack_command,
)

_NO_DEADLINE_S: Final = 86_400.0
"""`run` sets the deadline of each command. A deadline of the connection would wake an idle gateway."""


class BlockingConnections:
    """Runs commands that block, each on a connection of its own; opens one when all others wait.

    A command has `timeout` seconds for its reply.
    """

    def __init__(self, endpoint: Endpoint, timeout: float, greeting: Greeting | None = None) -> None:
        self._endpoint = endpoint
        self._greeting = greeting
        self._ended: Unavailable | None = None
        self._timeout = timeout
        self._idle: list[CommandConnection] = []
        self._waiting: set[CommandConnection] = set()

    async def run(self, command: Command) -> Any:
        """Run a command and return its reply. Raises Unavailable when there is none in time."""
        connection = self._idle.pop() if self._idle else self._new_connection()
        self._waiting.add(connection)
        try:
            async with asyncio.timeout(self._timeout):
                (reply,) = await connection.call(command)
        except TimeoutError:
            connection.close()
            raise Unavailable("Redis does not answer: no reply in time", ADVICE_START) from None
        except BaseException:
            # Cancelled, too: the server ends the command with its connection.
            connection.close()
            raise
        finally:
            self._waiting.discard(connection)
        self._idle.append(connection)
        if isinstance(reply, ReplyError):
            raise error_of_reply(str(reply))
        return reply

    def _new_connection(self) -> CommandConnection:
        connection = CommandConnection(self._endpoint, greeting=self._greeting, timeout=_NO_DEADLINE_S)
        if self._ended is not None:
            connection.end(self._ended)
        return connection

    def end(self, error: Unavailable) -> None:
        """Close every connection for ever; from now on each command raises the error."""
        self._ended = error
        for connection in (*self._idle, *self._waiting):
            connection.end(error)

    def close(self) -> None:
        """Close every connection; commands that wait raise Unavailable."""
        for connection in (*self._idle, *self._waiting):
            connection.close()


_SUBSCRIBED_WITHIN_S = 5.0


class Subscriptions:
    """The subscriptions of a store; each new connection has to pass the greeting, if there is one."""

    def __init__(self, endpoint: Endpoint, greeting: Greeting | None = None) -> None:
        self._endpoint = endpoint
        self._greeting = greeting
        self._open: set[Pipeline] = set()
        self._ended: Unavailable | None = None

    @contextlib.asynccontextmanager
    async def subscribe(self, channel: str) -> AsyncIterator[AsyncIterator[str]]:
        """Subscribe to a channel for the length of the block; earlier messages are lost.

        Raises Unavailable, also from the iterator when the connection is lost.
        """
        pushed: asyncio.Queue[Any] = asyncio.Queue()
        pipeline = Pipeline(_SUBSCRIBED_WITHIN_S, 2, pushed.put_nowait)
        self._open.add(pipeline)
        try:
            await self._begin(pipeline, channel)
            yield self._messages(pipeline, pushed)
        finally:
            self._open.discard(pipeline)
            pipeline.fail("the subscription has ended")

    async def _begin(self, pipeline: Pipeline, channel: str) -> None:
        self._raise_ended()
        try:
            async with asyncio.timeout(_SUBSCRIBED_WITHIN_S):
                await connect(pipeline, self._endpoint, self._greeting)
                # A subscription is confirmed by a push message; the reply to PING comes after it.
                (reply,) = await pipeline.call(pack_command(("SUBSCRIBE", channel)) + pack_command(("PING",)), 1)
        except OSError as error:
            raise Unavailable(
                Text.of("Redis does not answer: {reason}", reason=str(error) or Text.of("no reply in time")),
                ADVICE_START,
            ) from error
        if isinstance(reply, ReplyError):
            raise error_of_reply(str(reply))

    async def _messages(self, pipeline: Pipeline, pushed: asyncio.Queue[Any]) -> AsyncIterator[str]:
        while (message := await pushed.get()) is not None:
            kind, _, payload = message
            if kind == "message":
                yield payload
        self._raise_ended()
        raise Unavailable(Text.of("Redis does not answer: {failure}", failure=pipeline.failure), ADVICE_START)

    def _raise_ended(self) -> None:
        if self._ended is not None:
            raise Unavailable(self._ended.message, self._ended.advice)

    def end(self, error: Unavailable) -> None:
        """End every subscription for ever: from now on each one raises the error."""
        self._ended = error
        for pipeline in tuple(self._open):
            pipeline.fail(error.message)
