"""The events that tell what happens: each transition of a job's state, and the progress of running recipes."""

import msgspec
import structlog

from edge.errors import Unavailable
from edge.model.cloudevent import CloudEvent, new_id
from edge.model.event_types import PROGRESS_TYPE, STATUS_EVENT_TYPE
from edge.model.isa95 import JobOrder, JobResponse, JobStatusEvent
from edge.model.job_progress import CommandProgress, JobProgress, StepProgress
from edge.model.job_state import is_transition, state_entries
from edge.station.runs import Progress
from edge.store import jobs, responses
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.jobs import Job

logger = structlog.get_logger(__name__)


async def load_changed_job(store: Store, change: Change) -> tuple[Job | None, JobResponse | None] | None:
    """Give the job of a change as it is now, and its response with the state right after the change.

    None: the job cannot be read, so that nothing can be told of the change. Raises Unavailable when the store is gone.
    """
    try:
        job = await jobs.load(store, change.job_order_id)
        response = await responses.load(store, job) if job else None
    except Unavailable:
        raise
    except Exception:
        # One job that nobody can read must not keep the MES from hearing of the others.
        logger.exception("change cannot be told", job=change.job_order_id, position=change.position)
        return None
    if response:
        response = msgspec.structs.replace(response, job_state=state_entries(change.status))
    return job, response


def status_event(source: str, change: Change, job: Job | None, response: JobResponse | None) -> CloudEvent | None:
    """Make the event of a change (OPC 10031-4, 6.2.8); a change that is no transition has none.

    Told again, or by another way, it has the same id.
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
        data=JobStatusEvent(job_order=order, job_state=state_entries(change.status), job_response=response),
    )


def progress_event(source: str, progress: Progress) -> CloudEvent:
    """Make the event that tells which steps changed and which commands were sent."""
    job = progress.loaded.job
    return CloudEvent(
        id=new_id(),
        source=source,
        type=PROGRESS_TYPE,
        subject=job.scope,
        correlationid=job.correlation_id,
        data=JobProgress(
            job_id=job.job_id,
            at=progress.at,
            steps=tuple(StepProgress(each.step, each.active) for each in progress.steps),
            commands=tuple(
                CommandProgress(each.action, each.phase.value, each.attempt, each.type_id) for each in progress.requests
            ),
        ),
    )
