"""Starts jobs that are allowed to start, each in its turn: finds its recipe and begins its run, or fails it."""

import asyncio
from dataclasses import dataclass

import msgspec
import structlog

from edge.errors import Unavailable
from edge.model.exact_value import plain_value
from edge.model.isa95 import Parameter
from edge.model.job_state import Cause, JobState, JobStatus
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.sfc.advance import advance
from edge.sfc.net import Net, Rejected
from edge.sfc.run import new_run
from edge.sfc.signal import Advanced, Event
from edge.station.decision import Terms, begin
from edge.station.dispatch import Dispatch
from edge.station.response import job_response
from edge.station.retry import MOST_TRIES, delay_s
from edge.station.runs import Runs
from edge.store import dead_letters, jobs, resources, responses, runs, work
from edge.store.client import Store
from edge.store.commit import Commit, Committed, join
from edge.store.dead_letters import Letter, LetterKind
from edge.store.jobs import Job
from edge.store.keys import Keys
from edge.store.version import TooNew
from edge.store.work import Work, WorkKind

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _NoRecipe:
    reason: str


class Starter:
    """Performs the work `start_recipe`."""

    def __init__(self, store: Store, active: Runs, dispatch: Dispatch) -> None:
        self._store = store
        self._runs = active
        self._dispatch = dispatch
        self._in_hand: set[str] = set()
        self._choosing = asyncio.Lock()

    async def start(self, asked: Work) -> None:
        """Begin the run of the job whose turn it is, and acknowledge the work, in one commit.

        There is at least as much of this work as there are jobs in the queue of starts. The job that caused it may
        have to let others go first; its turn comes with theirs. Raises Unavailable when the store is gone, TooNew
        when all that is left to be started is for a newer release.
        """
        done = work.acknowledge(self._store.keys, asked.scope, (asked.entry_id,))
        seen: set[str] = set()
        finished = False
        left: TooNew | None = None
        while not finished:
            job_id = await self._choose(asked, seen)
            if job_id is None and left:
                raise left
            if job_id is None:
                # Revoked, cancelled, put off, or started by an earlier entry: nothing is left to do.
                await self._store.commit(done)
                return
            try:
                job = await self._read(asked.scope, job_id)
                if job and job.status.state is JobState.ALLOWED_TO_START and job.earliest_start <= self._runs.clock():
                    finished = await self._start(job, done)
                else:
                    seen.add(job_id)
            except TooNew as error:
                left = error
                seen.add(job_id)
            finally:
                self._in_hand.discard(job_id)

    async def _read(self, scope: str, job_id: str) -> Job | None:
        """Read the job whose turn it is; one that nobody can read leaves the queue, so that those behind it go on."""
        for tries in range(1, MOST_TRIES + 1):
            try:
                return await jobs.load(self._store, job_id)
            except (Unavailable, TooNew):
                raise
            except Exception as error:
                # The work in hand may have been caused by another job, which must not be failed for this one.
                logger.exception("job cannot be read", job=job_id)
                if tries == MOST_TRIES:
                    left = await jobs.plan_to_leave_queue(self._store, scope, job_id)
                    await self._store.commit(join((self._letter(scope, job_id, _reason(error)), left)))
                else:
                    await asyncio.sleep(delay_s(tries))
        return None

    async def _choose(self, asked: Work, seen: set[str]) -> str | None:
        """Take in hand the first in the queue of starts that no other entry has in hand here."""
        async with self._choosing:
            passed = self._in_hand | seen
            first = await jobs.first_to_start(self._store, asked.scope, len(passed) + 1)
            # The job that was asked for comes last: it is in the queue, or its entry is older than the queue.
            for job_id in (*first, asked.job_id):
                if job_id not in passed:
                    self._in_hand.add(job_id)
                    return job_id
        return None

    async def _start(self, job: Job, done: Commit) -> bool:
        for tries in range(1, MOST_TRIES + 1):
            try:
                match await self._recipe_of(job):
                    case Net() as net:
                        return await self._begin(job, net, done)
                    case _NoRecipe(reason):
                        return await self._fail(job, reason, done)
            except (Unavailable, TooNew):
                raise
            except Exception as error:
                # A defect at the start of one job must not keep those behind it from their turn: it stays in hand.
                logger.exception("start met a defect", job=job.job_id)
                if tries == MOST_TRIES:
                    return await self._give_up(job, error, done)
                await asyncio.sleep(delay_s(tries))
        return False

    async def _give_up(self, job: Job, error: Exception, done: Commit) -> bool:
        reason = _reason(error)
        return await self._fail(job, reason, join((done, self._letter(job.scope, job.job_id, reason))))

    def _letter(self, scope: str, job_id: str, reason: str) -> Commit:
        letter = Letter(LetterKind.START, scope, job_id, reason, self._runs.clock())
        return dead_letters.add(self._store.keys, letter, self._runs.terms.keep_letters_ms)

    async def _recipe_of(self, job: Job) -> Net | _NoRecipe:
        if not job.order.work_master_id:
            return _NoRecipe("the job order names no Work Master")
        named = job.order.work_master_id[0].id
        master = await resources.load_work_master(self._store, named)
        if master is None:
            return _NoRecipe(f"Work Master {named!r} is not known to this station")
        if master.dataschema != RECIPE_DATASCHEMA:
            return _NoRecipe(f"Work Master {named!r} holds no SFC recipe (dataschema {RECIPE_DATASCHEMA})")
        net = self._runs.compiled(msgspec.json.encode(master.data).decode())
        if isinstance(net, Rejected):
            return _NoRecipe(f"the recipe of Work Master {named!r} is refused: {'; '.join(net.faults)}")
        if unrouted := self._dispatch.unrouted(net):
            return _NoRecipe(f"no equipment takes commands of type {', '.join(unrouted)}")
        return net

    async def _begin(self, job: Job, net: Net, done: Commit) -> bool:
        parameters = {each.id: _plain(each) for each in job.order.job_order_parameters or ()}
        run = new_run(job.job_id, job.scope, job.correlation_id, parameters)
        for event in job.early:
            kept = advance(net, run, Event(event.type_id, event.data, event.id, named=True), self._runs.clock())
            run = kept.run if isinstance(kept, Advanced) else run
        decision = begin(self._runs.terms, job, run, net, self._runs.clock())
        return isinstance(await self._runs.commit(decision, done), Committed)

    async def _fail(self, job: Job, reason: str, done: Commit) -> bool:
        logger.error("job fails at its start", job=job.job_id, scope=job.scope, reason=reason)
        failed = msgspec.structs.replace(job, error=reason)
        commit = end_without_run(self._runs.terms, job, failed, Cause.FAIL, self._runs.clock())
        return isinstance(await self._store.commit(join((commit, done))), Committed)


