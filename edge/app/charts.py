"""Shows running charts to OPC UA clients: those that run at the start, and each as it moves on."""

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING

import structlog

from edge.errors import Unavailable
from edge.model.job_state import has_ended
from edge.sfc.run import ActionState, Association, next_deadline
from edge.sfc.why import why
from edge.station.decision import Held
from edge.station.runs import Progress, Runs
from edge.store.runs import active_jobs
from edge.uaserver.picture import ActionPicture, ChartPicture, StepPicture

if TYPE_CHECKING:
    from edge.store.client import Store
    from edge.uaserver.server import UaServer

logger = structlog.get_logger(__name__)

_RETRY_S = 1.0
_NEVER_STARTED = Association(state=ActionState.PENDING)


async def show_charts(store: "Store", runs: Runs, server: "UaServer", scopes: Collection[str]) -> None:
    """Follow every run of the scopes; then show those that run already, waiting for a store that is gone."""

    def show(held: Held) -> None:
        job = held.job
        if job.scope not in scopes:
            return
        if has_ended(job.status):
            server.hide_run(job.scope, job.job_id)
        else:
            server.show_run(job.scope, job.job_id, lambda: picture(held, runs.clock()))

    def watch(progress: Progress) -> None:
        show(progress.held)

    runs.watchers.append(watch)
    while True:
        try:
            for job_id in await active_jobs(store):
                if held := await _readable(runs, job_id):
                    show(held)
            return
        except Unavailable as error:
            logger.warning("OPC UA charts wait for the store", reason=error.message)
            await asyncio.sleep(_RETRY_S)


async def _readable(runs: Runs, job_id: str) -> Held | None:
    try:
        return await runs.held(job_id)
    except Unavailable:
        raise
    except Exception:
        # One run that nobody can read must not keep the charts of the others from being shown.
        logger.exception("run cannot be shown", job=job_id)
        return None


def picture(held: Held, now: int) -> ChartPicture:
    """Draw a run as it stands at an instant, in milliseconds since the epoch."""
    run, net = held.stored.run, held.net
    at = now if run.paused_at is None else run.paused_at
    masters = held.job.order.work_master_id or ()
    return ChartPicture(
        recipe=masters[0].id if masters else "",
        state="paused" if run.paused else run.outcome.value,
        started_at=run.started_at,
        steps={
            name: StepPicture(step.active, step.t(at), step.count) if (step := run.steps.get(name)) else StepPicture()
            for name in net.steps
        },
        actions={key: _action(run.associations.get(key, _NEVER_STARTED)) for key in net.actions},
        waiting=tuple(str(each) for each in why(net, run, now)),
        error=run.error or "",
        deadline=next_deadline(net, run),
    )


def _action(each: Association) -> ActionPicture:
    return ActionPicture(each.state.value, each.attempt, each.result, each.deadline, each.error or "")
