"""Starts a job that is allowed to start: finds its recipe, begins its run; or fails it at once with the reason."""

from dataclasses import dataclass

import msgspec
import structlog

from edge.model.exact_value import plain_value
from edge.model.isa95 import Parameter
from edge.model.job_state import Cause, JobState, JobStatus
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.sfc.net import Net, Rejected, compile_recipe
from edge.sfc.run import new_run
from edge.station.decision import begin
from edge.station.dispatch import Dispatch
from edge.station.response import job_response
from edge.station.runs import Runs
from edge.store import jobs, resources, runs, work
from edge.store.client import Store
from edge.store.commit import Commit, Committed, join
from edge.store.jobs import Job
from edge.store.keys import Keys
from edge.store.work import Work

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

    async def start(self, asked: Work) -> None:
        """Begin the run of a job and acknowledge the work in one commit. Raises Unavailable when the store is gone."""
        done = work.acknowledge(self._store.keys, asked.scope, (asked.entry_id,))
        finished = False
        while not finished:
            job = await jobs.load(self._store, asked.job_id)
            if job is None or job.status.state is not JobState.ALLOWED_TO_START:
                # Revoked, cancelled, or started by an earlier entry: nothing is left to do.
                await self._store.commit(done)
                return
            match await self._recipe_of(job):
                case Net() as net:
                    finished = await self._begin(job, net, done)
                case _NoRecipe(reason):
                    finished = await self._fail(job, reason, done)

    async def _recipe_of(self, job: Job) -> Net | _NoRecipe:
        if not job.order.work_master_id:
            return _NoRecipe("the job order names no Work Master")
        named = job.order.work_master_id[0].id
        master = await resources.load_work_master(self._store, named)
        if master is None:
            return _NoRecipe(f"Work Master {named!r} is not known to this station")
        if master.dataschema != RECIPE_DATASCHEMA:
            return _NoRecipe(f"Work Master {named!r} holds no SFC recipe (dataschema {RECIPE_DATASCHEMA})")
        net = compile_recipe(master.data)
        if isinstance(net, Rejected):
            return _NoRecipe(f"the recipe of Work Master {named!r} is refused: {'; '.join(net.faults)}")
        if unrouted := self._dispatch.unrouted(net):
            return _NoRecipe(f"no equipment takes commands of type {', '.join(unrouted)}")
        return net

    async def _begin(self, job: Job, net: Net, done: Commit) -> bool:
        parameters = {each.id: _plain(each) for each in job.order.job_order_parameters or ()}
        run = new_run(job.job_id, job.scope, job.correlation_id, parameters)
        decision = begin(self._store.keys, job, run, net, self._runs.clock(), self._runs.keep_ended_ms)
        return isinstance(await self._runs.commit(decision, done), Committed)

    async def _fail(self, job: Job, reason: str, done: Commit) -> bool:
        logger.error("job fails at its start", job=job.job_id, scope=job.scope, reason=reason)
        failed = msgspec.structs.replace(job, error=reason)
        commit = end_without_run(
            self._store.keys, job, failed, Cause.FAIL, self._runs.clock(), self._runs.keep_ended_ms
        )
        return isinstance(await self._store.commit(join((commit, done))), Committed)


def end_without_run(keys: Keys, before: Job, job: Job, cause: Cause, now: int, keep_ended_ms: int) -> Commit:
    """Write the end of a job that never ran: aborted, with its response, removed when its time is over."""
    status = JobStatus(JobState.ABORTED)
    ended = msgspec.structs.replace(job, status=status, ended_at=now, revision=before.revision + 1)
    return join(
        (
            jobs.save(keys, before, ended, ((cause, status),), now),
            jobs.save_response(keys, ended, job_response(ended, None)),
            runs.set_timer(keys, job.job_id, now + keep_ended_ms),
        )
    )


def _plain(parameter: Parameter) -> object:
    if parameter.subparameters:
        return {each.id: _plain(each) for each in parameter.subparameters}
    return plain_value(parameter.value)
