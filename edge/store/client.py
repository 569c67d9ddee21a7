"""The one door to Redis: commands, commits and channels, with every error sorted by what to do next."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import structlog
from msgspec import Struct

from edge.foundation.errors import Unavailable
from edge.foundation.fault_points import FaultPoint, fault_point
from edge.foundation.instant import Latency
from edge.foundation.text import Text
from edge.foundation.ticks import until_tick
from edge.store.background import Defects, Heartbeat
from edge.store.blocking_connections import BlockingConnections, Subscriptions
from edge.store.bounds import BoundedCount, MarksBySender
from edge.store.commit import COMMIT_LUA, COMMIT_SHA, Commit, CommitResult, Stale, pack, run_commit
from edge.store.connection import Argument, CommandConnection, Endpoint
from edge.store.fence import Fence
from edge.store.generation import GenerationCheck
from edge.store.keys import Keys
from edge.store.lease_watch import LeaseWatch, OwnLease
from edge.store.query import Replies, StoreQuery, shape, value_of, values_of
from edge.store.replication import Replication
from edge.store.sentinels import Sentinels

logger = structlog.get_logger(__name__)

_T = TypeVar("_T")

TIMEOUT_S = 5.0
_MAX_BLOCK_S = 5
MAX_BLOCK_MS = _MAX_BLOCK_S * 1000
_OVER_ADVICE = "The gateway opens the store again by itself; a command can be repeated."
COMMIT_BUCKETS_S = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
"""Bounds of commits: from a socket on this host to a disk that hangs."""


def block_ms() -> int:
    """Return for how long a command blocks: until the next multiple of MAX_BLOCK_MS on the clock of the event loop.

    Commands that find nothing end together: an idle gateway wakes rarely.
    """
    return math.ceil(until_tick(asyncio.get_running_loop().time(), _MAX_BLOCK_S) * 1000)


class HighAvailability(Struct, frozen=True):
    """What a store behind Sentinel has in addition: who vouches for its primary, and in which generation it works."""

    sentinels: Sentinels
    fence: Fence
    generation: GenerationCheck
    replication: Replication


class Store:
    """The one door to Redis. Every call raises Unavailable when the server cannot serve it now.

    Reads and commits share `connection`; commands that block have connections of their own in `blocking`.

    Behind Sentinel a store is one generation of the data: when the primary changes, `over` is set, every call raises
    Unavailable from then on, and its user opens another store. Whatever was read by it, caches and positions included,
    is over with it.
    """

    def __init__(
        self,
        connection: CommandConnection,
        blocking: BlockingConnections,
        subscriptions: Subscriptions,
        keys: Keys,
        consumer: str | None,
        ha: HighAvailability | None = None,
    ) -> None:
        self._connection = connection
        self._blocking = blocking
        self._subscriptions = subscriptions
        self.subscribe = subscriptions.subscribe
        self.keys = keys
        self.heartbeat = Heartbeat()
        self.defects = Defects()
        self.lease_watch = LeaseWatch()
        self.own_lease = OwnLease()
        self.marks = BoundedCount()
        """The last count of marks: while it is at its limit, messages that need a new one wait."""
        self.marks_by_sender = MarksBySender()
        """The last count of the marks of each sender."""
        self.consumer = consumer or ""
        """The name under which this instance takes work and keeps its outbox; empty for a command that only uses the
        store."""
        self.commits = Latency(COMMIT_BUCKETS_S)
        """Duration of the commits, those that were stale included."""
        self.ha = ha
        """None without Sentinel: then nothing is asked and nothing is guarded."""
        self.is_durable = True
        """Whether the server has to write down each change: `[redis] durability`."""
        self.problems: tuple[Text, ...] = ()
        """What the server was found to lack when it was adopted."""
        self.outage_listeners: list[Callable[[], None]] = []
        """Called at each commit that the store did not take: leases are renewed each second."""
        self.over = asyncio.Event()
        """Set when the primary has changed: this store is of no use any more."""

    @property
    def unconfirmed(self) -> str | Text:
        """Why no action may be started now: a majority of the sentinels does not confirm the primary. Else empty."""
        return "" if self.ha is None else self.ha.fence.reason

    @property
    def may_lack_notes(self) -> bool:
        """Whether what gateways did last may not be written yet, such as that a command was sent."""
        return self.ha is not None and self.ha.fence.may_lack_notes

    @property
    def clock_ms(self) -> int:
        """What the jobs' clock is ahead of the clock of the server's host, in milliseconds."""
        return 0 if self.ha is None or self.ha.generation.expected is None else self.ha.generation.expected.clock_ms

    def end(self, reason: str | Text) -> None:
        """End this store for ever: all connections close, and every call raises Unavailable."""
        if self.over.is_set():
            return
        logger.warning("primary changed, store closed", reason=str(reason))
        self.over.set()
        error = Unavailable(Text.of("the primary of the store has changed: {reason}", reason=reason), _OVER_ADVICE)
        self._connection.end(error)
        self._blocking.end(error)
        self._subscriptions.end(error)
        if self.ha is not None:
            self.ha.replication.end(error)

    @property
    def endpoint(self) -> Endpoint:
        """Where the primary listens, and who we are to it."""
        return self._connection.endpoint

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
        return Replies(queries, await self._send([command for query in queries for command in query.commands]))

    async def _send(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        self.heartbeat.beat()
        if not commands:
            return []
        return await self._connection.call(*((*str(command[0]).split(), *command[1:]) for command in commands))

    async def commit(self, commit: Commit) -> CommitResult:
        """Write what a decision changed: all of it, or nothing and Stale.

        Behind Sentinel a majority has to confirm the primary before the commit is sent and when its reply arrives:
        Unavailable in the second case means that its effect is unknown.
        """
        result = await self.commit_here(commit)
        if self.ha is not None:
            await self.settle()
        return result

    async def commit_here(self, commit: Commit) -> CommitResult:
        """Write as `commit` does, also where the replicas do not confirm: what is of use at this primary only.

        A lease, or the name of a gateway that works: after a failover each gateway writes it again.
        """
        try:
            return await self._commit(commit)
        except Unavailable:
            for notice in self.outage_listeners:
                notice()
            raise

    async def _commit(self, commit: Commit) -> CommitResult:
        began = time.perf_counter()
        ha = self.ha
        if ha is not None:
            ha.fence.require()
            commit = ha.generation.guarded(commit)
        argument = pack(commit)
        fault_point(FaultPoint.DECIDED)
        result = await run_commit(self._connection, argument)
        self.commits.record(time.perf_counter() - began)
        fault_point(FaultPoint.COMMITTED)
        if ha is not None:
            if isinstance(result, Stale) and ha.generation.is_guarded_by(result.key):
                self.end(Text.of("another generation of the store has begun"))
                raise Unavailable(Text.of("another generation of the store has begun"), _OVER_ADVICE)
            ha.fence.require()
        return result

    async def settle(self) -> None:
        """Return when what was read so far may leave: with `durability = "replicated"` the replicas have it, too.

        Raises Unavailable when they do not have it in time, and while a majority does not confirm the primary.
        """
        if self.ha is None:
            return
        if self.ha.replication.is_required:
            await self.ha.replication.confirm()
        self.ha.fence.require()

    async def settle_start(self) -> None:
        """Return when a start that must not be repeated may leave: behind Sentinel the replicas have its begun mark.

        Raises Unavailable when they do not have it in time.
        """
        if self.ha is not None:
            await self.ha.replication.confirm()
            self.ha.fence.require()

    async def wait(self, command: str, *arguments: Argument) -> Any:
        """Run one command that blocks, for at most MAX_BLOCK_MS, on a connection of its own."""
        self.heartbeat.beat()
        return shape(command, await self._blocking.run((command, *arguments)))


_SCRIPT_NAME = "guarded_commit"


async def share_script(store: Store) -> None:
    """Write the script with its SHA-1, by which `EVALSHA` calls it, unless it is there."""
    if await store.execute("HGET", store.keys.scripts(), f"{_SCRIPT_NAME}:sha1") != COMMIT_SHA:
        text = COMMIT_LUA.decode()
        await store.execute("HSET", store.keys.scripts(), _SCRIPT_NAME, text, f"{_SCRIPT_NAME}:sha1", COMMIT_SHA)
