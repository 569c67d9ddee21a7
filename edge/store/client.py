"""The one door to Redis: commands, commits and channels, with every error sorted by what to do next."""

import asyncio
import hashlib
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeVar

from edge.fault_points import FaultPoint, fault_point
from edge.latency import Latency
from edge.store.blocking_connections import BlockingConnections
from edge.store.bounds import BoundedCount, MarksBySender
from edge.store.commit import Commit, CommitResult, pack, unpack
from edge.store.connection import CommandConnection
from edge.store.defects import Defects
from edge.store.errors import error_of_reply
from edge.store.heartbeat import Heartbeat
from edge.store.keys import Keys
from edge.store.lease_watch import LeaseWatch
from edge.store.pipeline import Argument, ReplyError
from edge.store.query import Replies, StoreQuery, value_of, values_of
from edge.store.replies import shape
from edge.ticks import until_tick

_T = TypeVar("_T")

TIMEOUT_S = 5.0
_MAX_BLOCK_S = 5
MAX_BLOCK_MS = _MAX_BLOCK_S * 1000
COMMIT_BUCKETS_S = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
"""Bounds of commits: from a socket on this host to a disk that hangs."""

COMMIT_LUA = (Path(__file__).parent / "lua/commit.lua").read_bytes()
COMMIT_SHA = hashlib.sha1(COMMIT_LUA, usedforsecurity=False).hexdigest()

Subscribe = Callable[[str], AbstractAsyncContextManager[AsyncIterator[str]]]
"""Subscribes to a channel for the length of the block, and yields its messages; earlier ones are lost."""


def block_ms() -> int:
    """Return for how long a command blocks: until the next multiple of MAX_BLOCK_MS on the clock of the event loop.

    Commands that find nothing end together: an idle gateway wakes rarely.
    """
    return math.ceil(until_tick(asyncio.get_running_loop().time(), _MAX_BLOCK_S) * 1000)


class Store:
    """The one door to Redis. Every call raises Unavailable when the server cannot serve it now.

    Reads and commits share `connection`; commands that block have connections of their own in `blocking`.
    """

    def __init__(
        self,
        connection: CommandConnection,
        blocking: BlockingConnections,
        subscribe: Subscribe,
        keys: Keys,
        consumer: str | None,
    ) -> None:
        self._connection = connection
        self._blocking = blocking
        self.subscribe = subscribe
        self.keys = keys
        self.heartbeat = Heartbeat()
        self.defects = Defects()
        self.lease_watch = LeaseWatch()
        self.marks = BoundedCount()
        """The last count of marks: while it is at its limit, messages that need a new one wait."""
        self.marks_by_sender = MarksBySender()
        """The last count of the marks of each sender."""
        self.consumer = consumer or ""
        """The name under which this instance takes work and keeps its outbox; empty for a command that only uses the
        store."""
        self.commits = Latency(COMMIT_BUCKETS_S)
        """Duration of the commits, those that were stale included."""

    @property
    def database(self) -> int:
        """The number of the database; 0 before the first connection."""
        return self._connection.endpoint.database

    async def execute(self, command: str, *arguments: Argument) -> Any:
        """Run one command that reads, or that writes nothing on which a decision depends."""
        self.heartbeat.beat()
        (reply,) = await self._connection.call((*command.split(), *arguments))
        return value_of(command, reply)

    async def read(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """Run several reading commands in one round trip; none when there are no commands."""
        return values_of(commands, await self._send(commands))

    async def fetch(self, query: StoreQuery[_T]) -> _T:
        """Return the value of a query."""
        return query.value(*await self.read(query.commands))

    async def fetch_all(self, *queries: StoreQuery[Any]) -> Replies:
        """Send queries in one round trip; return their replies."""
        return Replies(queries, await self._send([command for each in queries for command in each.commands]))

    async def _send(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        self.heartbeat.beat()
        if not commands:
            return []
        return await self._connection.call(*((*str(command[0]).split(), *command[1:]) for command in commands))

    async def commit(self, commit: Commit) -> CommitResult:
        """Write what a decision changed: all of it, or nothing and Stale."""
        began = time.perf_counter()
        argument = pack(commit)
        fault_point(FaultPoint.DECIDED)
        (reply,) = await self._connection.call(("EVALSHA", COMMIT_SHA, 0, argument))
        if isinstance(reply, ReplyError) and str(reply).startswith("NOSCRIPT"):
            (reply,) = await self._connection.call(("EVAL", COMMIT_LUA, 0, argument))
        if isinstance(reply, ReplyError):
            raise error_of_reply(str(reply))
        self.commits.record(time.perf_counter() - began)
        fault_point(FaultPoint.COMMITTED)
        return unpack(reply)

    async def wait(self, command: str, *arguments: Argument) -> Any:
        """Run one command that blocks, for at most MAX_BLOCK_MS, on a connection of its own."""
        self.heartbeat.beat()
        return shape(command, await self._blocking.run((command, *arguments)))
