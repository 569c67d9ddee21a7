"""Takes work off the streams and performs it, many jobs side by side; what is done is acknowledged by its commit."""

import asyncio
from typing import assert_never

import structlog

from edge.errors import Unavailable
from edge.station.runs import Runs
from edge.station.start import Starter
from edge.store import work
from edge.store.client import Store
from edge.store.runs import VISITOR
from edge.store.work import Work, WorkKind

logger = structlog.get_logger(__name__)

_AT_A_TIME = 100
_RETRY_FIRST_S = 0.1
_RETRY_MOST_S = 5.0
_STORE_RETRY_S = 1.0


class Worker:
    """Drives the work streams of the scopes for this instance."""

    def __init__(self, store: Store, scopes: tuple[str, ...], runs: Runs, starter: Starter) -> None:
        self._store = store
        self._scopes = scopes
        self._runs = runs
        self._starter = starter
        self._in_hand: set[tuple[str, str]] = set()
        self._room = asyncio.Event()

    async def run(self) -> None:
        """Work until cancelled; first on what this instance left unfinished when it ended."""
        consumer = self._runs.terms.consumer
        async with asyncio.TaskGroup() as tasks:
            while True:
                try:
                    await work.create_groups(self._store, self._scopes)
                    # Also after an outage: the reply that gave us work may have been lost with the connection.
                    await self._take_on(tasks, await work.unfinished(self._store, consumer, self._scopes))
                    async for batch in work.take(self._store, consumer, self._scopes):
                        await self._take_on(tasks, batch)
                except Unavailable as error:
                    logger.warning("work waits for the store", reason=error.message)
                    await asyncio.sleep(_STORE_RETRY_S)

    async def _take_on(self, tasks: asyncio.TaskGroup, batch: list[Work]) -> None:
        for asked in batch:
            entry = (asked.scope, asked.entry_id)
            if entry in self._in_hand:
                continue
            self._in_hand.add(entry)
            tasks.create_task(self._do(asked), name=f"{asked.kind} of {asked.job_id}")
            while len(self._in_hand) >= _AT_A_TIME:
                self._room.clear()
                await self._room.wait()

    async def _do(self, asked: Work) -> None:
        delay = _RETRY_FIRST_S
        while True:
            try:
                await self._perform(asked)
            except Unavailable as error:
                logger.warning("work is tried again", job=asked.job_id, kind=asked.kind, reason=error.message)
                await asyncio.sleep(delay)
                delay = min(2 * delay, _RETRY_MOST_S)
            except Exception:
                # A defect in one job must not stop the others. The work stays unacknowledged: the next start tries it.
                logger.exception("work failed", job=asked.job_id, kind=asked.kind)
                break
            else:
                break
        self._in_hand.discard((asked.scope, asked.entry_id))
        self._room.set()

    async def _perform(self, asked: Work) -> None:
        match asked.kind:
            case WorkKind.START_RECIPE:
                await self._starter.start(asked)
            case WorkKind.SEND:
                done = work.acknowledge(self._store.keys, asked.scope, (asked.entry_id,))
                await self._runs.take_over(asked.job_id, VISITOR, done)
            case _:
                assert_never(asked.kind)
