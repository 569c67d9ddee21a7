"""The event of a transition has the same id each time, with the state right after it."""

import asyncio

import msgspec
import pytest

from edge.model.event_types import AWAITS_PERSON_TYPE, RESPONSE_UPDATE_TYPE, STATUS_EVENT_TYPE
from edge.model.isa95 import JobOrder, JobResponse, JobStatusEvent, OrderCall, Parameter, WorkMaster
from edge.model.job_state import Cause, JobState, JobStatus, SubState, state_entries
from edge.model.result_message import OpenQuestion
from edge.northbound.events import change_events, load_changed_job, status_event
from edge.station.job_call import JobCall
from edge.station.jobs import JobService
from edge.store import changes
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.jobs import Job
from tests.northbound.calling import SCOPE, WORK_MASTER, opened_station

ENDED = JobStatus(JobState.ENDED, SubState.CLOSED)
RUNNING = JobStatus(JobState.RUNNING)


def change(cause: Cause, status: JobStatus = ENDED) -> Change:
    return Change("7-0", SCOPE, "J1", cause, status, 1)


@pytest.mark.parametrize("cause", [Cause.STORE, Cause.STORE_AND_START, Cause.CANCEL, Cause.CLEAR])
def test_cause_without_transition_has_no_event(cause: Cause) -> None:
    assert status_event("/edge", change(cause), None, None) is None


def test_transition_of_a_removed_job_is_still_reported() -> None:
    event = status_event("/edge", change(Cause.STOP), None, None)
    assert event
    assert (event.id, event.type, event.subject) == (f"{SCOPE}/7-0", STATUS_EVENT_TYPE, SCOPE)
    assert event.data == JobStatusEvent(job_order=JobOrder(job_order_id="J1"), job_state=state_entries(ENDED))


async def test_the_response_has_the_state_right_after_the_change(store: Store) -> None:
    station = await opened_station(store)
    order = OrderCall(job_order=JobOrder(job_order_id="J1", work_master_id=(WorkMaster(id=WORK_MASTER.id),)))
    service = JobService(store, station.runs, max_job_orders=10, dedupe_ms=60_000)
    begin = await changes.latest(store, [SCOPE])
    async with station.at_work(), asyncio.timeout(60):
        await service.call(JobCall(SCOPE, Cause.STORE_AND_START, order, "/mes", "1"))
        async for stored in changes.follow(store, begin):
            if stored.status.state is JobState.RUNNING:
                break
    found = await load_changed_job(store, change(Cause.STOP))
    assert found
    job, response = found
    assert job
    assert job.job_id == "J1"
    assert response
    assert response.job_state == state_entries(ENDED)


JOB = Job(order=JobOrder(job_order_id="J1"), scope=SCOPE, status=ENDED, correlation_id="R1", stored_at=1)
RESPONSE = JobResponse(job_response_id="R1", job_order_id="J1", job_state=())


@pytest.mark.parametrize(
    ("question", "kind"),
    [("OutcomeUnknown", "OutcomeUnknown"), ("AwaitsIntervention", "AwaitsIntervention"), ("tighten", "")],
)
def test_changed_response_has_an_event_and_a_wait_for_a_person_too(question: str, kind: str) -> None:
    data = (Parameter(id=question, subparameters=(Parameter(id="tighten", value="jammed"),)),)
    response = msgspec.structs.replace(RESPONSE, job_response_data=data)
    update, *waits = change_events("/edge", change(Cause.RESULT_UPDATE), JOB, response)
    assert (update.id, update.type) == (f"{SCOPE}/7-0", RESPONSE_UPDATE_TYPE)
    assert update.data == JobStatusEvent(job_order=JOB.order, job_state=state_entries(ENDED), job_response=response)
    found = [(cloud_event.id, cloud_event.type, cloud_event.data.questions) for cloud_event in waits]
    asked = (OpenQuestion(kind=kind, action="tighten", reason="jammed"),)
    assert found == ([(f"{SCOPE}/7-0/person", AWAITS_PERSON_TYPE, asked)] if kind else [])


@pytest.mark.parametrize(
    ("state", "until", "is_asked"),
    [
        (RUNNING, "2026-01-02T03:05:00.000+00:00", True),
        (RUNNING, "2026-01-02T03:04:00.000+00:00", False),  # its time has passed
        (RUNNING, None, False),  # it is confirmed
        (ENDED, "2026-01-02T03:05:00.000+00:00", False),
    ],
)
def test_intervention_that_awaits_a_second_person_is_a_question(
    state: JobStatus, until: str | None, *, is_asked: bool
) -> None:
    facts = {"kind": "skip", "subject": "tighten", "by": "anna", "reason": "seen", "waits_for_second_until": until}
    note = Parameter(
        id="1", subparameters=tuple(Parameter(id=name, value=fact) for name, fact in facts.items() if fact)
    )
    data = (Parameter(id="Interventions", subparameters=(note,)),)
    response = msgspec.structs.replace(RESPONSE, job_response_data=data)
    moved = msgspec.structs.replace(change(Cause.RESULT_UPDATE), status=state, at=1_767_323_070_000)
    _, *waits = change_events("/edge", moved, JOB, response)
    asked = OpenQuestion(
        kind="AwaitsSecondPerson", action="tighten", reason=f"skip, asked for by anna, until {until}: seen"
    )
    assert [cloud_event.data.questions for cloud_event in waits] == ([(asked,)] if is_asked else [])


def test_changed_response_of_a_removed_job_has_no_event() -> None:
    assert change_events("/edge", change(Cause.RESULT_UPDATE), None, None) == ()


async def test_unreadable_job_is_not_reported(store: Store) -> None:
    await store.execute("HSET", store.keys.joborder("J1"), "order", "{")
    assert await load_changed_job(store, change(Cause.STOP)) is None
