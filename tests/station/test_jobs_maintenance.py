"""During maintenance calls that start work are refused, and the same call works after it."""

import pytest

from edge.access.mode import ModeWatch
from edge.model.isa95 import IdCall, OrderCall, ReturnStatus
from edge.model.job_state import Cause, JobState
from edge.model.plant import Maintenance
from edge.station.job_call import JobCall
from edge.station.jobs import JobService
from edge.store import mode
from edge.store.client import Store
from tests.station.plant import DEDUPE_MS, SCOPE, Plant, order


async def switch(store: Store, to: Maintenance | None) -> None:
    await store.commit(mode.save(store.keys, await mode.load(store, "gw-1"), "", to))


@pytest.fixture
async def service(plant: Plant) -> JobService:
    watch = ModeWatch(plant.store, "gw-1")
    await watch.refresh()
    return JobService(plant.store, plant.runs, 100, DEDUPE_MS, mode=watch)


def store_and_start(job: str, *languages: str) -> JobCall:
    return JobCall(SCOPE, Cause.STORE_AND_START, OrderCall(job_order=order(job)), "mes", job, languages=languages)


async def test_same_call_is_refused_during_and_executed_after_maintenance(plant: Plant, service: JobService) -> None:
    # The watch has not seen the switch: the guard of the commit has.
    await switch(plant.store, Maintenance())
    answer = await service.call(store_and_start("J1", "de"))
    assert answer.status is ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER
    assert answer.reasons == ("Wartung: es wird keine Arbeit begonnen.",)
    await switch(plant.store, None)
    assert (await service.call(store_and_start("J1"))).status is ReturnStatus.NO_ERROR


@pytest.mark.parametrize(
    ("method", "before", "is_refused"),
    [
        (Cause.START, Cause.STORE, True),
        (Cause.CANCEL, Cause.STORE, False),
        (Cause.REVOKE_START, Cause.STORE_AND_START, False),
        (Cause.ABORT, Cause.STORE_AND_START, False),
    ],
)
async def test_only_calls_that_start_work_are_refused_in_maintenance(
    plant: Plant, service: JobService, method: Cause, before: Cause, *, is_refused: bool
) -> None:
    await plant.order(before, order("J1"))
    await switch(plant.store, Maintenance())
    answer = await service.call(JobCall(SCOPE, method, IdCall(job_order_id="J1"), "mes", "1"))
    assert (answer.status is ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER) is is_refused


async def test_order_may_be_stored_during_maintenance(plant: Plant, service: JobService) -> None:
    await switch(plant.store, Maintenance())
    job_call = JobCall(SCOPE, Cause.STORE, OrderCall(job_order=order("J1")), "mes", "1")
    assert (await service.call(job_call)).status is ReturnStatus.NO_ERROR


async def test_resume_of_a_paused_job_is_refused_in_maintenance(running: Plant) -> None:
    watch = ModeWatch(running.store, "gw-1")
    await watch.refresh()
    service = JobService(running.store, running.runs, 100, DEDUPE_MS, mode=watch)
    await running.ask(Cause.PAUSE, "J1")
    await switch(running.store, Maintenance(message="fire"))
    resume = JobCall(SCOPE, Cause.RESUME, IdCall(job_order_id="J1"), "mes", "r")
    assert (await service.call(resume)).reasons == ("fire",)
    assert (await running.job("J1")).status.state is JobState.INTERRUPTED
    await switch(running.store, None)
    assert (await service.call(resume)).status is ReturnStatus.NO_ERROR
