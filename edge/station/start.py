"""Starts jobs in the order of the queue of starts: finds the recipe and begins the run, or fails the job."""

import asyncio
import contextlib
from collections.abc import Collection

import msgspec
import structlog

from edge.access.mode import ModeWatch
from edge.foundation.backoff import MOST_TRIES, delay_after_defects
from edge.foundation.errors import Unavailable
from edge.model.job_state import Cause, JobState
from edge.sfc.advance import advance
from edge.sfc.run import new_run
from edge.sfc.signal import Advanced, Event
from edge.station.dead_letter_writer import DeadLetterWriter
from edge.station.decision import begin, end_job_without_run
from edge.station.dispatch import Dispatch
from edge.station.recipe_lookup import NoRecipe, RecipeLookup
from edge.station.runs import Runs
from edge.store import jobs, runs, work
from edge.store.client import Store
from edge.store.commit import Commit, Committed, Stale, join
from edge.store.jobs import Job
from edge.store.keys import Keys
from edge.store.version import DocumentTooNew
from edge.store.work import Work, WorkKind

logger = structlog.get_logger(__name__)


class Starter:
    """Performs the work `start_recipe`."""

    def __init__(
        self,
        store: Store,
        runs: Runs,
        dispatch: Dispatch,
        mode: ModeWatch | None = None,
        mirrors: Collection[str] = (),
    ) -> None:
        """Create the starter; during a maintenance mode of `mode` jobs stay in the queue of starts.

        `mirrors` are the names of the mirrored sets for conditions.
        """
        self._mode = mode
        self._store = store
        self._runs = runs
        self._recipes = RecipeLookup(store, runs.compiled, dispatch.unrouted, mirrors)
        self._dead_letters = DeadLetterWriter(runs)
        self._in_hand: set[str] = set()
        self._choosing = asyncio.Lock()

    async def start(self, entry: Work) -> None:
        """Begin the run of the job whose turn it is, and acknowledge the work, in one commit.

        There is at least one such work entry for each job in the queue of starts. An entry may start another job than
        the one that caused it: the queue decides. Raises Unavailable when the store is unavailable, TooNew when only
        jobs of a newer release are left.
        """
        done = work.acknowledge(self._store.keys, entry.scope, (entry.entry_id,))
        if await self._is_left_queued(done):
            return
        seen: set[str] = set()
        finished = False
        left: DocumentTooNew | None = None
        while not finished:
            chosen, expected = await self._choose(entry, seen)
            if chosen is None and left:
                raise left
            if chosen is None:
                # The job was revoked, cancelled, postponed, or started by an earlier entry.
                await self._store.commit(done)
                return
            job_id, queued = chosen
            try:
                finished = await self._start(entry.scope, job_id, done, expected, queued=queued)
            except DocumentTooNew as error:
                left = error
            finally:
                seen.add(job_id)
                self._in_hand.discard(job_id)

    async def _is_left_queued(self, done: Commit) -> bool:
        """Acknowledge work during maintenance without a start: the jobs stay queued, and a sweep adds their work again.

        Kept entries would fill the worker, and delay the commands behind them.
        """
        mode = self._mode
        while mode is not None and mode.in_force is not None:
            if isinstance(await self._store.commit(join((mode.guard, done))), Committed):
                return True
            await mode.refresh()
        return False

    async def _choose(self, entry: Work, seen: set[str]) -> tuple[tuple[str, bool] | None, Job | None]:
        """Return the first job that no other entry is starting here, and whether it is in the queue of starts.

        The job that caused the entry is read in the same round trip, because it is usually the first.
        """
        async with self._choosing:
            passed = self._in_hand | seen
            keys = self._store.keys
            queue = jobs.query_queued_starts(keys, entry.scope, len(passed) + 1)
            asked = jobs.query_job(keys, entry.job_id)
            replies = await self._store.fetch_all(queue, asked)
            first, expected = replies.value(queue), None
            # An unreadable job is handled when its turn comes.
            with contextlib.suppress(Exception):
                expected = replies.value(asked)
            # The requested job comes last: it is in the queue, or its entry is older than the queue.
            for job_id in (*first, entry.job_id):
                if job_id not in passed:
                    self._in_hand.add(job_id)
                    return (job_id, job_id in first), expected
        return None, expected

    async def _start(self, scope: str, job_id: str, done: Commit, expected: Job | None, *, queued: bool) -> bool:
        """Start a job, or fail it; return False when it must not start now or cannot be read.

        `expected` is the job that was read before the queue was known; it may be another one.
        """
        tries = 0
        while True:
            job = None
            try:
                job = expected if expected and expected.job_id == job_id else await jobs.load(self._store, job_id)
                expected = None
                if job is None or job.status.state is not JobState.ALLOWED_TO_START:
                    return False
                if self._mode and self._mode.in_force:
                    return False
                if not queued and job.earliest_start > self._runs.clock():
                    await self._wait_for_start_time(job)
                    return False
                if await self._begin(job, done):
                    return True
            except (Unavailable, DocumentTooNew):
                raise
            except Exception as error:
                # It must not delay the jobs after it, nor fail the job of the entry, which may be another one.
                logger.exception("start met a defect", job=job_id)
                tries += 1
                if tries < MOST_TRIES:
                    await asyncio.sleep(delay_after_defects(tries))
                elif job is None:
                    await self._dead_letters.turn(scope, job_id, error)
                    return False
                elif await self._dead_letters.start(job, error, done):
                    return True

    async def _wait_for_start_time(self, job: Job) -> None:
        """Set the timer of a job whose StartTime has not come; a job in the queue of starts is not judged again."""
        planned = plan_start(self._store.keys, job, self._runs.clock())
        await self._store.commit(join((jobs.unchanged(self._store.keys, job.job_id, job), planned)))

    async def _begin(self, job: Job, done: Commit) -> bool:
        """Begin the run of a job, or fail the job at once; return False when the job was changed meanwhile."""
        found = await self._recipes.find(job.scope, job.order)
        if isinstance(found, NoRecipe):
            return await self._fail(job, found.reason, done)
        net = found.net
        run = new_run(job.job_id, job.scope, job.correlation_id, found.parameters)
        for event in job.early:
            kept = advance(net, run, Event(event.type_id, event.data, event.id, named=True), self._runs.clock())
            run = kept.run if isinstance(kept, Advanced) else run
        decision = begin(self._runs.context, job, run, net, self._runs.clock(), self._runs.mirrors_for(net))
        guards = (found.guard, self._mode.guard) if self._mode else (found.guard,)
        result = await self._runs.commit(decision, join((*guards, done)))
        if isinstance(result, Stale):
            self._recipes.forget(result.key)
            if self._mode:
                await self._mode.refresh_after(result.key)
        return isinstance(result, Committed)

    async def _fail(self, job: Job, reason: str, done: Commit) -> bool:
        logger.error("job fails at its start", job=job.job_id, scope=job.scope, reason=reason)
        failed = msgspec.structs.replace(job, error=reason)
        commit = end_job_without_run(self._runs.context, job, failed, Cause.FAIL, self._runs.clock())
        return isinstance(await self._store.commit(join((commit, done))), Committed)


def plan_start(keys: Keys, job: Job, now: int) -> Commit:
    """Return the commit that queues a job that is allowed to start, or sets the timer of its StartTime."""
    if job.earliest_start > now:
        return runs.set_timer(keys, job.job_id, job.earliest_start)
    return join(
        (
            jobs.enqueue_start(keys, job),
            runs.set_timer(keys, job.job_id, None),
            work.add(keys, job.scope, WorkKind.START_RECIPE, job.job_id),
        )
    )
