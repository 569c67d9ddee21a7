"""Waits until every replica that may become the primary has received what was committed.

One WAIT serves all callers of a turn of the event loop. It runs on a connection of its own, since it holds what is
behind it, and after a write there: WAIT covers the writes of its own connection, and replication keeps their order.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from edge.errors import EdgeError, Unavailable
from edge.store.connection import CommandConnection
from edge.store.query import values_of
from edge.store.sentinels import SentinelView

WAIT_MS: Final = 1000
_DOWN: Final = frozenset({"s_down", "o_down", "disconnected"})
_ADVICE = "The effect may exist: repeat the call. See the replicas with: edge store status"


def count_promotable(views: Iterable[SentinelView]) -> int:
    """Return how many replicas a failover may promote: those with a priority that a sentinel does not see down."""
    return len({each.place for view in views for each in view.replicas if each.priority > 0 and not each.flags & _DOWN})


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

    async def confirm(self) -> None:
        """Return when the replicas have what was committed before this call. Raises Unavailable when they do not."""
        confirmed = asyncio.get_running_loop().create_future()
        self._waiting.append(confirmed)
        self._wanted.set()
        await confirmed

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
                _finish(waiting, Unavailable("the store was closed", _ADVICE))
                raise
            _finish(waiting, error)

    async def _wait(self) -> None:
        replicas = max(count_promotable(self._views), self._least)
        if not replicas:
            return
        commands = (("SET", self._mark_key, ""), ("WAIT", replicas, WAIT_MS))
        _, confirmed = values_of(commands, await self._connection.call(*commands))
        if int(confirmed) < replicas:
            raise Unavailable(f"{confirmed} of {replicas} replicas have confirmed within {WAIT_MS} ms", _ADVICE)


def _finish(waiting: Iterable[asyncio.Future[None]], error: EdgeError | None) -> None:
    for each in waiting:
        if each.done():
            continue
        if error is None:
            each.set_result(None)
        else:
            # Each caller raises an error of its own: one that is raised twice would collect both tracebacks.
            each.set_exception(Unavailable(error.message, error.advice))
