"""The one door to Redis: commands, commits and channels, with every error sorted by what to do next."""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from importlib import resources
from typing import Any

import redis.asyncio as aioredis
from redis import exceptions

from edge.errors import Defect, EdgeError, Unavailable
from edge.faults import FaultPoint, fault_point
from edge.latency import Latency
from edge.store.commit import Commit, CommitResult, pack, unpack
from edge.store.heartbeat import Heartbeat
from edge.store.keys import Keys

_TIMEOUT_S = 5.0
MAX_BLOCK_MS = 5000
COMMIT_BUCKETS_S = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
"""Bounds of commits: from a socket beside us to a disk that hangs."""

_COMMIT_LUA = resources.files("edge.store").joinpath("lua/commit.lua").read_bytes()
_COMMIT_SHA = hashlib.sha1(_COMMIT_LUA, usedforsecurity=False).hexdigest()


class Store:
    """The one door to Redis. Every call raises Unavailable when the server cannot serve it now."""

    def __init__(self, client: aioredis.Redis, patient: aioredis.Redis, keys: Keys, consumer: str | None) -> None:
        self._client = client
        self._patient = patient
        self.keys = keys
        self.heartbeat = Heartbeat()
        self.consumer = consumer or ""
        """The name under which this instance takes work and keeps its outbox; a visitor of the store has none."""
        self.commits = Latency(COMMIT_BUCKETS_S)
        """How long the commits took, those that were stale included."""

    async def execute(self, command: str, *arguments: str | bytes | int) -> Any:
        """Run one command that reads, or writes nothing a decision depends on."""
        self.heartbeat.beat()
        with _translate_errors():
            async with asyncio.timeout(_TIMEOUT_S):
                return await self._client.execute_command(command, *arguments)

    async def read(self, commands: Sequence[Sequence[str | bytes | int]]) -> list[Any]:
        """Run several reading commands in one round trip, in none where there are no commands."""
        self.heartbeat.beat()
        with _translate_errors():
            async with asyncio.timeout(_TIMEOUT_S), self._client.pipeline(transaction=False) as pipe:
                for command in commands:
                    pipe.execute_command(*command)
                return await pipe.execute()

    async def commit(self, commit: Commit) -> CommitResult:
        """Write what a decision changed: all of it, or nothing and Stale."""
        began = time.perf_counter()
        argument = pack(commit)
        fault_point(FaultPoint.DECIDED)
        with _translate_errors():
            async with asyncio.timeout(_TIMEOUT_S):
                try:
                    reply = await self._client.execute_command("EVALSHA", _COMMIT_SHA, 0, argument)
                except exceptions.NoScriptError:
                    reply = await self._client.execute_command("EVAL", _COMMIT_LUA, 0, argument)
        self.commits.record(time.perf_counter() - began)
        fault_point(FaultPoint.COMMITTED)
        return unpack(reply)

    async def wait(self, command: str, *arguments: str | bytes | int) -> Any:
        """Run one command that blocks, for at most MOST_BLOCKED_MS, on a connection that others do not need."""
        self.heartbeat.beat()
        with _translate_errors():
            async with asyncio.timeout(_TIMEOUT_S + MAX_BLOCK_MS / 1000):
                return await self._patient.execute_command(command, *arguments)

    @contextlib.asynccontextmanager
    async def subscribe(self, channel: str) -> AsyncIterator[AsyncIterator[str]]:
        """Listen to a channel for the length of the block; what was published there before is gone."""
        async with self._patient.pubsub() as subscription:
            with _translate_errors():
                async with asyncio.timeout(_TIMEOUT_S):
                    await subscription.subscribe(channel)
                    await subscription.get_message(timeout=None)
            yield _messages(subscription)


async def _messages(subscription: aioredis.client.PubSub) -> AsyncIterator[str]:
    while True:
        with _translate_errors():
            message = await subscription.get_message(timeout=None)
        if message and message["type"] == "message":
            yield message["data"]


class AccessDenied(Unavailable):
    """The server refuses us or what we have to do: at the start a fault of the settings, later one that may pass."""


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except (exceptions.RedisError, OSError) as error:
        raise _translate(error) from error


def _translate(error: Exception) -> EdgeError:
    # What the server says to our greeting comes wrapped in an error of the connection.
    said = error.__cause__ if isinstance(error.__cause__, exceptions.AuthenticationError) else error
    match said:
        case exceptions.AuthenticationError():
            advice = "Set [redis] password or password_file to that of the server."
            return AccessDenied(f"Redis refuses our password: {said}", advice)
        case exceptions.NoPermissionError():
            advice = "Allow the user in [redis] url all commands on keys and channels that begin with [redis] prefix."
            return AccessDenied(f"our user may not do what we must in Redis: {said}", advice)
        case exceptions.OutOfMemoryError():
            advice = "Raise `maxmemory` of the Redis server or shorten [retention]."
            return Unavailable(f"Redis is out of memory: {said}", advice)
        case exceptions.ReadOnlyError():
            advice = "Point [redis] url at the primary server."
            return Unavailable(f"Redis is a read-only replica: {said}", advice)
        case exceptions.ConnectionError() | exceptions.TimeoutError() | exceptions.InvalidResponse() | OSError():
            advice = "Start the Redis server, or correct [redis] url."
            return Unavailable(f"Redis does not answer: {str(said) or 'no reply in time'}", advice)
        case exceptions.MasterDownError():
            return Unavailable(f"Redis cannot serve now: {said}", "Look into the log of the Redis server.")
        case exceptions.ResponseError() if str(said).startswith(_PASSING):
            return Unavailable(f"Redis cannot serve now: {said}", "Look into the log of the Redis server (disk full?).")
        case exceptions.ResponseError() if str(said).startswith(_GROUPS):
            return Unavailable(f"a consumer group came or went: {said}", "Find out who empties the Redis database.")
        case _:
            return Defect(f"Redis refuses a command of ours: {said}", "Report this with the log.")


_PASSING = ("MISCONF", "BUSY ", "NOREPLICAS")
_GROUPS = ("NOGROUP", "UNBLOCKED", "BUSYGROUP")
