"""Takes work from the streams and performs it, many jobs in parallel; the commit of the work acknowledges it."""

import asyncio
import contextlib
import functools
from typing import assert_never

import structlog

from edge.foundation.backoff import MOST_TRIES, delay_after_defects
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import TaskGroup
from edge.station.dead_letter_writer import DeadLetterWriter
from edge.station.runs import Runs
from edge.station.sender import take_over
from edge.station.start import Starter
from edge.station.waiting_runs import continue_with_locks
from edge.store import work
from edge.store.background import restart_on_outage, retry_while_unavailable
from edge.store.client import Store
from edge.store.runs import NO_CONSUMER
from edge.store.version import DocumentTooNew
from edge.store.work import UnreadableEntry, Work, WorkKind

logger = structlog.get_logger(__name__)

_MAX_PARALLEL = 100
_BEAT_S = 5.0
"""The heartbeat interval of a worker that waits for work in progress."""


class Worker:
    """Performs the work of the streams of some scopes for this instance."""

    def __init__(
        self,
        store: Store,
        scopes: tuple[str, ...],
        runs: Runs,
        starter: Starter,
        max_parallel: int = _MAX_PARALLEL,
        beat_s: float = _BEAT_S,
    ) -> None:
        self._store = store
        self._scopes = scopes
        self._runs = runs
        self._starter = starter
        self._max_parallel = max_parallel
        self._beat_s = beat_s
        self._dead_letters = DeadLetterWriter(runs)
        self._in_hand: set[tuple[str, str]] = set()
        self._room = asyncio.Event()
        self._claimed = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled; first the work that this instance left unfinished when it ended."""
        async with TaskGroup() as tasks:
            tasks.create_task(self._take_claimed(tasks), name="take on claimed work")
            await restart_on_outage("work", functools.partial(self._follow, tasks))

    async def _follow(self, tasks: TaskGroup) -> None:
        await work.create_groups(self._store, self._scopes)
        # Also after an outage: the reply with the work may have been lost with the connection.
        await self._take_on(tasks, await work.read_pending(self._store, self._scopes))
        async for batch in work.follow(self._store, self._scopes):
            await self._take_on(tasks, batch)

    def claimed(self) -> None:
        """Perform the work that was claimed for this instance."""
        self._claimed.set()

    async def _take_claimed(self, tasks: TaskGroup) -> None:
        while True:
            await self._claimed.wait()
            self._claimed.clear()
            await retry_while_unavailable("claimed work", functools.partial(self._take_pending, tasks))

    async def _take_pending(self, tasks: TaskGroup) -> None:
        await self._take_on(tasks, await work.read_pending(self._store, self._scopes))

    async def _take_on(self, tasks: TaskGroup, batch: list[Work | UnreadableEntry]) -> None:
        for asked in batch:
            entry = (asked.scope, asked.entry_id)
            if entry in self._in_hand:
                continue
            self._in_hand.add(entry)
            tasks.create_task(self._do(asked), name=f"work {asked.entry_id} of {asked.scope}")
            while len(self._in_hand) >= self._max_parallel:
                self._room.clear()
                # While the store is unavailable no work gets done: waiting for it is not a hang.
                self._store.heartbeat.beat()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._beat_s):
                        await self._room.wait()

    async def _do(self, asked: Work | UnreadableEntry) -> None:
        tries = 1
        try:
            while not await self._is_done(asked):
                await asyncio.sleep(delay_after_defects(tries))
                tries += 1
        finally:
            self._in_hand.discard((asked.scope, asked.entry_id))
            self._room.set()

    async def _is_done(self, asked: Work | UnreadableEntry) -> bool:
        """Try work once; return False when it must be retried."""
        try:
            if isinstance(asked, UnreadableEntry):
                await self._dead_letters.unreadable(asked)
            elif error := await self._defect_in(asked):
                if await work.count_attempt(self._store, asked) < MOST_TRIES:
                    return False
                await self._dead_letters.work(asked, error)
        except (Unavailable, DocumentTooNew) as error:
            logger.warning("work retried", scope=asked.scope, entry=asked.entry_id, reason=error.message)
            return False
        except Exception:
            # Work whose letter cannot be written must not stop the others.
            logger.exception("dead letter not written", scope=asked.scope, entry=asked.entry_id)
            return False
        return True

    async def _defect_in(self, asked: Work) -> Exception | None:
        try:
            await self._perform(asked)
        except (Unavailable, DocumentTooNew):
            raise
        except Exception as error:
            # A defect in one job must not stop the others.
            logger.exception("work failed", job=asked.job_id, kind=asked.kind)
            return error
        return None

    async def _perform(self, asked: Work) -> None:
        match asked.kind:
            case WorkKind.START_RECIPE:
                await self._starter.start(asked)
            case WorkKind.SEND:
                done = work.acknowledge(self._store.keys, asked.scope, (asked.entry_id,))
                await take_over(self._runs, asked.job_id, NO_CONSUMER, done)
            case WorkKind.LOCK:
                done = work.acknowledge(self._store.keys, asked.scope, (asked.entry_id,))
                await continue_with_locks(self._runs, asked.job_id, done)
            case _:
                assert_never(asked.kind)
