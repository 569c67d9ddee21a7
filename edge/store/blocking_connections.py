"""Connections for commands that block: each runs one command at a time and serves the next one afterwards."""

import asyncio
from typing import Any, Final

from edge.foundation.errors import Unavailable
from edge.store.connection import CommandConnection, Endpoint, Greeting
from edge.store.errors import ADVICE_START, error_of_reply
from edge.store.pipeline import Command, ReplyError

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
