"""Due timers to signals: one task that sleeps until the earliest deadline of any job."""

import asyncio
import contextlib

import structlog

from edge.errors import Unavailable
from edge.model.job_state import Cause
from edge.sfc.signal import Ignored, Tick
from edge.station.decision import NotAllowed
from edge.station.runs import NoRun, Progress, Runs
from edge.store import jobs, runs
from edge.store.client import Store
from edge.store.commit import join

logger = structlog.get_logger(__name__)

_BATCH = 100
_LOOK_AGAIN_MS = 10_000
"""How long a deadline may stay unknown that another instance set and did not live to keep; also bounds a clock jump."""
_RETRY_S = 1.0


class Timers:
    """Gives runs their deadlines and removes jobs whose time is over. Deadlines live in the store, none in memory."""

    def __init__(self, store: Store, active: Runs) -> None:
        self._store = store
        self._runs = active
        self._earlier = asyncio.Event()
        self._until = 0
        active.watchers.append(self._watch)

    async def run(self) -> None:
        """Serve deadlines until cancelled; a store that is gone is waited for."""
        while True:
            try:
                await self._serve_due()
                await self._sleep(await runs.next_due(self._store))
            except Unavailable as error:
                logger.warning("timers wait for the store", reason=error.message)
                await asyncio.sleep(_RETRY_S)

    def _watch(self, progress: Progress) -> None:
        if progress.due is not None and progress.due < self._until:
            self._earlier.set()

    async def _sleep(self, due: int | None) -> None:
        now = self._runs.clock()
        self._until = min(due if due is not None else now + _LOOK_AGAIN_MS, now + _LOOK_AGAIN_MS)
        self._earlier.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._earlier.wait(), max(self._until - now, 0) / 1000)

    async def _serve_due(self) -> None:
        while job_ids := await runs.due(self._store, self._runs.clock(), _BATCH):
            for job_id in job_ids:
                await self._serve(job_id)

    async def _serve(self, job_id: str) -> None:
        held = await self._runs.held(job_id)
        job = held.job if held else await jobs.load(self._store, job_id)
        now = self._runs.clock()
        if job is None:
            await self._store.commit(runs.set_timer(self._store.keys, job_id, None))
        elif job.ended_at is not None:
            await self._store.commit(jobs.remove(self._store.keys, job, Cause.CLEAR, now))
        else:
            match await self._runs.signal(job_id, Tick()):
                case Ignored() | NotAllowed() | NoRun():
                    # Nothing was due after all: the timer of a commit that another one overtook. Set it right.
                    await self._reset(job_id)
                case _:
                    pass

    async def _reset(self, job_id: str) -> None:
        held = await self._runs.load(job_id)
        due = held.due(self._runs.keep_ended_ms) if held else None
        guard = runs.unchanged(self._store.keys, held.stored) if held else None
        timer = runs.set_timer(self._store.keys, job_id, due)
        await self._store.commit(join((guard, timer)) if guard else timer)