def _reason(error: Exception) -> str:
    return f"its start met a defect of this software: {type(error).__name__}"


def let_start(keys: Keys, job: Job, now: int) -> Commit:
    """Have a job that is allowed to start take its turn, now or when its StartTime has come."""
    if job.earliest_start > now:
        return runs.set_timer(keys, job.job_id, job.earliest_start)
    return join(
        (
            jobs.enter_queue(keys, job),
            runs.set_timer(keys, job.job_id, None),
            work.add(keys, job.scope, WorkKind.START_RECIPE, job.job_id),
        )
    )


def end_without_run(terms: Terms, before: Job, job: Job, cause: Cause, now: int) -> Commit:
    """Write the end of a job that never ran: aborted, with its response, removed when its time is over."""
    status = JobStatus(JobState.ABORTED)
    ended = msgspec.structs.replace(job, status=status, ended_at=now, revision=before.revision + 1)
    return join(
        (
            jobs.save(terms.keys, before, ended, ((cause, status),), now),
            responses.save(terms.keys, ended, job_response(ended, None)),
            runs.set_timer(terms.keys, job.job_id, now + terms.keep_ended_ms),
        )
    )


def _plain(parameter: Parameter) -> object:
    if parameter.subparameters:
        return {each.id: _plain(each) for each in parameter.subparameters}
    return plain_value(parameter.value)
