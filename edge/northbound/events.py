"""Compose the events for the MES: transitions of a job's state, and the progress of running recipes."""

import msgspec
import structlog

from edge.model.cloudevent import CloudEvent, new_id
from edge.model.event_types import PROGRESS_TYPE, STATUS_EVENT_TYPE
from edge.model.isa95 import JobOrder, JobResponse, JobStatusEvent
from edge.model.job_progress import CommandProgress, JobProgress, StepProgress
from edge.model.job_state import has_response, is_transition, state_entries
from edge.station.runs import Progress
from edge.store import jobs, responses
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.isolation import Isolated
from edge.store.jobs import Job

logger = structlog.get_logger(__name__)


async def load_changed_job(store: Store, change: Change) -> tuple[Job | None, JobResponse | None] | None:
    """Return the job of a change as it is now, and its response with the state right after the change.

    None: the job cannot be read, and the change has no event. Raises Unavailable when the store is unavailable.
    """
    event = "change not published, job unreadable"
    with Isolated(logger, event, job=change.job_order_id, position=change.position):
        job = await jobs.load(store, change.job_order_id)
        response = await responses.load(store, job) if job and has_response(job.status) else None
        if response:
            response = msgspec.structs.replace(response, job_state=state_entries(change.status))
        return job, response
    return None


def status_event(source: str, change: Change, job: Job | None, response: JobResponse | None) -> CloudEvent | None:
    """Return the event of a change (OPC 10031-4, 6.2.8); None for a change that is no transition.

    The event of a change has the same id each time it is made.
    """
    if not is_transition(change.cause):
        return None
    order = job.order if job else JobOrder(job_order_id=change.job_order_id)
    return CloudEvent(
        id=f"{change.scope}/{change.position}",
        source=source,
        type=STATUS_EVENT_TYPE,
        subject=change.scope,
        correlationid=job.correlation_id if job else None,
        causationid=job.causation_id or None if job else None,
        extensions=job.trace if job else {},
        data=JobStatusEvent(job_order=order, job_state=state_entries(change.status), job_response=response),
    )


def progress_event(source: str, progress: Progress) -> CloudEvent:
    """Return the event of the steps that changed and the commands that were sent."""
    job = progress.loaded.job
    return CloudEvent(
        id=new_id(),
        source=source,
        type=PROGRESS_TYPE,
        subject=job.scope,
        correlationid=job.correlation_id,
        causationid=job.causation_id or None,
        extensions=job.trace,
        data=JobProgress(
            job_id=job.job_id,
            at=progress.at,
            steps=tuple(StepProgress(each.step, each.active) for each in progress.steps),
            commands=tuple(
                CommandProgress(each.action, each.phase.value, each.attempt, each.type_id) for each in progress.requests
            ),
        ),
    )
