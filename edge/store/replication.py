"""Waits until every replica that may become the primary has received what was committed.

One WAIT serves all callers of a turn of the event loop. It runs on a connection of its own, since it holds what is
behind it, and after a write there: WAIT covers the writes of its own connection, and replication keeps their order.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from edge.foundation.errors import EdgeError, Unavailable
from edge.foundation.text import Text
from edge.store.connection import Command, CommandConnection
from edge.store.query import values_of
from edge.store.sentinels import SentinelView, agreed

WAIT_MS: Final = 1000
_LOOK_AGAIN_MS: Final = 50
_ADVICE = "The effect may exist: repeat the call. See the replicas with: edge store status"


def promotable_replicas(views: Iterable[SentinelView]) -> set[tuple[str, int]]:
    """Return the replicas that a failover may promote: those with a priority that a sentinel sees as running.

    A former primary that was killed or hangs is silent. One that runs counts although it is not a replica yet: Sentinel
    does not ask for the role when it chooses (`sentinelSelectSlave` of sentinel.c). A sentinel that has not heard of
    the last failover yet still names the primary of now among its replicas.
    """
    heard = tuple(views)
    primary = agreed(heard)
    own = (primary.host, primary.port) if primary else None
    replicas = (replica for view in heard for replica in view.replicas)
    return {
        replica.place for replica in replicas if replica.priority > 0 and not replica.is_down and not replica.is_silent
    } - {own}


def priority_problem(views: Iterable[SentinelView]) -> Text | None:
    """Return why a replica that is behind may be promoted; None when Sentinel chooses the one that has most.

    A replica that was down while others confirmed, and is up again, is preferred by its priority to those that have
    more.
    """
    priorities = {replica.priority for view in views for replica in view.replicas if replica.priority > 0}
    if len(priorities) <= 1:
        return None
    return Text.of(
        "the replicas have the priorities {found}, expected one for all: a failover may promote one that is behind",
        found=", ".join(map(str, sorted(priorities))),
    )


class ReplicaOffsets(Struct, frozen=True):
    """How much a primary has written, and what each replica has confirmed of it."""

    offset: int
    confirmed: Mapping[tuple[str, int], int]


def read_offsets(info: Mapping[str, str]) -> ReplicaOffsets:
    """Return the offsets from the reply of a primary to `INFO replication`; ROLE would need a right of its own.

    Raises Unavailable for the reply of a replica.
    """
    if info["role"] != "master":
        raise Unavailable("the primary has become a replica", _ADVICE)
    replicas = [
        dict(part.split("=", 1) for part in value.split(","))
        for name, value in info.items()
        if name.removeprefix("slave").isdecimal()
    ]
    confirmed = {(replica["ip"], int(replica["port"])): int(replica["offset"]) for replica in replicas}
    return ReplicaOffsets(int(info["master_repl_offset"]), confirmed)


class Replication:
    """Confirms commits by the replicas; `least` of them have to exist.

    async with running(replication.run()):
        await replication.confirm()
    """

    def __init__(self, connection: CommandConnection, mark_key: str, views: Iterable[SentinelView], least: int) -> None:
        self._connection = connection
        self._mark_key = mark_key
        self._views = views
        self._least = least
        self._waiting: list[asyncio.Future[None]] = []
        self._wanted = asyncio.Event()

    @property
    def is_required(self) -> bool:
        """Whether each commit has to be confirmed, and not only begun marks."""
        return self._least > 0

    @property
    def problem(self) -> Text | None:
        """Why confirmed commits may be lost nevertheless; None when they cannot."""
        return priority_problem(self._views) if self.is_required else None

    async def confirm(self) -> None:
        """Return when the replicas have what was committed before this call. Raises Unavailable when they do not."""
        confirmed = asyncio.get_running_loop().create_future()
        self._waiting.append(confirmed)
        self._wanted.set()
        await confirmed

    def end(self, error: Unavailable) -> None:
        """Close the connection for ever: callers that wait, and later ones, raise the error."""
        self._connection.end(error)

    async def run(self) -> None:
        """Serve the callers until cancelled, all that wait by one WAIT."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            waiting, self._waiting = self._waiting, []
            error: EdgeError | None = None
            try:
                await self._wait()
            except EdgeError as failure:
                error = failure
            except BaseException:
                # Cancelled, too: no caller may wait for ever.
                _finish(waiting, Unavailable("the store was closed", _ADVICE))
                raise
            _finish(waiting, error)

    async def _wait(self) -> None:
        """Wait for each replica that may be promoted.

        WAIT counts any replicas, also those that are never promoted: INFO says which ones have confirmed.
        """
        needed = promotable_replicas(self._views)
        if not needed and not self._least:
            return
        count = max(len(needed), self._least)
        info: Command = ("INFO", "replication")
        commands: tuple[Command, ...] = (("SET", self._mark_key, ""), info, ("WAIT", count, _LOOK_AGAIN_MS), info)
        ends = asyncio.get_running_loop().time() + WAIT_MS / 1000
        replies = values_of(commands, await self._connection.call(*commands))
        wanted, offsets = read_offsets(replies[1]).offset, read_offsets(replies[3])
        while True:
            # The sentinels may have learnt meanwhile that one is gone.
            needed = promotable_replicas(self._views)
            count = max(len(needed), self._least)
            confirmed = {place for place, has in offsets.confirmed.items() if has >= wanted}
            if needed <= confirmed and len(needed) >= self._least:
                return
            if asyncio.get_running_loop().time() >= ends:
                reason = Text.of(
                    "{count} of {count2} replicas have confirmed within {wait_ms} ms",
                    count=len(needed & confirmed),
                    count2=count,
                    wait_ms=WAIT_MS,
                )
                raise Unavailable(reason, _ADVICE)
            commands = (("WAIT", max(len(offsets.confirmed), count), _LOOK_AGAIN_MS), info)
            offsets = read_offsets(values_of(commands, await self._connection.call(*commands))[1])


def _finish(waiting: Iterable[asyncio.Future[None]], error: EdgeError | None) -> None:
    for future in waiting:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            # Each caller raises an error of its own: one that is raised twice would collect both tracebacks.
            future.set_exception(Unavailable(error.text, error.advice_text))
