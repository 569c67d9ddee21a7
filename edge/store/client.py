"""The one door to Redis: commands, commits and channels, with every error sorted by what to do next."""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import AsyncIterator, Sequence
from importlib import resources
from typing import Any

import redis.asyncio as aioredis

from edge.fault_points import FaultPoint, fault_point
from edge.latency import Latency
from edge.store.bounds import BoundedCount
from edge.store.commit import Commit, CommitResult, pack, unpack
from edge.store.connection import CommandConnection
from edge.store.errors import error_of_reply, translate_errors
from edge.store.heartbeat import Heartbeat
from edge.store.keys import Keys
from edge.store.pipeline import Argument, ReplyError

TIMEOUT_S = 5.0
MAX_BLOCK_MS = 5000
COMMIT_BUCKETS_S = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
"""Bounds of commits: from a socket on this host to a disk that hangs."""

COMMIT_LUA = resources.files("edge.store").joinpath("lua/commit.lua").read_bytes()
COMMIT_SHA = hashlib.sha1(COMMIT_LUA, usedforsecurity=False).hexdigest()


class Store:
    """The one door to Redis. Every call raises Unavailable when the server cannot serve it now.

    Reads and commits share `connection`; commands that block, and channels, have connections of their own in
    `blocking`, whose callbacks also shape the replies of the others.
    """

    def __init__(
        self, connection: CommandConnection, blocking: aioredis.Redis, keys: Keys, consumer: str | None
    ) -> None:
        self._connection = connection
        self._blocking = blocking
        self._callbacks = {**blocking.response_callbacks, "INFO": _info_fields}
        self.keys = keys
        self.heartbeat = Heartbeat()
        self.marks = BoundedCount()
        """The last count of marks: while it is at its limit, messages that need a new one wait."""
        self.consumer = consumer or ""
        """The name under which this instance takes work and keeps its outbox; empty for a command that only uses the
        store."""
        self.commits = Latency(COMMIT_BUCKETS_S)
        """Duration of the commits, those that were stale included."""

    @property
    def database(self) -> int:
        """The number of the database."""
        return int(self._blocking.get_connection_kwargs().get("db") or 0)

    async def execute(self, command: str, *arguments: Argument) -> Any:
        """Run one command that reads, or that writes nothing on which a decision depends."""
        self.heartbeat.beat()
        (reply,) = await self._connection.call((*command.split(), *arguments))
        return self._shape(command, reply)

    async def read(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """Run several reading commands in one round trip; none when there are no commands."""
        self.heartbeat.beat()
        if not commands:
            return []
        replies = await self._connection.call(*((*str(command[0]).split(), *command[1:]) for command in commands))
        return [self._shape(str(command[0]), reply) for command, reply in zip(commands, replies, strict=True)]

    def _shape(self, command: str, reply: Any) -> Any:
        """Return a reply in the shape of redis-py; raise the error if it is one."""
        if isinstance(reply, ReplyError):
            raise error_of_reply(str(reply))
        shape = self._callbacks.get(command)
        return reply if shape is None else shape(reply)

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
        with translate_errors():
            async with asyncio.timeout(TIMEOUT_S + MAX_BLOCK_MS / 1000):
                return await self._blocking.execute_command(command, *arguments)

    @contextlib.asynccontextmanager
    async def subscribe(self, channel: str) -> AsyncIterator[AsyncIterator[str]]:
        """Subscribe to a channel for the length of the block; earlier messages are lost."""
        async with self._blocking.pubsub() as subscription:
            with translate_errors():
                async with asyncio.timeout(TIMEOUT_S):
                    await subscription.subscribe(channel)
                    await subscription.get_message(timeout=None)
            yield _messages(subscription)


def _info_fields(text: str) -> dict[str, str]:
    """Return the fields of an INFO reply as texts; to convert them all is a ninth of what an idle gateway does."""
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


async def _messages(subscription: aioredis.client.PubSub) -> AsyncIterator[str]:
    while True:
        with translate_errors():
            message = await subscription.get_message(timeout=None)
        if message and message["type"] == "message":
            yield message["data"]
