"""The event of a transition has the same id each time, with the state right after it."""

import asyncio

import pytest

from edge.model.event_types import STATUS_EVENT_TYPE
from edge.model.isa95 import JobOrder, JobStatusEvent, OrderCall, WorkMaster
from edge.model.job_state import Cause, JobState, JobStatus, SubState, state_entries
from edge.northbound.events import load_changed_job, status_event
from edge.station.jobs import JobCall, JobService
from edge.store import changes
from edge.store.changes import Change
from edge.store.client import Store
from tests.northbound.calling import SCOPE, WORK_MASTER, opened_station

ENDED = JobStatus(JobState.ENDED, SubState.CLOSED)


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


async def test_unreadable_job_is_not_reported(store: Store) -> None:
    await store.execute("HSET", store.keys.joborder("J1"), "order", "{")
    assert await load_changed_job(store, change(Cause.STOP)) is None
