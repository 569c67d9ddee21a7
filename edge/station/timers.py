"""Turns due timers into signals: one task sleeps until the earliest deadline of any job."""

import asyncio
import contextlib

import structlog

from edge.foundation.backoff import MOST_TRIES
from edge.foundation.errors import Unavailable
from edge.model.job_state import JobState
from edge.sfc.run import has_overdue_limit
from edge.sfc.signal import Tick
from edge.station.dead_letter_writer import DeadLetterWriter
from edge.station.decision import Decision
from edge.station.retention import Expiry, RetentionPolicy
from edge.station.runs import Progress, Runs
from edge.station.start import plan_start
from edge.store import jobs, runs
from edge.store.background import Isolated, restart_on_outage
from edge.store.client import Store
from edge.store.commit import join
from edge.store.jobs import Job
from edge.store.version import DocumentTooNew

logger = structlog.get_logger(__name__)

_BATCH = 100
_LOOK_AGAIN_MS = 10_000
"""The longest time until a deadline of an ended instance is found; it also bounds a clock jump."""
_RETRY_S = 1.0
_ANSWERS_WITHIN_MS = 3_000
"""How long after an outage answers of equipment may wait to be stored: those at the broker, and those tried again."""
_TRIED_AGAIN_MS = 1_000
"""A time limit that ends so soon after an outage ends before an answer is tried again."""
_FAR = 1 << 62
_ALL = 10_000


class Timers:
    """Signals due deadlines to runs, starts jobs at their StartTime, removes expired jobs.

    All these instants are in the store, none in memory. `speed` is the number of clock seconds in a real second.
    """

    def __init__(
        self,
        store: Store,
        runs: Runs,
        speed: float = 1.0,
        expiry: Expiry | None = None,
        look_again_ms: int = _LOOK_AGAIN_MS,
    ) -> None:
        self._store = store
        self._runs = runs
        self._speed = speed
        self._look_again_ms = look_again_ms
        self._earlier = asyncio.Event()
        self._until = 0
        self._dead_letters = DeadLetterWriter(runs)
        self._expiry = expiry or Expiry(store, RetentionPolicy(runs.context.keep_ended_ms))
        self._tries: dict[str, int] = {}
        self._back_at = runs.clock()
        """When the store was unavailable last, or this process began."""
        runs.listeners.append(self._watch)
        store.outage_listeners.append(self._note_outage)

    async def run(self) -> None:
        """Serve deadlines until cancelled."""
        await restart_on_outage("timers", self._serve)

    async def _serve(self) -> None:
        while True:
            await self._serve_due()
            # From here on each committed deadline wakes this task: the reading below may miss it.
            self._until = _FAR
            self._earlier.clear()
            await self._sleep(await runs.next_due(self._store))

    def _note_outage(self) -> None:
        self._back_at = self._runs.clock()

    def _watch(self, progress: Progress) -> None:
        if progress.due is not None:
            self.expect(progress.due)

    def expect(self, due: int) -> None:
        """Wake the task for a deadline that was written to the store."""
        if due < self._until:
            self._earlier.set()

    async def _sleep(self, due: int | None) -> None:
        now = self._runs.clock()
        self._until = min(due if due is not None else _FAR, now + self._look_again_ms)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(self._until - now, 0) / 1000 / self._speed):
                await self._earlier.wait()

    async def _serve_due(self) -> None:
        # After a defect in one job each is started by itself.
        with Isolated(logger, "jobs cannot take their turn together"):
            await self._start_due()
        while job_ids := await runs.due(self._store, self._runs.clock(), _BATCH):
            for job_id in job_ids:
                try:
                    await self._serve_job(job_id)
                except Unavailable:
                    raise
                except DocumentTooNew as error:
                    logger.warning("deadline waits for a newer release", job=job_id, reason=error.message)
                    await self._put_off(job_id, error)
                except Exception as error:
                    # A defect in one job must not delay the deadlines of the others.
                    logger.exception("deadline failed", job=job_id)
                    await self._put_off(job_id, error)
                else:
                    self._tries.pop(job_id, None)

    async def _put_off(self, job_id: str, error: Exception) -> None:
        """Set a later timer for a deadline that met a defect; after several attempts it becomes a dead letter."""
        self._tries[job_id] = self._tries.get(job_id, 0) + 1
        with Isolated(logger, "dead letter not written", job=job_id):
            later = self._runs.clock() + self._look_again_ms
            await self._store.commit(runs.set_timer(self._store.keys, job_id, later))
            # Only the newer release that wrote the job may fail it.
            if self._tries[job_id] >= MOST_TRIES and not isinstance(error, DocumentTooNew):
                await self._dead_letters.deadline(job_id, error)
                del self._tries[job_id]
            return
        # What can neither be put off nor given up must not be tried without a pause.
        await asyncio.sleep(_RETRY_S)

    async def _start_due(self) -> None:
        """Queue all jobs whose StartTime has come together: in the queue their priority decides."""
        due = await runs.due(self._store, self._runs.clock(), _ALL)
        starting: dict[str, list[Job]] = {}
        for job in await jobs.load_allowed(self._store, due):
            starting.setdefault(job.scope, []).append(job)
        keys, now = self._store.keys, self._runs.clock()
        for together in starting.values():
            parts = [join((jobs.unchanged(keys, job.job_id, job), plan_start(keys, job, now))) for job in together]
            # If one of them was changed meanwhile, serve each separately.
            await self._store.commit(join(parts))

    async def _postpone_limit(self, job_id: str) -> bool:
        """Set a later timer for a job of which the time limit of an action ended in an outage; return whether it did.

        The equipment may have answered in time, and its answer waits to be stored.
        """
        later = self._back_at + _ANSWERS_WITHIN_MS
        if self._runs.clock() >= later:
            return False
        loaded = await self._runs.load(job_id)
        over_at = self._back_at + _TRIED_AGAIN_MS
        if loaded is None or not has_overdue_limit(loaded.stored.run, self._back_at, over_at):
            return False
        keys = self._store.keys
        await self._store.commit(join((runs.unchanged(keys, loaded.stored), runs.set_timer(keys, job_id, later))))
        return True

    async def _serve_job(self, job_id: str) -> None:
        if await self._postpone_limit(job_id):
            return
        if isinstance(await self._runs.signal(job_id, Tick()), Decision):
            return
        # Nothing is due: the job has ended, or another instance was faster.
        job = await jobs.load(self._store, job_id)
        loaded = await self._runs.load(job_id)
        now = self._runs.clock()
        keys, keep_ended_ms = self._runs.context.keys, self._runs.context.keep_ended_ms
        due = loaded.due(keep_ended_ms) if loaded else None
        if job and job.status.state is JobState.ALLOWED_TO_START:
            # Its StartTime has come, or was postponed.
            await self._store.commit(join((jobs.unchanged(keys, job_id, job), plan_start(keys, job, now))))
            return
        if job and job.ended_at is not None:
            due = job.ended_at + keep_ended_ms
            if due <= now:
                await self._expiry.expire(job, now)
                return
        parts = [jobs.unchanged(keys, job_id, job), runs.set_timer(keys, job_id, due)]
        if loaded:
            # The cached run may hold another timer.
            parts.append(runs.bump_revision(keys, loaded.stored))
            self._runs.invalidate(job_id)
        await self._store.commit(join(parts))
