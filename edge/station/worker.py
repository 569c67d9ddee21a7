"""Takes work, performs it, acknowledges it last: the work of one job in order, many jobs side by side."""

import asyncio
import contextlib
from collections import deque
from typing import assert_never

import structlog

from edge.errors import Unavailable
from edge.sfc.signal import Phase
from edge.station.dispatch import Dispatch
from edge.station.runs import Runs
from edge.station.start import Starter
from edge.store import work
from edge.store.client import Store
from edge.store.work import CommandWork, Work, WorkKind

logger = structlog.get_logger(__name__)

_JOBS_AT_A_TIME = 1000
_RETRY_FIRST_S = 0.1
_RETRY_MOST_S = 5.0
_STORE_RETRY_S = 1.0
_FLUSH_S = 0.5


class Worker:
    """Drives the work streams of the scopes for this instance."""

    def __init__(self, store: Store, scopes: tuple[str, ...], runs: Runs, dispatch: Dispatch, starter: Starter) -> None:
        self._store = store
        self._scopes = scopes
        self._runs = runs
        self._dispatch = dispatch
        self._starter = starter
        self._lanes: dict[str, deque[Work]] = {}
        self._in_hand: set[tuple[str, str]] = set()
        self._over: set[tuple[str, str]] = set()
        self._books = asyncio.Lock()
        self._room = asyncio.Event()
        self._finished = asyncio.Event()

    async def run(self) -> None:
        """Work until cancelled; first what this instance left unfinished when it ended."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._take_own(tasks), name="work taken by commits")
                tasks.create_task(self._take_new(tasks), name="new work")
                tasks.create_task(self._settle_doubts(tasks), name="work in doubt")
                tasks.create_task(self._flush(), name="acknowledge work")
        finally:
            # What was sent is acknowledged before we go, or the next start would send it again.
            with contextlib.suppress(Unavailable):
                await self._acknowledge()

    async def _take_own(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            self._enter_lane(tasks, await self._runs.taken.get())

    async def _take_new(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            try:
                await work.create_groups(self._store, self._scopes)
                await self._take_up(tasks)
                async for batch in work.take(self._store, self._scopes):
                    for each in batch:
                        self._enter_lane(tasks, each)
                    while len(self._lanes) >= _JOBS_AT_A_TIME:
                        self._room.clear()
                        await self._room.wait()
            except Unavailable as error:
                logger.warning("work waits for the store", reason=error.message)
                await asyncio.sleep(_STORE_RETRY_S)

    async def _settle_doubts(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            await self._runs.in_doubt.wait()
            # A server that did not answer in time may carry out the commit yet.
            await asyncio.sleep(_STORE_RETRY_S)
            self._runs.in_doubt.clear()
            try:
                await self._take_up(tasks)
            except Unavailable as error:
                logger.warning("work in doubt waits for the store", reason=error.message)
                self._runs.in_doubt.set()

    async def _take_up(self, tasks: asyncio.TaskGroup) -> None:
        """Take up the work that is ours by the books of the store and that we do not know of."""
        async with self._books:
            for each in await work.unfinished(self._store, self._scopes):
                self._enter_lane(tasks, each)

    async def _flush(self) -> None:
        """Acknowledge what no later commit did; a moment after the work, so that a busy job needs no trip for it."""
        while True:
            await self._finished.wait()
            await asyncio.sleep(_FLUSH_S)
            self._finished.clear()
            try:
                await self._acknowledge()
            except Unavailable as error:
                logger.warning("acknowledgement waits for the store", reason=error.message)
                self._finished.set()

    async def _acknowledge(self) -> None:
        """Acknowledge what is done, and only then let go of it: the books of the store show it as ours until then."""
        async with self._books:
            over = tuple(self._over)
            await self._runs.flush()
            self._in_hand.difference_update(over)
            self._over.difference_update(over)

    def _enter_lane(self, tasks: asyncio.TaskGroup, asked: Work) -> None:
        if (asked.scope, asked.entry_id) in self._in_hand:
            # The reply that gave it to us and the books that show it as ours came at the same time.
            return
        self._in_hand.add((asked.scope, asked.entry_id))
        lane = self._lanes.get(asked.job_id)
        if lane is not None:
            lane.append(asked)
            return
        self._lanes[asked.job_id] = deque((asked,))
        tasks.create_task(self._work_off(asked.job_id), name=f"work of {asked.job_id}")

    async def _work_off(self, job_id: str) -> None:
        lane = self._lanes[job_id]
        try:
            while lane:
                await self._do(lane.popleft())
        finally:
            del self._lanes[job_id]
            self._room.set()

    async def _do(self, asked: Work) -> None:
        delay = _RETRY_FIRST_S
        unsent = list(asked.commands)
        while True:
            try:
                await self._perform(asked, unsent)
            except Unavailable as error:
                logger.warning("work is tried again", job=asked.job_id, kind=asked.kind, reason=error.message)
                await asyncio.sleep(delay)
                delay = min(2 * delay, _RETRY_MOST_S)
                # Another instance may have ended the job meanwhile: what it stopped must not be sent any more.
                self._runs.forget(asked.job_id)
            except Exception:
                # A defect in one job must not stop the others. The work stays unacknowledged: the next start tries it.
                logger.exception("work failed", job=asked.job_id, kind=asked.kind)
                return
            else:
                self._over.add((asked.scope, asked.entry_id))
                self._finished.set()
                return

    async def _perform(self, asked: Work, unsent: list[CommandWork]) -> None:
        match asked.kind:
            case WorkKind.START_RECIPE:
                await self._starter.start(asked)
            case WorkKind.DISPATCH:
                await self._send_all(asked, unsent)
                self._runs.done(asked)
            case _:
                assert_never(asked.kind)

    async def _send_all(self, asked: Work, unsent: list[CommandWork]) -> None:
        """Send the commands and take each off the list; equipment that is away keeps none from other equipment."""
        away = None
        for command in tuple(unsent):
            try:
                await self._send(asked, command)
            except Unavailable as error:
                away = error
            else:
                unsent.remove(command)
        if away:
            raise away

    async def _send(self, asked: Work, command: CommandWork) -> None:
        phase, command_id, step, type_id = command
        if phase == Phase.STOP:
            await self._dispatch.stop(asked.scope, command_id, type_id)
        elif held := await self._runs.held(asked.job_id):
            await self._dispatch.perform(held, Phase(phase), command_id, step)
