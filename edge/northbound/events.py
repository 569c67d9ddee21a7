"""Compose the events for the MES: transitions of a job, changes of its response, and the progress of recipes."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import msgspec
import structlog

from edge.model.cloudevent import CloudEvent, new_id
from edge.model.event_types import AWAITS_PERSON_TYPE, PROGRESS_TYPE, RESPONSE_UPDATE_TYPE, STATUS_EVENT_TYPE
from edge.model.instant import utc
from edge.model.isa95 import JobOrder, JobResponse, JobStatusEvent, Parameter
from edge.model.job_progress import CommandProgress, JobProgress, StepProgress
from edge.model.job_state import Cause, has_ended, has_response, is_transition, state_entries
from edge.model.result_message import AwaitsPersonEvent, OpenQuestion
from edge.station.response import HELD_ID, INTERVENTIONS_ID, UNKNOWN_ID
from edge.station.runs import Progress
from edge.store import jobs, responses
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.defects import Isolated
from edge.store.jobs import Job

logger = structlog.get_logger(__name__)

SECOND_ID: Final = "AwaitsSecondPerson"
"""The kind of question about an intervention that another person has to confirm."""


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


def change_events(source: str, change: Change, job: Job | None, response: JobResponse | None) -> Sequence[CloudEvent]:
    """Return the events of a change: of a transition, or of a response that changed without one; none for others.

    A job that waits for a person has an event of its own. The events of a change have the same ids each time they are
    made.
    """
    if event := status_event(source, change, job, response):
        return (event,)
    if change.cause is not Cause.RESULT_UPDATE or job is None or response is None:
        return ()
    state = state_entries(change.status)
    update = JobStatusEvent(job_order=job.order, job_state=state, job_response=response)
    events = [_job_event(source, change, job, RESPONSE_UPDATE_TYPE, update)]
    if questions := tuple(open_questions(response, change)):
        waiting = AwaitsPersonEvent(job_order_id=job.job_id, job_state=state, questions=questions)
        events.append(_job_event(source, change, job, AWAITS_PERSON_TYPE, waiting, part="/person"))
    return events


def open_questions(response: JobResponse, change: Change) -> Iterator[OpenQuestion]:
    """Yield what a person has to decide about the job of a response, as of a change."""
    for parameter in response.job_response_data or ():
        if parameter.id in {UNKNOWN_ID, HELD_ID} and parameter.subparameters:
            for subparameter in parameter.subparameters:
                reason = None if subparameter.value is None else str(subparameter.value)
                yield OpenQuestion(kind=parameter.id, action=subparameter.id, reason=reason)
        if parameter.id == INTERVENTIONS_ID and not has_ended(change.status):
            yield from _unconfirmed(parameter, utc(change.at))


def _unconfirmed(interventions: Parameter, at: datetime) -> Iterator[OpenQuestion]:
    """Yield the interventions that wait for a second person."""
    for parameter in interventions.subparameters or ():
        facts = {fact.id: str(fact.value) for fact in parameter.subparameters or ()}
        until = facts.get("waits_for_second_until")
        if until and datetime.fromisoformat(until) > at:
            reason = f"{facts['kind']}, asked for by {facts['by']}, until {until}: {facts.get('reason', '')}"
            yield OpenQuestion(kind=SECOND_ID, action=facts["subject"], reason=reason)


def _job_event(
    source: str, change: Change, job: Job | None, event_type: str, data: object, part: str = ""
) -> CloudEvent:
    return CloudEvent(
        id=f"{change.event_id}{part}",
        source=source,
        type=event_type,
        subject=change.scope,
        correlationid=job.correlation_id if job else None,
        causationid=job.causation_id or None if job else None,
        extensions=job.trace if job else {},
        data=data,
    )


def status_event(source: str, change: Change, job: Job | None, response: JobResponse | None) -> CloudEvent | None:
    """Return the event of a change (OPC 10031-4, 6.2.8); None for a change that is not a transition.

    The event of a change has the same id each time it is made.
    """
    if not is_transition(change.cause):
        return None
    order = job.order if job else JobOrder(job_order_id=change.job_order_id)
    status = JobStatusEvent(job_order=order, job_state=state_entries(change.status), job_response=response)
    return _job_event(source, change, job, STATUS_EVENT_TYPE, status)


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
            steps=tuple(StepProgress(step.step, step.active) for step in progress.steps),
            commands=tuple(
                CommandProgress(request.action, request.phase.value, request.attempt, request.type_id)
                for request in progress.requests
            ),
        ),
    )
